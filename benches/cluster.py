"""Counts the rounds of a release in a Dask cluster of two workers on this machine, and measures the time of a round.

    python benches/cluster.py                # 10^6 records in 10 dimensions, in 8 partitions
    python benches/cluster.py --quick        # a tenth of the records

A round is one query to all workers. The overhead of a round is the time of a query about 100 records, because this
computation itself takes microseconds only. The limits are 15 rounds on smooth data, and 15 ms of overhead on an idle
machine.
"""

from __future__ import annotations

import argparse
import time
import warnings

import dask.array
import numpy as np
from distributed import Client, LocalCluster

import dpmedian
from dpmedian.parameters import PublicParameters
from dpmedian.sources.dask import Holders
from dpmedian.statistics import Statistic

MOST_ROUNDS, MOST_SECONDS = 15, 0.015


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the records")
    n = 100_000 if parser.parse_args().quick else 1_000_000
    points = np.random.default_rng(0).normal(size=(n, 10))
    rounds = 0
    ask = Holders._round

    def counted(source, question):  # type: ignore[no-untyped-def]
        nonlocal rounds
        rounds += 1
        return ask(source, question)

    Holders._round = counted  # type: ignore[method-assign]
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collection = dask.array.from_array(points, chunks=(-(-n // 8), 10)).persist()
        held = dpmedian.Dataset.of(collection)
        plan = dpmedian.plan(n, 10, epsilon=1.0, delta=1e-6)
        seconds, found = {}, {}
        for name, records in (("in the cluster", held), ("in memory", points)):
            start = time.perf_counter()
            found[name] = plan.run(records, seed=1).point
            seconds[name] = time.perf_counter() - start
        asked = rounds
        few = dpmedian.Dataset.of(dask.array.from_array(points[:100], chunks=(50, 10)))
        small = few.source(PublicParameters.of(100, 10, rho=1.0))
        question, times = Statistic("gradient", theta=np.zeros(10), bits=20), []
        for _ in range(50):
            start = time.perf_counter()
            small.answer(question)
            times.append(time.perf_counter() - start)
    print(f"({n}, 10): {seconds['in the cluster']:.2f} s in the cluster, {seconds['in memory']:.2f} s in memory")
    print(f"the same bits: {'kept' if np.array_equal(*found.values()) else 'missed'}")
    print(f"{asked} rounds, at most {MOST_ROUNDS}: {'kept' if asked <= MOST_ROUNDS else 'missed'}")
    overhead, least = float(np.median(times)), float(min(times))
    verdict = "kept" if overhead <= MOST_SECONDS else "missed"
    print(f"{1e3 * overhead:.1f} ms a round (at best {1e3 * least:.1f}), at most {1e3 * MOST_SECONDS:.0f}: {verdict}")


if __name__ == "__main__":
    main()
