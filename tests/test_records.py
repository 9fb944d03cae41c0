"""Any kind of points that users pass becomes one array, or an error that says what to do.

In unattended runs the content of a record never raises an error, is never shown, and changes no other record.
"""

import datetime
import decimal
import fractions
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dpmedian
from dpmedian.running import Session
from dpmedian.sources.cells import NONFINITE
from dpmedian.sources.records import Records, as_records

POINTS = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
NAN = float("nan")


def same(array, expected):
    return np.array_equal(array, np.array(expected, dtype=float), equal_nan=True)


def frames():
    """The same three records, the first with a missing x, in frames of every kind."""
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    columns = {"x": [None, 3, 5], "y": [2.0, 4.0, 6.0]}
    frame = pandas.DataFrame(columns)
    nullable = pandas.DataFrame({"x": pandas.array([None, 3, 5], dtype="Int64"), "y": pandas.array([2.0, 4.0, 6.0])})
    return {
        "pandas": frame,
        "convert_dtypes": frame.convert_dtypes(),
        "Int64": nullable,
        "Float64": frame.astype("Float64"),
        "float64[pyarrow]": frame.astype("float64[pyarrow]"),
        "objects": frame.astype(object).where(frame.notna(), None),
        "NA": frame.astype(object).where(frame.notna(), pandas.NA),
        "decimals": pandas.DataFrame({"x": [None, decimal.Decimal(3), decimal.Decimal(5)], "y": columns["y"]}),
        "polars": polars.DataFrame(columns),
        "polars decimals": polars.DataFrame(columns).cast(polars.Decimal(10, 2)),
        "Arrow table": arrow.table(columns),
        "Arrow chunks": arrow.concat_tables([arrow.table(columns).slice(0, 1), arrow.table(columns).slice(1)]),
        "record batch": arrow.record_batch(columns),
        "float16": arrow.table({"x": arrow.array([None, 3.0, 5.0], arrow.float16()), "y": columns["y"]}),
        "dictionary": arrow.table({"x": arrow.array([None, 3, 5]).dictionary_encode(), "y": columns["y"]}),
    }


# What is accepted.


@pytest.mark.parametrize(
    "points",
    [
        POINTS,
        np.asfortranarray(POINTS),
        np.repeat(np.repeat(POINTS, 2, axis=0), 3, axis=1)[::2, ::3],
        POINTS[::-1][::-1],
        *(POINTS.astype(kind) for kind in ("f2", "f4", ">f8", "g", "i1", "u8", "i8")),
        POINTS.astype(object),
        np.ma.array(POINTS),
        POINTS.tolist(),
        tuple(map(tuple, POINTS.tolist())),
        list(POINTS),
        list(POINTS.astype("f4")),
        POINTS.astype(int).tolist(),
        [[decimal.Decimal(1), fractions.Fraction(2)], [np.float32(3), np.int8(4)], (5, 6.0)],
        memoryview(POINTS),
        Records(POINTS, ("x", "y")),
    ],
)
@pytest.mark.parametrize("nonfinite", NONFINITE)
def test_layouts_types_and_lists_give_the_same_records(points, nonfinite):
    records = as_records(points, nonfinite=nonfinite, d=2)
    assert same(records.array, POINTS)
    assert records.array.dtype == (np.float32 if getattr(points, "dtype", None) == np.float32 else np.float64)
    assert records.array.flags.c_contiguous
    assert type(records.array) is np.ndarray


def test_records_stay_as_they_are_and_doubles_are_not_copied():
    records = as_records(POINTS)
    assert as_records(records) is records
    assert np.shares_memory(records.array, POINTS)
    assert records.columns is None
    with pytest.raises(ValueError, match=r"points\[0, 1\] is not finite"):
        as_records(as_records([[1.0, NAN]], nonfinite="center", d=2)).require_finite()


def test_integers_beyond_the_machine_are_numbers():
    assert as_records([[10**30, 2**64], [-(10**300), 1]]).array.tolist() == [[1e30, 2.0**64], [-1e300, 1.0]]


def test_memory_maps_are_read(tmp_path):
    np.save(tmp_path / "a.npy", POINTS.astype("f4"))
    assert same(as_records(np.load(tmp_path / "a.npy", mmap_mode="r")).array, POINTS)


def test_masked_cells_are_never_unmasked():
    mask = [[False, True], [False, False], [False, False]]
    expected = [[1.0, NAN], [3.0, 4.0], [5.0, 6.0]]
    row = np.ma.array([1.0, 2.0], mask=mask[0])
    made = [np.ma.array(POINTS.astype(kind), mask=mask) for kind in (float, int, "f4", object, complex, str)]
    for points in (*made, [row, *POINTS[1:]], [[1.0, np.ma.masked], *POINTS.tolist()[1:]]):
        assert same(as_records(points, nonfinite="center", d=2).array, expected)
    for points in made[:4]:
        with pytest.raises(ValueError, match=r"points\[0, 1\] is not finite: .* is missing"):
            as_records(points).require_finite()


def test_missing_values_of_frames_become_nan_and_names_are_kept():
    for name, frame in frames().items():
        for nonfinite in ("center", "drop"):
            records = as_records(frame, nonfinite=nonfinite)
            assert same(records.array, [[NAN, 2.0], [3.0, 4.0], [5.0, 6.0]]), name
            assert records.columns == ("x", "y")
            assert records.array.flags.c_contiguous
        with pytest.raises(
            ValueError, match=r"points\[0, 0\] is not finite: the value in row 1, column 'x' is missing; c"
        ):
            as_records(frame).require_finite()


def test_frames_of_many_rows_keep_their_order():
    polars = pytest.importorskip("polars")
    points = np.random.default_rng(0).normal(size=(1700, 3))
    assert same(as_records(polars.DataFrame(points)).array, points)


def lists():
    """Frames and series of one column of lists, the last one missing."""
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    rows = [[1.0, 2.0], [3.0, 4.0], None]
    kind = arrow.list_(arrow.float32())
    return {
        "pandas": pandas.DataFrame({"e": rows}),
        "pandas arrays": pandas.DataFrame({"e": [*map(np.array, rows[:2]), None]}),
        "pandas series": pandas.Series(rows, name="e"),
        "pandas Arrow": pandas.DataFrame({"e": pandas.Series(rows, dtype=pandas.ArrowDtype(kind))}),
        "polars List": polars.DataFrame({"e": rows}),
        "polars Array": polars.DataFrame({"e": rows}, schema={"e": polars.Array(polars.Float32, 2)}),
        "polars series": polars.Series("e", rows),
        "Arrow list": arrow.table({"e": arrow.array(rows, kind)}),
        "Arrow large list": arrow.table({"e": arrow.array(rows, arrow.large_list(arrow.float64()))}),
        "Arrow fixed list": arrow.table({"e": arrow.array(rows, arrow.list_(arrow.int32(), 2))}),
        "Arrow array": arrow.array(rows, kind),
    }


def test_a_column_of_lists_becomes_columns():
    for name, frame in lists().items():
        column = "list" if name == "Arrow array" else "e"
        records = as_records(frame, nonfinite="center", d=2)
        assert same(records.array, [[1.0, 2.0], [3.0, 4.0], [NAN, NAN]]), name
        assert records.columns == (f"{column}[0]", f"{column}[1]")
        with pytest.raises(
            ValueError, match=rf"points\[2, 0\] is not finite: .* row 3, column '{column}\[0\]' is missing"
        ):
            as_records(frame).require_finite()
        there = frame[:2] if not hasattr(frame, "slice") else frame.slice(0, 2)
        assert same(as_records(there).array, [[1.0, 2.0], [3.0, 4.0]])
        # Lists of another length are named in the error, or become NaN.
        if "Array" not in name and "fixed" not in name:
            assert np.isnan(as_records(frame, nonfinite="center", d=3).array).all()
            with pytest.raises(ValueError, match=r"1.* (cells|numbers) instead of 3"):
                as_records(frame, d=3) if "pandas" not in name else as_records([[1.0]], d=3).require_finite()


def test_a_missing_list_in_front_does_not_hide_the_others():
    for name, frame in lists().items():
        backwards = frame[::-1] if not hasattr(frame, "take") or "polars" in name else frame.take([2, 1, 0])
        with pytest.raises(ValueError, match=r"points\[0, 0\] is not finite: .* is missing"):
            as_records(backwards).require_finite()


def test_lists_of_other_lengths_are_named_or_nan():
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    rows = {"e": [[1.0, 2.0], [3.0], [], [5.0, 6.0, 7.0], [8.0, 9.0]]}
    for frame in (pandas.DataFrame(rows), polars.DataFrame(rows), arrow.table(rows)):
        with pytest.raises(ValueError, match=r"(points\[1\] has 1 cells|row 2 has 1 numbers) instead of 2"):
            as_records(frame).require_finite()
        expected = [[1.0, 2.0], [NAN] * 2, [NAN] * 2, [NAN] * 2, [8.0, 9.0]]
        assert same(as_records(frame, nonfinite="drop", d=2).array, expected)


# What is refused.


@pytest.mark.parametrize(
    ("points", "error", "message"),
    [
        (None, TypeError, "points must be rows of numbers, got NoneType"),
        ("text", TypeError, "points must be rows of numbers, got str"),
        ({"x": [1.0]}, TypeError, "got dict"),
        (iter([]), TypeError, "got list_iterator"),
        (1.0, TypeError, "got float"),
        ([], ValueError, r"shape \(n, d\), but there are no rows"),
        ([1.0, 2.0], TypeError, r"shape \(n, d\), but points\[0\] is float"),
        ([[1.0, 2.0], [3.0]], ValueError, r"rectangular .* points\[1\] has 1 cells instead of 2; correct it, or let"),
        ([[1.0], [[2.0]]], TypeError, r"points\[1, 0\] is list; correct it"),
        ([[1.0, 2.0], [3.0, "4"]], TypeError, r"points\[1, 1\] is str; correct it"),
        ([[1.0, 2.0], "ab"], TypeError, r"points\[1\] is str"),
        ([[1.0, 2.0], np.zeros((2, 2))], ValueError, r"points\[1\] has shape \(2, 2\) instead of \(2,\)"),
        ([[1.0, None]], ValueError, r"points\[0, 1\] is not finite: .* row 1, column 2 is missing; correct it, or let"),
        ([[1.0, 10**400]], ValueError, r"points\[0, 1\] is not finite: .* is infinite"),
        (np.zeros(5), ValueError, r"shape \(n, d\), got shape \(n,\); one column is points.reshape\(-1, 1\)"),
        (np.zeros((2, 2, 2)), ValueError, r"got shape \(n, 2, 2\)"),
        (np.array([["a", "b"]]), TypeError, r"got dtype <U1; text has to be converted first"),
        (np.zeros((5, 2), dtype=complex), TypeError, "complex"),
        (np.zeros((5, 2), dtype=bool), TypeError, "bool"),
        (np.zeros((5, 2), dtype="M8[s]"), TypeError, "datetime64"),
        (
            np.array([[0.0, 1.0], [NAN, 2.0]]),
            ValueError,
            r"points\[1, 0\] is not finite: .* row 2, column 1 is missing",
        ),
        (
            np.array([[0.0, np.inf]]),
            ValueError,
            r"points\[0, 1\] is not finite: .* is infinite; correct it, or let non",
        ),
    ],
)
def test_errors_name_the_place_and_the_remedy(points, error, message):
    with pytest.raises(error, match=message):
        as_records(points).require_finite()


def test_the_first_value_that_is_not_finite_is_found_in_any_block():
    points = np.zeros((3_000_000, 1))
    points[2_500_000:] = np.nan
    with pytest.raises(ValueError, match=r"points\[2500000, 0\]"):
        as_records(points).require_finite()


def test_columns_of_other_types_are_named():
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    day = datetime.date(2024, 1, 1)
    for values, odd in ((["a", "b"], True), ([True, False], True), ([day, day], False)):
        columns = {"x": [1.0, 2.0], "who": values}
        # Older versions of pandas turn text into objects.
        frame = pandas.DataFrame(columns).astype({"who": "string"} if values == ["a", "b"] else {})
        if not odd:
            frame["who"] = pandas.to_datetime(frame["who"])
        for points in (frame, polars.DataFrame(columns), arrow.table(columns)):
            with pytest.raises(TypeError, match=r"column 'who' has type .* not a number; choose .* points\[\['x'\]\]"):
                as_records(points).require_finite()
            if odd:
                assert as_records(points, nonfinite="center").array.shape == (2, 2)
            else:
                with pytest.raises(TypeError, match="column 'who' has type"):
                    as_records(points, nonfinite="center").require_finite()
    # A column of objects has no type of its own, so its first cell that is not a number is named.
    objects = pandas.DataFrame({"x": [1.0, 2.0], "who": pandas.Series([3, "b"], dtype=object)})
    with pytest.raises(TypeError, match=r"points\[1, 1\] \(row 2, column 'who'\) is str; choose .* points\[\['x'\]\]"):
        as_records(objects).require_finite()
    both = arrow.table({"e": [[1.0]], "x": [1.0]})
    with pytest.raises(TypeError, match=r"column 'e' holds lists \(list<.*double>\).* choose this column alone"):
        as_records(both).require_finite()


def test_what_is_not_in_memory_names_the_call():
    polars = pytest.importorskip("polars")
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match=r"LazyFrame: call \.collect\(\)"):
        as_records(polars.DataFrame({"x": [1.0]}).lazy()).require_finite()
    with pytest.raises(TypeError, match=r"call \.toarray\(\)"):
        as_records(sparse.eye(3)).require_finite()
    with pytest.raises(ValueError, match="got a series of type Float64; make it a frame"):
        as_records(polars.Series([1.0])).require_finite()


@pytest.mark.parametrize("d", [0, -1, 1.5, True, "2"])
def test_a_dimension_that_cannot_be_is_refused(d):
    with pytest.raises(ValueError, match="d must be None or an integer"):
        as_records(POINTS, d=d).require_finite()


def test_shapes_that_are_not_the_told_ones_are_refused():
    with pytest.raises(ValueError, match=r"points must have d = 3 columns, got 2"):
        as_records(POINTS, d=3).require_finite()
    with pytest.raises(ValueError, match="nonfinite must be one of 'raise', 'center', 'drop', got 'ignore'"):
        as_records(POINTS, nonfinite="ignore").require_finite()


def test_the_representation_shows_no_record():
    assert repr(Records(POINTS, ("x", "y"))) == "Records(n=3, d=2, columns=('x', 'y'))"


# Unattended runs.


class Hostile:
    """A cell or a row that raises for every use, with a message that must not be shown."""

    def _raise(self, *arguments):
        raise RuntimeError("secret")

    __float__ = __len__ = __iter__ = __array__ = __index__ = __str__ = __repr__ = __eq__ = __bool__ = _raise
    __hash__ = None


class Liar(Hostile):
    """A hostile cell that does not even have a class."""

    @property
    def __class__(self):
        raise RuntimeError("secret")


CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=10**300, max_value=10**400),
    st.floats(),
    st.complex_numbers(),
    st.decimals(),
    st.fractions(),
    st.text(max_size=5),
    st.binary(max_size=5),
    st.dates(),
    st.sampled_from([decimal.Decimal("sNaN"), decimal.Decimal("1e9999"), "1_0", np.ma.masked, np.datetime64("NaT")]),
    st.sampled_from(
        [np.float32(1.5), np.timedelta64(1, "s"), np.array(3.0), np.array([1.0, 2.0]), {1: 2}, {1}, object]
    ),
    st.builds(Hostile),
)
ROWS = st.one_of(
    CELLS,
    st.lists(CELLS, max_size=4),
    st.tuples(CELLS, CELLS),
    st.lists(st.lists(CELLS, max_size=2), max_size=3),
    st.sampled_from([np.zeros((2, 2)), np.array(["a", "b"]), np.array([1, None]), np.ma.array([1, 2], mask=[0, 1])]),
)


@given(row=ROWS, place=st.integers(0, 2))
@example(row=[None, 1.0], place=0)
@example(row=[10**400, 1.0], place=0)
@example(row=[1.0, 2.0, 3.0], place=0)
@example(row=["1", "2"], place=1)
@example(row="ab", place=2)
def test_no_row_of_a_list_is_an_error_or_changes_another_one(row, place):
    rows = POINTS.tolist()
    rows[place] = row
    others = [i for i in range(3) if i != place]
    for points in (rows, tuple(rows)):
        for nonfinite in ("center", "drop"):
            records = as_records(points, nonfinite=nonfinite, d=2)
            assert records.array.shape == (3, 2)
            assert same(records.array[others], POINTS[others])


@given(cell=CELLS, place=st.integers(0, 2))
@example(cell="north", place=0)
@example(cell=1 + 2j, place=0)
def test_no_cell_of_a_frame_or_array_is_an_error_or_changes_another_record(cell, place):
    """This holds even if the cell decides the type of its column, as in readers that infer types."""
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    cells = [1.0, 3.0, 5.0]
    cells[place] = cell
    column = np.empty(3, dtype=object)
    column[:] = [None, None, None]
    for i, value in enumerate(cells):
        column[i] = value
    both = np.empty((3, 2), dtype=object)
    both[:, 0], both[:, 1] = column, POINTS[:, 1]
    containers = [both, pandas.DataFrame({"x": pandas.Series(column, dtype=object), "y": POINTS[:, 1]})]
    if isinstance(cell, (bool, float, complex, str)):
        y = POINTS[:, 1].tolist()
        containers += [
            np.array([[x, str(y)] if isinstance(cell, str) else [x, y] for x, y in zip(cells, y, strict=True)]),
            pandas.DataFrame({"x": cells, "y": y}),
        ]
        if not isinstance(cell, complex):
            containers.append(polars.DataFrame({"x": cells, "y": y}, strict=False))
            text = polars.DataFrame({"x": [str(value) for value in cells], "y": y})
            containers += [text, text.to_arrow(), text.to_pandas()]
    others = [i for i in range(3) if i != place]
    for points in containers:
        records = as_records(points, nonfinite="center")
        assert records.array.shape == (3, 2)
        assert same(records.array[others], POINTS[others])


def test_what_is_no_number_becomes_nan():
    bad = [
        [None, 1.0],
        ["a", 1.0],
        [[1.0], 1.0],
        [1.0],
        [1.0, 2.0, 3.0],
        None,
        5.0,
        "ab",
        {},
        [1j, 1.0],
        [Hostile(), 1.0],
    ]
    array = as_records([*bad, [1.0, "2"]], nonfinite="center", d=2).array
    assert np.isnan(array[:-1]).any(axis=1).all()
    assert array[-1].tolist() == [1.0, 2.0]


def test_no_record_decides_the_dimension():
    """The first row is a record, too, so a plain list has no dimension that is public."""
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    rows = POINTS.tolist()
    for points in (
        rows,
        np.array([*rows, [1.0]], dtype=object),
        polars.DataFrame({"e": rows}),
        arrow.table({"e": rows}),
    ):
        with pytest.raises(ValueError, match=r"have no public dimension, .* state the dimension: plan"):
            as_records(points, nonfinite="center").require_finite()
    # A column of objects may hold numbers with an odd record, so it is read as numbers unless the dimension says
    # otherwise.
    frame = pandas.DataFrame({"e": rows})
    assert as_records(frame, nonfinite="center").array.shape == (3, 1)
    assert same(as_records(frame, nonfinite="center", d=2).array, POINTS)


def test_text_that_cannot_be_decoded_is_nan():
    arrow = pytest.importorskip("pyarrow")
    offsets = arrow.py_buffer(np.array([0, 2, 3], dtype=np.int32))
    broken = arrow.Array.from_buffers(arrow.string(), 2, [None, offsets, arrow.py_buffer(b"\xff\xfe7")])
    assert same(as_records(arrow.table({"x": broken}), nonfinite="center").array, [[NAN], [7.0]])


def test_numbers_that_overflow_make_no_warning():
    largest = np.full((2, 1), np.finfo(np.longdouble).max)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if np.finfo(np.longdouble).max > sys.float_info.max:
            assert np.isinf(as_records(largest, nonfinite="center").array).all()
        as_records([largest[0]], nonfinite="center", d=1)


def test_text_that_cannot_be_decoded_is_no_number_in_any_arrow_type():
    """A record with an invalid byte must neither raise nor be shown in an unattended run."""
    arrow = pytest.importorskip("pyarrow")
    text = arrow.array([b"1", b"\xff"], arrow.binary()).view(arrow.string())
    for kind in (arrow.string(), arrow.large_string(), arrow.string_view()):
        cells = text if kind == arrow.string() else text.cast(kind)
        records = as_records(arrow.table({"x": cells}), nonfinite="center")
        assert same(records.array, [[1.0], [NAN]])


class Stream:
    """An Arrow stream, like that of a DuckDB relation."""

    def __init__(self, frame):
        self.frame = frame

    def __arrow_c_stream__(self, requested=None):
        return self.frame.__arrow_c_stream__(requested)


class Flat(Stream):
    """An array whose Arrow stream has one number in each row, like that of an xarray."""

    def __init__(self, array):
        import pyarrow

        super().__init__(pyarrow.table({"value": array.ravel()}))
        self.array, self.shape = array, array.shape

    def __array__(self, dtype=None, copy=None):
        return self.array


def test_an_array_is_read_by_its_shape_and_not_by_its_stream():
    pytest.importorskip("pyarrow")
    assert same(as_records(Flat(POINTS)).array, POINTS)
    told = Stream(Flat(POINTS).frame)
    told.shape = POINTS.shape
    with pytest.raises(ValueError, match="the Arrow stream of points has another number"):
        as_records(told)


def test_an_xarray_is_read_by_its_shape():
    xarray = pytest.importorskip("xarray")
    assert same(as_records(xarray.DataArray(POINTS)).array, POINTS)


@pytest.mark.slow
def test_a_stream_is_read_and_its_columns_are_named_without_pyarrow_imported_first():
    pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    code = """
import sys
import numpy as np
import polars
from dpmedian.dataset.memory import Memory
from dpmedian.dataset.reading import Reading

class Stream:
    def __init__(self, frame):
        self.frame = frame
    def __arrow_c_stream__(self, requested=None):
        return self.frame.__arrow_c_stream__(requested)

frame = polars.DataFrame({"x": [1.0, 2.0, 3.0], "plane": ["a", "b", "a"], "y": [4.0, 5.0, 6.0]})
assert "pyarrow" not in sys.modules
found = Memory.of(Stream(frame), Reading.of(unit="plane", unit_reduce="mean")).records
assert (found.columns, found.unit) == (("x", "y"), "plane")
assert found.array.tolist() == [[2.0, 5.0], [2.0, 5.0]]
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("view", [lambda mapped: mapped, lambda mapped: np.asarray(mapped)[1:], np.ndarray.view])
def test_a_memory_map_that_changes_during_a_run_changes_nothing(tmp_path, view, monkeypatch):
    """Other processes can write to its file, and a value that was not validated would exceed the sensitivity of a
    sum.
    """
    points = np.random.default_rng(1).normal(size=(500, 2))
    np.save(tmp_path / "a.npy", points)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r+")

    def released(points):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return dpmedian.geometric_median(points, rho=0.5, seed=1, progress=False).point

    expected, charge = released(np.array(view(mapped))), Session.__enter__

    def overwritten(self):
        mapped.fill(np.nan)  # This is after the validation and before the first query.
        return charge(self)

    monkeypatch.setattr(Session, "__enter__", overwritten)
    assert np.array_equal(released(view(mapped)), expected)
    assert np.isnan(mapped).all()


def test_the_error_of_a_column_of_text_names_the_argument_that_keeps_the_others():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [1.0, 2.0], "y": [1.0, 2.0], "name": ["a", "b"], "person": [1, 2]})
    with pytest.raises(TypeError, match=r"choose the columns with numbers, columns=\['x', 'y'\]"):
        dpmedian.Dataset.of(frame, unit="person")
