"""A small data set that is part of the package. `examples/make_positions.py` generated it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmedian.files import read_points

__all__ = ["POSITIONS", "load_positions"]

POSITIONS = Path(__file__).with_name("positions.csv")
"""The path of the file, for the command line."""


def load_positions() -> NDArray[np.float64]:
    """Return 2,000 invented positions of people in a city, in kilometers east and north of the origin of a grid.

    The people live in three districts and in a commuter belt. In addition, 60 devices that do not know their position
    report the origin.

    Returns
    -------
    ndarray of shape (2000, 2)
        The positions.
    """
    return np.asarray(read_points(POSITIONS).array, dtype=np.float64)
