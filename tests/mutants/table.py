"""The mutants: each is one way to lose privacy by a small change, with the test that must notice it.

A mutant replaces a text that occurs once in its file. `caught_by` is one test, `cargo` with its full name or `pytest`
with its node: a named test, so that a mutant which breaks something else does not count as understood.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["MUTANTS", "Mutant"]


class Mutant(NamedTuple):
    name: str
    file: str
    old: str
    new: str
    caught_by: str


PACKAGE = "python/dpmedian"
SIZES = "tests/test_private_size.py"
ACCOUNTING, LEDGER = f"{PACKAGE}/accounting", f"{PACKAGE}/ledger"

NOISE = [
    Mutant(
        "half the noise in the tape",
        "src/release/noise.rs",
        "DiscreteGaussian::new(sigma)",
        "DiscreteGaussian::new(sigma / 2)",
        "cargo release::streams::tests::noise_has_the_scale_that_was_asked_for",
    ),
    Mutant(
        "half the noise in the fused loop",
        "src/mechanism/descent.rs",
        "tape.gaussian(&self.name, &exact, self.noise_multiplier)",
        "tape.gaussian(&self.name, &exact, self.noise_multiplier / 2.0)",
        "cargo mechanism::descent::tests::every_step_is_one_release_with_the_noise_asked_for",
    ),
    Mutant(
        "half the noise in a Gaussian release",
        f"{PACKAGE}/mechanisms/gaussian.py",
        "tape.gaussian(self.name, exact, self.noise_multiplier)",
        "tape.gaussian(self.name, exact, self.noise_multiplier / 2.0)",
        "pytest tests/test_audit.py::test_no_release_shows_more_than_it_claims[gaussian]",
    ),
    Mutant(
        "half the noise of a descent",
        f"{PACKAGE}/mechanisms/gradient.py",
        "noise_multiplier=self.noise_multiplier,",
        "noise_multiplier=self.noise_multiplier / 2.0,",
        "pytest tests/test_audit.py::test_no_release_shows_more_than_it_claims[dpgd]",
    ),
    Mutant(
        "noise reused by the next release",
        "src/release/streams.rs",
        "self.next += 1;\n        self.next - 1",
        "self.next",
        "cargo release::streams::tests::noise_depends_on_the_key_and_the_place_only",
    ),
    Mutant(
        "noise reused by the next block",
        "src/release/streams.rs",
        "self.stream(release, block as u64)",
        "self.stream(release, 0 * block as u64)",
        "cargo release::streams::tests::noise_depends_on_the_key_and_the_place_only",
    ),
    Mutant(
        "the same key for every run",
        "src/release/streams.rs",
        "getrandom::fill(&mut key)?;",
        "",
        "cargo release::streams::tests::no_two_keys_of_the_system_are_alike",
    ),
    Mutant(
        "a Gaussian that accepts every candidate of a cell",
        "src/sampler/gaussian.rs",
        "candidate.bits > 2 * cell || self.second_coin(cell, candidate.magnitude, rng)",
        "candidate.bits < 512 || self.second_coin(cell, candidate.magnitude, rng)",
        "cargo sampler::gaussian::tests::every_place_of_a_cell_has_its_mass",
    ),
    Mutant(
        "a Gaussian that is zero too often",
        "src/sampler/gaussian.rs",
        "(inside && !minus_zero)",
        "(inside || minus_zero)",
        "cargo sampler::tests::the_discrete_gaussian_has_its_masses_symmetry_and_zero",
    ),
    Mutant(
        "cells that are one word too likely",
        "src/sampler/cells.rs",
        "parts[cell] = (weight >> 56) as u64;",
        "parts[cell] = (weight >> 56) as u64 + 1;",
        "cargo sampler::cells::tests::every_whole_part_is_that_of_its_weight",
    ),
    Mutant(
        "a comparison that decides too early",
        "src/sampler/cells.rs",
        "add(&mut sum, &[1, 0, 0, 0, 0]);",
        "",
        "cargo sampler::cells::tests::comparisons_are_decided_outside_of_four_words_and_never_wrongly",
    ),
    Mutant(
        "Laplace noise that is zero too often",
        "src/sampler/laplace.rs",
        "if !(negative && magnitude == 0) {",
        "if true {",
        "cargo sampler::tests::geometric_and_laplace_have_their_masses",
    ),
    Mutant(
        "geometric noise of twice the rate",
        "src/sampler/geometric.rs",
        "while exp_minus_one(rng) {",
        "while exp_minus_one(rng) && exp_minus_one(rng) {",
        "cargo sampler::tests::geometric_and_laplace_have_their_masses",
    ),
]

SENSITIVITY = [
    Mutant(
        "a robust step that counts long differences more",
        "src/statistics/robust_step.rs",
        "squares.sqrt().max(self.threshold)",
        "squares.sqrt().min(self.threshold.max(1.0))",
        "cargo statistics::robust_step::tests::a_clipped_record_moves_the_sum_by_at_most_one",
    ),
    Mutant(
        "robust step sensitivity 1 instead of 2",
        "src/statistics/robust_step.rs",
        "Gradient::bound(d, bits)",
        "Sensitivity::of_sum(f64::from(bits).exp2(), f64::from(bits).exp2()).weighted(d as f64)",
        "cargo statistics::robust_step::tests::a_record_that_turns_around_needs_the_rounding_in_the_sensitivity",
    ),
    Mutant(
        "a record that is no number joins the sum",
        "src/statistics/robust_step.rs",
        "if largest.iter().any(|x| x.1.is_nan()) {\n            return false;\n        }",
        "",
        "cargo statistics::robust_step::tests::a_record_that_is_no_number_is_not_there",
    ),
    Mutant(
        "a sum of records that arrive wraps around",
        "src/statistics/robust_step.rs",
        "total.saturating_add(*x)",
        "total.wrapping_add(*x)",
        "cargo statistics::robust_step::tests::more_records_than_64_bits_hold_saturate",
    ),
    Mutant(
        "a client's update shortened by the length of another update",
        f"{PACKAGE}/flower_messages.py",
        "shortening(lengths[-1])",
        "shortening(lengths[0])",
        "pytest tests/test_flower.py::test_the_record_of_a_client_is_shortened_by_its_own_length_alone",
    ),
    Mutant(
        "gradient sensitivity 1 instead of 2",
        "src/statistics/gradient.rs",
        "(2.0 * unit + d.sqrt()",
        "(unit + d.sqrt()",
        "cargo statistics::gradient::tests::a_replaced_record_moves_the_gradient_by_at_most_the_sensitivity",
    ),
    Mutant(
        "gradient sensitivity without the rounding",
        "src/statistics/gradient.rs",
        "(2.0 * unit + d.sqrt() + (d + 6.0) * unit * f64::EPSILON) * (1.0 + 4.0 * f64::EPSILON)",
        "2.0 * unit + 0.0 * d",
        "cargo statistics::gradient::tests::a_record_that_turns_around_needs_the_rounding_in_the_sensitivity",
    ),
    Mutant(
        "the Hessian of a replaced record as if it were added",
        "src/statistics/hessian.rs",
        ".max(weight.powi(2)).max(2.0).sqrt()",
        ".max(weight.powi(2)).sqrt()",
        "cargo statistics::tests::sensitivities_are_those_of_the_proofs",
    ),
    Mutant(
        "a curvature that costs nothing at any weight",
        "src/statistics/hessian.rs",
        "let sum = |q: f64| 1.0 + (weight * q).powi(2);",
        "let sum = |q: f64| 1.0 + q.powi(2).min(weight);",
        "cargo statistics::tests::sensitivities_are_those_of_the_proofs",
    ),
    Mutant(
        "shells without their directions",
        "src/statistics/shells.rs",
        "let square = 1.0 + (weight * (1.0 + vector_rounding(d)).powi(2)).powi(2);",
        "let square = (weight * (1.0 + vector_rounding(d)).powi(2)).powi(2).max(1.0);",
        "cargo statistics::shells::tests::the_sensitivities_are_attained",
    ),
    Mutant(
        "a cell of a replaced record as if it were added",
        "src/statistics/grid_cells.rs",
        "Ok(Sensitivity::of_sum(unit, (unit * std::f64::consts::SQRT_2).next_up()))",
        "Ok(Sensitivity::of_sum(unit, unit))",
        "cargo statistics::grid_cells::tests::the_sensitivities_are_attained",
    ),
    Mutant(
        "a record that turns around its center as if it were added",
        "src/statistics/cluster_gradients.rs",
        "up((4.0 + 2.0 * b * b).sqrt())",
        "up((1.0 + a * a + b * b).sqrt())",
        "cargo statistics::cluster_gradients::tests::a_record_moves_it_by_at_most_the_sensitivity",
    ),
    Mutant(
        "Huber gradients that are not clipped",
        "src/statistics/cluster_gradients.rs",
        "let divisor = distance.max(self.radii[index]);",
        "let divisor = distance.min(self.radii[index]).max(RADIUS_MIN);",
        "cargo statistics::cluster_gradients::tests::a_record_moves_it_by_at_most_the_sensitivity",
    ),
    Mutant(
        "a record that has directions within the radius",
        "src/statistics/second_moments.rs",
        "if distance > radius { beyond } else { 0.0 }",
        "if distance > 0.5 * radius { beyond } else { 0.0 }",
        "cargo statistics::hessian::tests::one_record_gives_its_curvature_and_the_products_of_its_direction",
    ),
    Mutant(
        "a full block whose sums are converted with an error",
        "src/statistics/second_moments.rs",
        "*entry += sum as i64;",
        "*entry += (sum + ROUNDER).to_bits().wrapping_sub(ROUNDER.to_bits()).cast_signed();",
        "cargo statistics::second_moments::tests::"
        "a_full_block_of_equal_directions_is_summed_exactly_on_every_instruction_set",
    ),
    Mutant(
        "directions that are free at any weight",
        "src/statistics/directions.rs",
        "pub const WEIGHT_MAX: f64 = std::f64::consts::FRAC_1_SQRT_2;",
        "pub const WEIGHT_MAX: f64 = 2.0;",
        "cargo statistics::directions::tests::a_larger_weight_has_no_proof",
    ),
    Mutant(
        "directions that are free where a record is added",
        "src/statistics/directions.rs",
        "Sensitivity::of_sum(up(one), up(replaced))",
        "Sensitivity::of_sum(up(1.0), up(replaced))",
        "cargo statistics::directions::tests::a_replaced_record_moves_it_by_at_most_the_sensitivity",
    ),
    Mutant(
        "a float sum instead of the lattice",
        "src/statistics/mean_shift.rs",
        "*sum += (x * inverse + rounder) - rounder;",
        "*sum += x * inverse;",
        "cargo statistics::mean_shift::tests::the_sum_is_the_same_however_it_is_split",
    ),
    Mutant(
        "unsafe normalisation",
        "src/statistics/gradient.rs",
        "} else if rescale(&mut difference).is_some() {",
        "} else if squares > 0.0 || rescale(&mut difference).is_some() {",
        "cargo statistics::gradient::tests::a_record_contributes_a_unit_vector_at_every_magnitude",
    ),
    Mutant(
        "a replay that does not compare values",
        "src/release/recording.rs",
        "if distance > request.sensitivity {",
        "if distance > f64::INFINITY {",
        "cargo release::recording::tests::a_replay_refuses_what_does_not_match",
    ),
    Mutant(
        "a replay that does not compare requests",
        "src/release/recording.rs",
        "if entry.request != *request || entry.exact.len() != exact.len() {",
        "if entry.exact.len() != exact.len() {",
        "cargo release::recording::tests::a_replay_refuses_what_does_not_match",
    ),
    Mutant(
        "records are not projected",
        "src/runtime/admission.rs",
        "ball.project(record);",
        "",
        "cargo runtime::admission::tests::records_are_clamped_and_projected",
    ),
    Mutant(
        "records that must be mapped are loaded as they are",
        "src/runtime/points.rs",
        "admission.apply(target, self.d());",
        "",
        "cargo runtime::points::tests::doubles_are_read_where_they_lie_unless_one_of_them_must_be_changed",
    ),
    Mutant(
        "singles are not looked at",
        "src/runtime/memory.rs",
        "dispatch::vectorised(Finite(&all[self.coordinates(records)])),",
        "!records.is_empty() || dispatch::vectorised(Finite(&all[self.coordinates(records)])),",
        "cargo runtime::admission::tests::the_first_non_finite_coordinate_is_named",
    ),
    Mutant(
        "an answer of another process is taken for any query",
        "src/release/message.rs",
        "if about != [query.identity()] {",
        "if about.len() != 1 {",
        "cargo release::message::tests::an_answer_to_another_query_is_refused",
    ),
    Mutant(
        "an answer about a file that changed",
        "src/statistics/mod.rs",
        "points.check().map_err(Error::Unreadable)?;",
        "",
        "cargo runtime::record_file::tests::no_answer_is_given_about_a_file_that_was_cut_off",
    ),
    Mutant(
        "iterates are not projected",
        "src/mechanism/descent.rs",
        "self.feasible.project(&mut theta);",
        "",
        "cargo mechanism::descent::tests::iterates_stay_in_the_feasible_set",
    ),
]

COST = [
    Mutant(
        "cost counted once instead of T times",
        f"{PACKAGE}/mechanisms/gaussian.py",
        "self.sigma, self.coordinates, self.releases)",
        "self.sigma, self.coordinates, 1)",
        "pytest tests/test_replay.py::test_the_claimed_cost_is_that_of_the_recorded_releases",
    ),
    Mutant(
        "releases do not add up",
        f"{ACCOUNTING}/cost.py",
        "mu_squared=up(up(ratio * ratio) * integer_up(releases))",
        "mu_squared=up(up(ratio * ratio))",
        "pytest tests/test_accounting.py::test_gaussian_cost_rounds_to_the_private_side",
    ),
    Mutant(
        "costs add up to the larger one",
        f"{ACCOUNTING}/cost.py",
        "mu_squared=sum_up(cost.mu_squared for cost in costs)",
        "mu_squared=max((cost.mu_squared for cost in costs), default=0.0)",
        "pytest tests/test_neighbours.py::test_costs_of_different_relations_or_units_do_not_add_up",
    ),
    Mutant(
        "pure steps do not count",
        f"{ACCOUNTING}/cost.py",
        "*(pure_rho(epsilon) for epsilon in self.pure_epsilons),",
        "",
        "pytest tests/test_accounting.py::test_rho_of_the_parts",
    ),
    Mutant(
        "discrete noise taken for continuous",
        f"{ACCOUNTING}/composition.py",
        "return composed(epsilon) + (1.0 + math.exp(epsilon)) * discretization",
        "return composed(epsilon)",
        "pytest tests/test_accounting.py::test_discrete_noise_is_never_below_dp_accounting",
    ),
    Mutant(
        "the distance of discrete noise to leading order",
        f"{ACCOUNTING}/cost.py",
        "share = 40.0 if sigma >= 7.0 else 19.0",
        "share = 40.0",
        "pytest tests/test_accounting.py::test_discrete_gaussian_is_within_the_claim_of_a_rounded_one",
    ),
    Mutant(
        "losses rounded to nearest",
        f"{ACCOUNTING}/losses.py",
        "return total if one == 0.0 or other == 0.0 else up(total)",
        "return total",
        "pytest tests/test_accounting.py::test_losses_that_are_rounded_do_not_lower_delta",
    ),
    Mutant(
        "a bounded-range step taken for half a pure one",
        f"{ACCOUNTING}/cost.py",
        "return sum_up((*self.pure_epsilons, *self.bounded_ranges))",
        "return sum_up((*self.pure_epsilons, *(eta / 2.0 for eta in self.bounded_ranges)))",
        "pytest tests/test_accounting.py::test_bounded_range_step_covers_every_exponential_mechanism",
    ),
    Mutant(
        "a pure step taken for a Gaussian of the same epsilon",
        f"{ACCOUNTING}/normal.py",
        "    return max((mu * _QUANTILE_MARGIN) ** 2, LEAST)",
        "    return epsilon**2",
        "pytest tests/test_neighbours.py::test_a_gaussian_dominates_the_step",
    ),
    Mutant(
        "the approximate part is forgotten",
        f"{ACCOUNTING}/cost.py",
        "up(self.delta0 + (1.0 - self.delta0) * rest * DELTA_MARGIN)",
        "up(rest * DELTA_MARGIN)",
        "pytest tests/test_accounting.py::test_approximate_part_is_added_once",
    ),
    Mutant(
        "calibration stops on the wrong side",
        f"{ACCOUNTING}/search.py",
        "            moved = 1\n    return good",
        "            moved = 1\n    return bad",
        "pytest tests/test_accounting.py::test_calibrated_cost_fits_and_slightly_more_does_not",
    ),
    Mutant(
        "costs of different relations add up",
        f"{ACCOUNTING}/cost.py",
        "            first._require_alike(cost)\n",
        "            pass\n",
        "pytest tests/test_neighbours.py::test_costs_of_different_relations_or_units_do_not_add_up",
    ),
    Mutant(
        "a group of k costs k times mu squared",
        f"{ACCOUNTING}/cost.py",
        "mu_squared=product_up(k * k, self.mu_squared)",
        "mu_squared=product_up(k, self.mu_squared)",
        "pytest tests/test_neighbours.py::test_a_group_is_covered_by_enumeration",
    ),
    Mutant(
        "a cost under replace passes for one under add_remove",
        f"{ACCOUNTING}/cost.py",
        "        if self.protection.relation is REPLACE:\n",
        "        return replace(self, neighbours=neighbours)\n        if self.protection.relation is REPLACE:\n",
        "pytest tests/test_neighbours.py::test_a_replacement_is_a_removal_and_an_addition",
    ),
]

FILTERS = [
    Mutant(
        "later costs are composed exactly",
        f"{LEDGER}/filters.py",
        "return dominating is not None and self.budget.fits(dominating, rounding=TOLERANCE)",
        "return self.budget.fits(PrivacyCost.total(costs), rounding=TOLERANCE)",
        "pytest tests/test_filters.py::test_the_example_does_not_get_through_a_filter",
    ),
    Mutant(
        "discretization has no cap",
        f"{LEDGER}/filters.py",
        " or sum_up(c.discretization for c in later) > _reserve(self.budget):",
        ":",
        "pytest tests/test_filters.py::test_discretization_has_its_own_share_of_delta",
    ),
    Mutant(
        "creation replaces what it did not see",
        f"{LEDGER}/store.py",
        "os.link(fresh, self.path)",
        "shutil.copy(fresh, self.path)",
        "pytest tests/test_ledger.py::test_creation_leaves_a_ledger_alone_that_it_did_not_see",
    ),
    Mutant(
        "a ledger charges another relation as it is",
        f"{LEDGER}/conversion.py",
        "    return cost.under(neighbours)\n",
        "    return __import__('dataclasses').replace(cost, neighbours=neighbours)\n",
        "pytest tests/test_ledger.py::test_a_ledger_converts_what_can_be_converted",
    ),
    Mutant(
        "units of any size replace each other",
        f"{ACCOUNTING}/protection.py",
        "if self.relation.size_is_public and exactly is not True:",
        "if False:",
        "pytest tests/test_neighbours.py::test_how_many_rows_one_unit_can_change_by_enumeration",
    ),
    Mutant(
        "a lock of a file without a name counts",
        f"{LEDGER}/store.py",
        "if _has_name(file.fileno(), path):",
        "if True:",
        "pytest tests/test_ledger.py::test_a_process_that_waited_for_a_replaced_file_waits_for_the_new_one",
    ),
    Mutant(
        "only a file that can be deleted is locked",
        f"{LEDGER}/store.py",
        "with self._lock(), self._content_lock():",
        "with self._lock():",
        "pytest tests/test_ledger.py::test_a_deleted_lock_file_lets_nobody_in",
    ),
]

ORDER = [
    Mutant(
        "charged after the run",
        f"{LEDGER}/charging.py",
        "    charge = account.charge(name or method, method, cost, seeded=seeded, record=record)\n",
        "    yield\n    charge = account.charge(name or method, method, cost)\n    return\n",
        "pytest tests/test_wall.py::test_the_full_cost_is_pending_before_the_first_release",
    ),
    Mutant(
        "never charged",
        f"{LEDGER}/charging.py",
        "    charge = account.charge(name or method, method, cost, seeded=seeded, record=record)\n",
        "    charge = Unrecorded().charge(name or method, method, cost)\n",
        "pytest tests/test_wall.py::test_the_full_cost_is_pending_before_the_first_release",
    ),
    Mutant(
        "a failure costs what it says, not what was planned",
        f"{LEDGER}/charging.py",
        'failed.cost = ran if mark("failed", failed, ran) and ran is not None else cost',
        'mark("failed", failed, ran)',
        "pytest tests/test_wall.py::test_a_failure_carries_the_full_planned_cost_and_stays_charged",
    ),
    Mutant(
        "a failure that is not an output",
        f"{LEDGER}/ledger.py",
        "return [entry.cost for entry in entries]",
        'return [entry.cost for entry in entries if entry.state != "failed"]',
        "pytest tests/test_ledger.py::test_every_state_counts_as_spent",
    ),
    Mutant(
        "check and charge are two steps",
        f"{LEDGER}/ledger.py",
        "            self._require(log.entries, cost, requested)\n            left",
        "            left",
        "pytest tests/test_ledger.py::test_racing_threads_cannot_overspend",
    ),
]

ABOVE_THRESHOLD = f"{PACKAGE}/mechanisms/above_threshold.py"
EXPONENTIAL = f"{PACKAGE}/mechanisms/exponential.py"
BISECTION = f"{PACKAGE}/mechanisms/bisection.py"

MECHANISMS = [
    Mutant(
        "no noise on the threshold",
        ABOVE_THRESHOLD,
        'bar = draw(f"{self.name}: threshold", center, self.threshold_rate)[0]',
        "bar = threshold + self.recentring",
        "pytest tests/test_above_threshold.py::test_the_program_draws_the_enumerated_distribution",
    ),
    Mutant(
        "a fresh threshold for every query",
        ABOVE_THRESHOLD,
        "        for index, query in enumerate(queries):\n",
        "        for index, query in enumerate(queries):\n"
        '            bar = draw(f"{self.name}: threshold", center, self.threshold_rate)[0]\n',
        "pytest tests/test_above_threshold.py::test_the_program_draws_the_enumerated_distribution",
    ),
    Mutant(
        "queries noised like the threshold",
        ABOVE_THRESHOLD,
        "exact = self.sensitivity * (Fraction(*self.threshold_rate) + 2 * Fraction(*self.query_rate))",
        "exact = self.sensitivity * (Fraction(*self.threshold_rate) + Fraction(*self.query_rate))",
        "pytest tests/test_above_threshold.py::test_the_worst_log_ratio_of_the_exponential_form_equals_the_claim",
    ),
    Mutant(
        "above threshold at twice its epsilon",
        ABOVE_THRESHOLD,
        "math.ldexp(e, _RATE_BITS)",
        "math.ldexp(e, _RATE_BITS + 1)",
        "pytest tests/test_above_threshold.py::test_the_worst_log_ratio_of_the_exponential_form_equals_the_claim",
    ),
    Mutant(
        "no noise on the queries",
        ABOVE_THRESHOLD,
        'draw(f"{self.name}: query", query, self.query_rate)[0] >= bar',
        'draw(f"{self.name}: query", query, (2**62, 1))[0] >= bar',
        "pytest tests/test_audit.py::test_no_release_shows_more_than_it_claims[above_threshold-laplace]",
    ),
    Mutant(
        "a bisection that makes one query more than it pays for",
        BISECTION,
        "for _ in range(self.count.releases):",
        "for _ in range(self.count.releases + 1):",
        "pytest tests/test_above_threshold.py::test_bisection_reaches_every_index_with_the_same_number_of_queries",
    ),
    Mutant(
        "a choice of twice the rate",
        "src/sampler/choice.rs",
        "above * u128::from(self.p)",
        "2 * above * u128::from(self.p)",
        "cargo sampler::tests::choices_have_their_weights",
    ),
    Mutant(
        "a choice paid at half its range",
        EXPONENTIAL,
        "PrivacyCost.bounded_range(self.eta)",
        "PrivacyCost.bounded_range(self.eta / 2.0)",
        "pytest tests/test_audit.py::test_no_release_shows_more_than_it_claims[exponential_mechanism]",
    ),
    Mutant(
        "the range of a selection is the diameter, not twice",
        "src/statistics/objective_differences.rs",
        "(2.0 * units * (1.0",
        "(units * (1.0",
        "cargo statistics::objective_differences::tests::a_replaced_record_moves_differences_by_at_most_the_range",
    ),
    Mutant(
        "a selection by distances that cancel",
        "src/statistics/objective_differences.rs",
        "inner(shift, &p, &q) / (p_squares.sqrt() + q_squares.sqrt())",
        "scale(p_squares.sqrt() - q_squares.sqrt(), -self.candidates.exponent())",
        "cargo statistics::objective_differences::tests::far_records_keep_their_digits",
    ),
    Mutant(
        "a replay that does not compare the range of a choice",
        "src/release/noise.rs",
        "moved().max().unwrap_or(0) - moved().min().unwrap_or(0)",
        "moved().max().unwrap_or(0) - moved().max().unwrap_or(0)",
        "cargo release::recording::tests::a_choice_is_an_index_and_its_replay_bounds_the_range",
    ),
]

LOC_DPGD_COST = (
    "pytest tests/test_loc_dpgd.py::test_the_recorded_releases_of_the_gaussian_stages_cost_what_the_plan_says"
)

METHODS = [
    Mutant(
        "the selection of the cutting plane is free",
        f"{PACKAGE}/methods/paper/loc_cutting_plane.py",
        "            self.selection.stage(self.parameters.neighbours),\n",
        "",
        "pytest tests/contract/test_methods.py::test_the_recorded_cost_is_the_charged_cost[loc_cutting_plane-replace]",
    ),
    Mutant(
        "half the range of a selection",
        "src/release/tape.rs",
        "Ok((p as u64, range << bits))",
        "Ok((p as u64, range << bits >> 1))",
        "cargo release::tape::tests::the_rate_of_a_choice_spends_at_most_eta",
    ),
    Mutant(
        "the choice at twice its eta",
        EXPONENTIAL,
        "tape.choose(self.name, scores, self.eta, at_least)",
        "tape.choose(self.name, scores, 2.0 * self.eta, at_least)",
        "pytest tests/contract/test_methods.py::test_the_recorded_cost_is_the_charged_cost[loc_cutting_plane-replace]",
    ),
    Mutant(
        "fine-tuning repeats the queries that the burn-in has paid for",
        f"{PACKAGE}/methods/paper/loc_dpgd.py",
        "rest = self.gradient.releases - first",
        "rest = self.gradient.releases",
        LOC_DPGD_COST,
    ),
    Mutant(
        "one round of localization is paid for",
        f"{PACKAGE}/methods/paper/localize.py",
        "releases=rounds * self.steps",
        "releases=self.steps",
        LOC_DPGD_COST,
    ),
    Mutant(
        "localization descends for free",
        f"{PACKAGE}/methods/paper/localize.py",
        "return (*self.finder.stages, descent)",
        "return self.finder.stages",
        "pytest tests/contract/test_methods.py::test_the_recorded_cost_is_the_charged_cost[loc_dpgd-replace]",
    ),
    Mutant(
        "a record counts in one pairing only",
        "src/statistics/pair_counts.rs",
        "let pairings = pairings as f64;",
        "let pairings = (pairings as f64).min(1.0);",
        "cargo statistics::tests::sensitivities_are_those_of_the_proofs",
    ),
    Mutant(
        "the replaced record's own ball is forgotten",
        "src/statistics/ball_counts/mod.rs",
        "(m as f64 + n as f64 - 2.0)",
        "(m as f64 + 0.0 * n as f64)",
        "cargo statistics::tests::sensitivities_are_those_of_the_proofs",
    ),
    Mutant(
        "early cuts with the smaller noise of the late ones",
        f"{PACKAGE}/methods/paper/loc_cutting_plane.py",
        "for gradient in (self.early, self.late):\n            for _ in range(gradient.releases):",
        "for gradient in (self.late, self.late):\n            for _ in range(gradient.releases):",
        "pytest tests/test_cutting_plane.py::test_the_claimed_cost_is_that_of_the_recorded_releases",
    ),
    Mutant(
        "ranks of many coordinates with the sensitivity of one",
        "src/statistics/ranks.rs",
        "let root = (d as f64).sqrt().next_up();",
        "let root = (d.min(1) as f64).next_up();",
        "cargo statistics::tests::sensitivities_are_those_of_the_proofs",
    ),
    Mutant(
        "a mean shift over records beyond its radius",
        "src/statistics/mean_shift.rs",
        "if distance <= self.radius {",
        "if distance <= 2.0 * self.radius {",
        "cargo statistics::mean_shift::tests::only_records_within_the_radius_count",
    ),
    Mutant(
        "a search that makes one query more than it pays for",
        f"{PACKAGE}/mechanisms/coordinates.py",
        "while queries < self.ranks.releases:",
        "while queries <= self.ranks.releases:",
        "pytest tests/test_adaptive.py::test_a_run_spends_all_of_its_cap_and_never_more",
    ),
    Mutant(
        "the cost of queries that were made is given back",
        f"{PACKAGE}/mechanisms/spender.py",
        "* (made.releases - found.queries) / made.releases",
        "* 1.0",
        "pytest tests/test_adaptive.py::test_a_run_spends_all_of_its_cap_and_never_more",
    ),
    Mutant(
        "a release that is not paid",
        f"{PACKAGE}/mechanisms/spender.py",
        "self._mu_squared, self._used[offer] = after, ",
        "self._mu_squared, self._used[offer] = self._mu_squared + 0.9 * made.cost.mu_squared, ",
        "pytest tests/test_adaptive.py::test_a_run_spends_all_of_its_cap_and_never_more",
    ),
]

INVERSE_SENSITIVITY = [
    Mutant(
        "weights by epsilon, not by half of it",
        f"{PACKAGE}/mechanisms/inverse_sensitivity.py",
        "Fraction(epsilon) * 2 ** (_RATE_BITS - 1)",
        "Fraction(epsilon) * 2**_RATE_BITS",
        "pytest tests/test_inverse_sensitivity.py::test_no_outcome_tells_more_than_epsilon_on_any_neighbours[2]",
    ),
    Mutant(
        "a score that counts a record twice",
        "src/mechanism/inverse_sensitivity/rate.rs",
        "SCORE_BITS: u32 = 31",
        "SCORE_BITS: u32 = 30",
        "cargo mechanism::inverse_sensitivity::tests::two_dimensions_have_the_enumerated_distribution",
    ),
    Mutant(
        "a record longer than its weight",
        "src/mechanism/inverse_sensitivity/score.rs",
        "(ROUNDER + 2.0)",
        "(ROUNDER - 1.0)",
        "cargo mechanism::inverse_sensitivity::score::tests::a_rounded_record_is_no_longer_than_its_weight",
    ),
    Mutant(
        "bounds that trust the expansion",
        "src/mechanism/inverse_sensitivity/bound.rs",
        "* along - self.charge - slack(n)",
        "* along - slack(n)",
        "cargo mechanism::inverse_sensitivity::bound::tests::bounds_are_below_every_score_inside",
    ),
    Mutant(
        "proposals kept without their coin",
        "src/mechanism/inverse_sensitivity/partition.rs",
        "if self.rate.keep(score, leaf.halvings).sample(rng) {",
        "if self.rate.keep(score, leaf.halvings).sample(rng) || true {",
        "cargo mechanism::inverse_sensitivity::tests::three_dimensions_have_the_enumerated_distribution",
    ),
    Mutant(
        "light groups kept without their coin",
        "src/mechanism/inverse_sensitivity/envelope.rs",
        "if excess == 0 {",
        "if excess < 1000 {",
        "cargo mechanism::inverse_sensitivity::envelope::tests::light_groups_pay_their_ceiling_by_a_coin",
    ),
    Mutant(
        "a replayed draw that is not compared",
        "src/release/recording.rs",
        "map(|entry| selection.score(&entry.noisy))",
        "map(|entry| entry.exact[0])",
        "cargo release::recording::tests::a_replayed_draw_compares_the_scores_of_the_recorded_candidate",
    ),
]

UNITS = [
    Mutant(
        "a sort that does not keep the order of a unit's rows",
        "src/preprocess/reduce.rs",
        "in codes.iter().enumerate().filter(",
        "in codes.iter().enumerate().cycle().skip(codes.len() / 2).take(codes.len()).filter(",
        "cargo preprocess::reduce::tests::a_record_depends_on_its_own_rows_only",
    ),
    Mutant(
        "ids that are digested",
        "src/preprocess/labels.rs",
        "ranked(labels.iter().copied(), there(labels.len(), missing))",
        "ranked(labels.iter().map(|id| id % 1_000_003), there(labels.len(), missing))",
        "cargo preprocess::labels::tests::a_million_labels_that_differ_in_one_bit_stay_apart",
    ),
    Mutant(
        "an empty unit that vanishes where the number of units is public",
        f"{PACKAGE}/sources/units.py",
        "return replace(rows, array=array, unit=label, weights=own)",
        "return replace(rows, array=array[~np.isnan(array).any(axis=1)], unit=label, weights=own)",
        "pytest tests/test_units.py::test_an_empty_unit_is_a_record_at_the_center",
    ),
    Mutant(
        "rows without an id left out where the number of units is public",
        f"{PACKAGE}/sources/units.py",
        "if row is None or not relation.size_is_public:",
        "if True:",
        "pytest tests/test_units.py::test_what_is_no_id_is_missing[None]",
    ),
    Mutant(
        "the cost of a unit stated as that of a record",
        f"{PACKAGE}/planning/plan.py",
        "neighbours=self.parameters.neighbours, unit=self.parameters.unit)",
        "neighbours=self.parameters.neighbours)",
        "pytest tests/test_units.py::test_the_cost_is_that_of_a_unit",
    ),
    Mutant(
        "a unit in as many groups as it likes",
        "src/preprocess/groups.rs",
        "counts.truncate(most);",
        "counts.truncate(most.max(2));",
        "cargo preprocess::groups::tests::what_a_unit_contributes_does_not_depend_on_the_other_units",
    ),
    Mutant(
        "several groups of a unit charged as one",
        f"{PACKAGE}/accounting/parallel.py",
        "PrivacyCost.total([bound_of(costs)] * most)",
        "PrivacyCost.total([bound_of(costs)])",
        "pytest tests/test_groups.py::test_a_unit_in_several_groups_pays_for_each",
    ),
    Mutant(
        "groups of a unit calibrated as if it had one",
        f"{PACKAGE}/groups/plan.py",
        "alone = most == len(different) == 1 and not relation_of(neighbours).size_is_public",
        "alone = len(different) == 1 and not relation_of(neighbours).size_is_public",
        "pytest tests/test_groups.py::test_a_unit_in_several_groups_pays_for_each",
    ),
    Mutant(
        "groups charged the sum of their costs",
        f"{PACKAGE}/accounting/parallel.py",
        "total = PrivacyCost.total([bound_of(costs)] * most)",
        "total = PrivacyCost.total([PrivacyCost.total(costs)] * most)",
        "pytest tests/test_groups.py::test_the_number_of_groups_does_not_matter_for_the_cost",
    ),
    Mutant(
        "a minimum of the exact size",
        f"{PACKAGE}/groups/plan.py",
        "if self.minimum is not None and size is not None and size < self.minimum:",
        "if self.minimum is not None and size is not None and len(grouped.records.array) < self.minimum:",
        "pytest tests/test_groups.py::test_the_minimum_is_compared_with_the_noisy_size",
    ),
    Mutant(
        "keys without a row left out of the result",
        f"{PACKAGE}/groups/plan.py",
        "order = dict(enumerate(self.keys))",
        "order = {i: key for i, key in enumerate(self.keys) if i in grouped.occurring}",
        "pytest tests/test_groups.py::test_every_key_has_a_value_and_every_other_label_is_left_out",
    ),
    Mutant(
        "one noise for all groups",
        f"{PACKAGE}/groups/plan.py",
        "session.part(plan.cost, _label(key))",
        "session.part(plan.cost, _label(index))",
        "pytest tests/test_groups.py::test_groups_have_the_same_bits_in_processes_and_without",
    ),
    Mutant(
        "groups that run before they are charged",
        f"{PACKAGE}/groups/plan.py",
        "        with session, session.spent():\n",
        "        self._listed(0, session, next(self._blocks(grouped, [0], nonfinite))[0])\n"
        "        with session, session.spent():\n",
        "pytest tests/test_groups.py::test_no_group_runs_before_the_charge",
    ),
    Mutant(
        "a tape before the charge",
        f"{PACKAGE}/running.py",
        """        self.require_open()
        if self._tape is None:""",
        "        if self._tape is None:",
        "pytest tests/test_allowance.py::test_a_session_answers_within_its_block_and_is_charged_once",
    ),
    Mutant(
        "a session that pays for no query",
        f"{PACKAGE}/sessions.py",
        "        self._spent.add(made.cost.mu_squared)\n",
        "",
        "pytest tests/test_session.py::test_a_query_beyond_the_budget_is_refused_and_the_session_goes_on",
    ),
    Mutant(
        "a trace with noisy values that are only compared",
        "src/release/trace.rs",
        "Noise::Laplace { .. } | Noise::Geometric { .. } => return,",
        'Noise::Laplace { .. } | Noise::Geometric { .. } => "compared",',
        "cargo release::trace::tests::a_trace_has_what_was_released_and_nothing_else",
    ),
    Mutant(
        "a ball that counts its records twice",
        "src/statistics/ball_size.rs",
        "i64::from(distance <= self.radius)",
        "2 * i64::from(distance <= self.radius)",
        "cargo statistics::ball_size::tests::records_at_the_radius_are_inside",
    ),
    Mutant(
        "a group of one that is shown too often",
        f"{PACKAGE}/accounting/threshold.py",
        "units = ((2 * threshold - 3) << bits) >> 1",
        "units = ((2 * threshold + 3) << bits) >> 1",
        "pytest tests/test_unlisted_keys.py::test_no_unit_added_or_removed_shows_more_than_the_claim",
    ),
    Mutant(
        "the delta of one group for all that a unit is in",
        f"{PACKAGE}/groups/plan.py",
        "found = share / most\n    while product_up(most, found) > share:",
        "found = share\n    while product_up(1, found) > share:",
        "pytest tests/test_unlisted_keys.py::test_the_budget_covers_selection_and_medians",
    ),
    Mutant(
        "a replaced unit charged as one that is added",
        f"{PACKAGE}/accounting/parallel.py",
        "replace(total, delta0=0.0).under(neighbours)",
        "replace(total, delta0=0.0, neighbours=neighbours)",
        "pytest tests/test_unlisted_keys.py::test_no_replaced_unit_shows_more_than_the_claim",
    ),
    Mutant(
        "groups below the threshold that are shown",
        f"{PACKAGE}/groups/plan.py",
        "if selection.shows(size):",
        "if size > 0:",
        "pytest tests/test_unlisted_keys.py"
        "::test_large_groups_are_shown_in_an_order_of_their_own_and_small_ones_leave_nothing",
    ),
    Mutant(
        "unlisted labels in an order that one odd label changes",
        f"{PACKAGE}/sources/groups.py",
        "text = labels.as_text()",
        "text = labels",
        "pytest tests/test_unlisted_keys.py::test_no_label_renames_a_group_or_moves_a_unit",
    ),
    Mutant(
        "tuples of labels that collide",
        f"{PACKAGE}/sources/key_columns.py",
        "text.replace(_ZERO, _ESCAPED) + _END",
        "text + _END",
        "pytest tests/test_key_columns.py::test_tuples_of_texts_stay_apart_whatever_is_in_them",
    ),
    Mutant(
        "a weight above the cap",
        f"{PACKAGE}/sources/weights.py",
        "shares = np.clip(np.where(wrong, 0.0, values) / most, 0.0, 1.0)",
        "shares = np.where(wrong, 0.0, values) / most",
        "pytest tests/test_weights.py::test_weights_are_shares_of_the_cap",
    ),
    Mutant(
        "a sum of weights that would be public under replacement",
        f"{PACKAGE}/parameters.py",
        "return not self.protection.size_is_public",
        "return not self.protection.relation.size_is_public",
        "pytest tests/contract/test_weights.py::test_the_sum_of_the_weights_is_released_first[dpgd-replace]",
    ),
    Mutant(
        "a replaced record whose weight does not change",
        "src/release/sensitivity.rs",
        "self.replace.max(self.add_remove)",
        "self.replace",
        "cargo release::sensitivity::tests::with_weights_a_replacement_moves_at_least_what_an_addition_does",
    ),
    Mutant(
        "weights that are not in the sensitivity",
        "src/release/exact.rs",
        "let sensitivity = self.sensitivity.weighted(self.form.rounding(self.len()));",
        "let sensitivity = self.sensitivity;",
        "cargo statistics::tests::answers_about_weighted_records_move_by_no_more_than_they_say",
    ),
    Mutant(
        "weighted sums in units of a whole weight",
        "src/release/exact.rs",
        "surplus: self.surplus + bits, sensitivity, ..self",
        "surplus: self.surplus, sensitivity, ..self",
        "cargo statistics::tests::answers_about_weighted_records_move_by_no_more_than_they_say",
    ),
    Mutant(
        "noise for sums as if they had no weights",
        f"{PACKAGE}/statistics.py",
        '{"weighted": True} if protection.weighted and statistic in SUMS else {}',
        "{}",
        "pytest tests/contract/test_weights.py::test_its_stages_know_that_records_have_weights[dpgd-replace]",
    ),
    Mutant(
        "a record without weight that takes no coin",
        "src/release/sample.rs",
        "let rounded = weights.iter().zip(coins.words_from(first)).map(|(&weight, coin)| rounded(weight, coin));",
        "let mut own = coins.words_from(first);\n    let rounded = weights.iter()"
        ".map(|&weight| if weight == 0 { 0 } else { rounded(weight, own.next().unwrap()) });",
        "cargo release::sample::tests::a_weight_does_not_change_how_others_are_rounded",
    ),
    Mutant(
        "parts of the records that share their coins",
        "src/release/sample.rs",
        "rng.set_word_pos(2 * row as u128);",
        "rng.set_word_pos(2 * (row as u128 & 0));",
        "cargo release::message::tests::a_query_that_was_away_is_the_same_and_so_is_its_answer",
    ),
    Mutant(
        "a dropped record that shifts the coins of others",
        "src/release/sample.rs",
        "|&row| coin() < weights[row]",
        "|&row| weights[row] > 0 && coin() < weights[row]",
        "cargo release::sample::tests::a_record_is_kept_as_often_as_its_weight_says",
    ),
    Mutant(
        "ball counts of weighted records",
        "src/statistics/mod.rs",
        "self.exact(&points.unweighted(&[]), pulse)?.unbounded()",
        "self.exact(points, pulse)?",
        "cargo statistics::tests::what_is_neither_a_sum_nor_has_coins_has_no_answer_about_weighted_records",
    ),
    Mutant(
        "weighted sums that travel without the sensitivity of their weights",
        "src/release/exact.rs",
        "let sensitivity = if shard.weighted { sensitivity.weighted(rounding) } else { sensitivity };",
        "let _ = rounding;",
        "cargo release::message::tests::a_query_that_was_away_is_the_same_and_so_is_its_answer",
    ),
    Mutant(
        "the weight of a unit adds up over its rows",
        f"{PACKAGE}/sources/weights.py",
        "np.maximum.at(",
        "np.add.at(",
        "pytest tests/test_weights.py::test_the_weight_of_a_unit_is_the_largest_of_its_rows",
    ),
    Mutant(
        "groups that forget their weights",
        f"{PACKAGE}/groups/plan.py",
        "return source if self.coins is None else source.weighted(self.coins)",
        "return source",
        "pytest tests/test_weights.py::test_groups_take_weights",
    ),
    Mutant(
        "a weighted direction that counts twice",
        "src/mechanism/inverse_sensitivity/score.rs",
        "*total += times * i128::from(x)",
        "*total += 2 * times * i128::from(x)",
        "cargo mechanism::inverse_sensitivity::tests::weighted_scores_move_by_no_more_than_their_sensitivity",
    ),
    Mutant(
        "a weight that counts twice on the line",
        "src/mechanism/inverse_sensitivity/weighted_line.rs",
        "score(2 * below.max(above) - total)",
        "score(4 * below.max(above) - 2 * total)",
        "cargo mechanism::inverse_sensitivity::tests::weighted_scores_move_by_no_more_than_their_sensitivity",
    ),
    Mutant(
        "the failure of another release lowers what a session is charged",
        f"{PACKAGE}/running.py",
        "isinstance(error, ReleaseFailed) and error is not self._failure:",
        "False:",
        "pytest tests/test_session.py::test_a_failure_of_another_release_leaves_the_whole_cost_of_a_session_charged",
    ),
    Mutant(
        "a failure states that less ran than was released",
        f"{PACKAGE}/running.py",
        "if failed.ran is not None and failed.ran.rho * _ROUNDING < failed.trace.rho:",
        "if False:",
        "pytest tests/test_session.py::test_a_failure_that_states_less_than_the_tape_has_released_is_charged_in_full",
    ),
    Mutant(
        "a plan for units that runs on single rows",
        f"{PACKAGE}/running.py",
        "if found == planned or (given and",
        "if found == planned or not given or (given and",
        "pytest tests/test_units.py::test_a_plan_of_units_wants_their_ids",
    ),
]

VERIFY = f"{PACKAGE}/verification/verify.py"

VERIFICATION = [
    Mutant(
        "stages that say themselves whether records have weights",
        f"{PACKAGE}/verification/stages.py",
        'weighted = parameters.weighted and (stage.statistic in SUMS or stage.noise.kind == "lattice draw")',
        'weighted = stage.arguments.get("weighted", False)',
        "pytest tests/test_verify.py::test_a_weighted_record_whose_stages_know_no_weights_is_refuted",
    ),
    Mutant(
        "a sensitivity taken from the record",
        f"{PACKAGE}/verification/stages.py",
        'yield from _differs("the sensitivity", stage.sensitivity, math.ldexp(lattice, -bits))',
        "yield from ()",
        "pytest tests/test_verify.py::test_a_stage_that_understates_its_sensitivity_consistently_is_named",
    ),
    Mutant(
        "a cap that nobody compares with its stages",
        VERIFY,
        "if not holds:",
        "if False:",
        "pytest tests/test_verify.py::test_claims_that_do_not_fit_together_are_named",
    ),
    Mutant(
        "a budget that nobody compares with the cost",
        VERIFY,
        "if not budget.fits(cost):",
        "if False:",
        "pytest tests/test_verify.py::test_a_cap_above_the_budget_is_named_even_if_everything_else_follows_it",
    ),
    Mutant(
        "a seeded release that holds",
        VERIFY,
        'if self.content["seeded"]:',
        "if False:",
        "pytest tests/test_verify.py::test_a_seeded_release_protects_nobody_and_verify_says_so",
    ),
]

PRIVATE_SIZE = [
    Mutant(
        "a plan for the length of the array where that is private",
        f"{PACKAGE}/parameters.py",
        "    if found is not None and not private:",
        "    if found is not None:",
        f"pytest {SIZES}::test_what_comes_before_the_charge_does_not_depend_on_the_number_of_records",
    ),
    Mutant(
        "the check of the shape tells the number of records",
        f"{PACKAGE}/running.py",
        "if not parameters.private_size and data.shape != (parameters.n, parameters.d):",
        "if data.shape != (parameters.n, parameters.d):",
        f"pytest {SIZES}::test_the_shape_of_the_points_is_checked_by_the_dimension_only",
    ),
    Mutant(
        "the exact number of records takes the place of the noisy one",
        f"{PACKAGE}/mechanisms/size.py",
        "noisy = float(self.query(source, tape)[0])",
        "self.query(source, tape)\n        noisy = source.local.n",
        f"pytest {SIZES}::test_the_size_is_the_first_release_and_all_that_a_run_knows_of_the_number",
    ),
    Mutant(
        "the exact number of records in a release",
        f"{PACKAGE}/planning/plan.py",
        "n=None if self.parameters.private_size else self.n,",
        "n=self.n,",
        f"pytest {SIZES}::test_a_number_of_records_that_is_not_that_of_the_points_is_refused_under_replacement_only",
    ),
    Mutant(
        "the size is not charged",
        f"{PACKAGE}/methods/private_size.py",
        "return self.size.cost + self.cap",
        "return self.cap",
        "pytest tests/contract/test_methods.py::test_the_recorded_cost_is_the_charged_cost[dpgd-add_remove]",
    ),
    Mutant(
        "the method spends what the size has spent",
        f"{PACKAGE}/methods/private_size.py",
        "return method_named(self.method).calibrate(self.parameters.at_size(n, noise), self.rest)",
        "return method_named(self.method).calibrate(self.parameters.at_size(n, noise), self.rest / 0.99)",
        f"pytest {SIZES}::test_the_cost_is_the_same_for_every_size[dpgd]",
    ),
    Mutant(
        "the discretization of the guess's own steps",
        f"{PACKAGE}/methods/paper/dpgd.py",
        "return Gaussian.cap(rho, parameters.profile.descent_steps_most * parameters.d)",
        "return Gaussian.cap(rho, calibrate(parameters, rho).gradient.releases * parameters.d)",
        f"pytest {SIZES}::test_the_cost_is_the_same_for_every_size[dpgd]",
    ),
    Mutant(
        "a selection whose eta follows the noisy size",
        f"{PACKAGE}/methods/paper/loc_cutting_plane.py",
        "    eta = eta_of_rho(SELECTION * rho)\n    if",
        "    eta = eta_of_rho(SELECTION * rho) * math.log(parameters.size)\n    if",
        f"pytest {SIZES}::test_the_cost_is_the_same_for_every_size[loc_cutting_plane]",
    ),
    Mutant(
        "a sample of a fixed size where a record may be added",
        f"{PACKAGE}/mechanisms/sample.py",
        "if not self.private:",
        "if True:",
        f"pytest {SIZES}::test_hidden_samples_are_taken_by_coins",
    ),
    Mutant(
        "records are dropped where their number is public",
        f"{PACKAGE}/running.py",
        'if nonfinite == "drop" and not parameters.private_size:',
        "if False:",
        f"pytest {SIZES}::test_records_are_not_dropped_where_their_number_is_public",
    ),
    Mutant(
        "totals of many records are clamped",
        f"{PACKAGE}/mechanisms/gaussian.py",
        "min(finest, 62 - largest.bit_length())",
        "min(finest, 64 - largest.bit_length())",
        "pytest tests/test_many_records.py::test_no_total_leaves_62_bits_and_no_lattice_is_too_coarse",
    ),
    Mutant(
        "few records go on as many",
        f"{PACKAGE}/methods/private_size.py",
        "surely = max(math.floor(size - _SURE * self.size.noise), 0)",
        "surely = PRIVATE_RECORDS_MAX",
        f"pytest {SIZES}::test_too_few_records_are_a_charged_failure_that_names_the_noisy_size",
    ),
    Mutant(
        "what did not run is given back where costs are not a filter's",
        f"{PACKAGE}/ledger/filters.py",
        'ENDS_EARLY: tuple[Composition, ...] = ("concentrated",)',
        'ENDS_EARLY: tuple[Composition, ...] = ("concentrated", "gaussian", "pairs", "costs_fixed_beforehand")',
        f"pytest {SIZES}::test_a_release_that_ends_after_its_size_costs_what_ran_where_that_is_proved[terms2-False]",
    ),
    Mutant(
        "the floor of the median's rank kept with twice the rate",
        "src/mechanism/inverse_sensitivity/line.rs",
        "{ 0 } else { self.sorted.len() as u64 % 2 };",
        "{ 0 } else { 0 };",
        "cargo mechanism::inverse_sensitivity::tests::a_record_more_moves_the_score_on_the_line_by_one_half",
    ),
    Mutant(
        "a count minus a share charged by the smaller part",
        "src/statistics/target.rs",
        "let exact = self.share.max((1 << self.bits) - self.share);",
        "let exact = self.share.min((1 << self.bits) - self.share);",
        "cargo statistics::target::tests::the_largest_contribution_is_rounded_up",
    ),
    Mutant(
        "OpenDP's edits counted as changes where there is no size",
        f"{PACKAGE}/opendp.py",
        "return distance // 2 if public else distance",
        "return distance // 2",
        "pytest tests/test_opendp.py::test_without_a_size_a_record_is_added_or_removed[metric0]",
    ),
    Mutant(
        "scikit-learn refuses a single sample",
        f"{PACKAGE}/sklearn.py",
        "ensure_min_samples=0 if hidden else 2)\n",
        "ensure_min_samples=2)\n",
        "pytest tests/test_sklearn.py::test_the_number_of_samples_can_be_private",
    ),
]

FLOWER_TESTS = "tests/test_flower.py"
FLOWER = [
    Mutant(
        "a fixed share of the nodes where their number is private",
        f"{PACKAGE}/flower.py",
        "return sorted(node for node in nodes if self.fraction_train == 1.0 or coin.random() < self.fraction_train)",
        "return sorted(coin.sample(nodes, int(len(nodes) * self.fraction_train)))",
        f"pytest {FLOWER_TESTS}::test_each_client_is_asked_on_its_own_where_their_number_is_private",
    ),
    Mutant(
        "no release if no client was chosen",
        f"{PACKAGE}/flower.py",
        "if model is None or nodes is None:",
        "if model is None or not nodes:",
        f"pytest {FLOWER_TESTS}::test_nobody_to_ask_is_a_release_too",
    ),
    Mutant(
        "what a client sends stops the round of all",
        f"{PACKAGE}/flower_messages.py",
        "if set(record) != set(model):\n            return None",
        "if set(record) != set(model):\n            raise SystemExit",
        f"pytest {FLOWER_TESTS}::test_whatever_a_client_sends_concerns_its_own_record_alone[other names-replace]",
    ),
    Mutant(
        "replies of nodes that were not chosen",
        f"{PACKAGE}/flower_messages.py",
        "node in rows or node not in chosen",
        "node in rows",
        f"pytest {FLOWER_TESTS}::test_a_client_has_one_record_however_often_it_replies",
    ),
    Mutant(
        "a client that replies again counts again in a step",
        f"{PACKAGE}/flower_messages.py",
        "waiting.discard(node)",
        "pass",
        f"pytest {FLOWER_TESTS}::test_a_client_has_one_record_in_a_step_however_often_it_replies",
    ),
    Mutant(
        "what clients report is shown",
        f"{PACKAGE}/flower.py",
        'shown: dict[str, int | float | list[int] | list[float]] = {"failed": float(release is None)}',
        'shown: dict[str, int | float | list[int] | list[float]] = {"failed": 0.0, "replies": float(len(self._nodes))}',
        f"pytest {FLOWER_TESTS}::test_what_clients_report_is_not_aggregated",
    ),
]

AUTHENTIC = "pytest tests/test_authentic.py::"
CHECKS = f"{PACKAGE}/verification"
INTEGRITY = [
    Mutant(
        "a digest that does not cover the point",
        f"{PACKAGE}/digests.py",
        'APART = ("digest", "signature")',
        'APART = ("digest", "signature", "point")',
        f"{AUTHENTIC}test_a_value_that_follows_from_nothing_else_is_found_by_the_digest_and_by_the_ledger",
    ),
    Mutant(
        "links that do not hold on to the line before",
        f"{LEDGER}/log.py",
        'hashlib.sha256(before.encode() + b"\\n" + canonical(content))',
        "hashlib.sha256(canonical(content))",
        f"{AUTHENTIC}test_every_removed_moved_or_changed_line_is_found",
    ),
    Mutant(
        "a log whose end nobody compares",
        f"{LEDGER}/log.py",
        "        if head != log.head:\n",
        "        if False:\n",
        f"{AUTHENTIC}test_every_removed_moved_or_changed_line_is_found",
    ),
    Mutant(
        "a ledger that forgets the digest of what it paid for",
        f"{LEDGER}/charging.py",
        "digest = _digest(value) if charge.keeps_digest else None",
        "digest = None",
        f"{AUTHENTIC}test_the_record_of_a_run_is_authenticated_by_its_ledger",
    ),
    Mutant(
        "a ledger that is taken for the one that was opened",
        f"{LEDGER}/store.py",
        'if self._id not in (None, stored.start["id"]):',
        "if False:",
        f"{AUTHENTIC}test_a_new_ledger_on_the_same_terms_is_not_the_one_that_was_opened",
    ),
    Mutant(
        "a ledger with two names is charged",
        f"{LEDGER}/store.py",
        "        if links > 1:\n",
        "        if False:\n",
        "pytest tests/test_ledger.py::test_a_ledger_with_two_names_is_refused_and_the_budget_is_spent_once",
    ),
    Mutant(
        "a cost that is lowered to more than was charged",
        f"{LEDGER}/log.py",
        "if cost.rho > entry.cost.rho or cost.delta0 > entry.cost.delta0:",
        "if False:",
        f"pytest {SIZES}::test_only_a_part_of_what_was_charged_can_have_run_and_only_once",
    ),
    Mutant(
        "a rho that is entered where mu squared adds up",
        f"{LEDGER}/ledger.py",
        'if self.composition != "concentrated":',
        "if False:",
        "pytest tests/test_shares.py"
        "::test_an_entered_pair_adds_up_in_a_ledger_of_pairs_and_a_rho_only_where_rho_adds_up",
    ),
    Mutant(
        "an event of another program without its delta",
        f"{ACCOUNTING}/events.py",
        "PrivacyCost(pure_epsilons=(epsilon,), delta0=delta)",
        "PrivacyCost(pure_epsilons=(epsilon,))",
        "pytest tests/test_shares.py::test_what_another_program_has_released_is_charged",
    ),
    Mutant(
        "events that are repeated for the price of one",
        f"{ACCOUNTING}/events.py",
        "mu_squared=product_up(times, cost.mu_squared),",
        "mu_squared=cost.mu_squared,",
        "pytest tests/test_shares.py::test_events_of_dp_accounting_cost_what_they_say",
    ),
    Mutant(
        "a name and a cost that authenticate a record",
        f"{CHECKS}/authentic.py",
        'if record.get("digest") is None and match.undigested:',
        "if match.alike:",
        f"{AUTHENTIC}test_a_value_that_follows_from_nothing_else_is_found_by_the_digest_and_by_the_ledger",
    ),
    Mutant(
        "a record of an unknown version that holds",
        f"{CHECKS}/verify.py",
        "if maker not in (__version__, *FORMER_VERSIONS):",
        "if False:",
        f"{AUTHENTIC}test_a_record_of_an_unknown_version_is_never_silently_accepted",
    ),
    Mutant(
        "a signature of any content",
        f"{CHECKS}/signature.py",
        'f"dpmedian audit record\\n{digest_of(record)}"',
        '"dpmedian audit record\\n"',
        f"{AUTHENTIC}test_a_signature_is_by_one_key_and_of_one_content",
    ),
    Mutant(
        "a page with a ledger that never saw the release",
        f"{PACKAGE}/report/writing.py",
        "if not match.exact and not match.undigested:",
        "if False:",
        f"{AUTHENTIC}test_a_page_takes_no_ledger_that_never_saw_the_release",
    ),
    Mutant(
        "values of the data in the errors of an estimator",
        f"{PACKAGE}/sklearn.py",
        'if "\\narray=" not in message and any(safe in message for safe in _SAFE):',
        "if True:",
        "pytest tests/test_sklearn.py::test_no_error_of_fit_shows_a_value",
    ),
    Mutant(
        "the result of an earlier fit after one that failed",
        f"{PACKAGE}/sklearn.py",
        "        delattr(estimator, name)\n",
        "        pass\n",
        "pytest tests/test_sklearn.py::test_a_fit_that_fails_leaves_no_result_of_an_earlier_one",
    ),
    Mutant(
        "ids that are rounded before they are compared",
        f"{PACKAGE}/sources/labels.py",
        "    digits = int(value)\n",
        "    value = float(value)\n    digits = int(value)\n",
        "pytest tests/test_units.py::test_numbers_that_are_one_double_are_no_single_id",
    ),
    Mutant(
        "keys that are one key of a mapping",
        f"{PACKAGE}/sources/key_columns.py",
        "if len(set(found)) < len(found):",
        "if False:",
        "pytest tests/test_groups.py::test_keys_that_are_equal_in_python_are_refused_before_the_charge",
    ),
    Mutant(
        "temporary copies of a folder are read as people",
        f"{PACKAGE}/files/reading.py",
        'name.lower().endswith(endings) and not name.startswith(("_", ".")) and file.is_file()',
        "name.lower().endswith(endings) and file.is_file()",
        "pytest tests/test_open_files.py::test_hidden_and_temporary_files_of_a_folder_are_left_out",
    ),
    Mutant(
        "a memory map that others change during a run",
        f"{PACKAGE}/sources/records.py",
        "if copy or _is_mapped(self.array)",
        "if copy",
        "pytest tests/test_records.py::test_a_memory_map_that_changes_during_a_run_changes_nothing",
    ),
    Mutant(
        "a building block that is charged for no scores",
        f"{PACKAGE}/building_blocks/stated.py",
        "if isinstance(scores, Sized) and len(scores) == 0:",
        "if False:",
        "pytest tests/test_run.py::test_building_blocks_check_public_arguments_before_the_charge",
    ),
    Mutant(
        "partitions that are read by position",
        f"{PACKAGE}/sources/dask.py",
        '    if columns is None or not hasattr(partition, "columns"):',
        "    if True:",
        "pytest tests/test_dask.py::test_partitions_are_read_by_the_names_of_their_columns",
    ),
]

MUTANTS = (
    NOISE
    + SENSITIVITY
    + COST
    + FILTERS
    + ORDER
    + MECHANISMS
    + METHODS
    + INVERSE_SENSITIVITY
    + UNITS
    + PRIVATE_SIZE
    + VERIFICATION
    + INTEGRITY
    + FLOWER
)
