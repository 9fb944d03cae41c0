"""A plan as text and HTML."""

from __future__ import annotations

import math

from dpmedian.accounting import PrivacyCost
from dpmedian.accounting.parallel import cost_of_groups
from dpmedian.mechanisms.stage import Noise, Stage
from dpmedian.methods.contract import Prediction, Reads
from dpmedian.planning.plan import Plan
from dpmedian.recorded import View, as_view
from dpmedian.rendering.table import html_block, titled

__all__ = ["plan_table", "plan_view", "probability_text"]

# The table of a plan shows the scales of at most this many columns.
_SCALES_SHOWN = 8
_HEAD = ("stage", "queries", "noise", "sensitivity", "rho")
# The columns with text, which is wrapped if the table would be too wide.
_WORDS = (1, 2)

_LEGEND = (
    "sensitivity: the most by which one {unit} can change an exact answer; sigma: the standard deviation of the noise "
    "that is added; rho: what the stage costs"
)
_CORE_RADII = "core radii (the core radius is the distance from the median within which 40 % of the records lie)"

_REGIONS = {
    "ellipsoid": "an ellipsoid with standard errors, and a ball",
    "ball": "a ball; an ellipsoid with standard errors needs more records or a larger budget",
    "by size": "a ball, and also an ellipsoid with standard errors if the noisy size is large enough",
}


def _title(plan: Plan) -> str:
    records = f"n = {plan.n}"
    if plan.parameters.private_size:
        seen = f"guess {plan.n}" if plan.n == plan.calibrated.guess else f"noisy size {plan.n}"
        what = "n" if plan.parameters.weight_max is None else f"sum of weights over {plan.parameters.weight_max:g}"
        records = f"{plan.parameters.neighbours}, {what} private ({'no guess' if plan.n is None else seen})"
    sphere = " (unit vectors of positions)" if plan.parameters.geometry == "sphere" else ""
    return f"Plan: {plan.method}, {records}, d = {plan.d}{sphere}, {plan.parameters.budget.describe()}"


def _noise(noise: Noise) -> str:
    """Return the noise in words."""
    if noise.kind == "Gaussian":
        at_most = f"{noise.remark} " if noise.remark else ""
        return f"Gaussian, sigma {at_most}{noise.scale:.4g}"
    if noise.kind == "Laplace":
        return f"Laplace, scale {noise.scale:.4g}; {noise.remark}"
    return f"{noise.kind}, {noise.remark}"


def _row(stage: Stage) -> tuple[str, ...]:
    releases = stage.rule or str(stage.releases)
    rho = f"{'<= ' if stage.capped else ''}{stage.cost.rho:.4g}"
    return stage.name, releases, _noise(stage.noise), f"{stage.sensitivity:.4g}", rho


def _reads(reads: Reads) -> str:
    """Return in words how often the records are read."""
    most = f"at most {reads.most}"
    passes = most if reads.expected == reads.most else f"about {reads.expected:.0f}, {most}"
    sample = f"; {reads.sample_expected:.0f} over a hidden sample of {reads.sample}" if reads.sample else ""
    return f"passes over all records: {passes}{sample}; one more pass validates them"


def _memory(reads: Reads) -> str:
    return f"memory beyond the array of records: at most about {math.ceil(reads.memory / 1e6)} MB"


def _time(seconds: float) -> str:
    """Return a time in words, with one digit only, because the machine is unknown."""
    value, unit = (seconds, "s") if seconds < 100.0 else (seconds / 60.0, "minutes")
    shown = f"{float(f'{value:.1g}'):g}"
    return f"processor time: about {shown} {unit}, a guess for a machine like the machine of the benchmarks"


def probability_text(failure: float) -> str:
    """Return a probability in words. Small probabilities are extrapolated, not measured, so only a bound is shown."""
    return "below 1e-6" if failure < 1e-6 else f"{failure:.2g}"


def _example(n: int, predicted: Prediction) -> str:
    """Return the prediction for one number of records, in a line."""
    known = [f"{predicted.excess:.2g} of excess"] if predicted.excess is not None else []
    if predicted.relative_error is not None:
        known.append(f"{predicted.relative_error:.2g} core radii to the median")
    return f"predicted with n = {n}: " + ", ".join([*known, f"failure {probability_text(predicted.failure)}"])


def _under_replace(cost: PrivacyCost) -> str:
    """Return the cost if a record is replaced, which is a removal and an addition."""
    replaced = cost_of_groups([cost], 1, "replace")
    if cost.delta is None or not cost.delta:
        return str(replaced)
    return f"epsilon = {replaced.epsilon_at(cost.delta):.4g}, delta = {cost.delta:.6g} (rho = {replaced.rho:.6g})"


def _facts(plan: Plan) -> list[str]:
    predicted = plan.prediction
    together = "; all stages together cost at most this" if any(stage.capped for stage in plan.stages) else ""
    facts = [_LEGEND.format(unit=plan.cost.unit), f"cost: {plan.cost}{together}"]
    if not plan.cost.protection.relation.size_is_public:
        facts.append(f"the same noise, if a record is replaced, costs {_under_replace(plan.cost)}")
    if plan.parameters.scales is not None:
        listed = [f"{scale:g}" for scale in plan.parameters.scales[:_SCALES_SHOWN]]
        more = [f"and {plan.d - _SCALES_SHOWN} more"] if plan.d > _SCALES_SHOWN else []
        facts.append(f"distances are in units of the public scales of the columns: {', '.join([*listed, *more])}")
    facts += [_example(n, expected) for n, expected in plan.calibrated.examples]
    if predicted.excess is not None:
        worst = predicted.excess_if_many_coincide
        further = "" if worst is None else f"; if many records coincide, at most {worst:.2g}"
        facts.append(
            f"predicted excess F(point)/F(median) - 1, where F is the sum of distances: {predicted.excess:.2g}{further}"
        )
    if predicted.relative_error is not None:
        facts.append(f"predicted distance to the median: {predicted.relative_error:.2g} {_CORE_RADII}")
    if predicted.excess_distance_bound is not None:
        facts.append(f"bound on the average excess distance: {predicted.excess_distance_bound:.3g}")
    if plan.region is not None:
        facts.append(f"confidence region for the population's median: {_REGIONS[plan.region]}")
    if not plan.calibrated.examples:
        facts.append(f"predicted probability of failure: {probability_text(predicted.failure)}")
    if plan.calibrated.reads is not None:
        facts.append(_reads(plan.calibrated.reads))
        if plan.calibrated.reads.seconds:
            facts.append(_time(plan.calibrated.reads.seconds))
        if plan.calibrated.reads.memory:
            facts.append(_memory(plan.calibrated.reads))
    return facts + ([plan.reason] if plan.reason else []) + [f"note: {note}" for note in plan.notes]


def plan_table(plan: Plan) -> View:
    """Show the table that a reviewer checks, and the predictions. The HTML is a part of the notebook view."""
    rows = [_row(stage) for stage in plan.stages]
    return titled([_title(plan)], _HEAD, rows, _facts(plan), yielding=_WORDS, numbers=(3, 4))


@as_view.register
def plan_view(plan: Plan) -> View:
    """Show a table that fits a terminal, and the predictions."""
    table = plan_table(plan)
    return View(table.text, html_block(table.html))
