"""The measurement's map is the group privacy of zCDP, and OpenDP's combinators and contexts accept it."""

import math
from fractions import Fraction

import numpy as np
import pytest

import dpmedian
from dpmedian import nonprivate

pytest.importorskip("opendp")

import opendp.prelude as dp

from dpmedian.opendp import make_geometric_median

dp.enable_features("contrib", "honest-but-curious")

# With large budgets the noise is small, so that each test is about something else.
pytestmark = pytest.mark.filterwarnings("ignore::dpmedian.WeakPrivacyWarning")

POINTS = np.random.default_rng(0).normal(size=(500, 3))
DOMAIN = dp.numpy.array2_domain(norm=10.0, p=2, size=500, num_columns=3, T=float)
RHO = 0.1


def make(metric=None, rho=RHO, domain=DOMAIN, **options):
    return make_geometric_median(domain, metric or dp.change_one_distance(), rho, **{"method": "dpgd", **options})


@pytest.mark.parametrize("metric", [dp.change_one_distance(), dp.hamming_distance()])
def test_k_changed_records_cost_k_squared(metric):
    measurement = make(metric)
    for k in range(12):
        mapped = measurement.map(k)
        assert Fraction(mapped) >= Fraction(RHO) * k**2
        assert mapped <= math.nextafter(RHO * k**2, math.inf)
    assert measurement.map(1) == RHO


@pytest.mark.parametrize("metric", [dp.symmetric_distance(), dp.insert_delete_distance()])
def test_a_change_is_a_removal_and_an_addition(metric):
    """Data sets of the same size have an even distance. So an odd bound allows no more changes than the even number
    below it.
    """
    measurement, changes = make(metric), make()
    assert [measurement.map(i) for i in range(8)] == [changes.map(i // 2) for i in range(8)]


def test_the_map_never_states_less_than_the_plan_spends():
    for rho in (0.02, 0.1, 3.0):
        plan = dpmedian.plan(500, 3, rho=rho, method="dpgd", radius=10.0)
        assert plan.cost.rho <= make(rho=rho).map(1)
        assert plan.cost.delta0 == 0.0


@pytest.mark.parametrize("method", ["auto", "dpgd"])
def test_the_release_is_accurate_at_a_large_budget(method):
    point = make(rho=1e3, method=method)(POINTS)
    assert point.shape == (3,)
    assert np.linalg.norm(point - nonprivate.geometric_median(POINTS)) < 0.1


def test_a_missing_value_in_the_domain_is_no_error():
    points = POINTS.copy()
    points[7, 1] = np.nan
    assert np.all(np.isfinite(make()(points)))


def test_a_failed_release_is_an_output(monkeypatch):
    def fail(self, *arguments, **options):
        raise dpmedian.ReleaseFailed("nothing crossed the threshold", self.cost)

    monkeypatch.setattr(dpmedian.Plan, "run", fail)
    queryable = dp.c.make_adaptive_composition(
        DOMAIN, dp.change_one_distance(), dp.zero_concentrated_divergence(), d_in=1, d_mids=[RHO]
    )(POINTS)
    assert queryable(make()) is None
    # The failure was charged: nothing is left for a second try.
    with pytest.raises(dp.OpenDPException):
        queryable(make())


@pytest.mark.parametrize(
    "domain",
    [
        dp.numpy.array2_domain(size=500, T=float),
        dp.numpy.array2_domain(norm=1.0, p=1, size=500, num_columns=3, T=float),
        dp.vector_domain(dp.atom_domain(T=float)),
    ],
)
def test_domains_that_are_no_rows_or_have_another_norm_are_refused(domain):
    with pytest.raises(ValueError, match="array2_domain"):
        make(domain=domain)


@pytest.mark.parametrize("size", [{"size": 500}, {}])
def test_no_norm_is_needed(size):
    """The data are far from the origin and have a missing value, which such a domain allows."""
    domain = dp.numpy.array2_domain(num_columns=3, T=float, **size)
    metric = dp.change_one_distance() if size else dp.symmetric_distance()
    measurement = make_geometric_median(domain, metric, rho=1.0)
    points = POINTS + 1e4
    points[7, 1] = np.nan
    assert np.abs(measurement(points) - 1e4).max() < 0.5
    assert measurement.map(1) == 1.0
    with pytest.raises(ValueError, match="radius"):
        make_geometric_median(domain, metric, rho=1.0, method="dpgd")


UNSIZED = dp.numpy.array2_domain(norm=10.0, p=2, num_columns=3, T=float)


@pytest.mark.parametrize("metric", [dp.symmetric_distance(), dp.insert_delete_distance()])
def test_without_a_size_a_record_is_added_or_removed(metric):
    """k edits cost k^2 rho, also for odd k, and data sets of any size are in the domain."""
    measurement = make(metric, domain=UNSIZED, n=500)
    for k in range(8):
        assert Fraction(measurement.map(k)) >= Fraction(RHO) * k**2
        assert measurement.map(k) <= math.nextafter(RHO * k**2, math.inf)
    plan = dpmedian.plan(500, 3, rho=RHO, method="dpgd", radius=10.0, neighbours="add_remove")
    assert plan.cost.rho <= measurement.map(1)
    for n in (0, 1, 2, 499, 700):
        point = measurement(np.resize(POINTS, (n, 3)))
        assert point is None or point.shape == (3,)


def test_without_a_size_no_error_tells_the_number_of_rows():
    measurement = make(dp.symmetric_distance(), domain=UNSIZED, method="auto")
    with pytest.raises(Exception, match=r"shape \(any, 3\), got \(2,\)") as refused:
        measurement(POINTS[:, :2])
    assert "500" not in str(refused.value)
    assert measurement(POINTS[:3]) is None


@pytest.mark.parametrize("metric", [dp.change_one_distance(), dp.hamming_distance()])
def test_metrics_of_data_sets_of_one_size_need_the_size(metric):
    with pytest.raises(ValueError, match="give the domain its size"):
        make(metric, domain=UNSIZED)


def test_a_guess_that_is_not_the_size_of_the_domain_is_refused():
    with pytest.raises(ValueError, match="n = 10, but the size of the domain is 500"):
        make(n=10)


def test_contributions_of_a_person_are_counted_where_there_is_no_size():
    context = dp.Context.compositor(
        data=POINTS,
        privacy_unit=dp.unit_of(contributions=2),
        privacy_loss=dp.loss_of(rho=0.2),
        split_evenly_over=1,
        domain=UNSIZED,
    )
    query = context.query().geometric_median()
    assert query.param() == pytest.approx(0.2 / 2**2, rel=1e-9)
    assert query.release().shape == (3,)


def test_other_metrics_are_refused():
    with pytest.raises(ValueError, match="input_metric must be"):
        make(dp.discrete_distance())


def test_it_composes_in_the_combinators():
    measurement = make()
    both = dp.c.make_composition([measurement, make(rho=0.2)])
    assert both.map(1) == pytest.approx(0.3)
    assert [point.shape for point in both(POINTS)] == [(3,), (3,)]
    profile = dp.c.make_zCDP_to_approxDP(measurement).map(1)
    assert profile.epsilon(1e-6) >= dpmedian.plan(500, 3, rho=RHO, method="dpgd", radius=10.0).cost.epsilon_at(1e-6)
    chained = measurement >> (lambda point: float(np.linalg.norm(point)))
    assert chained(POINTS) >= 0.0


def test_an_adaptive_compositor_refuses_what_exceeds_its_budget():
    queryable = dp.c.make_adaptive_composition(
        DOMAIN, dp.change_one_distance(), dp.zero_concentrated_divergence(), d_in=1, d_mids=[RHO, RHO / 2]
    )(POINTS)
    assert queryable(make()).shape == (3,)
    with pytest.raises(dp.OpenDPException, match="insufficient budget"):
        queryable(make())


@pytest.mark.slow
@pytest.mark.parametrize("unit", [{"changes": 3}, {"changes": 1}, {"contributions": 2}])
def test_a_context_finds_the_rho_that_its_budget_allows(unit):
    context = dp.Context.compositor(
        data=POINTS,
        privacy_unit=dp.unit_of(**unit),
        privacy_loss=dp.loss_of(rho=0.2),
        split_evenly_over=2,
        domain=DOMAIN,
    )
    query = context.query().geometric_median()
    changes = unit.get("changes", 1)
    assert query.param() == pytest.approx(0.1 / changes**2, rel=1e-9)
    assert query.release().shape == (3,)


def test_a_context_clamps_before_it_releases():
    context = dp.Context.compositor(
        data=100.0 * POINTS,
        privacy_unit=dp.unit_of(changes=1),
        privacy_loss=dp.loss_of(rho=0.2),
        split_evenly_over=1,
        domain=dp.numpy.array2_domain(size=500, num_columns=3, T=float),
    )
    query = context.query().np_clamp(norm=10.0, p=2, origin=np.zeros(3)).geometric_median(method="dpgd")
    assert np.linalg.norm(query.release()) <= 10.0
