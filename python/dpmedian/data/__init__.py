"""A small bundled data set, invented by examples/make_positions.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmedian.files import read_points

__all__ = ["POSITIONS", "load_positions"]

POSITIONS = Path(__file__).with_name("positions.csv")
"""The path of the file, for the command line."""


def load_positions() -> NDArray[np.float64]:
    """2,000 positions, in kilometers east and north of the origin of a grid, of invented people in an invented city.

    There are three neighborhoods, a commuter belt, and 60 devices without a fix, which report the origin.

    Returns
    -------
    ndarray of shape (2000, 2)
        The positions.
    """
    return np.asarray(read_points(POSITIONS).array, dtype=np.float64)
