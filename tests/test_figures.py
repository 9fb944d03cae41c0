"""Measured figures in the prose of README and documentation agree with the tables that a command has written."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if not {"tables", "_build"} & set(page.parts)),
]
# Which figures in prose are measured: excesses in scientific notation, and seconds. 1e-6 is always a delta here.
MEASURED = re.compile(r"\b(?!1e-6)\d+(?:\.\d+)?e[-+]?\d+|\b\d+(?:\.\d+)?(?= seconds)")


def prose(page: Path) -> str:
    """Return the text of a page without code blocks, on one line."""
    return " ".join(re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL).split())


def rows(table: str, title: str) -> list[dict[str, str]]:
    """Return the rows of the first table under a line that begins with `title`, by the names of its columns."""
    lines = (ROOT / "docs" / "tables" / table).read_text("utf-8").splitlines()
    start = next(index for index, line in enumerate(lines) if line.lstrip("# ").startswith(title))
    first = next(index for index in range(start, len(lines)) if lines[index].startswith("|"))
    cells = []
    for line in lines[first:]:
        if not line.startswith("|"):
            break
        cells.append([cell.strip(" *") for cell in line.strip("|").split("|")])
    header = [name if name not in cells[0][:place] else f"{name} again" for place, name in enumerate(cells[0])]
    return [dict(zip(header, row, strict=True)) for row in cells[2:]]


def releases(method: str, radius: str) -> dict[str, str]:
    whole = rows("speed.md", "Whole releases")
    return next(row for row in whole if (row["method"], row["radius"]) == (method, radius))


def of_the_paper() -> list[str]:
    """Return the excesses and seconds of the authors' code at the two radii, and those of loc_dpgd and the default
    method.
    """
    near, far = releases("loc_dpgd", "1e+03"), releases("loc_dpgd", "1e+10")
    default = next(row for row in rows("gauntlet.md", "The paper's data") if row["data"] == "epsilon 2.0")
    excess, again = "excess", "excess again"
    found = [near[again], far[again], near["authors, s"], far["authors, s"], near[excess]]
    assert agree(found[-1], releases("loc_dpgd", "1e+10")[excess], digits=1), "the sentence says that both are the same"
    return [*found, default["median excess [95 %]"].split()[0]]


def federated(title: str) -> dict[str, dict[str, float]]:
    """Return the mean accuracy of every rule under every attack. Rules that refuse are left out."""
    found = {}
    for row in rows("federated.md", title):
        rule = row.pop("rule").replace(", the best without attack", "")
        if "refused" not in row.values():
            found[rule] = {attack: float(value.split()[0]) for attack, value in row.items()}
    return found


STEP, MEDIAN, CLIPPED = "private step", "private median", "DP-FedAvg, best norm of each column"
REVERSED, LONG, WORST = "reversed mean", "reversed mean x 10", "reversed mean, median length"


def of_the_mlp() -> list[str]:
    """Return accuracies of the step and of DP-FedAvg: without attack, under long updates, and with a smaller budget."""
    found, others = federated("MLP"), rows("federated.md", "Other budgets")
    other = {(row["clients"], row["epsilon"]): row["no attack"] for row in others if row["rule"] == STEP}
    reached = [found[STEP]["no attack"], found[CLIPPED]["no attack"], found[STEP]["flip x 10"], found[STEP][LONG]]
    return [*map(str, reached), other["1,000", "2"], other["200", "8"]]


def of_the_convolutional_network() -> list[str]:
    """Return how far the step is behind DP-FedAvg under the reversed mean, in percentage points."""
    found = federated("Convolutional network")
    return [f"{100.0 * (found[CLIPPED][REVERSED] - found[STEP][REVERSED]):.1f}"]


def under_the_worst_attack() -> list[str]:
    mlp, logistic = federated("MLP"), federated("Logistic regression")
    few = [logistic[rule][WORST] for rule in (STEP, MEDIAN, CLIPPED)]
    return list(map(str, [mlp[STEP][WORST], mlp[CLIPPED][WORST], *few]))


# A page, a sentence whose groups are figures, and the values of these figures in the tables.
CLAIMS: list[tuple[str, str, Callable[[], list[str]]]] = [
    (
        "docs/related-work.md",
        r"excesses of the authors' LocDPGD was (\S+) at R = 10\^3 and (\S+) at R = 10\^10, after (\S+) and "
        r"(\S+) seconds\. `loc_dpgd` of this package has about (\S+) at both radii, and the default method, which "
        r"needs no R, has (\S+) in",
        of_the_paper,
    ),
    (
        "docs/how-to/flower.md",
        r"the private step ends at an accuracy of (\S+) without attack, and DP-FedAvg with its best norm at (\S+)\. "
        r"Under every attack the step is ahead of DP-FedAvg with every norm\. Under the two attacks with updates that "
        r"are ten times too long, the step ends at (\S+) and (\S+)\. With epsilon = 2 in place of 8 the step still "
        r"reaches (\S+), and (\S+) with 200 clients\.",
        of_the_mlp,
    ),
    (
        "docs/how-to/flower.md",
        r"under all attacks but one, the reversed mean with its own length, where it is (\S+) points behind",
        of_the_convolutional_network,
    ),
    (
        "docs/how-to/flower.md",
        r"the step falls to (\S+) on the network of 33,738 parameters, and DP-FedAvg to (\S+)\. .*: the step falls to "
        r"(\S+) and the private median to (\S+)\. DP-FedAvg with the best norm reaches (\S+)\. Under",
        under_the_worst_attack,
    ),
]


def agree(written: str, measured: str, digits: int | None = None) -> bool:
    """Return whether the measured number, rounded to the significant digits of the written one, is the written one."""
    if digits is None:
        mantissa = re.sub(r"e.*", "", written).replace(".", "").lstrip("0")
        digits = len(mantissa if "e" in written or "." in written else mantissa.rstrip("0")) or 1
    return float(f"{float(measured):.{digits - 1}e}") == float(f"{float(written):.{digits - 1}e}")


@pytest.mark.parametrize(("page", "sentence", "tables"), CLAIMS)
def test_figures_in_prose_are_those_of_the_tables(page, sentence, tables):
    found = re.search(sentence, prose(ROOT / page))
    assert found, f"the sentence is no longer in {page}: change the claim in this test together with it"
    for written, measured in zip(found.groups(), tables(), strict=True):
        assert agree(written, measured), f"{page} says {written}, the table {measured}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_measured_figure_in_prose_is_compared_with_a_table(page):
    text = re.sub(r"`[^`]*`", "", prose(page))
    for name, sentence, _ in CLAIMS:
        if page == ROOT / name and (found := re.search(sentence, prose(page))):
            text = text.replace(re.sub(r"`[^`]*`", "", found.group()), "")
    assert not MEASURED.findall(text), "add the sentence to the claims of this test"


def test_figures_agree_to_the_digits_that_are_written():
    assert agree("1.5e-5", "1.53e-05")
    assert agree("30", "29.8")
    assert agree("4e-5", "3.6e-05")
    assert not agree("1.9e-2", "2.1e-02")
    assert not agree("40", "29.8")


def test_the_best_private_locations_are_those_that_the_page_names():
    """Means are closer to the center in two dimensions. This package is closer with outliers, heavy tails, unknown
    places.
    """
    distances = {
        row.pop("data"): {name: row[name] for name in row} for row in rows("peers.md", "Distance to the center")
    }
    plane = distances["Gauss at the origin, n = 50000, d = 2"]
    for peer in ("COINPRESS", "Huang-Liang-Yi", "GDP Huber", "clipped mean"):
        assert float(plane[peer]) < min(float(plane["dpmedian"]), float(plane["exact median"]))
    for data in ("10 % at 50", "30 % at 50", "Cauchy", "Gauss, 2e4 away", "10 % at 50, 2e4 away"):
        row = distances[data]
        others = [float(value) for name, value in row.items() if name != "exact median" and value != "failed"]
        assert float(row["dpmedian"]) == min(others), data
        assert float(row["dpmedian"]) < 1.1 * float(row["exact median"]), data
    outliers = distances["10 % at 50"]
    assert float(outliers["GDP Huber"]) < 1.25 * float(outliers["dpmedian"])


def test_the_theorem_holds_in_its_table():
    """The theorem allows 5 % of the runs above the bound."""
    for title in ("A normal cloud", "The same with"):
        for row in rows("theorem.md", title):
            above, runs = row["above"].split(" of ")
            assert int(above) <= 0.05 * int(runs)


@pytest.mark.parametrize("title", ["Logistic regression", "MLP", "Convolutional network"])
def test_the_private_step_is_as_accurate_as_the_best_clipping_norm(title):
    """Without attack the step is at most two points below DP-FedAvg, whose norm is the best of five on the test set."""
    found = federated(title)
    assert found[STEP]["no attack"] > found[CLIPPED]["no attack"] - 0.02


@pytest.mark.parametrize(
    ("title", "behind"),
    [("MLP", set()), ("Convolutional network", {REVERSED}), ("Logistic regression", {REVERSED, WORST})],
)
def test_the_private_step_is_ahead_of_the_best_clipping_norm_except_where_the_page_says_so(title, behind):
    found = federated(title)
    assert {"flip x 10", LONG, REVERSED, "a little", "labels", WORST} < set(found[STEP])
    assert {attack for attack, accuracy in found[STEP].items() if accuracy < found[CLIPPED][attack]} == behind
    assert found[STEP][REVERSED] > found[CLIPPED][REVERSED] - 0.01


def test_the_private_step_is_ahead_of_the_best_clipping_norm_with_many_clients():
    found = federated("MLP with many clients")
    assert {"flip x 10", LONG, "a little"} < set(found[STEP])
    assert all(accuracy > found[CLIPPED][attack] for attack, accuracy in found[STEP].items())
