"""The constants of the default method: one frozen table, each with its reason.

A constant is *derived* (a formula or a fact about doubles gives it), *simulated* (chosen by measurement: the command
`python benches/tune_adaptive.py` varies it on named data sets and prints what each value does), or a *safety factor*
(chosen on the careful side; nothing was optimised)."""

# ruff: noqa: RUF009 - the three functions below make dataclass fields.
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["CONSTANTS", "Constants", "Share"]


class Share(NamedTuple):
    """A stage's part of rho: `needed`/n^2, but at least and at most these fractions of rho.

    What a search needs to tell a fraction of n records from its noise does not depend on rho, and falls as 1/n^2.
    """

    needed: float
    least: float
    most: float

    def of(self, rho: float, n: int, dimensions: int = 1) -> float:
        """`needed` is multiplied by the dimension where the noise is that of a vector."""
        return min(max(self.needed * dimensions / n**2, self.least * rho), self.most * rho)


def _derived(default: Any, reason: str) -> Any:
    return field(default=default, metadata={"kind": "derived", "reason": reason})


def _simulated(default: Any, reason: str) -> Any:
    return field(default=default, metadata={"kind": "simulated", "reason": reason})


def _safety(default: Any, reason: str) -> Any:
    return field(default=default, metadata={"kind": "safety factor", "reason": reason})


@dataclass(frozen=True)
class Constants:
    """Distances are counted in quarter octaves, factors of 2^(1/4); "the spread" is the distance of `core`."""

    # Pair scale.
    pair_target: float = _derived(
        0.44,
        "share of pairs that the scale must cover: between the pairs within the clusters of a 60/40 mixture (52 %) and "
        "those within 60 % of equal records (36 %)",
    )
    pair_sample: int = _safety(20_000, "pairs that are counted: their sampling then hardly matters beside the noise")
    pairings_most: int = _safety(16, "pairings of few records are not independent, so more of them add little")
    exponents: tuple[int, int] = _derived((-1022, 1001), "powers of two that a distance between doubles can have")
    scale_questions: int = _simulated(48, "more questions are noisier each, but one wrong answer then does less harm")
    scale_share: Share = _simulated(Share(480.0, 0.01, 0.2), "the least budget at which the search rarely errs")
    scale_amplitude: float = _simulated(0.35, "of the pairs: by how much a count usually misses its target")
    scale_prior: float = _safety(32.0, "octaves around 1 that are likely beforehand")

    # Center.
    center_questions: int = _simulated(80, "enough to find centers 10^9 spreads away at the least share")
    center_share: Share = _simulated(
        Share(170.0, 0.025, 0.45),
        "`needed` is multiplied by d; it finds centers up to 10^5 spreads away, and up to 10^9 where `least` applies",
    )
    center_resolution: float = _safety(1.0 / 256.0, "cells below this fraction of scale/sqrt(d) are not divided")

    # Initial spread.
    core: float = _derived(
        0.4, "of the records within the spread: fewer than half, so that a scattered half does not hide the rest"
    )
    halves: tuple[int, int] = _derived((-2036, 2036), "half octaves whose reciprocals are normal doubles")
    initial_questions: int = _simulated(32, "as for the scale")
    initial_share: Share = _simulated(Share(300.0, 0.005, 0.08), "the least budget at which the search rarely errs")
    initial_amplitude: float = _simulated(0.3, "of the records: by how much a count usually misses its target")
    search_prior: float = _safety(8.0, "steps of the searches for a spread that are likely beforehand")

    # Recentring.
    recentring_rounds: int = _simulated(6, "rounds; equal records are then found within 2^-7 spreads")
    recentring_step: Share = _simulated(
        Share(90.0, 0.002, 0.01), "what the step of one round gets; `needed` is multiplied by d"
    )
    recentring_check: Share = _simulated(Share(80.0, 0.001, 1.0), "what the count after a round gets")
    recentring_most: float = _safety(0.1, "the most of rho that all rounds together get")
    recentring_noise: float = _safety(0.45, "relative to n: steps with more noise would lose what the center found")
    shrink: int = _simulated(
        5, "quarter octaves (a factor 2.4) within which half of the records must lie for a mean shift to be accepted"
    )
    patience: int = _simulated(2, "gradient steps after a mean shift that was not accepted")
    widen: int = _safety(4, "quarter octaves by which the radius grows when it holds less than `lost_share`")
    lost_share: float = _safety(0.25, "of the records within the radius: fewer mean that it was too small")
    unreached: int = _simulated(
        4, "quarter octaves above the pair scale: a larger spread is that of a cluster that was not reached"
    )
    resolvable: float = _safety(2.0**-40, "doubles of size 1 have differences of this size with a few digits")

    # Spread.
    spread_questions: int = _simulated(16, "as for the scale")
    spread_share: Share = _simulated(Share(200.0, 0.005, 0.04), "the least budget at which the search rarely errs")
    spread_amplitude: float = _simulated(0.2, "of the records: by how much a count usually misses its target")
    spread_window: tuple[int, int] = _safety((-12, 8), "quarter octaves around the last radius")

    # Duplicates check.
    duplicates_share: float = _simulated(0.025, "of the records, beyond a smooth density, near the center")
    duplicates_radius: int = _simulated(9, "quarter octaves below the spread: a fifth of it")
    duplicates_needed: float = _simulated(1e4, "over n^2: four deviations of the noise are `duplicates_share`")
    duplicates_most: float = _safety(0.015, "of rho; with fewer records nothing is asked")

    # Curvature.
    curvature_share: Share = _simulated(Share(200.0, 0.01, 0.04), "a relative noise of a few percent")
    curvature_radius: tuple[float, float, float, float] = _simulated(
        (0.3, 12.0, 0.25, 0.02),
        "the smoothing radius in spreads: 0.3 times the jitter of an iterate, 12 times the noise over n, and at least "
        "1/4 on the line and 1/50 elsewhere",
    )
    stiffness: tuple[float, float] = _safety((0.25, 10.0), "the curvature in units of n/spread is kept within these")

    # Approach and descent.
    approach_steps: int = _simulated(4, "steps that are not averaged")
    descent_steps: int = _simulated(24, "steps that are averaged; more cost time and gain little")
    approach_weight: float = _simulated(0.3, "budget of an approach step over that of a descent step")
    first_step: tuple[float, float, float, float] = _simulated(
        (1.1, 1.5, 0.5, 1.0), "the first step in Newton steps: 1.1 - 1.5 jitter, between 1/2 and 1"
    )
    full_steps: float = _simulated(3.0, "the first third of the steps have the full length, later ones fall as 1/t")
    sharp_power: float = _simulated(2.0, "with duplicates the steps fall as 1/t^2, and late iterates weigh twice")
    lost: float = _simulated(0.4, "mean squared gradient over n^2 above which the iterates are not near a median")
    error_factor: float = _simulated(1.65, "of the error radius, for curvatures below the mean in some directions")
    error_factor_sharp: float = _simulated(3.0, "of the error radius with duplicates")

    # Predictions.
    signal: float = _simulated(12.0, "n sqrt(rho/d) below which releases fail")
    signal_width: float = _simulated(4.5, "by which failures become rarer by a factor e")
    signal_width_line: float = _simulated(6.0, "the same on the line")


CONSTANTS = Constants()
