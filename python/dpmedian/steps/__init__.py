"""One private robust step from a public point, for models of any size. Proof: robust_step.md.

A method like those of `dpmedian.methods`, offered by a function of its own: it releases a direction, not a median.
"""

from __future__ import annotations

from dpmedian.steps.method import calibrate, cap, check

__all__ = ["calibrate", "cap", "check", "name", "needs", "relations", "sized", "uses"]

name = "robust_step"
uses = frozenset({"threshold"})
needs = frozenset({"threshold"})
relations = frozenset({"replace", "add_remove"})
sized = False
