"""Building blocks that are parts of the methods, and the noisy number of records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from numpy.typing import ArrayLike

from dpmedian.accounting import PrivacyCost, calibrate
from dpmedian.accounting.protection import relation_of
from dpmedian.building_blocks.value import PrivateValue
from dpmedian.dataset import Dataset
from dpmedian.documented import documented
from dpmedian.mechanisms.size import NoisySize
from dpmedian.methods.paper import dpgd as dpgd_method
from dpmedian.methods.paper import find_radius as find_radius_method
from dpmedian.methods.paper import localize as localize_method
from dpmedian.methods.paper.localize import Localized
from dpmedian.methods.private_size import TYPICAL, size_share
from dpmedian.parameters import PublicParameters
from dpmedian.release import MethodResult
from dpmedian.running import Runnable, Session
from dpmedian.sources.protocol import Source
from dpmedian.spelling import american
from dpmedian.tape import Tape

__all__ = ["dpgd", "find_radius", "localize", "size"]

Value = TypeVar("Value")
Value_co = TypeVar("Value_co", covariant=True)


class _Calibrated(Runnable[Value_co], Protocol[Value_co]):
    """The interface of a calibrated part of a method."""

    @property
    def cost(self) -> PrivacyCost: ...


class _Part(Protocol[Value_co]):
    """The interface of a module with a part of a method."""

    def calibrate(self, parameters: PublicParameters, rho: float) -> _Calibrated[Value_co]: ...

    def cap(self, parameters: PublicParameters, rho: float) -> PrivacyCost: ...


@dataclass(frozen=True)
class _Sized(Generic[Value]):
    """A part for a private number of records. The noisy number is released first (private_size.md)."""

    needs_local_records: ClassVar[bool] = False

    part: _Part[Value]
    parameters: PublicParameters
    size: NoisySize | None
    rest: float

    @classmethod
    def of(cls, part: _Part[Value], parameters: PublicParameters, rho: float) -> _Sized[Value]:
        if not parameters.private_size:
            return cls(part, parameters, None, rho)
        share = size_share(parameters.n, rho)
        return cls(part, parameters, NoisySize.of("size", share * rho, parameters), (1.0 - share) * rho)

    @property
    def cost(self) -> PrivacyCost:
        if self.size is None:
            return self.part.calibrate(self.parameters, self.rest).cost
        return self.size.cost + self.part.cap(self.parameters, self.rest)

    @property
    def passes(self) -> float:
        typical = self.parameters.at_size(TYPICAL) if self.parameters.n is None else self.parameters
        return self.part.calibrate(typical, self.rest).passes + (self.size is not None)

    def run(self, source: Source, tape: Tape) -> tuple[Value, int | None]:
        if self.size is None:
            return self.part.calibrate(self.parameters, self.rest).run(source, tape), None
        n = self.size.among(source, tape)
        return self.part.calibrate(self.parameters.at_size(n, self.size.noise), self.rest).run(source, tape), n


def _release(name: str, part: _Part[Value], arguments: dict[str, Any]) -> PrivateValue[Value]:
    """Make a plan for the shape of the points, and run it. `arguments` are the arguments of the public function."""
    data = Dataset.taken(arguments)
    n, d = data.shape
    n = n if relation_of(arguments["neighbours"]).size_is_public else arguments["n"]
    parameters = PublicParameters.from_arguments(arguments, n=n, d=d)
    parameters.require_proved_profile()
    budget = parameters.budget
    made = _Sized.of(part, parameters, calibrate(lambda rho: _Sized.of(part, parameters, rho).cost, budget))
    cost = replace(made.cost.requested(budget.epsilon, budget.delta), neighbours=parameters.neighbours)
    session = Session(cost, method=name, ledger=arguments["ledger"], seed=arguments["seed"])
    value, noisy = session.run(made, data, parameters, progress=arguments["progress"], finish=lambda found: found)
    return PrivateValue(value, cost, noisy)


class _Size:
    """A run that only releases the noisy size."""

    needs_local_records: ClassVar[bool] = False
    passes = 1.0

    def __init__(self, mechanism: NoisySize) -> None:
        self._mechanism = mechanism

    def run(self, source: Source, tape: Tape) -> int:
        return self._mechanism.among(source, tape)


@documented
def size(
    points: Any,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    nonfinite: str = "raise",
    ledger: Any = None,
    seed: int | None = None,
) -> PrivateValue[int]:
    """Release a noisy number of records under add/remove.

    Sensitivity: 1. Cost: one Gaussian release, see `mechanisms/size.md`. Failure: none.

    Parameters
    ----------
    points : array, data frame or Arrow table of shape (n, d)
        The records, one per row. Their values have no effect.
    epsilon, delta, rho : float, optional
        The budget: epsilon and delta, rho, or rho and delta. There is no default.
    nonfinite : {"raise", "center", "drop"}
        Whether a record with a missing or infinite value raises an error, is counted, or is left out.
    ledger, seed
        As in `find_radius`.

    Returns
    -------
    PrivateValue of int
        The noisy number, not below 0, and the cost.

    Examples
    --------
    >>> import numpy as np
    >>> found = size(np.zeros((1000, 2)), rho=0.5)
    >>> abs(found.value - 1000) < 10, found.cost.neighbours
    (True, 'add_remove')
    """
    data = Dataset.taken(locals())
    parameters = PublicParameters.of(
        None, data.shape[1], epsilon=epsilon, delta=delta, rho=rho, neighbours="add_remove"
    )
    budget = parameters.budget
    if budget.pure:
        raise ValueError("a noisy size has Gaussian noise, which gives no pure differential privacy: give delta or rho")
    mechanism = NoisySize.of(
        "size", calibrate(lambda rho: NoisySize.of("size", rho, parameters).cost, budget), parameters
    )
    cost = replace(mechanism.cost.requested(budget.epsilon, budget.delta), neighbours="add_remove")
    session = Session(cost, method="size", ledger=ledger, seed=seed)
    found = session.run(_Size(mechanism), data, parameters, progress=False, finish=lambda found: found)
    return PrivateValue(found, cost, found)


@documented
@american
def find_radius(
    points: Any,
    *,
    radius: float,
    resolution: float,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    center: ArrayLike | None = None,
    failure_probability: float = 0.05,
    profile: str = "default",
    neighbours: str = "replace",
    n: int | None = None,
    ledger: Any = None,
    seed: int | None = None,
    progress: bool | Callable[[float], object] | None = None,
) -> PrivateValue[float]:
    """Release a radius. The ball with this radius around some record contains most of the records.

    The radius is the resolution times a power of two. `ReleaseFailed` is raised if the search finds no radius.

    `methods/paper/find_radius.md` states sensitivity and cost. The cost is zero-concentrated. A result equal to the
    resolution means that the radius is at most the resolution.

    Parameters
    ----------
    points : array, data frame or Arrow table of shape (n, d)
        The records, one per row.
    radius : float
        A public bound on the distance of every record from `center`.
    resolution : float
        The smallest distance that matters.
    epsilon, delta, rho : float, optional
        The budget: epsilon and delta, rho, or rho and delta. There is no default.
    center : d numbers, optional
        The center of the public ball. The default is the origin.
    profile : {"default", "paper"}
        The table of constants: the constants of this package, or those that the paper prints.
    failure_probability : float
        The accepted probability that the search fails.
    neighbours : {"replace", "add_remove"}
        With "add_remove" a noisy size (`PrivateValue.size`) is released first, and the building block uses it.
    n : int, optional
        With "add_remove" a public guess of the number of records.
    ledger : Ledger, optional
        The budget that is charged, before any query to the data.
    seed : int, optional
        Predictable noise for simulations and tests, with an `InsecureSeedWarning`.
    progress : bool or callable, optional
        None shows a bar on a terminal after two seconds; a callable gets the fraction done, from 0 to 1.

    Returns
    -------
    PrivateValue of float
        The radius, and the cost.
    """
    return _release("find_radius", find_radius_method, locals())


@documented
@american
def localize(
    points: Any,
    *,
    radius: float,
    resolution: float,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    center: ArrayLike | None = None,
    failure_probability: float = 0.05,
    profile: str = "default",
    neighbours: str = "replace",
    n: int | None = None,
    ledger: Any = None,
    seed: int | None = None,
    progress: bool | Callable[[float], object] | None = None,
) -> PrivateValue[Localized]:
    """Release a ball that contains the median with high probability, and the scale of the data.

    The ball is `value.center` and `value.radius`.

    `methods/paper/localize.md` states sensitivity and cost. The cost is zero-concentrated. Failure: `ReleaseFailed` is
    raised if no radius is found.

    Parameters
    ----------
    points, radius, resolution, epsilon, delta, rho, center, failure_probability, profile, neighbours, n
        As in `find_radius`.
    ledger, seed, progress
        As in `find_radius`.

    Returns
    -------
    PrivateValue of Localized
        The ball, and the cost.
    """
    return _release("localize", localize_method, locals())


@documented
@american
def dpgd(
    points: Any,
    *,
    radius: float,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    center: ArrayLike | None = None,
    profile: str = "default",
    neighbours: str = "replace",
    n: int | None = None,
    ledger: Any = None,
    seed: int | None = None,
    progress: bool | Callable[[float], object] | None = None,
) -> PrivateValue[MethodResult]:
    """Release the mean iterate `value.point` of noisy projected gradient descent over the public ball.

    `methods/paper/dpgd.md` states sensitivity and cost. The cost is zero-concentrated. Failure: none.

    Parameters
    ----------
    points, radius, epsilon, delta, rho, center, profile, neighbours, n, ledger, seed, progress
        As in `find_radius`.

    Returns
    -------
    PrivateValue of MethodResult
        `value.point`, and the cost.
    """
    return _release("dpgd", dpgd_method, locals())
