"""The default method: no radius, no resolution, and an error of second order in the noise. Proof: adaptive.md.

| file | holds |
|---|---|
| `constants.py` | every constant, with its reason |
| `shares.py` | how rho is split between the stages |
| `stages.py` | the calibrated stages, and the run |
| `prediction.py` | what to expect |
"""

from __future__ import annotations

from dpmedian.methods.adaptive.shares import calibrate
from dpmedian.parameters import PublicParameters

__all__ = ["calibrate", "check", "name", "needs", "relations", "uses"]

name = "adaptive"
uses = frozenset({"radius", "resolution", "center"})
needs: frozenset[str] = frozenset()
relations = frozenset({"replace"})


def check(parameters: PublicParameters) -> None:
    if parameters.budget.pure:
        raise ValueError(
            "method 'adaptive' needs delta or rho: Gaussian noise gives no pure differential privacy; "
            "method 'inverse_sensitivity' does, for d <= 3"
        )
