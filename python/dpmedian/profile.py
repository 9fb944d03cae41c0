"""Profiles: frozen tables of constants for the algorithms of the paper."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT", "Profile"]


@dataclass(frozen=True)
class Profile:
    """The constants of the paper's algorithms that can be chosen freely.

    Both profiles give the same privacy guarantee.
    """

    name: str
    relations: frozenset[str]
    """The relations for which the methods of the profile are proved. "ball counts" are proved for "replace" only,
    because their sums would reveal the number of records.
    """

    # RadiusFinder.
    radius_search: str
    """"ball counts" with AboveThreshold, which takes time quadratic in n, or "pair counts" with bisection, linear in n.
    """
    pair_fraction: float
    """The smallest fraction of random pairs that the radius must cover according to the proof."""
    pair_margin: float
    """The difference between the target and this fraction, which allows for the noise and the sampling of pairs."""
    pairings: int
    """The largest number of pairings that are averaged."""
    pairs: int
    """The number of pairs that suffices. Large data sets reach it with fewer pairings."""
    ball_sensitivity: float
    """The charged sensitivity of the mean of the largest ball counts."""
    ball_offset: float
    """The threshold lies above gamma n by this number times log(...)/sqrt(2 rho)."""

    # Localization.
    localization_step: str
    """The name of a step rule in `methods/paper/dpgd.py`."""
    localization_steps: int
    """The number of noisy gradients in a round."""

    # Fine-tuning, and DPGD alone.
    fine_step: str
    fine_steps_least: int
    fine_steps_most: int
    fine_burn_in: float
    """The fraction of the steps that are left out of the average."""
    descent_step: str
    descent_steps_most: int

    # Cutting plane.
    late_cuts: float
    """The share of the budget of the cuts for the second half of the cuts."""
    selection_windows: tuple[float, ...]
    """The fractions of the last cuts to which candidates are fitted. If the tuple is empty, all centers are
    candidates.
    """
    selection_weight: float | None
    """The rate of the selection is this number times epsilon/scale. If this number is None, the rate is as large as the
    diameter of the candidates allows.
    """

    @staticmethod
    def named(name: str) -> Profile:
        if not isinstance(name, str) or name not in _PROFILES:
            raise ValueError(f"profile must be one of {sorted(_PROFILES)}, got {name!r}")
        return _PROFILES[name]


DEFAULT = Profile(
    name="default",
    relations=frozenset({"replace", "add_remove"}),
    radius_search="pair counts",
    # If 4/5 of the records lie within D of the median, 16/25 of the pairs lie within 2 D. The target is slightly
    # smaller.
    pair_fraction=0.6,
    pair_margin=0.02,
    pairings=8,
    pairs=2**18,
    ball_sensitivity=7.0 / 3.0,
    ball_offset=18.0,
    localization_step="proof",
    localization_steps=128,
    fine_step="short",
    # Few steps suffice, because the noise of the average does not depend on the number of steps.
    fine_steps_least=128,
    fine_steps_most=512,
    fine_burn_in=0.25,
    descent_step="proof",
    descent_steps_most=4096,
    late_cuts=0.8,
    selection_windows=tuple(0.75**power for power in range(1, 8)),
    selection_weight=None,
)

_PAPER = Profile(
    name="paper",
    relations=frozenset({"replace"}),
    radius_search="ball counts",
    pair_fraction=0.6,
    pair_margin=0.02,
    pairings=1,
    pairs=1,
    ball_sensitivity=3.0,
    ball_offset=18.0,
    localization_step="printed",
    localization_steps=500,
    fine_step="printed",
    fine_steps_least=1,
    # The number of steps in the paper is proportional to n^2. Without this limit the run would take time cubic in n.
    fine_steps_most=2**17,
    fine_burn_in=0.0,
    descent_step="printed",
    descent_steps_most=2**17,
    # As in the paper: the same noise for every cut, all iterates are candidates, and weights exp(-epsilon F/(448
    # scale)).
    late_cuts=0.5,
    selection_windows=(),
    selection_weight=1.0 / 448.0,
)

_PROFILES = {profile.name: profile for profile in (DEFAULT, _PAPER)}
