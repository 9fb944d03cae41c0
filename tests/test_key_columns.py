"""Several key columns: keys are tuples, compared label by label, in every kind of input."""

import itertools

import numpy as np
import pytest

import dpmedian
from dpmedian import nonprivate
from dpmedian.cli import main
from dpmedian.sources.key_columns import canonical, group_keys, key_labels, key_of, take_keys
from dpmedian.sources.labels import as_labels
from rows import group_records

BUDGET = {"epsilon": 2.0, "delta": 1e-6}
KEYS = list(itertools.product(["north", "south"], [1, 2]))


def frame(n=4000, seed=0):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)
    found = pandas.DataFrame(rng.normal(size=(n, 2)), columns=["x", "y"])
    found["district"] = rng.choice(["north", "south"], size=n)
    found["month"] = rng.integers(1, 3, size=n)
    found["x"] += np.where(found.district == "north", 10.0, -10.0)
    found["y"] += 100.0 * found.month
    return found


def test_each_pair_of_labels_is_a_group():
    rows = frame()
    found = dpmedian.geometric_medians(rows, ["district", "month"], keys=KEYS, n=1000, seed=1, **BUDGET)
    exact = nonprivate.geometric_medians(rows, ["district", "month"], keys=KEYS)
    assert list(found) == KEYS
    for key, release in found.items():
        assert np.linalg.norm(release.point - exact[key]) < 0.2
        assert release.name == f"{key[0]}, {key[1]}"
    assert found.to_frame().loc[("south", 2), "y"] == found["south", 2].point[1]
    assert found.to_csv().splitlines()[0].split(",")[:4] == ["district", "month", "x", "y"]
    assert set(nonprivate.excess(found, rows, ["district", "month"])) == set(KEYS)
    record = found.to_dict()
    assert record["by"] == ["district", "month"]
    assert record["keys"][0] == ["north", 1]
    assert dpmedian.verify(found.plan).holds
    assert "district  month" in str(found)


def test_every_way_to_pass_key_columns_is_the_same():
    rows = frame(600)
    plain = rows[["x", "y"]].to_numpy()
    expected = group_records(rows, ["district", "month"], group_keys(KEYS))
    assert [len(expected.records_of(i).array) for i in range(4)] == [
        int(((rows.district == district) & (rows.month == month)).sum()) for district, month in KEYS
    ]
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    for points, by in (
        (rows, ("district", "month")),
        (plain, [rows.district, rows.month]),
        (plain, (rows.district.tolist(), rows.month.to_numpy())),
        (plain, rows[["district", "month"]]),
        (polars.from_pandas(rows), ["district", "month"]),
        (arrow.Table.from_pandas(rows), ["district", "month"]),
        (plain, arrow.Table.from_pandas(rows[["district", "month"]])),
    ):
        found = group_records(points, by, group_keys(KEYS))
        assert found.records.array.tobytes() == expected.records.array.tobytes()
        assert found.starts.tolist() == expected.starts.tolist()
        assert found.by == ("district", "month") or isinstance(by, tuple)
    assert group_records(plain, ([*rows.district], [*rows.month]), group_keys(KEYS)).by == ("key_1", "key_2")
    single = group_records(rows.drop(columns="month"), ["district"], group_keys(["north", "south"]))
    assert (len(single.starts), single.by) == (3, ("district",))


def test_tuples_of_texts_stay_apart_whatever_is_in_them():
    parts = ["", "a", "a\0", "\0", "\0\0", "a\0\1", "\1", "b", "a\0b", "\x00\xff", "12", 12, 3]
    pairs = [pair for pair in itertools.product(parts, parts)]
    readable = {(str(a), str(b)): (a, b) for a, b in pairs if a != "" and b != ""}
    labels = key_labels(list(readable.values()))
    texts = labels.listed()
    assert len(set(texts)) == len(texts)
    for text, key in zip(texts, readable, strict=True):
        assert key_of(text, 2) == key
    ordered = sorted(zip(texts, readable, strict=True))
    assert [key for _, key in ordered] == sorted(readable, key=lambda key: [part.encode() for part in key])
    joined, _ = take_keys(np.zeros((4, 1)), (["a", "", "b", None], ["x", "x", None, "y"]))
    assert joined.missing.tolist() == [False, True, True, True]


def test_a_missing_label_never_gives_its_text_to_others():
    """Codes of rows with a missing label are different from those of other rows, in any order."""
    values = ["p", "q", None]
    pairs = list(itertools.product(values, values))
    for order in (pairs, pairs[::-1], pairs[4:] + pairs[:4], pairs[::2] + pairs[1::2]):
        first, second = zip(*order, strict=True)
        joined, _ = take_keys(np.zeros((9, 1)), (list(first), list(second)))
        for text, missing, pair in zip(joined.listed(), joined.missing, order, strict=True):
            assert missing == (None in pair)
            assert missing or key_of(text, 2) == pair


def test_keys_that_were_found_are_in_an_order_of_their_own():
    keys = ["north", "-3", "10", "9", "08", "x", "9" * 30]
    assert sorted(keys, key=canonical) == ["-3", "08", "9", "10", "9" * 30, "north", "x"]
    assert sorted([("b", "2"), ("a", "10"), ("a", "9")], key=canonical) == [("a", "9"), ("a", "10"), ("b", "2")]


@pytest.mark.parametrize(
    ("by", "keys", "error", "message"),
    [
        (["district", "month"], ["north"], ValueError, "2 columns, so every key must be a tuple of 2 labels"),
        ("district", KEYS, ValueError, r"1 column, so every key must be a label, but the first key is \('north', 1\)"),
        (["district", "month"], [("north", 1), "south"], ValueError, "these keys have 1 and 2 parts"),
        (["district", "month"], [("north", 1), ("south", 1, 1)], ValueError, "these keys have 2 and 3 parts"),
        (["district", "month"], [("north", 1), ("north", "1")], ValueError, "occurs twice"),
        (
            ["district", "month"],
            [("north", None)],
            ValueError,
            "a key must be an integer or text that is not empty, got",
        ),
        (["district", "mnth"], KEYS, ValueError, "by='mnth': this column is not there"),
        (["district", "district"], KEYS, ValueError, "names a column twice"),
    ],
)
def test_what_is_wrong_with_key_columns_is_named(by, keys, error, message):
    with pytest.raises(error, match=message):
        dpmedian.geometric_medians(frame(50), by, keys=keys, **BUDGET)


def test_lengths_that_differ_are_refused():
    with pytest.raises(ValueError, match="the lengths differ"):
        take_keys(np.zeros((3, 1)), (["a", "b", "c"], [1, 2]))
    with pytest.raises(ValueError, match="one label for each row of points"):
        group_records(np.zeros((3, 1)), (["a", "b"], [1, 2]), group_keys(KEYS))


def test_a_key_column_whose_name_is_taken_is_renamed_in_tables():
    rows = frame(900).rename(columns={"district": "size"})
    found = dpmedian.geometric_medians(rows, ["size", "month"], keys=KEYS, seed=1, epsilon=8, delta=1e-6)
    assert found.key_columns == ("key_size", "month")
    assert found.to_csv().startswith("key_size,month,x,")


def test_labels_of_one_column_are_as_they_were():
    labels, names = take_keys(np.zeros((3, 1)), ["a", "b", "a"])
    assert (labels.listed(), names) == ([b"a", b"b", b"a"], ("key",))
    assert take_keys(np.zeros((2, 1)), as_labels([1, 2], "by"))[0].listed() == [1, 2]


def test_the_command_takes_several_columns_with_and_without_keys(tmp_path, capsys):
    rows, data, keys = frame(6000), tmp_path / "rows.csv", tmp_path / "keys.csv"
    rows.to_csv(data, index=False)
    keys.write_text("district,month\nnorth,1\nsouth,2\n")
    arguments = ["release", str(data), "--by", "district,month", "--seed", "1", "--epsilon", "2", "--delta", "1e-6"]
    assert main([*arguments, "--keys", str(keys), "--output", "csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[:2] for line in lines] == [["district", "month"], ["north", "1"], ["south", "2"]]
    assert main([*arguments, "--output", "csv"]) == 0
    found = [line.split(",")[:2] for line in capsys.readouterr().out.splitlines()[1:]]
    assert found == [["north", "1"], ["north", "2"], ["south", "1"], ["south", "2"]]
    keys.write_text("north,1,2\n")
    assert main([*arguments, "--keys", str(keys)]) == 2
    assert "has 3 cells, but --by names 2 columns" in capsys.readouterr().err
    assert main([*arguments[:4], "--rho", "0.1"]) == 2
    assert "pass delta" in capsys.readouterr().err
