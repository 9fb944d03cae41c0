"""The median length of updates, which training follows from round to round with one noisy number in each.

A robust step in one dimension, from a guessed length to the lengths of the updates, is the share of updates that are
longer than the guess minus the share that are shorter. It is released like every other robust step. What this module
does with it is post-processing.
"""

from __future__ import annotations

import math

__all__ = ["LENGTHS_SHARE", "Lengths"]

# What the number of a round gets of its rho: the noise of the step itself grows by 2.6 percent.
LENGTHS_SHARE = 0.05

# Updates shorter than this share of the median length count by their length. Most honest updates are longer, so that a
# step hardly changes; an attack by updates as short as the mean of the honest ones loses most of its weight.
_THRESHOLD = 0.7

# The guess begins at this share of the length of the first model. It moves by at most a factor of e^1.4, about four, as
# long as it moves in one direction, and by at least e^0.1 if the shares say so.
_FIRST, _LARGEST, _SMALLEST = 1.0 / 16.0, 1.4, 0.1
_FASTER, _SLOWER = 1.5, 0.5

# If the share of shorter updates exceeds that of longer ones by this much, the guess is far above the lengths.
_ABOVE = 0.8


class Lengths:
    """A public guess of the median length, made of released numbers only."""

    def __init__(self, model: float) -> None:
        """`model` is the length of the first model."""
        self.guess = _FIRST * model
        self._rate, self._last = _LARGEST, 0.0

    @property
    def threshold(self) -> float:
        """The threshold of the next step: 0, which is safe, until a guess is known not to exceed most lengths."""
        return _THRESHOLD * self.guess if self._known else 0.0

    def follow(self, balance: float) -> None:
        """Move the guess by the noisy share of longer updates less that of shorter ones."""
        balance = min(max(balance, -1.0), 1.0)
        if balance * self._last < 0.0:
            self._rate = max(self._rate * _SLOWER, _SMALLEST)
        elif abs(balance) > _ABOVE:
            self._rate = min(self._rate * _FASTER, _LARGEST)
        self._last = balance
        self.guess *= math.exp(self._rate * balance)
        self._known = balance > -_ABOVE

    _known = False
