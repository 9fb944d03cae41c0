"""
A table of districts
====================

Where do the people of each district spend their days? GPS rows, many for each person, become one table on one budget.

The data are 200,000 invented rows of 4,000 people in twelve districts. Epsilon = 1 for the whole table protects all
rows of a person together. Each person contributes to the district with the most of the person's rows. Do not publish
the last column, the excess: by which share the sum of distances at the released point is above its minimum.
Run with a number to make the noise reproducible (and worthless as protection): districts.py 1
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import dpmedian
from dpmedian import nonprivate

DISTRICTS = [
    "Old Town",
    "Harbour",
    "Mills",
    "North",
    "East End",
    "Gardens",
    "Hill",
    "Meadows",
    "Station",
    "West",
    "Lakes",
    "Airport",
]


def make_rows() -> pd.DataFrame:
    """Make rows: every person has a home in a district and about fifty rows, a fifth of them in other districts."""
    rng = np.random.default_rng(2026)
    centers = np.array([11.5, 48.1]) + rng.uniform(-0.12, 0.12, size=(12, 2))
    lives_in = rng.choice(12, size=4000, p=np.linspace(1.5, 0.5, 12) / 12)
    home = centers[lives_in] + 0.012 * rng.standard_t(3, size=(4000, 2))
    person = rng.integers(4000, size=200_000)
    away = rng.random(200_000) < 0.2
    district = np.where(away, rng.integers(12, size=200_000), lives_in[person])
    around = np.where(away[:, None], centers[district], home[person])
    positions = around + 0.004 * rng.normal(size=(200_000, 2))
    return pd.DataFrame(
        {
            "longitude": positions[:, 0],
            "latitude": positions[:, 1],
            "person": [f"p{i:04d}" for i in person],
            "district": np.array(DISTRICTS)[district],
        }
    )


def main(seed: int | None = None) -> None:
    rows = make_rows()
    arguments = {"by": "district", "unit": "person"}
    releases = dpmedian.geometric_medians(
        rows,
        keys=DISTRICTS,  # public: the list of the city, not the districts in the data
        n=330,  # a public guess of the number of people in each district
        epsilon=1.0,
        delta=1e-6,
        geometry="sphere",
        minimum=50,
        seed=seed,
        **arguments,
    )
    table = releases.to_frame()
    excess = nonprivate.excess(releases, rows, **arguments)
    table["excess"] = [excess.get(district, float("nan")) for district in table.index]
    shown = ["longitude", "latitude", "error_radius", "size", "outcome", "excess"]
    print(table[shown].round({"longitude": 4, "latitude": 4, "error_radius": 4, "excess": 5}).to_string())
    print(f"{len(releases.released)} of {len(releases)} districts; {releases.cost}")
    releases.plot_map()
    plt.show()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
