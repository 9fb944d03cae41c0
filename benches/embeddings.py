"""Measures the accuracy of the default method on records like embeddings, with many dimensions, clusters, a decaying
spectrum and junk.

    python benches/embeddings.py             # (20000, 256) and (100000, 768), all kinds of records
    python benches/embeddings.py --quick     # (20000, 256) only, a tenth of the runs
    python benches/embeddings.py --shapes 20000x256 --kinds unit junk

The columns are as in `benches/gauntlet.py`. M is the mean excess divided by the mean excess after one exact Newton step
from a single gradient with the whole budget. The records are in single precision, as models return them. An instance of
(100000, 768) takes 300 MB.
"""

from __future__ import annotations

import argparse

import numpy as np
from gauntlet import HEAD, measure
from numpy.typing import NDArray

Singles = NDArray[np.float32]

# The number of topics, and the share of a record's variance that comes from its topic.
_TOPICS, _OF_TOPIC = 30, 0.4
# The standard deviation of a coordinate falls with this power of its index.
_DECAY = 0.6
# The length of the mean of all records relative to the rest, because embeddings lie in a cone.
_CONE = 0.5


def embeddings(rng: np.random.Generator, n: int, d: int, kind: str = "junk") -> Singles:
    """Return records of one kind. Each kind has the properties of the kinds before it.

    "spectrum": normal, with standard deviations that decay; "clusters": around topics of unequal frequency, in a cone;
    "unit": scaled to unit length; "junk": 2.5 % of the records are one and the same vector (empty texts), and 2.5 % are
    noise that is ten times as long as a record.
    """
    spectrum = (1.0 + np.arange(d)) ** -_DECAY
    spectrum /= np.linalg.norm(spectrum)
    points = rng.standard_normal((n, d), np.float32) * spectrum.astype(np.float32)
    if kind == "spectrum":
        return points
    frequencies = 1.0 / (1.0 + np.arange(_TOPICS))
    topics = rng.normal(size=(_TOPICS, d)) * spectrum
    topic = rng.choice(_TOPICS, size=n, p=frequencies / frequencies.sum())
    cone = rng.normal(size=d)
    cone *= _CONE / np.linalg.norm(cone)
    points *= np.float32(np.sqrt(1.0 - _OF_TOPIC))
    points += (np.sqrt(_OF_TOPIC) * topics + cone).astype(np.float32)[topic]
    if kind == "clusters":
        return points
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    if kind == "junk":
        count = n // 40
        points[:count] = topics[0] / np.linalg.norm(topics[0])
        points[count : 2 * count] = rng.normal(size=(count, d)) * (10.0 / np.sqrt(d))
    return points


KINDS = ("spectrum", "clusters", "unit", "junk")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one shape, a tenth of the runs")
    parser.add_argument("--runs", type=int, default=40, help="runs of every row; large shapes have a quarter of them")
    parser.add_argument("--shapes", nargs="+", metavar="NxD", default=["20000x256", "100000x768"])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    options = parser.parse_args()
    for shape in options.shapes[: 1 if options.quick else None]:
        n, d = map(int, shape.split("x"))
        runs = options.runs // (10 if options.quick else 1 if n * d < 10**7 else 4)
        print(f"\n## Embeddings: n = {n}, d = {d}, float32, epsilon = 1, delta = 1e-6\n\n{HEAD}")
        for kind in options.kinds:
            points = embeddings(np.random.default_rng(n + d), n, d, kind)
            print(measure(points, max(runs, 2), epsilon=1.0, delta=1e-6, method="adaptive").row(kind, None), flush=True)


if __name__ == "__main__":
    main()
