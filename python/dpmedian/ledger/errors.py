"""The errors of a ledger: a refusal, and an inconsistent ledger."""

from __future__ import annotations

from dpmedian.accounting import Budget, PrivacyCost

__all__ = ["BrokenChain", "BudgetExceeded"]


class BrokenChain(ValueError):
    """A line of the ledger's log, or the terms, was changed, removed or moved after it was written."""


class BudgetExceeded(ValueError):
    """The release would exceed the ledger's budget. Nothing was charged, and no data were read.

    Attributes
    ----------
    asked, spent : PrivacyCost
        The cost of the release, and the cost of all earlier releases together.
    budget : Budget
        The limits of the ledger.
    composition : str
        The filter that refused the cost; see `Ledger`.
    used, remaining : float
        The part of the budget that is spent, and the part that is left, according to this filter, in the unit of the
        budget.
    advice : str A text about a cost that would fit.
    """

    def __init__(
        self,
        asked: PrivacyCost,
        spent: PrivacyCost,
        budget: Budget,
        composition: str = "",
        used: float = 0.0,
        remaining: float = 0.0,
        advice: str = "",
    ) -> None:
        self.asked, self.spent, self.budget = asked, spent, budget
        self.composition, self.used, self.remaining, self.advice = composition, used, remaining, advice
        used_text = f"{budget.measure} = {used:.6g}"
        super().__init__(
            f"this release would exceed the ledger's budget of {budget}: it costs {asked}, but only "
            f"{budget.measure} = {remaining:.6g} is left, because "
            + (f"the filter {composition!r} counts {used_text} as spent" if composition else f"{used_text} is spent")
            + (f"; {advice}" if advice else "")
        )

    def __reduce__(self) -> tuple[type[BudgetExceeded], tuple[object, ...]]:
        arguments = (self.asked, self.spent, self.budget, self.composition, self.used, self.remaining, self.advice)
        return BudgetExceeded, arguments
