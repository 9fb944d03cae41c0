"""Up to 2^40 records: lattices on which their totals fit, and sums over more records than memory can hold."""

import math

import numpy as np
import pytest

import dpmedian
from dpmedian._core import Points, Tape
from dpmedian.parameters import PRIVATE_RECORDS_MAX, RECORDS_MAX
from dpmedian.sources.array import ArraySource
from dpmedian.sources.partitioned import PartitionedSource
from dpmedian.statistics import Statistic

METHODS = {
    "adaptive": {},
    "dpgd": {"radius": 10.0},
    "loc_dpgd": {"radius": 10.0, "resolution": 1e-3},
    "loc_cutting_plane": {"radius": 10.0, "resolution": 1e-3},
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [2**30 + 1, 2**31, 2**36 - 1, RECORDS_MAX])
@pytest.mark.parametrize("epsilon", [0.1, 100.0])
def test_no_total_leaves_62_bits_and_no_lattice_is_too_coarse(method, n, epsilon):
    plan = dpmedian.plan(n, 2, epsilon=epsilon, delta=1e-12, method=method, **METHODS[method])
    stages = [stage for stage in plan.stages if "bits" in stage.arguments]
    assert stages
    for stage in stages:
        bits = stage.arguments["bits"]
        largest = stage.arguments["pairings"] * (n // 2) if stage.statistic == "pair counts" else n
        assert largest << bits <= 2**62, stage
        assert 2**30 <= math.ldexp(stage.noise.scale, bits) <= 2**50, stage
        # The contribution of a record to the curvature is a multiple of 2^-20; shares of pairs have at least eight
        # binary places.
        assert bits >= {"curvature": 20, "pair counts": 8}.get(stage.statistic, 0), stage


def test_the_most_records_are_named():
    budget = {"epsilon": 1.0, "delta": 1e-9}
    with pytest.raises(ValueError, match=r"at most 2\*\*40 records, got 1099511627777"):
        dpmedian.plan(RECORDS_MAX + 1, 2, **budget)
    with pytest.raises(
        ValueError, match=r"at most 2\*\*30 records if neighbors add or remove a record.* got 1073741825"
    ):
        dpmedian.plan(PRIVATE_RECORDS_MAX + 1, 2, **budget, neighbours="add_remove")
    with pytest.raises(ValueError, match=r"no number of records up to 2\*\*40"):
        dpmedian.required_n(2, excess=1e-30, **budget)
    with pytest.raises(ValueError, match=r"no number of records up to 2\*\*30"):
        dpmedian.required_n(2, excess=1e-30, **budget, neighbours="add_remove")


@pytest.mark.slow
def test_totals_of_more_than_2_to_the_30_records_are_exact():
    """A block that is admitted many times, as new records each time, with all records in one direction from the
    point.
    """
    block, times, bits = np.zeros((2**22, 1)), 2**9, 30
    source = PartitionedSource([Points(block) for _ in range(times)])
    tape = Tape.draw(bytes(32))
    n = times * len(block)
    assert n == 2**31
    # A sample copies its own records only: all records would take 16 GB.
    assert source.sample(tape.hidden(), 1000).local.n == 1000
    gradient = source.answer(Statistic("gradient", theta=np.ones(1), bits=bits))
    # Noise of about 2^31 units is two records; six standard deviations have probability below 1e-8, and the key is
    # fixed.
    (total,) = tape.gaussian("gradient", gradient, 1.0)
    assert abs(int(total) - (n << bits)) < 12 << bits


def test_in_very_many_dimensions_second_moments_are_those_of_the_sample(monkeypatch):
    """All records are queried for gradients and counts only. The region is a ball, and the Hessian is that of the
    sample.
    """
    d, n = 20, 60_000
    for module in ("queries", "run"):
        monkeypatch.setattr(f"dpmedian.methods.adaptive.{module}.SAMPLED_DIMENSIONS", d - 1)
    monkeypatch.setattr("dpmedian.methods.adaptive.queries.KNOWN", 1e-9)
    plan = dpmedian.plan(n, d, rho=0.01, method="adaptive")
    assert plan.calibrated.offers.sample < n / 2
    asked: list[tuple[str, bool]] = []

    class Watched:
        def __init__(self, source, whole):
            self.source, self.whole, self.d, self.local = source, whole, source.d, source.local

        def answer(self, statistic, passes=1.0):
            asked.append((statistic.name, self.whole))
            return self.source.answer(statistic, passes)

        def sample(self, stream, size):
            return Watched(self.source.sample(stream, size), False)

        def advance(self, passes):
            return self.source.advance(passes)

    points = np.random.default_rng(4).normal(size=(n, d)) + 3.0
    source = ArraySource.of(points, plan.parameters)
    result = plan.calibrated.run(Watched(source, True), Tape.draw(bytes(32)))
    assert np.linalg.norm(result.point - 3.0) < 0.5
    names = {whole: {name for name, of_all in asked if of_all == whole} for whole in (True, False)}
    assert "gradient" in names[True]
    assert names[True] <= {"gradient", "distance counts"}
    assert {"ranks", "curvature", "hessian", "gradient and directions"} <= names[False]
    assert plan.region == "ball"
    # The directions are scaled to all records: the trace for n unit vectors is n.
    moments = result.moments
    assert moments.directions.matrix.trace() == pytest.approx(n, abs=5.0 * math.sqrt(d) * moments.directions.noise)
    assert moments.directions.noise < n / d
    assert moments.records == plan.calibrated.offers.sample
