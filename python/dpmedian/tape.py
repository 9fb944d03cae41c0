"""The tape of a run: the one place where exact answers get their noise, and where that noise comes from.

`Tape` is the core's: it opens an `Exact`, takes the sensitivity from it, adds the noise and keeps no copy. Its
randomness is fresh from the operating system, or comes from a seed with the warning that this deserves.
"""

from __future__ import annotations

import os
import sys
import warnings

from dpmedian._core import Tape
from dpmedian.accounting.neighbours import Neighbours
from dpmedian.parameters import whole

__all__ = ["InsecureSeedWarning", "Tape", "tape_of"]


class InsecureSeedWarning(UserWarning):
    """A seed makes the noise predictable: for simulations and tests only, never for a release that is published."""


def tape_of(seed: int | None, neighbours: Neighbours = "replace", argument: str = "seed") -> Tape:
    """A tape with fresh noise, or with noise from a seed after an `InsecureSeedWarning`."""
    if seed is None:
        return Tape.draw(None, neighbours)
    seed = whole(argument, seed)
    if not 0 <= seed < 2**256:
        raise ValueError(f"{argument} must lie between 0 and 2**256 - 1, got {seed}")
    warnings.warn(
        f"{argument}= makes the noise predictable: use it for simulations and tests only",
        InsecureSeedWarning,
        stacklevel=_levels_to_the_caller(),
    )
    return Tape.draw(seed.to_bytes(32, "little"), neighbours)


def _levels_to_the_caller() -> int:
    """The stack level of the first frame outside this package, so that the warning points to the user's own line."""
    here = os.path.dirname(os.path.abspath(__file__))
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(here + os.sep):
        frame, level = frame.f_back, level + 1
    return level
