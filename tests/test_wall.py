"""What a run does around its releases: the charge comes first, failures are outputs."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import dpmedian
from dpmedian.accounting import PrivacyCost
from dpmedian.methods import Recipe

POINTS = np.random.default_rng(0).normal(size=(100, 2))
PLAN = dpmedian.plan(100, 2, rho=0.5, method="dpgd", radius=10.0)


@dataclass(frozen=True)
class Spy:
    """A recipe that looks around, or fails, before it does what another one does."""

    recipe: Recipe
    look: object

    def __getattr__(self, name):
        return getattr(self.calibrated, name)

    def run(self, source, tape):
        self.look()
        return self.calibrated.run(source, tape)


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


@pytest.mark.parametrize("method", ["adaptive", "dpgd", "loc_dpgd", "loc_cutting_plane", "inverse_sensitivity"])
def test_the_cost_of_a_plan_is_that_of_its_stages(method):
    """Nothing that a reviewer sees in the table is left out of what the ledger is charged."""
    budget = {"epsilon": 1.0} if method == "inverse_sensitivity" else {"epsilon": 1.0, "delta": 1e-6}
    plan = dpmedian.plan(2000, 2, **budget, method=method, radius=10.0, resolution=0.1)
    stages = PrivacyCost.total(stage.cost for stage in plan.stages)
    assert plan.cost.rho == pytest.approx(stages.rho, rel=1e-9)
    assert plan.cost.delta_at(1.0) == pytest.approx(stages.delta_at(1.0), rel=1e-6)
