"""`dpmedian release --by`: private geometric medians of the groups of a file, under one budget."""

from __future__ import annotations

import argparse
from pathlib import Path

from dpmedian import Ledger, geometric_medians
from dpmedian.cli.output import paid_for, show, shown
from dpmedian.sources.records import Records

__all__ = ["release_groups"]


def release_groups(options: argparse.Namespace, points: Records, ledger: Ledger | None) -> None:
    """Plans, charges once, runs every group, and prints one object with a list of the groups."""
    lines = Path(options.keys).read_text(encoding="utf-8").splitlines()
    found = geometric_medians(
        points,
        options.by,
        keys=[line.strip() for line in lines if line.strip()],
        epsilon=options.epsilon,
        delta=options.delta,
        rho=options.rho,
        unit=options.unit,
        unit_reduce=options.unit_reduce or "median",
        max_groups_per_unit=1 if options.max_groups_per_unit is None else options.max_groups_per_unit,
        minimum=options.minimum,
        n=options.n,
        method=options.method,
        radius=options.radius,
        resolution=options.resolution,
        center=options.center,
        failure_probability=options.failure_probability,
        geometry=options.geometry,
        neighbours=options.neighbours,
        ledger=ledger,
        seed=options.seed,
        progress=False if options.quiet else None,
        nonfinite=options.nonfinite,
        name=options.name,
        sample_weight=options.weight,
        weight_max=options.weight_max,
    )
    with paid_for(found):
        show(shown(found, options.output))
    if options.report is not None:
        with paid_for(found):
            found.report(options.report, ledger=ledger)
