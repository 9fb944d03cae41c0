"""Measures many groups under one budget: their time, and which of them are shown if their keys are not listed.

`python benches/groups.py [groups] [records]` measures the time of many small groups, by default 10,000 groups of 1,000
records. `python benches/groups.py --unlisted` releases groups of 20 to 2,000 people without a list of their keys, for
one to twelve groups per person. It prints how many groups are shown, the number that the sizes predict, and how many of
the shown groups have a point. There are also groups with a single person. None of these groups should be shown.
"""

from __future__ import annotations

import argparse
import math
import resource
import time
import warnings

import numpy as np
from numpy.typing import NDArray

import dpmedian

# The sizes of the groups that are not listed are evenly spaced on a logarithmic scale. There are as many groups of one
# person.
_UNLISTED, _SMALLEST, _LARGEST = 240, 20, 2000


def listed(groups: int, records: int) -> None:
    """The time of many small groups."""
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.repeat(np.arange(groups), records))
    centers = 10.0 * rng.normal(size=(groups, 2))
    points = centers[labels] + rng.normal(size=(len(labels), 2))
    start = time.perf_counter()
    found = dpmedian.geometric_medians(points, labels, keys=range(groups), n=records, epsilon=1.0, delta=1e-6)
    seconds = time.perf_counter() - start
    errors = [float(np.linalg.norm(value.point - centers[int(str(key))])) for key, value in found.released.items()]
    used = sum(resource.getrusage(who).ru_utime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(f"{groups:,} groups of {records:,} records: {seconds:.1f} s, {used:.1f} s of processor time")
    print(f"{len(errors):,} have a point; median distance from their center {np.median(errors):.3f} core radii")


def contributions(sizes: NDArray[np.int64], most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the group and the person of each row. Every person is in `most` groups, except for the last few persons.

    Rows are sorted by their position within the group, so that `most` consecutive rows belong to different groups.
    """
    groups = np.repeat(np.arange(len(sizes)), sizes)
    place = np.concatenate([np.arange(size) for size in sizes])
    groups = groups[np.lexsort((groups, place))]
    people = np.arange(len(groups)) // most
    return groups, people


def unlisted(epsilon: float, delta: float) -> None:
    """Print which groups are shown, for one to twelve groups per person. The noise has a seed, because a page cites the
    table.
    """
    warnings.simplefilter("ignore", dpmedian.InsecureSeedWarning)
    sizes = np.round(np.geomspace(_SMALLEST, _LARGEST, _UNLISTED)).astype(np.int64)
    sizes = np.concatenate([sizes, np.ones(_UNLISTED, dtype=np.int64)])
    print(f"{_UNLISTED} groups of {_SMALLEST} to {_LARGEST} people and {_UNLISTED} of one, epsilon = {epsilon:g}, "
          f"delta = {delta:g} for all groups of a person together")  # fmt: skip
    head = ("groups per person", "threshold", "shown", "predicted", "of one", "with a point", "smallest with a point")
    print("  ".join(head))
    for most in range(1, 13):
        rng = np.random.default_rng(most)
        groups, people = contributions(sizes, most)
        points = 10.0 * rng.normal(size=(len(sizes), 2))[groups] + rng.normal(size=(len(groups), 2))
        labels = [f"group {group}" for group in groups.tolist()]
        found = dpmedian.geometric_medians(
            points, labels, unit=people, max_groups_per_unit=most, epsilon=epsilon, delta=delta, seed=most
        )
        selection = found.plan.selection
        assert selection is not None
        chances = [selection.found(float(size)) for size in sizes]
        expected, spread = math.fsum(chances), math.sqrt(math.fsum(p * (1.0 - p) for p in chances))
        own = {key: int(sizes[int(str(key).removeprefix("group "))]) for key in found}
        alone = sum(size == 1 for size in own.values())
        smallest = min((own[key] for key in found.released), default=0)
        cells = (most, selection.threshold, len(found), f"{expected:.1f} +- {spread:.1f}", alone, len(found.released))
        print("  ".join(f"{cell!s:>{len(name)}}" for cell, name in zip((*cells, smallest), head, strict=True)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", type=int, nargs="?", default=10_000)
    parser.add_argument("records", type=int, nargs="?", default=1_000)
    parser.add_argument("--unlisted", action="store_true", help="groups without a list of their keys")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-6)
    options = parser.parse_args()
    if options.unlisted:
        unlisted(options.epsilon, options.delta)
    else:
        listed(options.groups, options.records)


if __name__ == "__main__":
    main()
