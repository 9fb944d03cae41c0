"""Releases the median of more than 2^30 records without the memory for them. A block of positions is admitted many
times, each time as new records.

    python benches/repeated.py                       # 2^31 records: 512 times a block of 2^22; a few minutes
    python benches/repeated.py --records 2^26        # a check that it runs
    python benches/repeated.py --epsilon 8

The parts share the same memory, and every query is made about each of them, so no work is saved. Copying all records
does not change the geometric median. So the distance of a release from the median of the block is the error of the
release alone, which the plan predicts. Before the run, the largest possible sum is released: a gradient at a point far
away, to which every record contributes the same unit vector. The result must be n up to the noise, because otherwise an
integer has overflowed.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from numpy.typing import NDArray

import dpmedian
from dpmedian import nonprivate
from dpmedian._core import Exact, Points, Statistic, Tape
from dpmedian.mechanisms.gradient import NoisyGradient
from dpmedian.sources.partitioned import PartitionedSource

BLOCK = 1 << 22
# The largest accepted error of a run, divided by the prediction. The prediction is the error of a typical run.
MOST_ERROR = 4.0
# A point from which all positions lie in the direction of the first axis, up to rounding.
FAR = np.array([1e9, -1.0])


class Repeated(PartitionedSource):
    """A source in which one block stands for the records of several parts. It counts the queries about all records."""

    def __init__(self, block: NDArray[np.float64], times: int) -> None:
        super().__init__([Points(block) for _ in range(times)])
        self.asked: list[str] = []

    def answer(self, statistic: Statistic, passes: float = 1.0) -> Exact:
        self.asked.append(statistic.name)
        return super().answer(statistic, passes)


def exact_median(block: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the median of the block. Newton steps improve an approximate median, whose error would be far larger than
    the errors of releases.
    """
    point = nonprivate.geometric_median(block)
    for _ in range(4):
        differences = point - block
        lengths = np.linalg.norm(differences, axis=1)
        units = differences / lengths[:, None]
        hessian = np.eye(2) * np.sum(1.0 / lengths) - (units / lengths[:, None]).T @ units
        point = point - np.linalg.solve(hessian, units.sum(axis=0))
    return point


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", default="2^31", help="a power of two, at least 2^22; default: 2^31")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    n = 2 ** int(options.records.removeprefix("2^"))
    block = np.random.default_rng(0).normal([3.0, -1.0], 1.0, (min(BLOCK, n), 2))
    median = exact_median(block)
    spread = float(np.quantile(np.linalg.norm(block - median, axis=1), 0.4))
    plan = dpmedian.plan(n, 2, epsilon=options.epsilon, delta=1e-12)
    tape = Tape.draw(options.seed.to_bytes(32, "little"))
    start = time.perf_counter()
    source = Repeated(block, n // len(block))
    print(f"n = {n} records ({n // len(block)} times {len(block)}), epsilon = {options.epsilon:g}", flush=True)

    gradient = NoisyGradient.of("largest total", plan.calibrated.cost.rho, plan.parameters, releases=1)
    total = float(gradient.at(source, tape, FAR)[0])
    # The directions differ from the axis by less than 10^-16, so all of them are rounded to the same point of the
    # lattice.
    off, most = abs(total - n), 6.0 * gradient.noise
    print(
        f"largest total: {total:.1f} on multiples of 2^-{gradient.bits}, {off:.1f} from n, at most {most:.1f}: "
        f"{'kept' if off <= most else 'missed'}",
        flush=True,
    )

    source.asked.clear()
    result = plan.calibrated.run(source, tape)
    error, predicted = float(np.linalg.norm(result.point - median)), plan.prediction.error_at(spread)
    print(f"{1 + len(source.asked)} passes with the validation, {time.perf_counter() - start:.0f} s")
    print(
        f"distance to the median: predicted {predicted:.2g}, measured {error:.2g}, {error / predicted:.2f} times as "
        f"much, at most {MOST_ERROR:g}: {'kept' if error <= MOST_ERROR * predicted else 'missed'}"
    )


if __name__ == "__main__":
    main()
