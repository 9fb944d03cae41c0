"""The default method: no radius, no resolution, and an error of second order in the noise. Proof: adaptive.md.

| file | holds |
|---|---|
| `constants.py` | every constant, with its reason |
| `stages.py` | the calibrated method, and the run |
| `questions.py` | what a run may ask, and what it pays |
| `location.py` | scale, center, spread, and points where records coincide |
| `state.py`, `metric.py`, `steps.py` | what the run believes: point, Hessian, gradients, and the next step |
| `region.py` | what a confidence region may cost |
| `evidence.py` | whether few records are around the point, or together far away |
| `approach.py`, `descent.py` | from the center to the noise of a cheap gradient, and from there with all that is left |
| `prediction.py` | what to expect |
"""

from __future__ import annotations

from dpmedian.methods.adaptive.stages import calibrate, cap
from dpmedian.parameters import PublicParameters

__all__ = ["calibrate", "cap", "check", "name", "needs", "relations", "sized", "uses"]

name = "adaptive"
uses = frozenset({"radius", "resolution", "center", "inference"})
needs: frozenset[str] = frozenset()
relations = frozenset({"replace", "add_remove"})


sized = True


def check(parameters: PublicParameters) -> None:
    if parameters.budget.pure:
        raise ValueError(
            "method 'adaptive' needs delta or rho: Gaussian noise gives no pure differential privacy; "
            "method 'inverse_sensitivity' does, for d <= 3"
        )
