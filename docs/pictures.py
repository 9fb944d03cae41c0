"""Draws the pictures of the README and the documentation: `make transcripts`."""

import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import dpmedian
from dpmedian.data import POSITIONS
from dpmedian.files import read_points

PICTURES = Path(__file__).parent / "pictures"


def main() -> None:
    warnings.simplefilter("ignore", dpmedian.InsecureSeedWarning)
    positions = read_points(POSITIONS)
    release = dpmedian.geometric_median(positions, epsilon=1.0, delta=1e-6, seed=1)
    release.plot(positions).figure.savefig(PICTURES / "release.png", dpi=100)
    release.plan.plot().figure.savefig(PICTURES / "plan.png", dpi=100)


if __name__ == "__main__":
    main()
