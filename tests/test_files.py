"""Files become points, or an error that names the row and the column while nothing has been spent."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dpmedian.data import POSITIONS, load_positions
from dpmedian.files import read_points

POINTS = np.array([[1.5, -2.0], [3.25, 4.0], [1e300, 5e-324]])


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_every_format_gives_the_same_points(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [f"{float(x)!r},{float(y)!r}" for x, y in POINTS]
    write(tmp_path / "a.csv", "\n".join(["x,y", *rows, ""]))
    write(tmp_path / "a.tsv", "\n".join(["x\ty", *(row.replace(",", "\t") for row in rows)]))
    np.save(tmp_path / "a.npy", np.asfortranarray(POINTS))
    np.savez(tmp_path / "a.npz", points=POINTS)
    parquet.write_table(arrow.table({"x": POINTS[:, 0], "y": POINTS[:, 1]}), tmp_path / "a.parquet")
    for name in ("a.csv", "a.tsv", "a.npy", "a.npz", "a.parquet"):
        table = read_points(tmp_path / name)
        assert np.array_equal(table.points, POINTS), name
        assert table.columns == (("1", "2") if "np" in name else ("x", "y"))


def test_columns_are_chosen_by_name_and_keep_the_asked_order(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    csv = write(tmp_path / "a.csv", "who,x,y\nann,1,2\nbob,3,4\n")
    parquet.write_table(arrow.table({"who": ["ann", "bob"], "x": [1, 3], "y": [2.0, 4.0]}), tmp_path / "a.parquet")
    for path in (csv, tmp_path / "a.parquet"):
        table = read_points(path, columns=["y", "x"])
        assert table.columns == ("y", "x")
        assert table.points.tolist() == [[2.0, 1.0], [4.0, 3.0]]
    np.save(tmp_path / "a.npy", np.array([[1, 2, 3], [4, 5, 6]]))
    assert read_points(tmp_path / "a.npy", columns=["3", "1"]).points.tolist() == [[3.0, 1.0], [6.0, 4.0]]


def test_a_csv_without_header_loses_no_record(tmp_path):
    path = write(tmp_path / "a.csv", "1,2\n3,4\n")
    assert read_points(path).points.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert read_points(path, columns=["2"]).columns == ("2",)
    assert read_points(path, header=True).points.tolist() == [[3.0, 4.0]]
    mixed = write(tmp_path / "b.csv", "id,2019\n1,2\n")
    with pytest.raises(ValueError, match="neither all names nor all numbers"):
        read_points(mixed)
    assert read_points(mixed, header=True).columns == ("id", "2019")


def test_byte_order_marks_quotes_spaces_and_blank_lines_are_read(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes('﻿"x", y\n"1", 2\n\n 3 ,4e0\n'.encode())
    table = read_points(path)
    assert table.columns == ("x", "y")
    assert table.points.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_a_blank_line_of_a_single_column_is_a_missing_value(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x\n1\n\n3\n")
    with pytest.raises(ValueError, match="row 2, column 'x': the value is missing"):
        read_points(path)
    path.write_text("\n1\n3\n")
    with pytest.raises(ValueError, match="row 1, column '1': the value is missing"):
        read_points(path, header=False)
    path.write_text("NA\n1\n3\n")
    with pytest.raises(ValueError, match="say whether it is a header"):
        read_points(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,y\n1,2\n3,north\n", r"row 2 \(line 3\), column 'y': 'north' is not a number"),
        ("x,y\n1,2\n3,\n", r"row 2, column 'y': the value is missing"),
        ("x,y\nNA,2\n3,4\n", r"row 1, column 'x': the value is missing"),
        ("x,y\n1,-inf\n3,4\n", r"row 1, column 'y': the value is infinite"),
        ("x,y\n1,2\n3\n", r"row 2 \(line 3\) has 1 cells instead of 2"),
        ("x,x\n1,2\n", "column 'x' is there twice"),
        ("", "is empty"),
    ],
)
def test_bad_cells_are_named_with_row_and_column(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_points(write(tmp_path / "a.csv", text))


def test_bad_columns_are_named(tmp_path):
    path = write(tmp_path / "a.csv", "x,y\n1,2\n")
    with pytest.raises(ValueError, match="column 'z' is not there; the columns are 'x', 'y'"):
        read_points(path, columns=["x", "z"])
    with pytest.raises(ValueError, match="asked for twice"):
        read_points(path, columns=["x", "x"])


def test_parquet_names_nulls_and_types(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    parquet.write_table(arrow.table({"x": [1, 2, None], "y": [1.0, 2.0, 3.0], "who": ["a", "b", "c"]}), path)
    with pytest.raises(ValueError, match="row 3, column 'x': the value is missing"):
        read_points(path, columns=["x", "y"])
    with pytest.raises(ValueError, match="column 'who': values of type string are not numbers"):
        read_points(path)
    assert np.isnan(read_points(path, columns=["x"], nonfinite="center").points[2, 0])


def test_numpy_files_with_other_contents_are_refused(tmp_path):
    np.savez(tmp_path / "two.npz", a=POINTS, b=POINTS + 1)
    with pytest.raises(ValueError, match=r"arrays \['a', 'b'\]: choose one"):
        read_points(tmp_path / "two.npz")
    assert np.array_equal(read_points(tmp_path / "two.npz", name="a").points, POINTS)
    with pytest.raises(ValueError, match="no array 'c'"):
        read_points(tmp_path / "two.npz", name="c")
    np.save(tmp_path / "flat.npy", np.zeros(3))
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        read_points(tmp_path / "flat.npy")
    np.save(tmp_path / "text.npy", np.array([["a"]]))
    with pytest.raises(ValueError, match="not numbers"):
        read_points(tmp_path / "text.npy")


def test_pickles_inside_numpy_files_are_never_loaded(tmp_path):
    np.save(tmp_path / "object.npy", np.array([[{}]]), allow_pickle=True)
    with pytest.raises(ValueError, match="allow_pickle"):
        read_points(tmp_path / "object.npy")


def test_unknown_formats_and_missing_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must end in \.csv"):
        read_points(tmp_path / "a.xlsx")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_points(tmp_path / "a.csv")


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"dpmedian\[files\]"):
        read_points(write(tmp_path / "a.parquet", ""))


def test_the_bundled_positions_are_what_their_script_writes():
    script = Path(__file__).parents[1] / "examples" / "make_positions.py"
    written = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
    assert written == POSITIONS.read_text()
    assert load_positions().shape == (2000, 2)
