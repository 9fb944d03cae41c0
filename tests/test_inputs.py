"""The table of inputs and options in the documentation: every cell is tested."""

import io
import re
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import dpmedian
import dpmedian.files
from dpmedian.files import open_points

# Distributed leaves sockets to the garbage collector, and warns of busy machines.
pytestmark = pytest.mark.filterwarnings("ignore")

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "inputs.md"
RNG = np.random.default_rng(5)
N = 240
POINTS = np.column_stack([RNG.normal(10.0, 1.0, N), RNG.normal(50.0, 1.0, N)])
PERSON, SIDE, WEIGHT = np.arange(N) // 2, np.arange(N) % 3, RNG.uniform(0.5, 3.0, N)
NAMES = ("x", "y", "person", "side", "weight")
WHOLE = np.column_stack([POINTS, PERSON, SIDE, WEIGHT])


class Tensor:
    """A tensor with no other interface than DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Stream:
    """An object with no other interface than the Arrow C stream, such as a relation of a database."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested=None):
        return self.table.__arrow_c_stream__(requested)


def numpy_array(columns, folder):
    return np.ascontiguousarray(WHOLE[:, columns])


def pandas_frame(columns, folder):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(WHOLE, columns=NAMES).astype({"person": int, "side": int})
    return frame.iloc[:, columns]


def polars_frame(columns, folder):
    return pytest.importorskip("polars").from_pandas(pandas_frame(columns, folder))


def arrow_table(columns, folder):
    return pytest.importorskip("pyarrow").Table.from_pandas(pandas_frame(columns, folder), preserve_index=False)


def arrow_dataset(columns, folder):
    return pytest.importorskip("pyarrow.dataset").dataset(arrow_table(columns, folder))


def npy(columns, folder):
    np.save(folder / "a.npy", WHOLE[:, columns])
    return folder / "a.npy"


def npz(columns, folder):
    np.savez(folder / "a.npz", WHOLE[:, columns])
    return folder / "a.npz"


def csv(columns, folder):
    pandas_frame(columns, folder).to_csv(folder / "a.csv", index=False)
    return str(folder / "a.csv")


def arrow_file(columns, folder):
    pytest.importorskip("pyarrow.feather").write_feather(arrow_table(columns, folder), folder / "a.arrow")
    return folder / "a.arrow"


def parquet(columns, folder, name="a.parquet", rows=slice(None)):
    table = arrow_table(columns, folder)[rows] if rows == slice(None) else arrow_table(columns, folder).slice(*rows)
    pytest.importorskip("pyarrow.parquet").write_table(table, folder / name)
    return folder / name


def several(columns, folder):
    halves = {"a.csv": slice(0, 100), "b.csv": slice(100, N)}
    for name, rows in halves.items():
        pandas_frame(columns, folder)[rows].to_csv(folder / name, index=False)
    return [folder / name for name in halves]


def folder_of_files(columns, folder):
    (folder / "parts").mkdir()
    for name, rows in (("a.parquet", (0, 100)), ("b.parquet", (100, N - 100))):
        parquet(columns, folder / "parts", name, rows)
    return folder / "parts"


def dask_array(columns, folder):
    return pytest.importorskip("dask.array").from_array(numpy_array(columns, folder), chunks=(100, -1))


def dask_frame(columns, folder):
    return pytest.importorskip("dask.dataframe").from_pandas(pandas_frame(columns, folder), npartitions=3)


@pytest.fixture(scope="module")
def cluster():
    """Workers that are threads of this process. tests/test_dask.py has real workers."""
    distributed = pytest.importorskip("distributed")
    with distributed.Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        yield client


INPUTS = {
    "numpy array": numpy_array,
    "other tensor with DLPack": lambda columns, folder: Tensor(numpy_array(columns, folder)),
    "torch tensor": lambda columns, folder: pytest.importorskip("torch").from_numpy(numpy_array(columns, folder)),
    "JAX array": lambda columns, folder: jax_double(numpy_array(columns, folder)),
    "xarray array": lambda columns, folder: pytest.importorskip("xarray").DataArray(numpy_array(columns, folder)),
    "list of rows": lambda columns, folder: numpy_array(columns, folder).tolist(),
    "pandas data frame": pandas_frame,
    "polars data frame": polars_frame,
    "polars LazyFrame": lambda columns, folder: polars_frame(columns, folder).lazy(),
    "Arrow table": arrow_table,
    "Arrow dataset": arrow_dataset,
    "Arrow scanner": lambda columns, folder: arrow_dataset(columns, folder).scanner(),
    "Arrow stream": lambda columns, folder: Stream(arrow_table(columns, folder)),
    "Arrow record batch reader": lambda columns, folder: arrow_table(columns, folder).to_reader(),
    "DuckDB relation": lambda columns, folder: duckdb_query(pandas_frame(columns, folder)),
    "iterator of batches": lambda columns, folder: iter(arrow_table(columns, folder).to_batches(max_chunksize=70)),
    ".npy file": npy,
    ".npz file": npz,
    "CSV file": csv,
    "Arrow file": arrow_file,
    "Parquet file": parquet,
    "list of files": several,
    "folder of files": folder_of_files,
    "file that `open_points` opened": lambda columns, folder: open_points(npy(columns, folder)),
    "Dask array": dask_array,
    "Dask data frame": dask_frame,
}
NUMBERED = (".npy file", ".npz file", "file that `open_points` opened")
ARRAYS = ("numpy array", "other tensor with DLPack", "torch tensor", "JAX array", "xarray array", "Dask array")
BY_NUMBER = (*NUMBERED, *ARRAYS)
BESIDE = {"`unit=`": 2, "groups": 3, "weights": 4}


def cells():
    """The rows of the table: for the name of each option, the statements of the page."""
    lines = [line for line in PAGE.read_text().split("<!-- inputs -->")[1].splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: dict(zip(rows[0][1:], row[1:], strict=True)) for row in rows[2:]}


def released(points, option, beside=None, **options):
    """The released values, with the column of the option as `beside`."""
    told = {"rho": 4.0, "seed": 1, "progress": False, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if option == "groups":
            found = dpmedian.geometric_medians(points, beside, keys=[0, 1, 2], **told)
            return np.array([found[key].point for key in (0, 1, 2)])
        if option == "`unit=`":
            told["unit"] = beside
        if option == "weights":
            told.update(sample_weight=beside, weight_max=2.0, n=150)
        if option == "`scales=`":
            told["scales"] = [4.0, 0.5]
        if option == "sphere":
            told["geometry"] = "sphere"
        return dpmedian.geometric_median(points, **told).point


@cache
def expected(option):
    """Return what a release of the plain array gives."""
    place = BESIDE.get(option)
    return released(POINTS, option, None if place is None else WHOLE[:, place])


def run(name, option, folder, by_value):
    """The result of a release of this kind of input, with the extra column inside the input or passed separately."""
    place = BESIDE.get(option)
    if option == "`columns=`":
        columns = [1, 2] if name in BY_NUMBER else ["x", "y"]
        return released(INPUTS[name]([0, 1, 2], folder), option, columns=columns)
    if place is None:
        return released(INPUTS[name]([0, 1], folder), option)
    if by_value:
        return released(INPUTS[name]([0, 1], folder), option, WHOLE[:, place])
    points = INPUTS[name]([0, 1, place], folder)
    return released(points, option, "3" if name in NUMBERED else NAMES[place])


def test_the_table_has_every_input():
    assert set(cells()) == set(INPUTS)
    assert {option for row in cells().values() for option in row} == {
        "plain",
        "`columns=`",
        "sphere",
        "`scales=`",
        *BESIDE,
    }


@pytest.mark.parametrize("option", ["plain", "`columns=`", "`unit=`", "groups", "weights", "sphere", "`scales=`"])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name == "Dask array")) for name in INPUTS]
)
def test_a_cell_of_the_table_is_true(name, option, tmp_path, request):
    if name.startswith("Dask"):
        request.getfixturevalue("cluster")
    said = cells()[name][option]
    assert said in ("yes", "by value", "no")
    if said == "no":
        with pytest.raises((ValueError, TypeError), match=r"pass|take|choose|names a column"):
            run(name, option, tmp_path, by_value=False)
        return
    assert np.array_equal(run(name, option, tmp_path, by_value=said == "by value"), expected(option))
    if said == "by value":
        (tmp_path / "again").mkdir()
        with pytest.raises((ValueError, TypeError), match=r"pass a frame|names a column"):
            run(name, option, tmp_path / "again", by_value=False)


def jax_double(array):
    """A JAX array in double precision, which JAX supports only on request."""
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    return jax.numpy.asarray(array)


def duckdb_query(frame):
    """A query in a separate database, so that no query of another test is active."""
    connection = pytest.importorskip("duckdb").connect()
    connection.register("frame", frame)
    return connection.sql("select * from frame")


COLUMNS = {
    "torch tensor": lambda column: pytest.importorskip("torch").from_numpy(column),
    "JAX array": jax_double,
    "xarray array": lambda column: pytest.importorskip("xarray").DataArray(column),
    "pandas frame": lambda column: pytest.importorskip("pandas").DataFrame({"v": column}),
    "DuckDB relation": lambda column: duckdb_query(COLUMNS["pandas frame"](column)),
    "Arrow array": lambda column: pytest.importorskip("pyarrow").array(column),
}


@pytest.mark.parametrize("option", BESIDE)
@pytest.mark.parametrize("kind", COLUMNS)
def test_ids_labels_and_weights_may_be_columns_of_any_library(kind, option):
    column = WHOLE[:, BESIDE[option]]
    column = column if option == "weights" else column.astype(int)
    assert np.array_equal(released(POINTS, option, COLUMNS[kind](column)), released(POINTS, option, column))


@pytest.mark.parametrize("kind", ["torch tensor", "JAX array", "xarray array", "pandas frame"])
def test_scales_may_be_an_array_of_any_library(kind):
    made = COLUMNS[kind](np.array([4.0, 0.5]))
    scales = made["v"] if kind == "pandas frame" else made
    assert dpmedian.Dataset.of(POINTS, scales=scales).scales == (4.0, 0.5)


def test_a_frame_of_several_columns_is_no_column_of_ids():
    frame = pandas_frame([2, 3], None)
    with pytest.raises(ValueError, match="unit must be one column of labels, got a frame of 2 columns"):
        dpmedian.Dataset.of(POINTS, unit=frame)


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_sixteen_bits_are_read_as_the_singles_that_they_are(library):
    module = pytest.importorskip(library)
    single = POINTS.astype(np.float32)
    if library == "torch":
        given = module.from_numpy(single).bfloat16().requires_grad_()
        expected = given.detach().float().numpy()
    else:
        given = module.numpy.asarray(single).astype(module.numpy.bfloat16)
        expected = np.asarray(given.astype(module.numpy.float32))
    assert not np.array_equal(expected, single)
    assert np.array_equal(released(given, "plain"), released(expected, "plain"))


def test_what_has_several_arrays_or_no_result_yet_says_what_to_pass():
    xarray = pytest.importorskip("xarray")
    several = xarray.Dataset({"x": ("row", POINTS[:, 0]), "y": ("row", POINTS[:, 1])})
    for options in ({}, {"columns": ["x"]}, {"unit": PERSON}):
        with pytest.raises(TypeError, match=r"an xarray Dataset: pass points.to_dataframe\(\)"):
            dpmedian.Dataset.of(several, **options)
    assert np.array_equal(released(several.to_dataframe(), "plain"), released(POINTS, "plain"))
    connection = pytest.importorskip("duckdb").connect()
    with pytest.raises(TypeError, match=r"in DuckDB the relation, connection.sql\(...\)"):
        dpmedian.Dataset.of(connection.execute("select 1.0 as x, 2.0 as y"), columns=["x"])


def test_paths_that_are_no_files_say_what_to_pass(tmp_path):
    for path, advice in (("s3://bucket/a.parquet", "pyarrow.dataset"), (str(tmp_path / "*.csv"), "sorted(glob.glob")):
        with pytest.raises(FileNotFoundError, match=re.escape(advice)):
            dpmedian.Dataset.of(path)
    csv([0, 1], tmp_path)
    npy([0, 1], tmp_path)
    with pytest.raises(ValueError, match="has files of the formats csv, npy: pass a list of the files of one format"):
        dpmedian.Dataset.of(tmp_path)
    with pytest.raises(ValueError, match="the list of files is empty"):
        dpmedian.files.read_points([])


def test_what_cannot_be_read_says_what_to_pass():
    pandas = pytest.importorskip("pandas")
    structured = np.zeros(3, dtype=[("a", float), ("b", float)])
    grouped = pandas.DataFrame({"a": [1.0], "g": [1]}).groupby("g")
    for points, advice in (
        ({"a": [1.0]}, "pass pandas.DataFrame"),
        (structured, "pass pandas.DataFrame"),
        (grouped, "pass the frame as points"),
        (iter([(1.0, 2.0)]), "for an iterator of rows, pass numpy.array"),
        (
            [{"a": 1.0}, {"a": 2.0}],
            r"points\[0\] is dict; pass pandas.DataFrame\(points\), with a column for each name$",
        ),
        (io.BytesIO(b"1,2"), "an open file \\(BytesIO\\): pass its path"),
        (pytest.importorskip("polars").DataFrame({"a": [1.0]}).group_by("a"), "pass the frame as points"),
    ):
        with pytest.raises(TypeError, match=advice):
            dpmedian.Dataset.of(points)


def test_rows_and_columns_that_are_exchanged_get_a_hint():
    for points in (POINTS.T, (POINTS[:, 0], POINTS[:, 1])):
        with pytest.raises(ValueError, match=r"if your records are columns, pass points.T$"):
            dpmedian.geometric_median(points, epsilon=1.0, delta=1e-6)
    with pytest.raises(ValueError, match=r"or a larger budget$"):
        dpmedian.geometric_median(POINTS[:5], epsilon=1.0, delta=1e-6)


def test_a_column_of_text_is_not_sent_to_the_center():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": POINTS[:, 0], "name": ["a"] * N, "y": POINTS[:, 1]}).astype({"name": object})
    with pytest.raises(
        TypeError, match=r"columns=\['x', 'y'\], or points\[\['x', 'y'\]\] where a function has no columns=$"
    ):
        dpmedian.Dataset.of(frame.astype({"name": "str"}))
    with pytest.raises(TypeError, match=r"numbers, columns=\['x', 'y'\].* where a function has no columns=$"):
        dpmedian.Dataset.of(frame)
    frame.loc[0, "name"] = 1.0
    with pytest.raises(TypeError, match="or let nonfinite='center' replace such records"):
        dpmedian.Dataset.of(frame)


def test_row_numbers_of_a_frame_are_no_coordinates(tmp_path):
    """Pandas writes its index into files, where it looks like a column."""
    pandas = pytest.importorskip("pandas")
    frame = pandas_frame([0, 1, 2, 3], tmp_path)[lambda rows: rows.side != 1]
    beside = {"unit": "person", "columns": ["x", "y"]}
    expected = dpmedian.geometric_median(frame, **beside, rho=1.0, seed=1).point
    frame.drop(columns="side").to_parquet(tmp_path / "a.parquet")
    table = pytest.importorskip("pyarrow.parquet").read_table(tmp_path / "a.parquet")
    assert "__index_level_0__" in table.column_names
    pytest.importorskip("pyarrow.feather").write_feather(table, tmp_path / "a.arrow")
    batches = iter(table.to_batches(max_chunksize=70))
    for points in (
        tmp_path / "a.parquet",
        tmp_path / "a.arrow",
        table,
        pytest.importorskip("polars").from_arrow(table),
        batches,
    ):
        assert np.array_equal(dpmedian.geometric_median(points, unit="person", rho=1.0, seed=1).point, expected)
    assert open_points(tmp_path / "a.parquet").columns == ("x", "y", "person")
    assert dpmedian.Dataset.of(table, columns=["__index_level_0__"]).columns == ("__index_level_0__",)

    frame.to_csv(tmp_path / "a.csv")
    for points in (tmp_path / "a.csv", pandas.read_csv(tmp_path / "a.csv")):
        for nonfinite in ("raise", "center"):
            assert dpmedian.Dataset.of(points, columns=["y"], nonfinite=nonfinite).columns == ("y",)
            with pytest.raises(ValueError, match=r"the first column has no name, .*columns=\['x', 'y'\]"):
                dpmedian.Dataset.of(points, unit="person", nonfinite=nonfinite)
        assert np.array_equal(dpmedian.geometric_median(points, **beside, rho=1.0, seed=1).point, expected)


def test_public_modules_are_loaded_when_they_are_used():
    for name in (*dir(dpmedian), "flower", "opendp", "sklearn"):
        assert getattr(dpmedian, name) is not None, name
    assert dpmedian.files.open_points is open_points
