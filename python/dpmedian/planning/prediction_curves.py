"""The predicted error as a function of n and of the budget, for the curves in pictures and pages. No data are
needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from dpmedian.accounting import Budget
from dpmedian.planning.choice import make_plan
from dpmedian.planning.plan import Plan

__all__ = ["PredictionCurves"]

# The predictions that a plan may have, each with the label of its axis. The first prediction that a plan has is drawn.
_MEASURES = {
    "relative_error": "predicted distance to the median, in core radii",
    "excess": "predicted excess F(point)/F(median) - 1",
    "excess_distance_bound": "bound on the average excess distance",
}


@dataclass(frozen=True)
class PredictionCurves:
    """One kind of prediction for plans that differ from a given plan in n or in the budget."""

    plan: Plan
    """The plan. If the given plan has no number of records, this plan has the middle one of its example numbers."""
    sizes: tuple[int, int, int]
    """Three numbers of records: fewer than in the plan, the same number, and more."""
    measure: str
    label: str

    @classmethod
    def of(cls, plan: Plan) -> PredictionCurves | None:
        """The curves of a plan, or None if nothing can be predicted without data."""
        examples = [n for n, _ in plan.calibrated.examples]
        if plan.n is None and not examples:
            return None
        known = plan if plan.n is not None else make_plan(plan.parameters.at_size(examples[1]), plan.method)
        assert known.n is not None
        few, many, more = examples or [max(known.n // 4, 2), known.n, 4 * known.n]
        for measure, label in _MEASURES.items():
            if measure == "relative_error" and known.prediction.absolute_error > 0.0:
                continue  # A part of the predicted distance is in the unit of the data and not in core radii.
            if getattr(known.prediction, measure) is not None:
                return cls(known, (few, many, more), measure, label)
        return None

    @property
    def amount(self) -> float:
        """The budget of the plan: its rho, or its epsilon."""
        budget = self.plan.parameters.budget
        value = budget.epsilon if budget.rho is None else budget.rho
        assert value is not None
        return value

    @property
    def here(self) -> float:
        """The prediction of the plan."""
        return float(getattr(self.plan.prediction, self.measure))

    def predicted(self, n: int, amount: float) -> float | None:
        """The prediction for n records and another budget, or None if no plan is possible, or if a release would
        probably fail.
        """
        budget = self.plan.parameters.budget
        try:
            other_budget = Budget.of(delta=budget.delta, **{budget.measure: amount})
            other = make_plan(replace(self.plan.parameters, n=n, budget=other_budget), self.plan.method)
        except ValueError:
            return None
        error = getattr(other.prediction, self.measure)
        return None if error is None or not math.isfinite(error) or other.prediction.failure > 0.5 else float(error)
