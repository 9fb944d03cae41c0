"""
The typical embedding of a group
================================

Which shelf of a library is nearest to the median of the embeddings of 4,000 readers?

Every reader is a unit vector, for example the normalized average of the embeddings of the texts that the reader has
read. The length 1 is a public bound, so it may be the radius. Run with a number to make the noise reproducible:
embeddings.py 1
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

import dpmedian
from dpmedian import nonprivate

PEOPLE, DIMENSION = 4000, 64
SHELVES = ("gardening", "astronomy", "cookery", "history", "travel", "chess")
SHARES = (0.44, 0.20, 0.14, 0.10, 0.08, 0.04)


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def library(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return public vectors of shelves, and private vectors of people, each of which is near one shelf."""
    shelves = unit(rng.normal(size=(len(SHELVES), DIMENSION)))
    favourite = rng.choice(len(SHELVES), size=PEOPLE, p=SHARES)
    return shelves, unit(shelves[favourite] + 0.5 * unit(rng.normal(size=(PEOPLE, DIMENSION))))


def main(seed: int | None = None) -> None:
    shelves, people = library(np.random.default_rng(0))
    release = dpmedian.geometric_median(people, epsilon=1.0, delta=1e-6, radius=1.0, seed=seed)
    exact = nonprivate.geometric_median(people)
    print(f"{'shelf':<12}{'private':>9}{'exact (not private)':>21}")
    for row in np.argsort(-shelves @ release.point):
        print(f"{SHELVES[row]:<12}{shelves[row] @ unit(release.point):9.2f}{shelves[row] @ unit(exact):21.2f}")
    print(f"cosine between the private and the exact median: {unit(release.point) @ unit(exact):.3f}")
    print(f"cost: {release.cost}")
    draw(shelves @ unit(release.point), shelves @ unit(exact))


def draw(private: np.ndarray, exact: np.ndarray) -> None:
    """Draw the cosine of every shelf with the private median, and with the exact median, which is not private."""
    _, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    place = np.arange(len(SHELVES))
    ax.barh(place - 0.2, private, height=0.4, color="#b2182b", label="private")
    ax.barh(place + 0.2, exact, height=0.4, color="#7f8c9b", label="exact (not private)")
    ax.set_yticks(place, SHELVES)
    ax.invert_yaxis()
    ax.set(xlabel="cosine with the median", title="Which shelf is nearest to 4,000 readers?")
    ax.legend()
    plt.show()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
