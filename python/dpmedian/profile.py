"""Profiles: one frozen table of constants, consumed by one code path."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT", "Profile"]


@dataclass(frozen=True)
class Profile:
    """The constants of the paper's algorithms that are ours to choose. Both profiles keep the same privacy promise."""

    name: str
    relations: frozenset[str]
    """The neighbors that its methods are proved for: the sums of ball counts would show how many records there are."""

    # RadiusFinder.
    radius_search: str
    """What is counted: "ball counts", quadratic in n, by AboveThreshold, or "pair counts", linear, by bisection."""
    pair_fraction: float
    """The fraction of random pairs that the radius must cover, by the proof at least."""
    pair_margin: float
    """How far the target lies above that fraction, because of the noise and the sampling of pairs."""
    pairings: int
    """Most pairings that are averaged."""
    pairs: int
    """Pairs that are enough: large data sets need fewer pairings."""
    ball_sensitivity: float
    """Charged sensitivity of the mean of the largest ball counts."""
    ball_offset: float
    """The threshold lies this many units of log(...)/sqrt(2 rho) above gamma n."""

    # Localization.
    localization_step: str
    """A rule of `methods/paper/dpgd.py`, like all steps here."""
    localization_steps: int
    """The number of noisy gradients in a round."""

    # Fine-tuning, and DPGD alone.
    fine_step: str
    fine_steps_least: int
    fine_steps_most: int
    fine_burn_in: float
    """Fraction of the steps that are left out of the average."""
    descent_step: str
    descent_steps_most: int

    # Cutting plane.
    late_cuts: float
    """Share of the cuts' budget that their second half gets."""
    selection_windows: tuple[float, ...]
    """Candidates are fitted to these last fractions of the cuts; if empty, all centers are candidates."""
    selection_weight: float | None
    """F is weighted by this times epsilon/scale; None: as much as the candidates' diameter allows."""

    @staticmethod
    def named(name: str) -> Profile:
        if not isinstance(name, str) or name not in _PROFILES:
            raise ValueError(f"profile must be one of {sorted(_PROFILES)}, got {name!r}")
        return _PROFILES[name]


DEFAULT = Profile(
    name="default",
    relations=frozenset({"replace", "add_remove"}),
    radius_search="pair counts",
    # If 4/5 of the records lie within D of the median, 16/25 of the pairs lie within 2 D: the target lies in between.
    pair_fraction=0.6,
    pair_margin=0.02,
    pairings=8,
    pairs=2**18,
    ball_sensitivity=7.0 / 3.0,
    ball_offset=18.0,
    localization_step="proof",
    localization_steps=128,
    fine_step="short",
    # Few steps suffice, for the noise of the average does not depend on their number; more would make large n slow.
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
    # The printed count grows with n^2: beyond this the run would be cubic in n and never end.
    fine_steps_most=2**17,
    fine_burn_in=0.0,
    descent_step="printed",
    descent_steps_most=2**17,
    # As printed: the same noise on every cut, all iterates, weights exp(-epsilon F/(448 scale)).
    late_cuts=0.5,
    selection_windows=(),
    selection_weight=1.0 / 448.0,
)

_PROFILES = {profile.name: profile for profile in (DEFAULT, _PAPER)}
