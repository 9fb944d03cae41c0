"""Private k-medians (several typical points) without a public radius. Proof: k_medians.md.

| file | holds |
|---|---|
| `method.py` | the calibrated method: shares of the budget, stages, prediction, and the run |
| `grid.py` | the reach and the axes of the records, and the cells with many records |
| `start.py` | k-medians of the noisy cells, which is post-processing |
| `refinement.py` | noisy gradient steps of all centers together |
"""

from __future__ import annotations

from dpmedian.clusters.method import calibrate, cap, check

__all__ = ["calibrate", "cap", "check", "name", "needs", "relations", "sized", "uses"]

name = "k_medians"
uses = frozenset({"radius", "resolution", "center", "clusters", "trim"})
needs = frozenset({"clusters"})
relations = frozenset({"replace", "add_remove"})
sized = True
