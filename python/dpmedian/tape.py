"""The tape of a run: the one place where exact answers get their noise, and where that noise comes from.

`Tape` is the core's: it opens an `Exact`, takes the sensitivity from it, adds the noise and keeps no copy. Its
randomness is fresh from the operating system, or comes from a seed with the warning that this deserves.
"""

from __future__ import annotations

import math

from dpmedian._core import Tape
from dpmedian.accounting import PrivacyCost
from dpmedian.accounting.neighbours import Neighbours
from dpmedian.parameters import whole
from dpmedian.warning import InsecureSeedWarning, warn_caller

__all__ = ["Tape", "allow", "seed_bytes", "tape_of"]


def tape_of(seed: int | None, neighbours: Neighbours = "replace") -> Tape:
    """A tape with fresh noise, or with noise from a seed after an `InsecureSeedWarning`."""
    return Tape.draw(None if seed is None else seed_bytes(seed), neighbours)


def seed_bytes(seed: int) -> bytes:
    """A seed as the key of a tape, with the warning that it deserves."""
    seed = whole("seed", seed)
    if not 0 <= seed < 2**256:
        raise ValueError(f"seed must lie between 0 and 2**256 - 1, got {seed}")
    warn_caller("a fixed seed makes the noise predictable: use one for simulations and tests only", InsecureSeedWarning)
    return seed.to_bytes(32, "little")


def allow(tape: Tape, cost: PrivacyCost) -> None:
    """Caps what a run may release at the cost that was charged for it: the tape refuses what would exceed it."""
    tape.allow(cost.mu_squared, math.fsum(cost.bounded_ranges))
