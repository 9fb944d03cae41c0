"""Sources: the exact integer aggregates that mechanisms add noise to.

An aggregate is a sum over records (or pairs) of bounded integers. Sums of integers do not depend on their order, so a
chunked or distributed source can give the same bits. Nothing here is private: only mechanisms may call it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmedian import _core
from dpmedian.problem import Problem
from dpmedian.progress import Progress

__all__ = ["ArraySource", "Tape", "as_array", "difference_range", "gradient_sensitivity"]

Tape = _core.Tape

gradient_sensitivity = _core.gradient_sensitivity
difference_range = _core.difference_range

# The grid of `distance_counts`, in quarter octaves.
FIRST_QUARTER = _core.FIRST_QUARTER
LAST_QUARTER = _core.LAST_QUARTER


def as_array(points: Any) -> tuple[NDArray[np.float64], tuple[str, ...] | None]:
    """The points as a C-order (n, d) array of doubles, and the column names of a frame or an Arrow table."""
    columns = None
    try:
        if hasattr(points, "column_names"):
            columns = tuple(str(name) for name in points.column_names)
            array = np.column_stack([np.asarray(column) for column in points.columns])
        elif hasattr(points, "columns") and hasattr(points, "to_numpy"):
            columns = tuple(str(name) for name in points.columns)
            array = points.to_numpy()
        else:
            array = np.asarray(points)
    except ValueError as error:
        raise ValueError(f"points must be a rectangular (n, d) array of numbers: {error}") from error
    if array.dtype.kind not in "iuf":
        raise TypeError(f"points must be numbers (integers or floats), got dtype {array.dtype}")
    if array.ndim != 2:
        raise ValueError(f"points must have shape (n, d), got shape {array.shape}")
    return np.ascontiguousarray(array, dtype=np.float64), columns


class ArraySource:
    """Points in memory. It owns one validated, clamped and projected copy, so nobody can change them during a run."""

    def __init__(
        self, points: NDArray[np.float64], problem: Problem, progress: Progress | None = None, nonfinite: str = "raise"
    ) -> None:
        ball = None if problem.radius is None else (problem.center.tolist(), problem.radius)
        replacement = problem.center.tolist() if nonfinite == "center" else None
        self._points = _core.Points(points, ball=ball, replacement=replacement)
        self._progress = progress if progress is not None else Progress(1.0, show=False)

    @property
    def n(self) -> int:
        return self._points.shape[0]

    @property
    def d(self) -> int:
        return self._points.shape[1]

    def gradient(self, theta: NDArray[np.float64], bits: int) -> NDArray[np.int64]:
        """The gradient of the sum of distances in units of 2^-bits; sensitivity `gradient_sensitivity(d, bits)`."""
        return self._points.gradient(np.ascontiguousarray(theta), bits, self._progress.span())

    def differences(self, candidates: NDArray[np.float64]) -> NDArray[np.int64]:
        """The sum of distances at every candidate (row) against the first one, in units of 2^exponent.

        `difference_range(candidates)` gives the exponent and how far a replaced record moves two scores apart.
        """
        return self._points.differences(np.ascontiguousarray(candidates), self._progress.span())

    def shift(self, theta: NDArray[np.float64], radius: float, bits: int) -> NDArray[np.int64]:
        """The sum of (theta - x)/radius over records within the radius; sensitivity `gradient_sensitivity(d, bits)`."""
        return self._points.shift(np.ascontiguousarray(theta), radius, bits, self._progress.span())

    def ranks(self, thresholds: NDArray[np.float64]) -> NDArray[np.int64]:
        """Records at or below a threshold in every coordinate; L2 sensitivity sqrt(d)."""
        return self._points.ranks(np.ascontiguousarray(thresholds), self._progress.span())

    def distance_counts(self, theta: NDArray[np.float64]) -> NDArray[np.int64]:
        """Records within 2^(k/4) of theta for k = FIRST_QUARTER, ..., LAST_QUARTER; each count has sensitivity 1."""
        return self._points.distance_counts(np.ascontiguousarray(theta), self._progress.span())

    def pair_counts(self, tape: Tape, radii: Sequence[float], pairings: int) -> NDArray[np.int64]:
        """Pairs within each radius (ascending), summed over random pairings of the records; linear in n.

        The pairings are public randomness of the tape. A record is in at most one pair of each pairing, so every count
        has sensitivity `pairings`.
        """
        return self._points.pair_counts(tape, list(radii), pairings, self._progress.span(pairings))

    def top_count_sums(self, radii: Sequence[float], m: int) -> NDArray[np.int64]:
        """The sum of the m largest ball counts for each radius (ascending); sensitivity m + n - 2, quadratic in n."""
        return self._points.top_count_sums(list(radii), m, self._progress.span(self.n))

    def inverse_sensitivity(
        self, tape: Tape, center: NDArray[np.float64], lattice: tuple[float, int, int], rate: int
    ) -> NDArray[np.int64]:
        """A lattice point drawn with weights 2^(-rate/2^40 * score), in steps from the center; the score has
        sensitivity 1. `lattice` is its step, the reach of the records and the smoothing in steps."""
        return self._points.inverse_sensitivity(
            tape, center=center.tolist(), lattice=lattice, rate=rate, pulse=self._progress.span()
        )

    def inverse_sensitivity_scores(
        self, places: NDArray[np.int64], center: NDArray[np.float64], lattice: tuple[float, int, int]
    ) -> NDArray[np.uint64]:
        """The exact scores at lattice points of shape (k, d), in units of 2^-31; sensitivity 2^31 each."""
        return self._points.inverse_sensitivity_scores(np.ascontiguousarray(places), center.tolist(), lattice)

    def descend(
        self,
        tape: Tape,
        name: str,
        *,
        start: NDArray[np.float64],
        balls: list[tuple[NDArray[np.float64], float]],
        step: float,
        steps: int,
        bits: int,
        sigma: int,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The fused loop of noisy projected gradient descent: average and last iterate."""
        return self._points.descend(
            tape,
            name,
            start=start.tolist(),
            balls=[(center.tolist(), radius) for center, radius in balls],
            step=step,
            steps=steps,
            bits=bits,
            sigma=sigma,
            pulse=self._progress.span(steps),
        )
