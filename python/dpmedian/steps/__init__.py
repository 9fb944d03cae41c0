"""One private robust step from a public point, for models of any size. Proof: robust_step.md.

The robust step is a method like those in `dpmedian.methods`, but it releases a direction and not a median, so it has
its own public function.
"""

from __future__ import annotations

from dpmedian.steps.method import calibrate, cap, check

__all__ = ["calibrate", "cap", "check", "name", "needs", "relations", "sized", "uses"]

name = "robust_step"
uses = frozenset({"threshold"})
needs = frozenset({"threshold"})
relations = frozenset({"replace", "add_remove"})
sized = False
