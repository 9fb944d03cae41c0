"""The page of groups: what was released for each, and what all of them promise and cost together."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from dpmedian.accounting import Budget, PrivacyCost
from dpmedian.report.curves import chart, epsilon_curve
from dpmedian.report.history import history
from dpmedian.report.parts import alarm, checks, delta_of, document, head, paragraphs, section, stages, tiles
from dpmedian.report.words import guarantee
from dpmedian.verification.reading import cost_of, plan_of

__all__ = ["page_of_groups"]

# So many groups and coordinates are shown; the record on the page has all of them.
_GROUPS, _COORDINATES = 200, 6


def page_of_groups(record: Mapping[str, Any], ledger: Mapping[str, Any] | None = None) -> str:
    """The page of the releases of groups, or of a plan for them."""
    cost = cost_of(record["cost"])
    title = record.get("name") or f"Private geometric medians of {_how_many(record)}"
    pairs = epsilon_curve(cost, delta_of(cost))
    together = (
        f"The promise holds for all groups together: one {cost.unit} contributes to at most "
        f"{record['max_groups_per_unit']} of them."
    )
    return document(
        title,
        [
            head(title, record, "differentially private geometric medians"),
            alarm(record),
            _facts(record, cost),
            section("What was released", _released(record)),
            section("What it promises", paragraphs([*guarantee(cost, delta_of(cost)), together])),
            "" if pairs is None else section("How much", f'<div class="charts">{chart(pairs)}</div>'),
            *_plans(record),
            "" if ledger is None else section("The budget, and what else was spent of it", history(ledger, record)),
            section("How to check this", checks(record)),
        ],
    )


def _how_many(record: Mapping[str, Any]) -> str:
    if record["keys"] is not None:
        return f"{len(record['keys']):,} groups"
    return f"{len(record['groups']):,} groups" if "groups" in record else "groups"


def _facts(record: Mapping[str, Any], cost: PrivacyCost) -> str:
    minimum = "" if record["minimum"] is None else f"; none where fewer than {record['minimum']} are seen"
    facts = [
        ("Privacy budget", str(Budget.of(**record["budget"])), f"all groups together; rho = {cost.rho:.4g}"),
        ("Protects", f"one {cost.unit}", "added or removed, with everything it contributes"),
        ("Groups", _how_many(record).removesuffix(" groups"), f"{_known(record)}{minimum}"),
        (f"One {cost.unit} is in", f"at most {record['max_groups_per_unit']}", "of the groups"),
    ]
    return tiles(facts)


def _known(record: Mapping[str, Any]) -> str:
    if record["keys"] is not None:
        return "their names are public"
    return "those that are large enough to be shown; whether there are others is private"


def _released(record: Mapping[str, Any]) -> str:
    if record["outcome"] == "planned":
        return paragraphs(["Nothing yet: this is a plan, made from public parameters alone."])
    columns = record["columns"][:_COORDINATES]
    names = (*record["by"], *columns, "Predicted error", "Size, noisy")
    keys = len(record["by"])
    top = "".join(
        f"<th{' class=number' if place >= keys else ''}>{escape(name)}</th>" for place, name in enumerate(names)
    )
    rows = "".join(_row(group, columns) for group in record["groups"][:_GROUPS])
    more = len(record["groups"]) - _GROUPS
    rest = f'<p class="soft">and {more:,} more groups, which the record below has</p>' if more > 0 else ""
    told = (
        "For each group a typical point: the one whose sum of distances to all records of the group is smallest, up to "
        "noise. A group without a point failed, which is an output like any other."
    )
    table = f'<table class="stack"><thead><tr>{top}</tr></thead><tbody>{rows}</tbody></table>'
    return f'{paragraphs([told])}<div class="wide">{table}</div>{rest}'


def _row(group: Mapping[str, Any], columns: list[str]) -> str:
    size = "" if group["size"] is None else f"{group['size']:,}"
    parts = group["key"] if isinstance(group["key"], list) else [group["key"]]
    name = "".join(f"<th>{escape(str(part))}</th>" for part in parts)
    if group["outcome"] != "released":
        told = f'<td colspan="{len(columns) + 1}">no point: {escape(group["message"])}</td>'
        return f'<tr>{name}{told}<td class="number" data-name="size">{size}</td></tr>'
    error = "" if group["error_radius"] is None else f"{group['error_radius']:.3g}"
    cells = [*(f"{value:.6g}" for value in group["point"][: len(columns)]), error, size]
    told = "".join(
        f'<td class="number" data-name="{escape(column)}">{cell}</td>'
        for column, cell in zip((*columns, "predicted error", "size"), cells, strict=True)
    )
    return f"<tr>{name}{told}</tr>"


def _text(key: object) -> str:
    return ", ".join(map(str, key)) if isinstance(key, list) else str(key)


def _plans(record: Mapping[str, Any]) -> list[str]:
    """What was asked of every group; groups with another guess of their size have other noise."""
    found = []
    for index, plan in enumerate(record["plans"]):
        assigned = zip(record["keys"] or (), record["plan_of_key"] or (), strict=True)
        keys = [_text(key) for key, own in assigned if own == index]
        whom = "every group" if len(record["plans"]) == 1 else ", ".join(keys[:4]) + (", ..." if len(keys) > 4 else "")
        found.append(section(f"What was asked of the data of {whom}", stages(plan_of(plan))))
    return found
