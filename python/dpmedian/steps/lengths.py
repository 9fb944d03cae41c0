"""The median length of updates. Training estimates it from round to round, with one noisy number per round.

The number is a robust step in one dimension, from a guessed length to the lengths of the updates. The number is the
share of updates that are longer than the guess, minus the share of shorter updates. The number is released like every
other robust step, and this module only post-processes it.
"""

from __future__ import annotations

import math

__all__ = ["LENGTHS_SHARE", "Lengths"]

# The share of the rho of a round for this number. This share increases the noise of the step itself by 2.6 percent.
LENGTHS_SHARE = 0.05

# If all updates agree, the first step moves the model by this many median lengths. With a larger number training is
# faster, but the model may oscillate, as it did with 2 if clients took several local steps. `benches/federated.py`
# prints how well training works with this number, which is the same for all models and attacks.
_STEP = 1.5

# A step is shortened if the expected length of the noise of the mean unit vector is more than this number. (The length
# of the mean unit vector is 1 if all updates agree.) Otherwise, with few clients or a small budget, the noise would
# carry the model away before the rounds can average it out.
_NOISE = 1.5

# Updates shorter than this share of the median length have a weight proportional to their length. Most honest updates
# are longer, so the threshold hardly changes a step. Attackers whose updates are as short as the mean of the honest
# updates lose most of their weight.
_THRESHOLD = 0.7

# Updates longer than this many median lengths have a weight that falls with the cube of their length. Without it, a
# hostile update that is ten times too long would count as much as any other. Hardly any honest update is that long, if
# the clients have as many examples and do as much local work as each other.
_LONG = 1.5

# The initial guess is the share _FIRST of the length of the first model. A move multiplies the guess by e^(rate x),
# where x is the noisy number. The rate begins at _LARGEST, so a move changes the guess by a factor of at most four. The
# rate is multiplied by _SLOWER if the direction of the moves changes, and by _FASTER if the guess is far away from the
# lengths, but stays between _SMALLEST and _LARGEST.
_FIRST, _LARGEST, _SMALLEST = 1.0 / 16.0, 1.4, 0.1
_FASTER, _SLOWER = 1.5, 0.5

# If the share of shorter updates exceeds the share of longer updates by this number, the guess is far above the
# lengths.
_ABOVE = 0.8


class Lengths:
    """A public guess of the median length, computed from released numbers only."""

    def __init__(self, model: float) -> None:
        """`model` is the length of the first model."""
        self.guess = self._before = _FIRST * model
        self._rate, self._last = _LARGEST, 0.0
        self._known = self._near = False

    @property
    def threshold(self) -> float:
        """The threshold of the next step. It is 0, which is always safe, while the guess may exceed most lengths."""
        return _THRESHOLD * self.guess if self._known else 0.0

    def shortening(self, length: float) -> float:
        """The factor by which an update of this length is multiplied before its step.

        The factor is 1 for most updates. An update that is longer than `_LONG` median lengths becomes shorter than the
        threshold, so that its weight is (`_LONG` median lengths / length)^3. The factor is 1 for all updates until the
        guess is known to be between the lengths of the updates.
        """
        longest = _LONG * max(self._before, self.guess)
        if not self._near or not length > longest:  # This includes a length that is not a number.
            return 1.0
        return self.threshold / length * (longest / length) ** 3

    def step(self, noise: float) -> float:
        """The distance that the model moves if all updates agree.

        `noise` is the expected length of the noise of the mean unit vector, which is public. The smaller of the last
        two guesses is used, so that a guess that grew too far makes no step longer.
        """
        return _STEP * min(self._before, self.guess) * min(1.0, _NOISE / noise)

    def follow(self, balance: float) -> None:
        """Move the guess. `balance` is the noisy share of longer updates minus the share of shorter updates."""
        balance = min(max(balance, -1.0), 1.0)
        if balance * self._last < 0.0:
            self._rate = max(self._rate * _SLOWER, _SMALLEST)
        elif abs(balance) > _ABOVE:
            self._rate = min(self._rate * _FASTER, _LARGEST)
        self._last, self._before = balance, self.guess
        self.guess *= math.exp(self._rate * balance)
        self._known = balance > -_ABOVE
        self._near = abs(balance) < _ABOVE
