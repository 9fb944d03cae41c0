"""k-medians as text, HTML and JSON: one row for each cluster."""

from __future__ import annotations

import textwrap
from html import escape
from typing import TYPE_CHECKING, Any

from dpmedian.digests import sealed
from dpmedian.rendering.plan import plan_tables
from dpmedian.rendering.record import release_record
from dpmedian.rendering.release import SEEDED, records_text
from dpmedian.rendering.table import html_block, html_table, text_table

if TYPE_CHECKING:
    from dpmedian.places import Places

__all__ = ["places_html", "places_record", "places_text"]

_WIDTH = 100
# So many coordinates of a center are shown; `centers` has all of them.
_SHOWN = 4


def _head(places: Places) -> tuple[str, ...]:
    more = ("...",) if len(places.names) > _SHOWN else ()
    return ("cluster", *places.names[:_SHOWN], *more, "size", "radius")


def _rows(places: Places) -> list[tuple[str, ...]]:
    more = ("...",) if len(places.names) > _SHOWN else ()
    return [
        (str(index), *(f"{x:.6g}" for x in center[:_SHOWN].tolist()), *more, f"{size:.0f}", f"{radius:.3g}")
        for index, (center, size, radius) in enumerate(zip(places.centers, places.sizes, places.radii, strict=True))
    ]


def _facts(places: Places) -> list[str]:
    unit = " in degrees of arc" if places.plan.parameters.geometry == "sphere" else ""
    unit = unit if places.plan.parameters.scales is None else " in units of the public scales"
    facts = [
        f"sizes are noisy, with a standard deviation of {places.size_sigma:.3g}; a radius is about the median distance "
        f"of the records of a cluster from its center{unit}",
        f"{records_text(places)}, d = {places.centers.shape[1]}",
        f"cost: {places.cost}",
    ]
    return facts + ([f"seeded: {SEEDED}"] if places.seeded else []) + [f"note: {note}" for note in places.notes]


def _title(places: Places) -> str:
    return f"{len(places.centers)} private medians" + ("" if places.name is None else f": {places.name}")


def places_text(places: Places) -> str:
    """One row for each cluster, and what all of them cost together."""
    head, rows = _head(places), _rows(places)
    table = text_table(head, rows, _WIDTH, right=range(1, len(head)), framed=True)
    facts = [textwrap.fill(fact, _WIDTH, subsequent_indent="  ") for fact in _facts(places)]
    return "\n".join([_title(places), table, *facts])


def places_html(places: Places) -> str:
    """The same for a notebook, with the plan to unfold."""
    head = _head(places)
    alarm = f'<div class="alarm">seeded: {escape(SEEDED)}</div>' if places.seeded else ""
    table = html_table(head, _rows(places), caption=[_title(places)], notes=_facts(places), right=range(1, len(head)))
    plan = f"<details><summary>Queries to the data</summary>{plan_tables(places.plan)}</details>"
    return html_block(alarm, table, plan)


def places_record(places: Places) -> dict[str, Any]:
    """The record of a release, and the clusters."""
    told = {
        **release_record(places),
        "centers": places.centers.tolist(),
        "sizes": places.sizes.tolist(),
        "size_sigma": places.size_sigma,
        "radii": places.radii.tolist(),
    }
    return sealed(told)
