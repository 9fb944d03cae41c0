"""The default method: no radius, no resolution, and an error of second order in the noise. Proof: adaptive.md.

| file | holds |
|---|---|
| `constants.py` | every constant, with its reason |
| `stages.py`, `prediction.py` | the calibrated method, and what to expect of it |
| `queries.py` | the noisy queries, and what each costs |
| `run.py` | one run: center, core radius, collapse, descent, end |
| `belief.py` | where the median is, from all gradients so far |
| `evidence.py` | whether few records surround the point |
| `notes.py` | what a result may say |
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
