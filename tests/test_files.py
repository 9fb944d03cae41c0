"""Files become records, or an error that names the row and the column before anything is spent.

In unattended runs no record raises an error, is shown, or decides how the other records are read.
"""

import gzip
import io
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dpmedian
from dpmedian.cli import main
from dpmedian.data import POSITIONS, load_positions
from dpmedian.files import open_points, read_points

POINTS = np.array([[1.5, -2.0], [3.25, 4.0], [1e300, 5e-324]])
UNATTENDED = ("center", "drop")


def write(path, text, encoding="utf-8"):
    path.write_text(text, encoding=encoding, newline="")
    return path


def read_text(tmp_path, text, name="a.csv", **options):
    return read_points(write(tmp_path / name, text), **options)


def test_every_format_gives_the_same_points(tmp_path):
    arrow, feather, parquet = (pytest.importorskip(f"pyarrow{part}") for part in ("", ".feather", ".parquet"))
    rows = [f"{float(x)!r},{float(y)!r}" for x, y in POINTS]
    write(tmp_path / "a.csv", "\n".join(["x,y", *rows, ""]))
    write(tmp_path / "a.tsv", "\n".join(["x\ty", *(row.replace(",", "\t") for row in rows)]))
    for name in ("a.csv", "a.tsv"):
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress((tmp_path / name).read_bytes()))
    np.save(tmp_path / "a.npy", np.asfortranarray(POINTS))
    np.savez(tmp_path / "a.npz", points=POINTS)
    table = arrow.table({"x": POINTS[:, 0], "y": POINTS[:, 1]})
    parquet.write_table(table, tmp_path / "a.parquet")
    feather.write_feather(table, tmp_path / "a.arrow")
    feather.write_feather(table, tmp_path / "a.feather")
    files = sorted(tmp_path.iterdir())
    assert len(files) == 9
    for path in files:
        for nonfinite in ("raise", *UNATTENDED):
            records = read_points(path, nonfinite=nonfinite)
            assert np.array_equal(records.array, POINTS), path
            assert records.columns == (("1", "2") if ".np" in path.name else ("x", "y"))


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv", "parquet", "arrow", "npy", "npz"])
def test_stdin_is_read_in_every_format(tmp_path, monkeypatch, kind):
    arrow, feather, parquet = (pytest.importorskip(f"pyarrow{part}") for part in ("", ".feather", ".parquet"))
    bytes_ = io.BytesIO()
    table = arrow.table({"x": [1.0, 3.0], "y": [2.0, 4.0]})
    if kind == "parquet":
        parquet.write_table(table, bytes_)
    elif kind == "arrow":
        feather.write_feather(table, bytes_)
    elif kind in ("npy", "npz"):
        (np.save if kind == "npy" else np.savez)(bytes_, np.array([[1.0, 2.0], [3.0, 4.0]]))
    else:
        text = b"x,y\n1,2\n3,4\n".replace(b",", b"\t" if kind == "tsv" else b",")
        bytes_.write(gzip.compress(text) if kind.endswith("gz") else text)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(bytes_.getvalue())))
    assert read_points("-", format=None if kind == "csv" else kind).array.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_the_format_can_be_told(tmp_path):
    path = write(tmp_path / "positions.txt", "x\ty\n1\t2\n")
    assert read_points(path, format="tsv").array.tolist() == [[1.0, 2.0]]
    with pytest.raises(ValueError, match=r"cannot tell the format of 'positions.txt' from its name: pass format="):
        read_points(path)
    with pytest.raises(ValueError, match=r"format must be one of csv, .*, got 'xlsx'"):
        read_points(path, format="xlsx")


# Columns.


def test_columns_are_chosen_by_name_and_keep_the_requested_order(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    csv = write(tmp_path / "a.csv", "who,x,y\nann,1,2\nbob,3,4\n")
    parquet.write_table(arrow.table({"who": ["ann", "bob"], "x": [1, 3], "y": [2.0, 4.0]}), tmp_path / "a.parquet")
    for path in (csv, tmp_path / "a.parquet"):
        # By name and by number, also if the columns have names.
        for columns in (["y", "x"], ["3", "2"], [3, 2], ["y", 2]):
            for nonfinite in ("raise", "center"):
                records = read_points(path, columns=columns, nonfinite=nonfinite)
                assert records.columns == ("y", "x")
                assert records.array.tolist() == [[2.0, 1.0], [4.0, 3.0]]
    np.save(tmp_path / "a.npy", np.array([[1, 2, 3], [4, 5, 6]]))
    assert read_points(tmp_path / "a.npy", columns=["3", "1"]).array.tolist() == [[3.0, 1.0], [6.0, 4.0]]


def test_a_name_that_is_a_number_comes_before_the_number(tmp_path):
    path = write(tmp_path / "a.csv", "2,1\n10,20\n")
    assert read_points(path, header=True, columns=["1"]).array.tolist() == [[20.0]]
    assert read_points(path, header=True, columns=[1]).array.tolist() == [[10.0]]
    years = write(tmp_path / "b.csv", "2019,2020\n10,20\n")
    assert read_points(years, header=True, columns=["2020"]).columns == ("2020",)
    assert read_points(years, header=True, columns=["2"]).columns == ("2020",)
    # Without an option, a line of numbers is a record.
    assert read_points(years).array.shape == (2, 2)


def test_names_that_are_there_twice_are_chosen_by_number_and_stay_apart(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    csv = write(tmp_path / "a.csv", "x,y,x\n1,2,3\n")
    columns = [arrow.array([float(i)]) for i in (1, 2, 3)]
    parquet.write_table(arrow.Table.from_arrays(columns, names=["x", "y", "x"]), tmp_path / "a.parquet")
    for path in (csv, tmp_path / "a.parquet"):
        records = read_points(path, columns=["3", "1", "y"])
        assert records.array.tolist() == [[3.0, 1.0, 2.0]]
        assert records.columns == ("x [3]", "x [1]", "y")
        for columns in (None, ["x"]):
            with pytest.raises(ValueError, match="column 'x' occurs 2 times, as columns 1 and 3: choose by number"):
                read_points(path, columns=columns)


def test_bad_columns_are_named(tmp_path):
    path = write(tmp_path / "a.csv", "x,y\n1,2\n")
    for wrong in ("z", "0", "3", -1, 0, True):
        with pytest.raises(ValueError, match=r"column .* is not there; the columns are 'x', 'y'"):
            read_points(path, columns=["x", wrong])
    for twice in ("x", "1", 1):
        with pytest.raises(ValueError, match="requested twice"):
            read_points(path, columns=["x", twice])
    with pytest.raises(ValueError, match="no columns were chosen"):
        read_points(path, columns=[])
    with pytest.raises(TypeError, match=r"columns must be a list .* one column is \['x'\]"):
        read_points(path, columns="x")
    with pytest.raises(ValueError, match="2 chosen columns, but d = 3 was given"):
        read_points(path, d=3)


# Delimited text.


def test_a_csv_without_header_loses_no_record(tmp_path):
    path = write(tmp_path / "a.csv", "1,2\n3,4\n")
    assert read_points(path).array.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert read_points(path, columns=["2"]).columns == ("2",)
    assert read_points(path, header=True).array.tolist() == [[3.0, 4.0]]
    mixed = write(tmp_path / "b.csv", "id,2019\n1,2\n")
    for nonfinite in ("raise", "center"):
        with pytest.raises(ValueError, match="has both names and numbers"):
            read_points(mixed, nonfinite=nonfinite)
    assert read_points(mixed, header=True).columns == ("id", "2019")


def test_byte_order_marks_quotes_spaces_and_blank_lines_are_read(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes('\ufeff\r\n"x", y\r\n"1", 2\r\n\r\n 3 ,4e0\r\n'.encode())
    records = read_points(path)
    assert records.columns == ("x", "y")
    assert records.array.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    unattended = read_points(path, nonfinite="center")
    assert np.array_equal(unattended.array, [[1.0, 2.0], [np.nan, np.nan], [3.0, 4.0]], equal_nan=True)
    path.write_bytes("\ufeff1,2\n3,4".encode())
    for options in ({}, {"nonfinite": "center", "header": False, "d": 2}):
        assert read_points(path, **options).array.tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("nonfinite", ["raise", *UNATTENDED])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_what_the_header_has(tmp_path, delimiter, nonfinite):
    text = 'x,"a;b,c|d\te"\n1,2\n3,4\n'
    quoted = text.split('"')
    text = '"'.join([quoted[0].replace(",", delimiter), quoted[1], quoted[2].replace(",", delimiter)])
    records = read_text(tmp_path, text, nonfinite=nonfinite)
    assert records.columns == ("x", "a;b,c|d\te")
    assert records.array.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_the_delimiter_can_be_told(tmp_path):
    assert read_text(tmp_path, "x y\n1 2\n", delimiter=" ").array.tolist() == [[1.0, 2.0]]
    for tab in ("tab", r"\t", "\t"):
        assert read_text(tmp_path, "1\t2\n", delimiter=tab).array.tolist() == [[1.0, 2.0]]
    assert read_text(tmp_path, "x, m;y\n1;2\n", delimiter=";").columns == ("x, m", "y")
    with pytest.raises(ValueError, match="contains ',' and ';': say which of them separates the cells, delimiter="):
        read_text(tmp_path, "x, m;y\n1;2\n")
    for wrong in ("", "ab", "1", "e", ".", "-", '"', "\n"):
        with pytest.raises(ValueError, match="delimiter must be one character"):
            read_text(tmp_path, "x\n1\n", delimiter=wrong)


def test_no_record_decides_the_delimiter(tmp_path):
    with pytest.raises(ValueError, match=r"with the delimiter ';' the first line is a record.*state delimiter="):
        read_text(tmp_path, "1;2\n3;4\n")
    assert read_text(tmp_path, "1;2\n3;4\n", delimiter=";").array.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    with pytest.raises(ValueError, match="'1;2' is not a number"):
        read_text(tmp_path, "1;2\n3;4\n", header=False)


@pytest.mark.parametrize("nonfinite", ["raise", *UNATTENDED])
def test_decimal_commas(tmp_path, nonfinite):
    options = {"decimal": ",", "nonfinite": nonfinite}
    assert read_text(tmp_path, "x;y\n1,5;-2\n", **options).array.tolist() == [[1.5, -2.0]]
    assert read_text(tmp_path, "x\ty\n1,5\t2e3\n", "a.tsv", **options).array.tolist() == [[1.5, 2000.0]]
    with pytest.raises(ValueError, match="the comma would be both the delimiter and the decimal sign"):
        read_text(tmp_path, "x,y\n1,2\n", **options)
    with pytest.raises(ValueError, match="delimiter must be one character"):
        read_text(tmp_path, "x,y\n1,2\n", delimiter=",", **options)
    with pytest.raises(ValueError, match="decimal must be"):
        read_text(tmp_path, "x,y\n1,2\n", decimal="'")


def test_a_comma_or_a_point_in_the_wrong_place_is_explained(tmp_path):
    with pytest.raises(ValueError, match=r"'1,5' is not a number.*if the comma is a decimal sign, decimal=','"):
        read_text(tmp_path, "x;y\n1,5;2\n")
    with pytest.raises(ValueError, match=r"'1.234,5' is not a number.*the decimal sign is a comma, as decimal= states"):
        read_text(tmp_path, "x;y\n1.234,5;2\n", decimal=",")


def test_encodings(tmp_path):
    path = write(tmp_path / "a.csv", "Größe,x\n1,2\n3,4\n", encoding="latin-1")
    for nonfinite in ("raise", *UNATTENDED):
        assert read_points(path, encoding="latin-1", nonfinite=nonfinite).columns == ("Größe", "x")
        with pytest.raises(
            ValueError, match=r"line 1 is not valid utf-8: state the encoding, such as encoding='latin-1'"
        ):
            read_points(path, nonfinite=nonfinite)
    late = tmp_path / "b.csv"
    late.write_bytes(b"x,y\n1,2\n3,\xff\n")
    with pytest.raises(ValueError, match="line 3 is not valid utf-8"):
        read_points(late)
    assert np.isnan(read_points(late, nonfinite="center").array[1, 1])
    # An unreadable cell in another column does not matter.
    late.write_bytes(b"who,x\nJos\xe9,1\n")
    assert read_points(late, columns=["x"], nonfinite="center").array.tolist() == [[1.0]]
    # Lines are found in the bytes before decoding.
    with pytest.raises(ValueError, match="encoding must write ASCII as single bytes, got 'utf-16'"):
        read_points(path, encoding="utf-16")
    for unknown in ("klingon", "rot13"):
        with pytest.raises(ValueError, match="encoding must be an encoding of Python"):
            read_points(path, encoding=unknown)


def test_a_blank_line_of_a_single_column_is_a_missing_value(tmp_path):
    with pytest.raises(ValueError, match=r"row 2 \(line 3\), column 'x': the value is missing"):
        read_text(tmp_path, "x\n1\n\n3\n")
    with pytest.raises(ValueError, match=r"row 1 \(line 1\), column '1': the value is missing"):
        read_text(tmp_path, "\n1\n3\n", header=False)
    with pytest.raises(ValueError, match="state whether it is a header"):
        read_text(tmp_path, "NA\n1\n3\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,y\n1,2\n3,north\n", r"'a.csv': row 2 \(line 3\), column 'y': 'north' is not a number; choose the columns"),
        ("x,y\n1,2\n3,\n", r"row 2 \(line 3\), column 'y': the value is missing; correct it, or replace such records"),
        ("\n\nx,y\nNA,2\n3,4\n", r"row 1 \(line 4\), column 'x': the value is missing"),
        ("x,y\n1,-inf\n3,4\n", r"row 1 \(line 2\), column 'y': the value is infinite"),
        ("x,y\n1,1e999\n3,4\n", r"row 1 \(line 2\), column 'y': the value is infinite"),
        ("x,y\n1,2\n3\n", r"row 2 \(line 3\) has 1 cells instead of 2"),
        ("x,y\n1,2019_01\n", "'2019_01' is not a number"),
        ('x,y\n1,"2\n3,4\n', "line 3: unexpected end of data"),
        ("", "is empty"),
    ],
)
def test_bad_cells_are_named_with_row_and_column(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_text(tmp_path, text)


def test_quotes_may_span_lines_where_someone_sees_it(tmp_path):
    text = 'note,x\n"two\nlines",1\nb,2\n'
    assert read_text(tmp_path, text, columns=["x"]).array.tolist() == [[1.0], [2.0]]
    unattended = read_text(tmp_path, text, columns=["x"], nonfinite="center")
    assert np.array_equal(unattended.array, [[np.nan], [1.0], [2.0]], equal_nan=True)


# Unattended runs.

LINES = ("1,2", "3,4", "5,6", "7,8")
HOSTILE = st.one_of(
    st.binary(max_size=40),
    st.text(max_size=20).map(lambda text: text.encode("utf-8", "replace")),
    st.lists(st.sampled_from(["1", "2", '"', ",", ";", "\r", "\0", "\ufeff", "nan", "-", " ", "_"]), max_size=12).map(
        lambda parts: "".join(parts).encode()
    ),
).map(lambda line: line.replace(b"\n", b" "))


@given(line=HOSTILE, place=st.integers(0, 3), header=st.booleans(), decimal=st.sampled_from(".,"))
@example(line=b'"', place=0, header=True, decimal=".")
@example(line=b'1,"2', place=3, header=True, decimal=".")
@example(line=b"", place=0, header=False, decimal=".")
@example(line=b"", place=3, header=True, decimal=".")
@example(line=b"x,y", place=0, header=False, decimal=".")
@example(line=b"1,2,3", place=0, header=False, decimal=".")
@example(line=b"\xef\xbb\xbf", place=0, header=False, decimal=".")
@example(line=b'1,"' + b"9" * 200_000 + b'"', place=1, header=True, decimal=".")
def test_no_record_of_a_file_is_an_error_or_changes_another_one(tmp_path_factory, line, place, header, decimal):
    """All other records are the same with and without this record. The header and the other records decide
    the shape.
    """
    separator = "," if decimal == "." else ";"
    lines = [text.replace(",", separator).encode() for text in LINES]
    lines[place] = line
    path = tmp_path_factory.mktemp("hostile") / "a.csv"
    path.write_bytes(b"\n".join(([f"x{separator}y".encode()] if header else []) + lines) + b"\n")
    told = {} if header else {"header": False, "columns": ["1", "2"], "delimiter": separator}
    records = read_points(path, nonfinite="center", decimal=decimal, **told)
    expected = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
    assert records.array.shape == (4, 2)
    assert records.columns == (("x", "y") if header else ("1", "2"))
    others = [i for i in range(4) if i != place]
    assert np.array_equal(records.array[others], expected[others])


def test_no_record_decides_what_the_first_line_is(tmp_path):
    path = write(tmp_path / "a.csv", "1,2\n3,4\n")
    with pytest.raises(ValueError, match="the first line has only numbers: state whether it is a header"):
        read_points(path, nonfinite="center")
    with pytest.raises(ValueError, match=r"the first record would decide .* columns=\['1', '2', ...\] \(--columns"):
        read_points(path, nonfinite="center", header=False)
    for told in ({"columns": ["1", "2"]}, {"d": 2}):
        records = read_points(path, nonfinite="center", header=False, **told)
        assert records.array.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    for wrong in (["x"], [0], ["1", "1"], []):
        with pytest.raises(ValueError, match="must be different numbers from 1"):
            read_points(path, nonfinite="center", header=False, columns=wrong)


def test_unattended_reading_marks_what_is_no_number(tmp_path):
    path = write(tmp_path / "a.csv", "x,y\n1,north\n,2\n3,4,5\n6\ninf,7\n8,9")
    for nonfinite in UNATTENDED:
        array = read_points(path, nonfinite=nonfinite).array
        assert np.isfinite(array).all(axis=1).tolist() == [False, False, False, False, False, True]
    with pytest.raises(ValueError, match="nonfinite must be one of"):
        read_points(path, nonfinite="ignore")


# Parquet and Arrow, NPY and NPZ.


def test_parquet_names_nulls_and_types(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    day = arrow.array([1, 2, 3], arrow.date32())
    table = arrow.table({"x": [1, 2, None], "y": [1.0, 2.0, 3.0], "who": ["a", "b", "7"], "day": day})
    parquet.write_table(table, path)
    with pytest.raises(ValueError, match=r"'a\.parquet': row 3, column 'x': the value is missing; correct it"):
        read_points(path, columns=["x", "y"])
    message = r"column 'who' has type string, which is not a number; choose .* columns=\[\.\.\.\] \(--columns\)"
    with pytest.raises(TypeError, match=message):
        read_points(path)
    unattended = read_points(path, columns=["x", "y"], nonfinite="center").array
    assert np.array_equal(unattended, [[1.0, 1.0], [2.0, 2.0], [np.nan, 3.0]], equal_nan=True)
    # The type of a column is as public as its name, even if nobody may see a cell.
    for columns, named in ((["x", "who"], "column 'who' has type string"), (["day"], "column 'day' has type date32")):
        with pytest.raises(TypeError, match=named):
            read_points(path, columns=columns, nonfinite="center")


def test_a_column_of_lists_becomes_columns(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path, ragged = tmp_path / "a.parquet", tmp_path / "b.parquet"
    parquet.write_table(arrow.table({"id": [1, 2], "e": [[1.0, 2.0], [3.0, 4.0]]}), path)
    parquet.write_table(arrow.table({"e": [[1.0, 2.0], [3.0], None]}), ragged)
    records = read_points(path, columns=["e"])
    assert records.columns == ("e[0]", "e[1]")
    assert records.array.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    with pytest.raises(TypeError, match="column 'e' holds lists"):
        read_points(path)
    with pytest.raises(ValueError, match="row 2 has 1 numbers instead of 2"):
        read_points(ragged)
    with pytest.raises(ValueError, match="no record may decide the dimension"):
        read_points(ragged, nonfinite="center")
    unattended = read_points(ragged, nonfinite="center", d=2).array
    assert np.array_equal(unattended, [[1.0, 2.0], [np.nan] * 2, [np.nan] * 2], equal_nan=True)


def test_numpy_files_with_other_contents_are_refused(tmp_path):
    np.savez(tmp_path / "two.npz", a=POINTS, b=POINTS + 1)
    with pytest.raises(ValueError, match=r"'two.npz': it holds the arrays \['a', 'b'\]: choose one"):
        read_points(tmp_path / "two.npz")
    assert np.array_equal(read_points(tmp_path / "two.npz", name="a").array, POINTS)
    with pytest.raises(ValueError, match="no array 'c'"):
        read_points(tmp_path / "two.npz", name="c")
    np.save(tmp_path / "flat.npy", np.zeros(3))
    with pytest.raises(ValueError, match=r"shape \(n,\)"):
        read_points(tmp_path / "flat.npy")
    np.save(tmp_path / "text.npy", np.array([["a"]]))
    with pytest.raises(TypeError, match=r"'text.npy': points must be numbers \(integers or floats\), got dtype <U1"):
        read_points(tmp_path / "text.npy")
    with pytest.raises(ValueError, match="its format is npz"):
        read_points(tmp_path / "two.npz", format="npy")
    with pytest.raises(ValueError, match="its format is npy"):
        read_points(tmp_path / "flat.npy", format="npz")


def test_pickles_inside_numpy_files_are_never_loaded(tmp_path):
    np.save(tmp_path / "object.npy", np.array([[{}]]), allow_pickle=True)
    with pytest.raises(ValueError, match="allow_pickle"):
        read_points(tmp_path / "object.npy")


@pytest.mark.parametrize("kind", ["csv.gz", "npy", "npz", "parquet", "arrow"])
def test_files_that_are_broken_are_refused(tmp_path, kind):
    pytest.importorskip("pyarrow")
    path = tmp_path / f"a.{kind}"
    for contents in (b"", b"PK\x03\x04", gzip.compress(b"x,y\n1,2\n" * 1000)[:-20], b"nothing of the kind"):
        path.write_bytes(contents)
        with pytest.raises(ValueError, match=f"'a.{kind}'"):
            read_points(path)


def test_missing_files_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_points(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("npy", {"header": False}),
        ("npy", {"delimiter": ";"}),
        ("npz", {"decimal": ","}),
        ("npy", {"encoding": "utf-8"}),
        ("npy", {"name": "a"}),
        ("csv", {"name": "a"}),
    ],
)
def test_an_option_that_does_not_apply_is_refused(tmp_path, kind, options):
    (tmp_path / f"a.{kind}").touch()
    with pytest.raises(ValueError, match=f"{next(iter(options))}= does not apply to the format {kind}"):
        read_points(tmp_path / f"a.{kind}", **options)


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"dpmedian\[files\]"):
        read_points(write(tmp_path / "a.parquet", ""))


def test_the_bundled_positions_are_what_their_script_writes():
    script = Path(__file__).parents[1] / "examples" / "make_positions.py"
    written = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
    assert written == POSITIONS.read_text()
    assert load_positions().shape == (2000, 2)


def npy(shape, descr="<f8", body=b"\0" * 64):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (117 - len(header)) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + body


@pytest.mark.parametrize(
    ("shape", "descr"),
    [
        ((1, 10**9), "<f8"),
        ((10**12, 2), "<f8"),
        ((-5, 2), "<f8"),
        ((2**64, 2), "<f8"),
        ((0, 2**70), "<f8"),
        ((10**12, 2), "|S0"),
    ],
)
@pytest.mark.parametrize("archive", [False, True])
def test_a_header_that_promises_more_than_the_file_has_is_refused_before_memory_is_allocated(
    tmp_path, capsys, shape, descr, archive
):
    contents = npy(shape, descr)
    path = tmp_path / ("a.npz" if archive else "a.npy")
    if archive:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
            out.writestr("a.npy", contents)
    else:
        path.write_bytes(contents)
    for read in (read_points, open_points):
        with pytest.raises(ValueError, match=rf"{path.name}.*its header states the shape .* may be damaged"):
            read(path)
    assert main(["release", str(path), "--epsilon", "1", "--delta", "1e-6"]) == 2
    assert "its header states the shape" in capsys.readouterr().err


def test_an_archive_that_lies_about_its_sizes_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("a.npy", npy((10**8, 2)))
    contents = bytearray((tmp_path / "a.npz").read_bytes())
    directory = contents.index(b"PK\x01\x02")
    contents[directory + 24 : directory + 28] = (2**31).to_bytes(4, "little")
    (tmp_path / "a.npz").write_bytes(contents)
    with pytest.raises(ValueError, match="more than its compressed bytes can hold"):
        read_points(tmp_path / "a.npz")
    with zipfile.ZipFile(tmp_path / "b.npz", "w", zipfile.ZIP_LZMA) as out:
        out.writestr("a.npy", npy((4, 2)))
    with pytest.raises(ValueError, match="must be stored or deflated"):
        read_points(tmp_path / "b.npz")


def test_a_line_without_an_end_is_an_error_with_its_place_or_a_missing_record(tmp_path, monkeypatch):
    monkeypatch.setattr("dpmedian.files.delimited._LINE_BYTES", 1 << 12)
    long = b"x,y\n1,2\n" + b"7" * 50_000 + b"\n3,4\n"
    for name, contents in (("a.csv", long), ("a.csv.gz", gzip.compress(long))):
        (tmp_path / name).write_bytes(contents)
        with pytest.raises(ValueError, match=rf"'{name}': line 3 has more than .* MiB"):
            read_points(tmp_path / name)
        found = read_points(tmp_path / name, nonfinite="center").array
        assert np.array_equal(found, [[1, 2], [np.nan, np.nan], [3, 4]], equal_nan=True)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no /dev/zero")
@pytest.mark.parametrize("nonfinite", ["raise", *UNATTENDED])
def test_a_device_without_an_end_is_refused(nonfinite):
    with pytest.raises(ValueError, match="is a device, which may have no end"):
        read_points("/dev/zero", format="csv", nonfinite=nonfinite)


@pytest.mark.parametrize("header", ["{'descr': '<f8', 'fortran_order", "(" * 90, "\0", "{'shape': (3", "1 +"])
def test_a_damaged_header_is_an_error_that_names_the_file(tmp_path, header):
    """numpy parses a header as Python, which may raise errors of many types."""
    path = tmp_path / "damaged.npy"
    text = header.encode().ljust(117) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(64))
    for read in (open_points, read_points):
        with pytest.raises(ValueError, match=r"damaged\.npy"):
            read(path)


@pytest.mark.parametrize("name", [None, 1.0, b"x", (1, 2)])
def test_a_column_that_is_neither_text_nor_a_number_is_named(name):
    with pytest.raises(TypeError, match="a column is a name or a number from 1, got"):
        dpmedian.geometric_median(np.zeros((100, 2)), rho=1.0, columns=[name])
