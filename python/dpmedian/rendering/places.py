"""k-medians as text, HTML and JSON: one row for each cluster."""

from __future__ import annotations

from typing import Any

from dpmedian.digests import sealed
from dpmedian.places import Places
from dpmedian.recorded import View, as_csv, as_record, as_view
from dpmedian.rendering.record import release_record
from dpmedian.rendering.release import SEEDED, notebook_block, records_text
from dpmedian.rendering.table import titled
from dpmedian.rows import csv_text
from dpmedian.spherical import kilometers

__all__ = ["places_csv", "places_record", "places_view"]

_WIDTH = 100
# The largest number of coordinates of a center that are shown. `centers` has all coordinates.
_SHOWN = 4


def _head(places: Places) -> tuple[str, ...]:
    more = ("...",) if len(places.names) > _SHOWN else ()
    return ("cluster", *places.names[:_SHOWN], *more, "size", "radius, km" if _sphere(places) else "radius")


def _sphere(places: Places) -> bool:
    return places.plan.parameters.geometry == "sphere"


def _rows(places: Places) -> list[tuple[str, ...]]:
    more = ("...",) if len(places.names) > _SHOWN else ()
    radii = map(kilometers, places.radii.tolist()) if _sphere(places) else places.radii.tolist()
    return [
        (str(index), *(f"{x:.6g}" for x in center[:_SHOWN].tolist()), *more, f"{size:.0f}", f"{radius:.3g}")
        for index, (center, size, radius) in enumerate(zip(places.centers, places.sizes, radii, strict=True))
    ]


def _facts(places: Places) -> list[str]:
    unit = "" if places.plan.parameters.scales is None else " in units of the public scales"
    facts = [
        f"sizes are noisy, with a standard deviation of {places.size_sigma:.3g}; a radius is about the median distance "
        f"of the records of a cluster from its center{unit}",
        f"{records_text(places)}, d = {places.centers.shape[1]}",
        f"cost: {places.cost}",
    ]
    return facts + ([f"seeded: {SEEDED}"] if places.seeded else []) + [f"note: {note}" for note in places.notes]


def _title(places: Places) -> str:
    return f"{len(places.centers)} private medians" + ("" if places.name is None else f": {places.name}")


@as_view.register
def places_view(places: Places) -> View:
    """Show one row for each cluster, and the cost of all clusters together."""
    head, title = _head(places), [_title(places)]
    numbers = range(1, len(head))
    table = titled(title, head, _rows(places), _facts(places), width=_WIDTH, numbers=numbers, aligned=True)
    return View(table.text, notebook_block(places, table.html))


@as_csv.register
def places_csv(places: Places) -> str:
    """Return the table of `to_frame` as CSV, with the cluster in the first column."""
    rows = places.rows()
    return csv_text(([index, *row.values()] for index, row in enumerate(rows)), ["cluster", *rows[0]])


@as_record.register
def places_record(places: Places) -> dict[str, Any]:
    """Return the audit record of a release, with the clusters."""
    content = {
        **release_record(places),
        "centers": places.centers.tolist(),
        "sizes": places.sizes.tolist(),
        "size_sigma": places.size_sigma,
        "radii": places.radii.tolist(),
    }
    return sealed(content)
