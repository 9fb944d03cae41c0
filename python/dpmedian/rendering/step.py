"""A robust step as text, HTML and JSON."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np

from dpmedian.digests import sealed
from dpmedian.recorded import View, as_record, as_view
from dpmedian.rendering.record import release_record
from dpmedian.rendering.release import SEEDED, notebook_block, records_text
from dpmedian.rendering.table import html_table, text_pairs
from dpmedian.step import Step

__all__ = ["step_record", "step_view"]

# The largest number of coordinates in a record. A longer record would be megabytes of text, and a ledger has a record
# for every round.
_COORDINATES_MAX = 10_000


def _facts(step: Step) -> list[tuple[str, str]]:
    low, high = step.coherence_interval
    facts = [
        ("point", f"{step.point.size:,} coordinates, each with noise of standard deviation {step.noise_std:.3g}"),
        ("coherence", f"{step.coherence:.3g}, 95 % interval {low:.3g} to {high:.3g}"),
        ("withstands", f"up to {100.0 * step.withstands:.3g} % of all records may be hostile"),
        ("records", records_text(step)),
        ("cost", str(step.cost)),
    ]
    named = [] if step.name is None else [("name", step.name)]
    seeded = [("seeded", SEEDED)] if step.seeded else []
    return [*named, *facts, *seeded, *(("note", note) for note in step.notes)]


@as_view.register
def step_view(step: Step) -> View:
    """Show one row for each released value."""
    facts = _facts(step)
    table = html_table(None, facts, row_names=True, caption=["Robust step"])
    return View("Robust step\n" + text_pairs(facts), notebook_block(step, table))


@as_record.register
def step_record(step: Step) -> dict[str, Any]:
    """Return the audit record of a release, with the further values of a step.

    The record does not contain a point with many coordinates, but only a digest that identifies the point.
    """
    long = step.point.size > _COORDINATES_MAX
    content = release_record(replace(step, point=step.point[:0])) | {"point": None} if long else release_record(step)
    own = {
        "point_sha256": hashlib.sha256(np.ascontiguousarray(step.point, dtype="<f8").data).hexdigest(),
        "coherence": step.coherence,
        "coherence_interval": list(step.coherence_interval),
        "noise_std": step.noise_std,
    }
    return sealed(content | own)
