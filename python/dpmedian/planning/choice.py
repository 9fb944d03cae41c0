"""Plans from public parameters, for a given method or for the best of all possible methods."""

from __future__ import annotations

import functools
from collections.abc import Collection
from dataclasses import replace

from dpmedian.accounting import calibrate
from dpmedian.methods import adaptive, private_size
from dpmedian.methods.contract import CalibratedMethod, Method, hopeless
from dpmedian.methods.paper import inverse_sensitivity
from dpmedian.methods.registry import CLUSTERING, METHODS, STEPS, method_named
from dpmedian.parameters import PublicParameters
from dpmedian.planning.plan import Plan

__all__ = ["choose", "make_plan"]


def make_plan(parameters: PublicParameters, method: str = "auto") -> Plan:
    """The plan of a method. With "auto", it is the plan of the method with the best prediction."""
    if method == "auto":
        _refuse_unused(parameters, METHODS.values(), "auto")
        return choose(parameters)
    if method not in {**METHODS, **CLUSTERING, **STEPS}:
        raise ValueError(f"method must be 'auto' or one of {sorted(METHODS)}, got {method!r}")
    _refuse_unused(parameters, [method_named(method)], method)
    return _calibrated(parameters, method_named(method))


def _refuse_unused(parameters: PublicParameters, candidates: Collection[Method], method: str) -> None:
    """Raise an error if the caller gave an argument that the method does not use, because the caller expects an
    effect.
    """
    for argument in parameters.given:
        if not any(argument in candidate.uses for candidate in candidates):
            methods = {**METHODS, **CLUSTERING, **STEPS}
            users = ", ".join(repr(name) for name, candidate in methods.items() if argument in candidate.uses)
            raise ValueError(f"method {method!r} does not use {argument}=; these methods use it: {users}")


def _calibrated(parameters: PublicParameters, method: Method) -> Plan:
    if parameters.neighbours not in method.relations:
        raise ValueError(
            f"method {method.name!r} is not proved for neighbours = {parameters.neighbours!r}, "
            f"only for {sorted(method.relations)}"
        )
    parameters.require_proved_profile()
    method.check(parameters)
    parameters.require(method.name, *sorted(method.needs))

    @functools.cache
    def made(rho: float) -> CalibratedMethod:
        if parameters.private_size and method.sized:
            return private_size.calibrate(method.name, parameters, rho)
        return method.calibrate(parameters, rho)

    largest = made(calibrate(lambda rho: made(rho).cost, parameters.budget))
    if isinstance(largest, private_size.PrivateSize):
        largest.check()
    return Plan(parameters, method.name, largest)


def _possible(parameters: PublicParameters, method: Method) -> Plan | None:
    """The plan of a method, or None if an argument is missing or out of range."""
    if any(getattr(parameters, argument) is None for argument in method.needs):
        return None
    try:
        return _calibrated(parameters, method)
    except ValueError:
        return None


def choose(parameters: PublicParameters) -> Plan:
    """Choose a method whose predicted error is never far above the smallest predicted error.

    The core radius of the data is not public, so methods are compared at every assumed core radius. At each core
    radius, the predicted error of a plan is divided by the smallest predicted error of all plans. The plan with the
    smallest largest ratio is chosen. If two plans have the same largest ratio, the plan that comes first in the
    registry is chosen.
    """
    if parameters.budget.pure:
        try:
            chosen = _calibrated(parameters, inverse_sensitivity)
        except ValueError as error:
            raise ValueError(
                "epsilon without delta asks for pure differential privacy: pass delta too, for example delta=1e-6. "
                f"If delta must be 0: {error}"
            ) from None
        return replace(chosen, reason="chosen by auto: pure differential privacy was requested")
    if parameters.n is None:  # Without a number of records, methods cannot be compared.
        return replace(_calibrated(parameters, adaptive), reason="chosen by auto: it suits every number of records")
    plans = [made for method in METHODS.values() if (made := _possible(parameters, method)) is not None]
    if not plans:
        return _calibrated(parameters, adaptive)  # The calibration raises an error that explains what is wrong.
    useful = [made for made in plans if hopeless(made.calibrated, parameters) is None] or plans
    errors = [
        [
            made.calibrated.predict(core_radius).expected_error(core_radius)
            for core_radius in parameters.assumed_core_radii
        ]
        for made in useful
    ]
    least = [min(column) for column in zip(*errors, strict=True)]
    ratios = [max(error / best for error, best in zip(row, least, strict=True)) for row in errors]
    chosen = useful[ratios.index(min(ratios))]
    others = tuple(made for made in plans if made is not chosen)
    compared = f" (compared with {', '.join(made.method for made in others)})" if others else ", and it needs no radius"
    return replace(chosen, reason=f"chosen by auto: smallest predicted error{compared}", others=others)
