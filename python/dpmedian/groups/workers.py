"""Many small runs in parallel, in processes that share the memory of the records."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from dpmedian import _core

__all__ = ["in_parallel"]

Result = TypeVar("Result")

# With fewer runs than this, no processes are started, because starting them would take longer than the runs.
_MANY = 64


def in_parallel(work: Sequence[Callable[[], Result]]) -> Iterator[tuple[int, Result]]:
    """Run all of `work`, and yield each result with its index, in any order.

    Runs on few records spend most of their time in the Python interpreter, which uses one core per process. On Linux,
    if there are many runs, several processes are forked, at most one for each thread of the Rust core. They share the
    memory of the records. Otherwise the runs are made one after the other. The results are the same in both cases,
    because each run draws its noise from its own random stream.
    """
    count = len(work)
    workers = min(_core.threads(), count)
    if workers == 1 or count < _MANY or sys.platform != "linux" or multiprocessing.current_process().daemon:
        for index in range(count):
            yield index, work[index]()
        return
    context = multiprocessing.get_context("fork")
    counter = context.Value("q", 0)
    readers, processes = [], []
    try:
        for _ in range(workers):
            reader, writer = context.Pipe(duplex=False)
            process = context.Process(target=_serve, args=(count, work, counter, writer), daemon=True)
            with warnings.catch_warnings():
                # Python warns of forks in programs with threads. Here the fork is safe: the Rust core keeps one thread
                # pool for each process id, so a child does not use the pool of its parent.
                warnings.simplefilter("ignore", DeprecationWarning)
                process.start()
            writer.close()
            readers.append(reader)
            processes.append(process)
        yield from _received(count, readers)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()


def _serve(count: int, work: Sequence[Callable[[], Any]], counter: Any, writer: Any) -> None:
    """Run one piece of work after the other until all work is done."""
    _core.set_threads(1)
    try:
        while True:
            with counter.get_lock():
                index = counter.value
                counter.value += 1
            if index >= count:
                return
            writer.send((index, work[index](), None))
    except KeyboardInterrupt:
        return
    except Exception as error:
        writer.send((-1, None, f"{type(error).__name__}: {error}"))


def _received(count: int, readers: list[Any]) -> Iterator[tuple[int, Any]]:
    open_readers, missing = list(readers), count
    while open_readers:
        ready: list[Any] = multiprocessing.connection.wait(open_readers)
        for reader in ready:
            try:
                index, result, error = reader.recv()
            except EOFError:
                open_readers.remove(reader)
                continue
            if error is not None:
                raise RuntimeError(error)
            missing -= 1
            yield index, result
    if missing:
        raise RuntimeError(f"a worker process ended before its work was done: {missing} results are missing")
