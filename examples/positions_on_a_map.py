"""
Positions on a map
==================

Where is the middle of the city's people? The script prints a private answer as GeoJSON, which a map can show.

The median needs positions in kilometers, and not in degrees. So the script releases the median in kilometers, and then
converts the released point to degrees.
Run with a number to make the noise reproducible (and worthless as protection): positions_on_a_map.py 1
"""

import json
import sys

import matplotlib.pyplot as plt

import dpmedian
from dpmedian.data import load_positions

# The public origin and scale of the city's grid: (432, 518) km lies at 11 E, 48 N.
LONGITUDE, LATITUDE, KM_PER_LONGITUDE, KM_PER_LATITUDE = 11.0, 48.0, 74.6, 111.2


def main(seed: int | None = None) -> None:
    positions = load_positions()
    release = dpmedian.geometric_median(positions, epsilon=1.0, delta=1e-6, seed=seed)
    east, north = release.point
    feature = {
        "type": "Feature",
        "geometry": {
            "type": "Point",
            "coordinates": [
                round(LONGITUDE + (east - 432.0) / KM_PER_LONGITUDE, 5),
                round(LATITUDE + (north - 518.0) / KM_PER_LATITUDE, 5),
            ],
        },
        "properties": {
            "name": "private geometric median",
            "error_radius_km": None if release.error_radius is None else round(release.error_radius, 3),
            "epsilon": release.cost.epsilon,
            "delta": release.cost.delta,
        },
    }
    print(json.dumps(feature, indent=2))
    release.plot(positions)  # for the holder of the data: it shows them
    plt.show()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
