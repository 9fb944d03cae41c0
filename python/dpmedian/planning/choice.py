"""From public parameters to a plan: a named method, or the best of those that the parameters allow."""

from __future__ import annotations

import math
from dataclasses import replace

from dpmedian.accounting import calibrate
from dpmedian.methods import adaptive, inverse_sensitivity
from dpmedian.methods.contract import Method
from dpmedian.methods.registry import METHODS
from dpmedian.parameters import PublicParameters
from dpmedian.planning.plan import Plan

__all__ = ["choose", "make_plan"]


def make_plan(parameters: PublicParameters, method: str = "auto") -> Plan:
    """The plan of a method, or of the method that is predicted to be the best."""
    if method == "auto":
        _refuse_unused(parameters, METHODS.values(), "auto")
        return choose(parameters)
    if method not in METHODS:
        raise ValueError(f"method must be 'auto' or one of {sorted(METHODS)}, got {method!r}")
    _refuse_unused(parameters, [METHODS[method]], method)
    return _calibrated(parameters, METHODS[method])


def _refuse_unused(parameters: PublicParameters, methods: object, method: str) -> None:
    """An argument that was given and would be ignored is an error: its caller believes that it matters."""
    candidates: list[Method] = list(methods)  # type: ignore[call-overload]
    for argument in parameters.given:
        if not any(argument in candidate.uses for candidate in candidates):
            users = ", ".join(repr(name) for name, candidate in METHODS.items() if argument in candidate.uses)
            raise ValueError(f"method {method!r} does not use {argument}=; the methods that do: {users}")


def _calibrated(parameters: PublicParameters, method: Method) -> Plan:
    if parameters.neighbours not in method.relations:
        raise ValueError(
            f"method {method.name!r} is not proved for neighbours = {parameters.neighbours!r}, "
            f"only for {sorted(method.relations)}"
        )
    method.check(parameters)
    largest = calibrate(lambda rho: method.calibrate(parameters, rho).cost, parameters.budget)
    return Plan(parameters, method.name, method.calibrate(parameters, largest))


def _possible(parameters: PublicParameters, method: Method) -> Plan | None:
    """The plan of a method, or None where an argument is missing or out of its reach."""
    try:
        return _calibrated(parameters, method)
    except ValueError:
        return None


def _excess(plan: Plan) -> float:
    """The predicted excess; infinite where nothing is predicted."""
    predicted = plan.prediction.excess
    return math.inf if predicted is None else predicted


def choose(parameters: PublicParameters) -> Plan:
    """The adaptive method, unless it cannot succeed and a method that knows the radius may.

    Near the median the adaptive method's error is of second order in the noise and relative to the data's spread, so
    a bound that is a share of the public radius can be smaller only where the adaptive method finds nothing.
    """
    if parameters.budget.pure:
        chosen = _calibrated(parameters, inverse_sensitivity)
        return replace(chosen, reason="chosen by auto: pure differential privacy was asked for")
    best = _calibrated(parameters, adaptive)
    if parameters.d == 1 and parameters.radius is not None and parameters.resolution is not None:
        exact = _possible(parameters, inverse_sensitivity)
        if exact is not None and _excess(exact) < _excess(best):
            return replace(exact, reason="chosen by auto: on the line the exact draw has the smallest predicted error")
    failure = best.prediction.failure
    if failure <= 0.5:
        return replace(best, reason="chosen by auto: smallest predicted error, and it needs no radius")
    others = []
    for method in METHODS.values():
        other = _possible(parameters, method)
        if other is None or other.prediction.failure > 0.5:
            continue
        bound = other.prediction.excess_distance_bound
        if bound is not None:
            others.append((bound, other))
    if not others:
        return replace(best, reason=f"chosen by auto, but it would fail with probability {failure:.2g}")
    _, chosen = min(others, key=lambda pair: pair[0])
    return replace(chosen, reason=f"chosen by auto: 'adaptive' would fail with probability {failure:.2g}")
