"""Write the bundled data set, the positions of 2,000 invented people of an invented city.

A position is in kilometers east and north of the origin of a public grid. The people are in three neighborhoods and a
commuter belt. The devices of 3 % of the people cannot find their position and report the origin of the grid. Such
errors make a mean useless.
"""

import sys

import numpy as np

SEED = 20240607
CITY = np.array([432.0, 518.0])


def positions() -> np.ndarray:
    rng = np.random.default_rng(SEED)
    groups = [
        rng.normal(CITY, [1.2, 0.8], size=(900, 2)),
        rng.normal(CITY + np.array([3.5, 2.0]), [0.7, 1.1], size=(500, 2)),
        rng.normal(CITY + np.array([-2.5, 3.0]), [0.9, 0.6], size=(300, 2)),
        rng.normal(CITY, 9.0, size=(240, 2)),
        np.zeros((60, 2)),
    ]
    return rng.permutation(np.concatenate(groups))


def main(file) -> None:
    file.write("east_km,north_km\n")
    file.writelines(f"{east:.3f},{north:.3f}\n" for east, north in positions())


if __name__ == "__main__":
    main(sys.stdout)
