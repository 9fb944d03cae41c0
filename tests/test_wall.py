"""In a run the charge comes before the first release, and failures are outputs."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import dpmedian
from dpmedian.accounting import PrivacyCost
from dpmedian.methods.contract import CalibratedMethod

POINTS = np.random.default_rng(0).normal(size=(100, 2))
PLAN = dpmedian.plan(100, 2, rho=0.5, method="dpgd", radius=10.0)


@dataclass(frozen=True)
class Spy:
    """A method that inspects the state, or fails, before it does the work of another method."""

    method: CalibratedMethod
    look: object

    def __getattr__(self, name):
        return getattr(self.method, name)

    def run(self, source, tape):
        self.look()
        return self.method.run(source, tape)


def test_the_full_cost_is_pending_before_the_first_release():
    ledger = dpmedian.Ledger(rho=1.0)
    seen = []
    spied = replace(PLAN, calibrated=Spy(PLAN.calibrated, lambda: seen.extend(ledger.entries)))
    spied.run(POINTS, ledger=ledger)
    assert [(entry.state, entry.cost) for entry in seen] == [("pending", PLAN.cost)]
    assert [entry.state for entry in ledger.entries] == ["released"]


def test_a_failure_carries_the_full_planned_cost_and_stays_charged():
    def fail():
        raise dpmedian.ReleaseFailed("nothing crossed the threshold", PrivacyCost())

    ledger = dpmedian.Ledger(rho=1.0)
    with pytest.raises(dpmedian.ReleaseFailed, match="nothing crossed") as caught:
        replace(PLAN, calibrated=Spy(PLAN.calibrated, fail)).run(POINTS, ledger=ledger)
    assert caught.value.cost == PLAN.cost
    assert [(entry.state, entry.cost) for entry in ledger.entries] == [("failed", PLAN.cost)]


def test_an_error_during_the_run_stays_charged():
    def stumble():
        raise MemoryError

    ledger = dpmedian.Ledger(rho=1.0)
    with pytest.raises(RuntimeError, match="after its cost was charged"):
        replace(PLAN, calibrated=Spy(PLAN.calibrated, stumble)).run(POINTS, ledger=ledger)
    assert [(entry.state, entry.cost) for entry in ledger.entries] == [("interrupted", PLAN.cost)]
