"""The result of k-medians: k centers, each with a noisy size and a radius."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmedian.release import Release
from dpmedian.spherical import kilometers

__all__ = ["Places"]

# The columns of a table of clusters in addition to the coordinates of the centers.
_FACTS = ("cluster", "size", "size_sigma", "radius", "radius_km")


@dataclass(frozen=True, eq=False, repr=False)
class Places(Release):
    """Differentially private k-medians, and their cost.

    `centers` has one center in each row, in descending order of the noisy sizes. `point` is the first center.
    `sizes[j]` is the noisy number of records that were nearest to center j before the last small step of the centers.
    `size_sigma` is the standard deviation of the noise of each size. A note says if a size may be noise, because it is
    below three `size_sigma`. `radii` are noisy estimates of the median distance of these records from their center. The
    radii are in units of the public scales if there are scales, and on the sphere in degrees of arc. `scale` is a
    private estimate of the core radius of all records, which is the distance from their median within which 40 % of the
    records lie. All values are released. There is no confidence region for a center, because the data determine which
    records belong to a center.
    """

    centers: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    sizes: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    size_sigma: float = 0.0
    radii: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        super().__post_init__()
        for values in (self.centers, self.sizes, self.radii):
            values.setflags(write=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the coordinates."""
        if self.columns is not None:
            return self.columns
        if self.plan.parameters.geometry == "sphere":
            return ("longitude", "latitude")
        return tuple(f"x{i}" for i in range(self.centers.shape[1]))

    def rows(self) -> list[dict[str, float]]:
        """One mapping for each cluster: the coordinates of its center by name, `size`, `size_sigma` and `radius`.

        A coordinate that has one of these names is renamed: "size" becomes "center_size", and so on. On the sphere a
        radius is in degrees of arc, and `radius_km` in kilometers on the Earth.
        """
        sphere = self.plan.parameters.geometry == "sphere"
        names = list(self.names)
        for place, name in enumerate(names):
            while name in (*_FACTS, *names[:place], *names[place + 1 :]):
                name = f"center_{name}"
            names[place] = name
        return [
            dict(zip(names, center.tolist(), strict=True))
            | {"size": float(size), "size_sigma": self.size_sigma, "radius": float(radius)}
            | ({"radius_km": kilometers(float(radius))} if sphere else {})
            for center, size, radius in zip(self.centers, self.sizes, self.radii, strict=True)
        ]

    def to_series(self) -> Any:
        """Raise an error, because k centers are not a series. Use `to_frame`."""
        raise ValueError("k-medians release several centers: use to_frame()")

    def to_frame(self) -> Any:
        """One row for each cluster, as a pandas DataFrame, with the values of `rows`."""
        try:
            import pandas as pd  # type: ignore[import-untyped, unused-ignore]
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install pandas") from error

        frame = pd.DataFrame(self.rows())
        frame.index.name = "cluster"
        return frame
