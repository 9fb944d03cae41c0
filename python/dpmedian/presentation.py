"""Imports all modules that display objects, which registers their functions in `recorded.py`."""

from dpmedian import plot, plot_groups, plot_places, report
from dpmedian.rendering import groups, ledger, places, plan, record, release, step, trace
from dpmedian.verification import reading

__all__ = [
    "groups",
    "ledger",
    "places",
    "plan",
    "plot",
    "plot_groups",
    "plot_places",
    "reading",
    "record",
    "release",
    "report",
    "step",
    "trace",
]
