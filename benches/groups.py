"""The time of many small groups: `python benches/groups.py [groups] [records]`, by default 10,000 of 1,000."""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

import dpmedian


def main(groups: int = 10_000, records: int = 1_000) -> None:
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
    print(f"{len(errors):,} have a point; median distance from their center {np.median(errors):.3f} spreads")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
