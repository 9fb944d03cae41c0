"""Groups as text, HTML and JSON: their plan, and what was released for each."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from dpmedian._core import __version__
from dpmedian.release import Release, ReleaseFailed
from dpmedian.rendering.cost import cost_dict
from dpmedian.rendering.plan import plan_tables, probability_text
from dpmedian.rendering.record import FORMAT, plan_record
from dpmedian.rendering.release import region_of
from dpmedian.rendering.table import html_block, html_table, text_table
from dpmedian.sources.key_columns import key_parts, key_text

if TYPE_CHECKING:
    from dpmedian.groups.plan import GroupsPlan
    from dpmedian.groups.releases import Releases

__all__ = [
    "groups_plan_html",
    "groups_plan_record",
    "groups_plan_text",
    "releases_html",
    "releases_record",
    "releases_text",
]

_WIDTH = 80
# More rows are left out of what is printed; `to_frame` has all of them.
_MOST = 40


def _about(plan: GroupsPlan) -> list[str]:
    most = plan.max_groups_per_unit
    contributes = f"to at most {most} of them" if most > 1 else "to one of them"
    facts = [
        f"cost of all groups together: {plan.cost}; each {plan.cost.unit} contributes {contributes}",
    ]
    if plan.selection is not None:
        half, most_often = (plan.selection.size_found(share) for share in (0.5, 0.99))
        facts.append(
            f"keys: nobody has listed them; a group is shown if its noisy size is {plan.selection.threshold} or more, "
            f"which half of the groups of {half} reach, and 99 % of those of {most_often}"
        )
    if plan.minimum is not None:
        facts.append(f"minimum: a group whose noisy size is below {plan.minimum} has no point")
    return facts


def _planned_rows(plan: GroupsPlan) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    keys = ["every group"] if plan.keys is None else [key_text(key) for key in plan.keys]
    for key, own in list(zip(keys, plan.plans, strict=True))[:_MOST]:
        predicted = own.prediction
        error = "" if predicted.relative_error is None else f"{predicted.relative_error:.2g} spreads"
        guess = "none" if own.n is None else str(own.n)
        rows.append((key, guess, error, "" if own.n is None else probability_text(predicted.failure)))
    return rows


_PLAN_HEAD = ("group", "guess", "predicted error", "failure")


def groups_plan_text(plan: GroupsPlan) -> str:
    """The groups, what they cost together, and the plan of one of them."""
    table = text_table(_PLAN_HEAD, _planned_rows(plan), _WIDTH, framed=True, note=_left_out(len(plan.plans)))
    facts = [textwrap.fill(fact, _WIDTH, subsequent_indent="  ") for fact in _about(plan)]
    first = "every group" if plan.keys is None else key_text(plan.keys[0])
    return "\n".join([_plan_title(plan), table, *facts, "", f"For {first}:", str(plan.plans[0])])


def _plan_title(plan: GroupsPlan) -> str:
    return f"Plan for {_how_many(plan)}: {plan.method}, {plan.budget}"


def _how_many(plan: GroupsPlan) -> str:
    return "groups that nobody has listed" if plan.keys is None else f"{len(plan.keys)} groups"


def groups_plan_html(plan: GroupsPlan) -> str:
    """The same for a notebook."""
    table = html_table(
        _PLAN_HEAD, _planned_rows(plan), caption=[_plan_title(plan)], notes=_about(plan), right=(1, 2, 3)
    )
    return html_block(table, plan_tables(plan.plans[0]))


def groups_plan_record(plan: GroupsPlan) -> dict[str, Any]:
    """What was decided before the data were looked at: the plans that differ, and which group has which."""
    different = list(dict.fromkeys(plan.plans))
    place = {own: index for index, own in enumerate(different)}
    return {
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
        "plans": [plan_record(own, __version__) for own in different],
        "plan_of_key": None if plan.keys is None else [place[own] for own in plan.plans],
    }


def _plain(key: object) -> object:
    """A key as JSON holds it: text or a number, or a list of these."""
    if isinstance(key, tuple):
        return [_plain(part) for part in key]
    return key if isinstance(key, (str, int, float, bool)) else str(key)


_HEAD = ("point", "error radius", "size", "outcome")


def _rows(releases: Releases) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for key in list(releases)[:_MOST]:
        value, names = releases[key], tuple(map(str, key_parts(key)))
        size = "" if value.size is None else str(value.size)
        if isinstance(value, Release):
            shown = value.point.tolist()
            point = ", ".join(f"{x:.6g}" for x in shown[:4]) + (", ..." if len(shown) > 4 else "")
            error = "" if value.error_radius is None else f"{value.error_radius:.2g}"
            rows.append((*names, point, error, size, "released"))
        else:
            rows.append((*names, "", "", size, f"failed: {value.message}"))
    return rows


def _left_out(count: int) -> str | None:
    return None if count <= _MOST else f"{count - _MOST} more groups are left out here"


def _facts(releases: Releases) -> list[str]:
    told = "groups" if releases.plan.keys is not None else "groups that are shown"
    facts = [f"{len(releases.released)} of {len(releases)} {told} have a point", *_about(releases.plan)]
    if releases.seeded:
        facts.append("seeded: the noise is predictable, so these releases protect nobody")
    return facts


def releases_text(releases: Releases) -> str:
    """One row for each group, up to forty, and the cost of all."""
    rows, note = _rows(releases), _left_out(len(releases))
    head, last = (*releases.key_columns, *_HEAD), len(releases.key_columns) + 3
    right = (last - 2, last - 1)
    table = text_table(head, rows, 100, yielding=(last,), overflow="wrap", right=right, framed=True, note=note)
    facts = [textwrap.fill(fact, 100, subsequent_indent="  ") for fact in _facts(releases)]
    names = ", ".join(releases.columns[:4])
    title = f"Releases of {len(releases)} groups" + ("" if releases.name is None else f": {releases.name}")
    return "\n".join([f"{title} (point: {names})", table, *facts])


def releases_html(releases: Releases) -> str:
    """The same for a notebook."""
    notes = [*_facts(releases), *filter(None, [_left_out(len(releases))])]
    caption = [f"Private geometric medians of {len(releases)} groups", f"point: {', '.join(releases.columns[:4])}"]
    head, keys = (*releases.key_columns, *_HEAD), len(releases.key_columns)
    return html_block(html_table(head, _rows(releases), caption=caption, notes=notes, right=(keys + 1, keys + 2)))


def releases_record(releases: Releases) -> dict[str, Any]:
    """One object with a list `groups`, each with its key, and the plan of all."""
    return {
        **groups_plan_record(releases.plan),
        "outcome": "released",
        "date": releases.date,
        "name": releases.name,
        "by": list(releases.key_columns),
        "seeded": releases.seeded,
        "columns": list(releases.columns),
        "groups": [_group(key, releases[key]) for key in releases],
    }


def _group(key: object, value: Release | ReleaseFailed) -> dict[str, Any]:
    own: dict[str, Any] = {"key": _plain(key), "date": value.date, "size": value.size}
    if isinstance(value, Release):
        region = region_of(value)
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
