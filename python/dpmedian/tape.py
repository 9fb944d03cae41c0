"""The tape of a run, which is the only place where noise is added to exact answers.

`Tape` is a class of the Rust core. It opens an `Exact`, takes the sensitivity from it, adds the noise and stores no
copy. Its random numbers come from the operating system, or from a seed, with a warning.
"""

from __future__ import annotations

import math

from dpmedian._core import Tape
from dpmedian.accounting import PrivacyCost
from dpmedian.parameters import integer
from dpmedian.warning import InsecureSeedWarning, warn_caller

__all__ = ["Tape", "capped_tape", "seed_bytes"]


def capped_tape(cost: PrivacyCost, key: bytes | None = None) -> Tape:
    """Create the tape of a run that is charged this cost, with fresh noise or with noise from a key.

    The tape has the neighbor relation of the cost. It adds up the costs of Gaussian releases and choices, and refuses a
    release that would exceed the charge. The package creates tapes only here, so no run has a tape without a cap.
    """
    tape = Tape.draw(key, cost.neighbours)
    tape.allow(cost.mu_squared, math.fsum(cost.bounded_ranges))
    return tape


def seed_bytes(seed: int | None) -> bytes | None:
    """Return a seed as the key of a tape, after an `InsecureSeedWarning`. None stays None, and means fresh noise."""
    if seed is None:
        return None
    seed = integer("seed", seed)
    if not 0 <= seed < 2**256:
        raise ValueError(f"seed must lie between 0 and 2**256 - 1, got {seed}")
    warn_caller("a fixed seed makes the noise predictable: use one for simulations and tests only", InsecureSeedWarning)
    return seed.to_bytes(32, "little")
