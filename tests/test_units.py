"""One record per unit: which rows belong to it, how they are reduced, and what is charged."""

import json
import uuid
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpmedian
from dpmedian.cli import main
from dpmedian.files import read_points
from dpmedian.sources.labels import as_labels
from rows import unit_records

NAN = float("nan")
IDS = [30, 4, 30, 4, 4, 100]
ROWS = np.array([[0.0, 1.0], [5.0, 5.0], [2.0, 3.0], [5.0, 6.0], [9.0, 9.0], [7.0, 7.0]])
# The first row of each id, in the order of the ids 4, 30, 100.
FIRST = [[5.0, 5.0], [0.0, 1.0], [7.0, 7.0]]
MEAN = [[19.0 / 3.0, 20.0 / 3.0], [1.0, 2.0], [7.0, 7.0]]


class Hostile:
    """A cell that raises for every use."""

    def _refuse(self, *_):
        raise RuntimeError("secret")

    __eq__ = __hash__ = __str__ = __float__ = __int__ = __bool__ = __len__ = __iter__ = _refuse


HOSTILE = pytest.param(Hostile(), id="hostile")


class HostileNumber(int):
    def __int__(self):
        raise RuntimeError("secret")

    def __str__(self):
        raise RuntimeError("secret")


def columns_of_ids():
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    texts = [str(i) for i in IDS]
    return {
        "list": IDS,
        "array": np.array(IDS),
        "small integers": np.array(IDS, dtype=np.uint8),
        "unsigned": np.array(IDS, dtype=np.uint64),
        "not contiguous": np.array([[i, 0] for i in IDS])[:, 0],
        "doubles": np.array(IDS, dtype=float),
        "objects": np.array(IDS, dtype=object),
        "pandas": pandas.Series(IDS),
        "pandas, nullable": pandas.Series(IDS, dtype="Int64"),
        "pandas, arrow": pandas.Series(IDS, dtype="int64[pyarrow]"),
        "pandas, categories": pandas.Series(IDS, dtype="category"),
        "pandas index": pandas.Index(IDS),
        "polars": polars.Series(IDS),
        "polars, doubles": polars.Series(IDS, dtype=polars.Float64),
        "arrow": arrow.array(IDS),
        "arrow, chunks": arrow.chunked_array([IDS[:2], IDS[2:]]),
        "mixed": [30, "4", 30.0, b"4", np.int8(4), "100"],
        "text": texts,
        "arrow text views": arrow.array(texts, type=arrow.string_view()),
        "text array": np.array(texts),
        "bytes array": np.array(texts, dtype="S"),
        "pandas text": pandas.Series(texts),
        "pandas string": pandas.Series(texts, dtype="string"),
        "pandas text categories": pandas.Series(texts, dtype="category"),
        "polars text": polars.Series(texts),
        "polars categories": polars.Series(texts, dtype=polars.Categorical),
        "arrow text": arrow.array(texts),
        "arrow dictionary": arrow.array(texts).dictionary_encode(),
    }


def test_ids_of_every_kind_make_the_same_units():
    for kind, ids in columns_of_ids().items():
        records = unit_records(ROWS, ids, reducer="first")
        found = records.array.tolist()
        # Text is in the order of its characters: "100" comes first.
        assert found == (
            FIRST if isinstance(as_labels(ids, "unit").values, np.ndarray) else [FIRST[2], FIRST[1], FIRST[0]]
        ), kind
        assert records.unit == "unit"


def test_a_column_of_a_frame_is_named_and_taken_out():
    pandas, polars = (pytest.importorskip(name) for name in ("pandas", "polars"))
    data = {"x": ROWS[:, 0], "person": IDS, "y": ROWS[:, 1]}
    for frame in (pandas.DataFrame(data), polars.DataFrame(data), polars.DataFrame(data).to_arrow()):
        records = unit_records(frame, "person", reducer="mean")
        assert (records.columns, records.unit) == (("x", "y"), "person")
        assert np.allclose(records.array, MEAN)
        with pytest.raises(
            ValueError, match="unit='who': this column is not there; the columns are 'x', 'person', 'y'"
        ):
            unit_records(frame, "who")
    assert unit_records(ROWS, pandas.Series(IDS, name="person")).unit == "person"
    with pytest.raises(
        TypeError, match=r"unit='person' names a column, but the columns of points .ndarray. have no names"
    ):
        unit_records(ROWS, "person")
    with pytest.raises(ValueError, match="must not be called 'record'"):
        unit_records(ROWS, pandas.Series(IDS, name="record"))
    twice = pandas.DataFrame(np.column_stack([ROWS, IDS]), columns=["x", "u", "u"])
    with pytest.raises(ValueError, match="occurs more than once"):
        unit_records(twice, "u")


def test_a_unit_has_its_own_median():
    assert unit_records(ROWS, IDS).array.tolist()[1:] == [[1.0, 2.0], [7.0, 7.0]]
    rng = np.random.default_rng(0)
    rows, ids = rng.normal(size=(300, 3)), rng.integers(20, size=300)
    records = unit_records(rows, ids).array
    for place, unit in enumerate(np.unique(ids)):
        assert np.allclose(records[place], dpmedian.nonprivate.geometric_median(rows[ids == unit]), atol=1e-6)


@given(
    st.lists(st.tuples(st.sampled_from("abcde"), st.integers(-3, 3)), min_size=1, max_size=30),
    st.sampled_from("abcdef"),
    st.data(),
)
def test_a_changed_unit_changes_its_own_record_only(rows, changed, data):
    """The rows of a unit are replaced by any others, in any number and at any positions, and the other records keep
    their bits.
    """
    new = data.draw(st.lists(st.integers(-3, 3), max_size=6))
    others = [row for row in rows if row[0] != changed]
    mixed = list(others)
    for value in new:
        mixed.insert(data.draw(st.integers(0, len(mixed))), (changed, value))
    for reducer in ("median", "mean", "first"):
        found = []
        for table in (rows, mixed):
            if table:
                ids, values = zip(*table, strict=True)
                records = unit_records(np.array(values, dtype=float).reshape(-1, 1), list(ids), reducer=reducer).array
                found.append(dict(zip(sorted(set(ids)), [record.tobytes() for record in records], strict=True)))
            else:
                found.append({})
        for unit in {row[0] for row in others}:
            assert found[0][unit] == found[1][unit]
        assert abs(len(found[0]) - len(found[1])) <= 1


def test_ids_are_not_digested():
    """Every one of many texts that differ in one character is a unit. A digest of 32 bits would merge some of them."""
    ids = [f"{i:x}" for i in range(200_000)]
    _, count = as_labels(ids, "unit").ranks()
    assert count == 200_000
    assert as_labels([2**53 + 1, 2**53, -(2**70), 2**70], "unit").ranks()[1] == 4
    assert as_labels(np.array([2**64 - 1, 1], dtype=np.uint64), "unit").places(
        as_labels([2**64 - 1], "keys")
    ).tolist() == [0, -1]


@pytest.mark.parametrize(
    "cell",
    [
        None,
        NAN,
        "",
        b"",
        1.5,
        2.0**60,
        1j,
        [1],
        HOSTILE,
        pytest.param(HostileNumber(3), id="hostile number"),
        float("inf"),
    ],
)
def test_what_is_no_id_is_missing(cell):
    labels = as_labels([7, cell, "x"], "unit")
    assert labels.missing.tolist() == [False, True, False]
    with pytest.raises(ValueError, match=r"row 2 has no 'unit' that can be read; .*neighbours='add_remove'"):
        unit_records(ROWS[:3], [7, cell, "x"])
    with pytest.raises(ValueError, match="and a row has no id"):
        unit_records(ROWS[:3], [7, cell, "x"], nonfinite="center")
    left = unit_records(ROWS[:3], [7, cell, "x"], neighbours="add_remove")
    assert left.array.tolist() == ROWS[[0, 2]].tolist()


def test_missing_values_of_columns_are_missing_ids():
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    for ids in (
        pandas.Series([1, None, 1]),
        pandas.Series([1, None, 1], dtype="Int64"),
        pandas.Series(["1", None, "1"], dtype="string"),
        pandas.Series(["1", None, "1"], dtype="category"),
        polars.Series([1, None, 1]),
        polars.Series(["1", None, "1"]),
        arrow.array([1, None, 1]),
        arrow.array(["1", None, "1"]),
        np.ma.array([1, 5, 1], mask=[False, True, False]),
        np.ma.array(["1", "5", "1"], mask=[False, True, False]),
    ):
        assert as_labels(ids, "unit").missing.tolist() == [False, True, False]
        assert as_labels(ids, "unit").ranks()[0].tolist() == [0, -1, 0]


def test_types_that_are_no_ids_are_refused_by_their_type():
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    days = np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[D]")
    for ids in (days, pandas.Series(days), polars.Series(days), arrow.array(days)):
        with pytest.raises(TypeError, match="unit must be integers or text, got a column of type"):
            as_labels(ids, "unit")
    with pytest.raises(TypeError, match="unit must be one label for each row, or the name of a column"):
        as_labels({1, 2}, "unit")
    with pytest.raises(ValueError, match="one label for each row"):
        as_labels(np.zeros((2, 2), dtype=int), "unit")
    assert as_labels([uuid.UUID(int=5), str(uuid.UUID(int=5)), True], "unit").ranks()[1] == 2


def test_rows_that_are_not_finite_are_left_out_of_their_unit():
    rows, ids = np.array([[1.0, NAN], [2.0, 2.0], [NAN, NAN], [4.0, 6.0]]), [1, 1, 2, 1]
    with pytest.raises(ValueError, match="row 1, column 2 is missing"):
        unit_records(rows, ids)
    for reducer in ("median", "mean"):
        array = unit_records(rows, ids, reducer=reducer, nonfinite="center").array
        assert array[0].tolist() == [3.0, 4.0]
        assert np.isnan(array[1]).all()
    assert unit_records(rows, ids, reducer="first", nonfinite="drop").array[0].tolist() == [2.0, 2.0]


def test_an_empty_unit_is_a_record_at_the_center():
    """Under "replace" the number of units is public, so the unit must not disappear."""
    rows, ids = np.full((400, 2), 3.0), np.arange(400) // 2
    rows[10:12] = NAN
    plan = dpmedian.plan(200, 2, rho=1.0, method="dpgd", radius=20.0, unit="unit")
    release = plan.run(rows, unit=ids, nonfinite="center", seed=1)
    centered = rows.copy()
    centered[10:12] = 0.0
    assert release.point.tolist() == plan.run(centered, unit=ids, seed=1).point.tolist()


def test_the_cost_is_that_of_a_unit():
    rng = np.random.default_rng(0)
    people = rng.normal(size=(500, 2))
    ids = rng.permutation(np.repeat(np.arange(500), rng.integers(1, 9, size=500)))
    rows = people[ids] + 0.01 * rng.normal(size=(len(ids), 2))
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": rows[:, 0], "y": rows[:, 1], "person": ids})
    ledger = dpmedian.Ledger(epsilon=3.0, delta=1e-5, unit="person")
    release = dpmedian.geometric_median(frame, unit="person", epsilon=1.0, delta=1e-6, ledger=ledger, seed=0)
    assert (release.n, release.unit, release.neighbours) == (500, "person", "replace")
    assert release.cost.unit == ledger.entries[0].cost.unit == "person"
    assert "one person" in str(release)
    assert np.linalg.norm(release.point - dpmedian.nonprivate.geometric_median(people)) < 0.3
    plan = dpmedian.plan(500, 2, epsilon=1.0, delta=1e-6, unit="person")
    assert plan.run(frame, unit="person", seed=0).point.tolist() == release.point.tolist()
    assert plan.run(rows, unit=ids, seed=0).cost == release.cost
    single = dpmedian.Ledger(epsilon=3.0, delta=1e-5)
    with pytest.raises(ValueError, match="person"):
        plan.run(rows, unit=ids, ledger=single)
    assert single.entries == ()


def test_a_plan_of_units_wants_their_ids():
    rows, ids = np.zeros((400, 2)), np.arange(400) // 2
    plan = dpmedian.plan(200, 2, rho=1.0, method="dpgd", radius=1.0, unit="person")
    with pytest.raises(ValueError, match=r"protects whole units 'person': .*unit=range"):
        plan.run(rows)
    with pytest.raises(ValueError, match=r"shape \(200, 2\)"):
        plan.run(rows, unit=range(400))
    assert plan.run(rows, unit=ids, seed=0).unit == "person"
    records = dpmedian.plan(400, 2, rho=1.0, method="dpgd", radius=1.0)
    with pytest.raises(ValueError, match="for single records"):
        records.run(rows, unit=ids)
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="the unit 'person', but the ids are for 'device'"):
        plan.run(rows, unit=pandas.Series(ids, name="device"))
    with pytest.raises(ValueError, match="unit_reduce must be one of"):
        plan.run(rows, unit=ids, unit_reduce="mode")
    with pytest.raises(ValueError, match=r"unit_reduce = 'mean' would have no effect without a unit"):
        dpmedian.geometric_median(rows, rho=1.0, unit_reduce="mean")
    with pytest.raises(ValueError, match="one id for each row"):
        plan.run(rows, unit=ids[1:])


@pytest.mark.parametrize("cell", [NAN, float("inf"), "secret", b"\xff", None, 1j, 10**400, [1.0], HOSTILE, "1_0", True])
def test_no_cell_shows_in_an_unattended_run(cell, tmp_path):
    """For any content of a person's rows, the run neither raises nor warns, and the other units keep their records."""
    pandas = pytest.importorskip("pandas")
    plan = dpmedian.plan(200, 2, rho=1.0, method="dpgd", radius=20.0, unit="person")
    usual = np.arange(400.0) % 7
    x = np.empty(400, dtype=object)
    x[:] = usual
    x[6] = cell
    frame = pandas.DataFrame({"x": pandas.Series(x, dtype=object), "y": usual, "person": np.arange(400) // 2})
    with warnings.catch_warnings():
        warnings.simplefilter("error", category=RuntimeWarning)
        records = unit_records(frame, "person", nonfinite="center")
        assert plan.run(frame, unit="person", nonfinite="center", seed=2).n == 200
    plain = unit_records(np.column_stack([usual, usual]), np.arange(400) // 2).array
    kept = np.arange(200) != 3
    assert records.array[kept].tobytes() == plain[kept].tobytes()


@pytest.mark.parametrize("line", [b"1,2", b"x,y,z,w", b'"1,2,p1', b"\xff\xfe,1,p1", b"", b"1e999,nan,p3", b"\x00,1,p3"])
def test_no_line_of_a_file_shows_in_an_unattended_run(line, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"x,y,person\n1,2,p1\n3,4,p1\n" + line + b"\n5,6,p2\n")
    points = read_points(path, nonfinite="drop", labels=["person"])
    records = unit_records(points, "person", nonfinite="drop", neighbours="add_remove").array
    assert records[:2].tolist() == [[2.0, 3.0], [5.0, 6.0]]


def test_the_command_protects_people(tmp_path, capsys):
    path = tmp_path / "rows.csv"
    rng = np.random.default_rng(3)
    people = rng.normal(size=(400, 2))
    lines = [f"{x!r}, p{i % 400} ,{y!r}" for i, (x, y) in enumerate(np.tile(people, (3, 1)).tolist())]
    path.write_text("\n".join(["east,person,north", *lines]))
    assert main(["release", str(path), "--unit", "person", "--epsilon", "1", "--delta", "1e-6", "--seed", "1"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["n"], printed["cost"]["unit"], list(printed["point"])) == (400, "person", ["east", "north"])
    expected = dpmedian.geometric_median(people, epsilon=1.0, delta=1e-6, seed=1)
    assert np.linalg.norm(np.array(list(printed["point"].values())) - expected.point) < 1e-2
    ledger = tmp_path / "ledger.json"
    assert main(["ledger", "create", str(ledger), "--epsilon", "2", "--delta", "1e-5"]) == 0
    arguments = ["release", str(path), "--unit", "person", "--epsilon", "1", "--delta", "1e-6", "--ledger", str(ledger)]
    assert main(arguments) == 2
    assert "person" in capsys.readouterr().err
    assert main(["release", str(path), "--unit", "who", "--epsilon", "1", "--delta", "1e-6"]) == 2
    assert "column 'who' is not there" in capsys.readouterr().err
    assert main(["plan", "400", "2", "--unit", "person", "--epsilon", "1", "--delta", "1e-6", "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["unit"] == "person"


def test_labels_of_files_in_every_format(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet, feather = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow.feather")
    table = arrow.table({"x": ROWS[:, 0], "person": IDS, "y": ROWS[:, 1]})
    parquet.write_table(table, tmp_path / "a.parquet")
    feather.write_feather(table, tmp_path / "a.feather")
    np.save(tmp_path / "a.npy", np.column_stack([ROWS[:, 0], IDS, ROWS[:, 1]]))
    (tmp_path / "a.csv").write_text(
        "x,person,y\n" + "\n".join(f"{x},{i},{y}" for (x, y), i in zip(ROWS, IDS, strict=True))
    )
    for name, column in (("a.parquet", "person"), ("a.feather", "person"), ("a.npy", "2"), ("a.csv", "person")):
        for nonfinite in ("raise", "center"):
            points = read_points(tmp_path / name, labels=[column], nonfinite=nonfinite)
            records = unit_records(points, column, reducer="first").array.tolist()
            assert sorted(records) == sorted(FIRST), name
    bare = tmp_path / "bare.csv"
    bare.write_text("1,7,2\n3,8,4\n")
    points = read_points(bare, columns=["1", "3"], labels=["2"], header=False, nonfinite="center")
    assert unit_records(points, "2").array.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    with pytest.raises(ValueError, match="requested twice, as a label and as a coordinate"):
        read_points(tmp_path / "a.csv", columns=["x", "person"], labels=["person"])
    with pytest.raises(ValueError, match="unit='2' is one of the coordinates"):
        unit_records(read_points(bare, header=False), "2")


SEVEN = Decimal("7.00000000000000000001")


def test_numbers_that_are_one_double_are_no_single_id():
    """A number is compared with its integer in its own type, so that rounding cannot merge two people into one unit."""
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    for ids in (
        [Decimal(7), SEVEN, Decimal(7)],
        [Fraction(7), Fraction(7) + Fraction(1, 10**20), 7],
        np.array([7, SEVEN, 7], dtype=object),
        pandas.Series([Decimal(7), SEVEN, Decimal(7)]),
        arrow.array([Decimal(7), SEVEN, Decimal(7)], type=arrow.decimal128(30, 20)),
        polars.Series([Decimal(7), SEVEN, Decimal(7)], dtype=polars.Decimal(30, 20)),
        np.array([7, np.nextafter(np.longdouble(7), np.longdouble(8)), 7], dtype=np.longdouble),
        [np.longdouble(7), np.nextafter(np.longdouble(7), np.longdouble(8)), 7],
    ):
        labels = as_labels(ids, "unit")
        assert labels.missing.tolist() == [False, True, False], ids
        assert labels.ranks()[0].tolist() == [0, -1, 0]
    # Decimals in databases have up to 38 digits, all of which count.
    assert as_labels([Decimal(10**37), Decimal(10**37 + 1)], "unit").ranks()[1] == 2


def test_floats_that_may_stand_for_several_integers_are_no_ids():
    """Single precision rounds ids above 2^24 before anyone can see them. So such an id counts as missing, and no ids
    are merged.
    """
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    for bound, kind, name in ((2**24, np.float32, "Float32"), (2**53, np.float64, "Float64")):
        plain = np.array([bound - 1, bound, 5], dtype=kind)
        for ids in (
            plain,
            list(plain),
            pandas.Series(plain),
            pandas.Series(plain, dtype=name),
            polars.Series(plain),
            arrow.array(plain),
        ):
            assert as_labels(ids, "unit").missing.tolist() == [False, True, False], (kind, type(ids))
    assert as_labels(np.array([2048, 2047], dtype=np.float16), "unit").missing.tolist() == [True, False]


def test_ids_of_a_numpy_file_are_read_as_they_are(tmp_path):
    """Two integers above 2^53 that have the same double are two people."""
    np.save(tmp_path / "a.npy", np.array([[1, 2**60], [2, 2**60 + 1], [3, 2**60]]))
    labels = read_points(tmp_path / "a.npy", labels=[2]).labels["2"]
    assert labels.ranks()[0].tolist() == [0, 1, 0]
