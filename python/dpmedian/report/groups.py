"""The page about groups: the releases of all groups, and their common guarantee and cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from string import ascii_lowercase
from typing import Any

from dpmedian.accounting import Budget, PrivacyCost
from dpmedian.report.curves import chart, epsilon_curve
from dpmedian.report.history import history
from dpmedian.report.parts import (
    alarm,
    checks,
    delta_of,
    document,
    head,
    note_for_readers,
    paragraphs,
    section,
    spent,
    stages,
    tiles,
)
from dpmedian.report.picture import map_of
from dpmedian.report.words import guarantee, limits, who
from dpmedian.spherical import kilometers
from dpmedian.verification.reading import cost_of, plan_of
from dpmedian.verification.trace import traces_of_groups

__all__ = ["page_of_groups"]

# The largest numbers of groups and of coordinates that are shown. The record on the page has all groups and all
# coordinates.
_GROUPS, _COORDINATES = 200, 6

_CIRCLES = (
    "A shaded circle around a dot shows the predicted error, if it is larger than the dot. A circle that is much "
    "larger than the others extends beyond the map. The names are from the first key column. Each name is printed "
    "once, and names that would overlap are left out."
)


def page_of_groups(record: Mapping[str, Any], ledger: Mapping[str, Any] | None = None) -> str:
    """Return the page about the releases of groups, or about a plan for groups."""
    cost = cost_of(record["cost"])
    title = record.get("name") or f"Private geometric medians of {_how_many(record)}"
    pairs = epsilon_curve(cost, delta_of(cost))
    most = record["max_groups_per_unit"]
    together = (
        f"The promise holds for all groups together: each {cost.unit} counts in at most {most} "
        f"{'group' if most == 1 else 'groups'}."
    )
    delta = delta_of(cost)
    return document(
        title,
        [
            head(title, record, "differentially private geometric medians"),
            alarm(record),
            _facts(record, cost),
            section("What was released", _released(record)),
            section("Who is protected", paragraphs([*who(cost, delta), together])),
            section("What it promises", paragraphs(guarantee(cost, delta))),
            section("What it does not promise", paragraphs(limits())),
            "" if pairs is None else section("Epsilon and delta", f'<div class="charts">{chart(pairs)}</div>'),
            *_plans(record),
            _traces(record),
            "" if ledger is None else section("The budget of the ledger", history(ledger, record)),
            section("How to check this", checks(record, ledger is not None)),
        ],
    )


def _how_many(record: Mapping[str, Any]) -> str:
    if record["keys"] is not None:
        return f"{len(record['keys']):,} groups"
    return f"{len(record['groups']):,} groups" if "groups" in record else "groups"


def _facts(record: Mapping[str, Any], cost: PrivacyCost) -> str:
    minimum = "" if record["minimum"] is None else f"; no point if the noisy size is below {record['minimum']}"
    facts = [
        ("Privacy budget", str(Budget.of(**record["budget"])), f"all groups together; rho = {cost.rho:.4g}"),
        ("Protects", f"one {cost.unit}", cost.protection.relation.changed),
        ("Groups", _how_many(record).removesuffix(" groups"), f"{_known(record)}{minimum}"),
        (f"One {cost.unit} counts in", f"at most {record['max_groups_per_unit']}", "of the groups"),
    ]
    return tiles(facts)


def _known(record: Mapping[str, Any]) -> str:
    if record["keys"] is not None:
        return "their names are public"
    return "groups that are large enough to be shown; whether there are other groups is private"


def _released(record: Mapping[str, Any]) -> str:
    if record["outcome"] == "planned":
        return paragraphs(["Nothing yet: this is a plan, made from public parameters alone."])
    columns, sphere = record["columns"][:_COORDINATES], record["plans"][0]["geometry"] == "sphere"
    error = "Predicted error, km" if sphere else "Predicted error"
    names = (*record["by"], *columns, error, "Size, noisy")
    keys = len(record["by"])
    kinds = [""] * keys + [" class=number"] * (len(names) - keys)
    top = "".join(f"<th{kind}>{escape(name)}</th>" for kind, name in zip(kinds, names, strict=True))
    marks = _marks(record["groups"])
    rows = "".join(_row(group, record["by"], columns, error, sphere, marks) for group in record["groups"][:_GROUPS])
    more = len(record["groups"]) - _GROUPS
    rest = f'<p class="soft">{more:,} more groups are in the record below</p>' if more > 0 else ""
    units = "Longitude and latitude are in degrees." if sphere else "All lengths are in the unit of the columns."
    if (scales := record["plans"][0].get("scales")) is not None:
        listed = ", ".join(f"{scale:g}" for scale in scales)
        units = f"Points are in the units of the columns, and distances in units of their public scales, {listed}."
    text = [
        "For each group, this is a typical point: up to noise, the point with the smallest sum of distances to all "
        f"records of the group. {units} The distance between the point and the exact median of the group's records is "
        "at most the predicted error in about 19 of 20 groups whose records form one cluster. This is true for fewer "
        "of the groups whose records form several clusters, or that have a note.",
        "The interval below a number is a confidence interval. Suppose that the records of the group are an "
        "independent sample of a population. Then the interval contains this coordinate of the population's median "
        "with a confidence of about 95 %. So if there are many groups, the population's median lies outside of the "
        "interval in about one of twenty groups.",
    ]
    if any(group["outcome"] != "released" for group in record["groups"]):
        text.append("The run of a group without a point failed. A failure is an output, too, so its cost is spent.")
    if record["keys"] is None:
        text.append(
            "The groups were not listed in advance. Every other group has few records or none. This page does not "
            "show which of the two, and this is intended."
        )
    table = f'<table class="stack"><thead><tr>{top}</tr></thead><tbody>{rows}</tbody></table>'
    picture = map_of(record["groups"], record["columns"], sphere, scales)
    circles = "" if not picture else f'<p class="soft">{_CIRCLES}</p>'
    return f'{paragraphs(text)}{_noted(record["groups"], marks)}{picture}{circles}<div class="wide">{table}</div>{rest}'


def _marks(groups: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return a letter for each note of the groups, the most frequent note first. If there are more notes than letters,
    the other notes have numbers.
    """
    counted = Counter(note for group in groups for note in dict.fromkeys(group.get("notes", ())))
    return {
        note: ascii_lowercase[place] if place < len(ascii_lowercase) else str(place)
        for place, (note, _) in enumerate(counted.most_common())
    }


def _noted(groups: Sequence[Mapping[str, Any]], marks: Mapping[str, str]) -> str:
    """Return the notes, each with its letter and the number of groups that have the note."""
    listed = "".join(
        f"<li><b>{mark}</b>: {note_for_readers(note)} (note of "
        f"{sum(note in group.get('notes', ()) for group in groups):,} of {len(groups):,} groups)</li>"
        for note, mark in marks.items()
    )
    return f"<p>Notes, each with its letter in the table:</p><ul>{listed}</ul>" if listed else ""


def _row(
    group: Mapping[str, Any],
    by: list[str],
    columns: list[str],
    error: str,
    sphere: bool,
    marks: Mapping[str, str],
) -> str:
    size = "" if group["size"] is None else f"{group['size']:,}"
    parts = group["key"] if isinstance(group["key"], list) else [group["key"]]
    name = "".join(
        f'<th data-name="{escape(column)}">{escape(str(part))}</th>' for column, part in zip(by, parts, strict=True)
    )
    if group["outcome"] != "released":
        text = f'<td colspan="{len(columns) + 1}">no point: {escape(group["message"])}</td>'
        return f'<tr>{name}{text}<td class="number" data-name="size">{size}</td></tr>'
    radius = group["error_radius"]
    shown = "" if radius is None else f"{kilometers(radius) if sphere else radius:.3g}"
    if group.get("notes"):
        shown += f"<small>note {', '.join(sorted(marks[note] for note in set(group['notes'])))}</small>"
    intervals = group["intervals"] or [None] * len(group["point"])
    cells = [
        f"{value:.6g}" + ("" if ends is None else f"<small>{ends[0]:.6g} to {ends[1]:.6g}</small>")
        for value, ends in list(zip(group["point"], intervals, strict=True))[: len(columns)]
    ]
    text = "".join(
        f'<td class="number" data-name="{escape(column)}">{cell}</td>'
        for column, cell in zip((*columns, error, "size"), (*cells, shown, size), strict=True)
    )
    return f"<tr>{name}{text}</tr>"


def _traces(record: Mapping[str, Any]) -> str:
    """Return the queries about each group, if the record contains them."""
    groups = record.get("groups", [])
    traces = traces_of_groups(record, len(groups))
    if not traces:
        return ""
    rows = [
        (_text(group["key"]), str(len(trace)), f"{trace.rho:.3g}") for group, trace in zip(groups, traces, strict=True)
    ]
    most = max(trace.rho for trace in traces)
    return spent(("group", "queries", "rho"), rows, f"No group spent more than rho = {most:.4g}.")


def _text(key: object) -> str:
    return ", ".join(map(str, key)) if isinstance(key, list) else str(key)


def _plans(record: Mapping[str, Any]) -> list[str]:
    """Return the queries about every group. Groups with different guesses of their size have different noise."""
    found = []
    for index, plan in enumerate(record["plans"]):
        assigned = zip(record["keys"] or (), record["plan_of_key"] or (), strict=True)
        keys = [_text(key) for key, own in assigned if own == index]
        whom = "every group" if len(record["plans"]) == 1 else ", ".join(keys[:4]) + (", ..." if len(keys) > 4 else "")
        found.append(section(f"Queries to the data of {whom}", stages(plan_of(plan), record["outcome"] == "planned")))
    return found
