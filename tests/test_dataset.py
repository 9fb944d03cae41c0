"""`Dataset`: points of any kind, converted once, with the same records and the same released values for each kind."""

import warnings

import numpy as np
import pytest

import dpmedian
from dpmedian import Dataset
from dpmedian.dataset import memory
from dpmedian.sources import records as conversions

RNG = np.random.default_rng(3)
N = 600
POINTS = RNG.normal(size=(N, 2))
PERSON = np.arange(N) // 2
SIDE = np.where(RNG.random(N) < 0.5, "north", "south")
WEIGHT = RNG.uniform(0.5, 3.0, N)


def released(points, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dpmedian.geometric_median(points, **{"rho": 1.0, "seed": 1, "progress": False, **options}).point


def grouped(points, by, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        told = {"keys": ["north", "south"], "rho": 4.0, "seed": 1, "progress": False}
        found = dpmedian.geometric_medians(points, by, **{**told, **options})
    return np.array([found[key].point for key in ("north", "south")])


def table():
    pandas = pytest.importorskip("pandas")
    data = {"x": POINTS[:, 0], "person": PERSON, "y": POINTS[:, 1], "side": SIDE, "weight": WEIGHT}
    return pandas.DataFrame(data)


def test_one_dataset_serves_many_releases_and_is_converted_once(monkeypatch):
    converted = []
    original = conversions._convert
    monkeypatch.setattr(conversions, "_convert", lambda *a: converted.append(1) or original(*a))
    data = Dataset.of(table(), columns=["x", "y"], unit="person")
    assert (data.d, data.columns, data.unit, data.shape) == (2, ("x", "y"), "person", (N // 2, 2))
    expected = released(table()[["x", "y"]], unit=PERSON)
    converted.clear()
    for _ in range(3):
        assert np.array_equal(released(data), expected)
    assert not converted
    released(table(), columns=["x", "y"])
    assert len(converted) == 1


def test_a_dataset_has_its_own_options():
    data = Dataset.of(POINTS, unit=PERSON, unit_reduce="mean")
    for options in (
        {"unit": PERSON},
        {"unit_reduce": "first"},
        {"geometry": "sphere"},
        {"columns": [1]},
        {"copy": True},
    ):
        with pytest.raises(ValueError, match=f"points are a Dataset, and {next(iter(options))} is an option"):
            released(data, **options)
    assert np.array_equal(released(data, unit_reduce="mean"), released(POINTS, unit=PERSON, unit_reduce="mean"))
    made = dpmedian.plan(N // 2, 2, rho=1.0, weight_max=2.0, unit="unit")
    with pytest.raises(ValueError, match="weight_max"):
        made.run(data)
    with pytest.raises(ValueError, match=r"plan has geometry = 'sphere'|geometry is an option"):
        dpmedian.plan(N, 2, rho=1.0, geometry="sphere").run(Dataset.of(POINTS))
    assert "600" not in repr(Dataset.of(POINTS))


def test_a_row_without_an_id_is_refused_where_the_number_of_units_is_public():
    data = Dataset.of(POINTS, unit=[None, *PERSON[1:]])
    with pytest.raises(ValueError, match="row 1 has no 'unit'"):
        released(data)
    assert released(data, neighbours="add_remove", n=300).shape == (2,)


@pytest.mark.slow
def test_columns_are_chosen_of_everything_that_has_them():
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    frame = table()
    expected = {
        "plain": released(POINTS),
        "unit": released(POINTS, unit=frame["person"]),
        "weight": released(POINTS, sample_weight=WEIGHT, weight_max=2.0, n=400),
        "groups": grouped(POINTS, SIDE),
    }
    for points in (
        frame,
        polars.from_pandas(frame),
        polars.from_pandas(frame).lazy(),
        arrow.Table.from_pandas(frame),
        lambda: arrow.Table.from_pandas(frame).to_reader(),
        lambda: iter(arrow.Table.from_pandas(frame).to_batches(max_chunksize=100)),
        lambda: (frame[i : i + 70] for i in range(0, N, 70)),
    ):
        fresh = points if callable(points) else lambda points=points: points
        columns = {"columns": ["x", "y"]}
        assert np.array_equal(released(fresh(), **columns), expected["plain"])
        assert np.array_equal(released(fresh(), **columns, unit="person"), expected["unit"])
        weighted = released(fresh(), **columns, sample_weight="weight", weight_max=2.0, n=400)
        assert np.array_equal(weighted, expected["weight"])
        assert np.array_equal(grouped(fresh(), "side", **columns), expected["groups"])
        assert np.array_equal(grouped(Dataset.of(fresh(), **columns), "side"), expected["groups"])
    assert np.array_equal(released(frame.to_numpy(dtype=object)[:, [0, 1, 2]], columns=[1, 3]), expected["plain"])
    assert np.array_equal(released(pandas.DataFrame(POINTS[:, ::-1]), columns=[1, 0]), expected["plain"])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"columns": ["x", "z"]}, ValueError, "column 'z' is not there"),
        ({"columns": "x"}, TypeError, r"columns must be a list of names or numbers"),
        ({"columns": ["x", "person"], "unit": "person"}, ValueError, "requested twice, in columns= and as unit="),
        ({"columns": []}, ValueError, "no columns were chosen"),
        ({"unit": "nobody"}, ValueError, "unit='nobody': this column is not there"),
        ({"columns": ["x"], "sample_weight": "weight"}, ValueError, "sample_weight needs weight_max"),
        ({}, TypeError, r"column 'side' has type .*; choose the columns with numbers"),
    ],
)
def test_columns_that_cannot_be_are_named(options, error, message):
    with pytest.raises(error, match=message):
        Dataset.of(table(), **options)


def test_a_group_that_is_among_the_coordinates_is_refused():
    data = Dataset.of(table()[["x", "y", "person"]])
    with pytest.raises(ValueError, match=r"by='person' is one of the coordinates: choose the coordinates"):
        grouped(data, "person", keys=[1, 2])


def test_batches_agree_in_their_columns_and_name_their_place():
    frame = table()
    with pytest.raises(ValueError, match="the columns of batch 2 are not the columns of batch 1"):
        Dataset.of(iter([frame[["x", "y"]], frame[["y", "x"]]]))
    with pytest.raises(ValueError, match="iterator yields no batch"):
        Dataset.of(iter([]))
    with pytest.raises(ValueError, match=r"batch 2: points must have shape \(n, d\)"):
        Dataset.of(iter([POINTS, POINTS[0]]))
    with pytest.raises(TypeError, match="unit= must be the name of their column"):
        Dataset.of(iter([POINTS]), unit=PERSON)


class Capsule:
    """A tensor with no other interface than DLPack."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def test_a_tensor_is_read_by_dlpack():
    assert np.array_equal(released(Capsule(POINTS)), released(POINTS))


def test_lists_of_rows_have_no_columns():
    with pytest.raises(TypeError, match=r"pass numpy\.array\(points\) or a frame"):
        Dataset.of(POINTS.tolist(), columns=[1])
    assert memory.loaded(POINTS) is POINTS
