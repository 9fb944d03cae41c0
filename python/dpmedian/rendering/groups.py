"""Plans and releases of groups as text, HTML and JSON."""

from __future__ import annotations

from collections import Counter
from typing import Any

from dpmedian._core import __version__
from dpmedian.digests import sealed
from dpmedian.groups.plan import GroupsPlan
from dpmedian.groups.releases import Releases
from dpmedian.methods.contract import Prediction
from dpmedian.planning.plan import Plan
from dpmedian.recorded import View, as_record, as_view
from dpmedian.release import Release, ReleaseFailed
from dpmedian.rendering.cost import cost_dict
from dpmedian.rendering.plan import plan_table, probability_text
from dpmedian.rendering.record import FORMAT, plan_record
from dpmedian.rendering.table import html_block, titled
from dpmedian.rendering.trace import groups_trace_entry
from dpmedian.sources.key_columns import key_parts, key_text
from dpmedian.spherical import kilometers

__all__ = ["NOTHING_SHOWN", "groups_plan_record", "groups_plan_view", "releases_record", "releases_view"]

# The largest number of rows that are printed (`to_frame` has all rows), and the largest number of groups that a plan
# names.
_MOST, _NAMED = 40, 3
NOTHING_SHOWN = (
    "no group is shown, because no noisy size reached the threshold; this is an output like any other, and its cost is "
    "spent"
)
# The largest number of different notes that are printed below the table of groups, most frequent notes first.
_NOTES = 3


def _about(plan: GroupsPlan) -> list[str]:
    most = plan.max_groups_per_unit
    contributes = f"to at most {most} of them" if most > 1 else "to one of them"
    facts = [
        f"cost of all groups together: {plan.cost}; each {plan.cost.unit} contributes {contributes}",
    ]
    if plan.selection is not None:
        half, most_often = (plan.selection.size_found(share) for share in (0.5, 0.99))
        facts.append(
            f"keys: not listed; a group is shown if its noisy size is at least {plan.selection.threshold}, which "
            f"happens for half of the groups with {half} records and for 99 % of the groups with {most_often} records"
        )
    if plan.minimum is not None:
        facts.append(f"minimum: a group whose noisy size is below {plan.minimum} has no point")
    return facts


def _planned_rows(plan: GroupsPlan) -> list[tuple[str, ...]]:
    """Return one row for each plan. Groups with the same guess of their size share a plan."""
    names: dict[Plan, list[str]] = {own: [] for own in plan.plans}
    for key, own in zip(plan.keys or (), plan.plans, strict=False):
        names[own].append(key_text(key))
    return [(_named(names[own]), *_expected(own)) for own in list(names)[:_MOST]]


def _named(names: list[str]) -> str:
    """Return the names of the groups of a plan, or the first few names if there are many."""
    if not names:
        return "every group"
    return "; ".join(names[:_NAMED]) + (f"; ... ({len(names)} groups)" if len(names) > _NAMED else "")


def _expected(plan: Plan) -> tuple[str, str, str]:
    """Return the guess of the size, the predicted error and the predicted failure. Without a guess, these are the
    values of an example.
    """
    if plan.n is not None:
        return str(plan.n), _error_text(plan.prediction), probability_text(plan.prediction.failure)
    if not plan.calibrated.examples:
        return "none", "", ""
    size, predicted = plan.calibrated.examples[0]
    return f"none; if {size}", _error_text(predicted), probability_text(predicted.failure)


def _error_text(predicted: Prediction) -> str:
    return "" if predicted.relative_error is None else f"{predicted.relative_error:.2g} core radii"


_PLAN_HEAD = ("groups", "guess", "predicted error", "failure")


def _choice_rows(plan: GroupsPlan) -> list[tuple[str, ...]]:
    rows = []
    for most, other in plan.contribution_choices().items():
        mark = " (this plan)" if most == plan.max_groups_per_unit else ""
        _, error, failure = _expected(other.plans[0])
        threshold = () if other.selection is None else (str(other.selection.threshold),)
        rows.append((f"{most}{mark}", f"{other.plans[0].cost.rho:.3g}", error, failure, *threshold))
    return rows


def _choice_head(plan: GroupsPlan) -> tuple[str, ...]:
    threshold = () if plan.selection is None else ("threshold",)
    return (f"groups per {plan.cost.unit}", "rho of one group", "predicted error", "failure", *threshold)


_CHOICE_NOTE = (
    "max_groups_per_unit: the largest number of groups to which one {unit} contributes. These groups share the "
    "budget. If a {unit} has rows in more groups, the groups with the most of its rows count. A larger number adds "
    "noise to every group, but makes groups larger if rows of one {unit} are often in several groups."
)


def _plan_title(plan: GroupsPlan) -> str:
    return f"Plan for {_how_many(plan)}: {plan.method}, {plan.budget}"


def _how_many(plan: GroupsPlan) -> str:
    return "groups whose keys are not listed" if plan.keys is None else f"{len(plan.keys)} groups"


@as_view.register
def groups_plan_view(plan: GroupsPlan) -> View:
    """Show the groups, their common cost, the effect of other numbers of groups per unit, and the plan of one group."""
    facts = [*_left_out(len(set(plan.plans))), *_about(plan)]
    title, rows = [_plan_title(plan)], _planned_rows(plan)
    parts = [titled(title, _PLAN_HEAD, rows, facts, yielding=(0,), numbers=(1, 2, 3))]
    choices = _choice_rows(plan)
    if len(choices) > 1:
        notes, head = [_CHOICE_NOTE.format(unit=plan.cost.unit)], _choice_head(plan)
        parts.append(titled([], head, choices, notes, numbers=(1, 2, 3, 4), aligned=True, facts_first=True))
    first, one = "every group" if plan.keys is None else key_text(plan.keys[0]), plan_table(plan.plans[0])
    text = "\n\n".join([*(part.text for part in parts), f"For {first}:\n{one.text}"])
    return View(text, html_block(*(part.html for part in [*parts, one])))


@as_record.register
def groups_plan_record(plan: GroupsPlan) -> dict[str, Any]:
    """Return the part of an audit record that was fixed before the data were read: the different plans, and which
    of them each group has.
    """
    different = list(dict.fromkeys(plan.plans))
    place = {own: index for index, own in enumerate(different)}
    content = {
        "format": FORMAT,
        "outcome": "planned",
        "version": __version__,
        "cost": cost_dict(plan.cost),
        "budget": plan.budget.to_dict(),
        "unit": plan.cost.unit,
        "neighbours": plan.cost.neighbours,
        "max_groups_per_unit": plan.max_groups_per_unit,
        "minimum": plan.minimum,
        "keys": None if plan.keys is None else [_plain(key) for key in plan.keys],
        "plans": [_without_digest(plan_record(own)) for own in different],
        "plan_of_key": None if plan.keys is None else [place[own] for own in plan.plans],
    }
    return sealed(content)


def _without_digest(record: dict[str, Any]) -> dict[str, Any]:
    """Return a plan without its own digest, for another record that contains it, because the digest of that record
    covers the plan.
    """
    return {name: value for name, value in record.items() if name != "digest"}


def _plain(key: object) -> object:
    """Return a key as JSON: a text, a number, or a list of texts and numbers."""
    if isinstance(key, tuple):
        return [_plain(part) for part in key]
    return key if isinstance(key, (str, int, float, bool)) else str(key)


def _head(releases: Releases) -> tuple[str, ...]:
    error = "error, km" if releases.plan.parameters.geometry == "sphere" else "error radius"
    return (*releases.key_columns, "point", "95 % interval", error, "size", "outcome")


def _rows(releases: Releases) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for key in list(releases)[:_MOST]:
        value, names = releases[key], tuple(map(str, key_parts(key)))
        size = "" if value.size is None else str(value.size)
        if isinstance(value, Release):
            shown = value.point.tolist()
            point = ", ".join(f"{x:.6g}" for x in shown[:4]) + (", ..." if len(shown) > 4 else "")
            error = "" if value.error_radius is None else _length(value.error_radius)
            if value.error_radius is not None and value.plan.parameters.geometry == "sphere":
                error = _length(kilometers(value.error_radius))
            rows.append((*names, point, _interval(value), error, size, "released"))
        else:
            rows.append((*names, "", "", "", size, f"failed: {value.message}"))
    return rows


def _length(value: float) -> str:
    """A number with two digits, or with all digits before the decimal point."""
    return f"{value:.0f}" if value >= 100.0 else f"{value:.2g}"


def _interval(release: Release) -> str:
    """Return half of the length of the interval of each of the first four coordinates."""
    region = release.shown_region
    if region is None:
        return ""
    shown = [_length((high - low) / 2.0) for low, high in region.intervals[:4].tolist()]
    return "+- " + ", ".join(shown) + (", ..." if len(region.intervals) > 4 else "")


def _left_out(count: int) -> list[str]:
    return [f"{count - _MOST} more groups are not printed; to_frame() has all groups"] if count > _MOST else []


def _facts(releases: Releases) -> list[str]:
    which = "groups" if releases.plan.keys is not None else "groups that are shown"
    facts = [*_left_out(len(releases)), f"{len(releases.released)} of {len(releases)} {which} have a point"]
    if not len(releases):
        facts = [NOTHING_SHOWN]
    facts += _about(releases.plan)
    if releases.seeded:
        facts.append("seeded: the noise is predictable, so these releases protect nobody")
    return facts + _common_notes(releases)


def _common_notes(releases: Releases) -> list[str]:
    """Return the most frequent notes, each with the number of groups that have it. The record of a group has all notes
    of the group.
    """
    noted = Counter(note for release in releases.released.values() for note in dict.fromkeys(release.notes))
    return [f"note of {count} of {len(releases)} groups: {note}" for note, count in noted.most_common(_NOTES)]


@as_view.register
def releases_view(releases: Releases) -> View:
    """Show one row for each group, up to forty, and the cost of all groups together."""
    head, names = _head(releases), ", ".join(releases.columns[:4])
    title = f"Releases of {len(releases)} groups" + ("" if releases.name is None else f": {releases.name}")
    last = len(head) - 1
    table = titled(
        [f"{title} (point: {names})"],
        head,
        _rows(releases),
        _facts(releases),
        width=100,
        yielding=(last,),
        numbers=(last - 2, last - 1),
        aligned=True,
    )
    return View(table.text, html_block(table.html))


@as_record.register
def releases_record(releases: Releases) -> dict[str, Any]:
    """Return one object with the plan of all groups and a list `groups`, in which each group has its key."""
    content = {
        **groups_plan_record(releases.plan),
        "outcome": "released",
        "date": releases.date,
        "name": releases.name,
        "by": list(releases.key_columns),
        "seeded": releases.seeded,
        "columns": list(releases.columns),
        "groups": [_group(key, releases[key]) for key in releases],
        "trace": groups_trace_entry([releases[key].trace for key in releases]),
    }
    return sealed(content)


def _group(key: object, value: Release | ReleaseFailed) -> dict[str, Any]:
    own: dict[str, Any] = {"key": _plain(key), "date": value.date, "size": value.size}
    if isinstance(value, Release):
        region = value.shown_region
        return {
            **own,
            "outcome": "released",
            "point": value.point.tolist(),
            "scale": value.scale,
            "error_radius": value.error_radius,
            "intervals": None if region is None else region.intervals.tolist(),
            "notes": list(value.notes),
        }
    return {**own, "outcome": "failed", "message": value.message}
