"""The default method. It needs no radius and no resolution, and its excess is proportional to the squared noise. Proof:
adaptive.md.

| file | holds |
|---|---|
| `constants.py` | every constant, with its reason |
| `stages.py`, `prediction.py` | the calibrated method, and its prediction |
| `queries.py` | the noisy queries and their costs |
| `run.py` | the stages of one run: center, core radius, collapse, descent, end |
| `with_axes.py` | one more release, for the axes of the data |
| `belief.py` | an estimate of the median from all gradients so far |
| `evidence.py` | a test, for few records, whether the data surround the point |
| `notes.py` | the notes of a result |
"""

from __future__ import annotations

from dpmedian.accounting import PrivacyCost
from dpmedian.methods.adaptive import stages, with_axes
from dpmedian.methods.contract import CalibratedMethod
from dpmedian.parameters import PublicParameters

__all__ = ["calibrate", "cap", "check", "name", "needs", "relations", "sized", "uses"]

name = "adaptive"
uses = frozenset({"radius", "resolution", "center", "inference", "axes"})
needs: frozenset[str] = frozenset()
relations = frozenset({"replace", "add_remove"})


sized = True


def check(parameters: PublicParameters) -> None:
    if parameters.budget.pure:
        pure = "; method 'inverse_sensitivity' gives it, for d <= 3" if parameters.clusters is None else ""
        raise ValueError(
            "Gaussian noise gives no pure differential privacy: pass delta too, for example delta=1e-6, "
            f"or pass rho{pure}"
        )
    if parameters.axes > 0.0 and not parameters.inference:
        raise ValueError("axes= needs inference=True, because axes and confidence regions use the same releases")
    if parameters.axes > 0.0 and parameters.d == 1:
        raise ValueError("axes= needs two or more dimensions, because in one dimension there is only one axis")


def calibrate(parameters: PublicParameters, rho: float) -> CalibratedMethod:
    """Calibrate the queries so that together they cost at most rho."""
    return with_axes.calibrate(parameters, rho) if parameters.axes > 0.0 else stages.calibrate(parameters, rho)


def cap(parameters: PublicParameters, rho: float) -> PrivacyCost:
    """The cost, which is the same for every number of records."""
    return with_axes.cap(parameters, rho) if parameters.axes > 0.0 else stages.cap(parameters, rho)
