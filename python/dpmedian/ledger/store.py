"""The storage of a ledger: in memory, or in a JSON file that several processes can share.

The file is replaced as a whole, so a crash leaves the old or the new file. A process that changes the file holds two
locks: one on the lock file, and one on the file of the ledger itself. The lock file exists before the ledger does, but
somebody may delete it. The file of the ledger is only deleted together with the ledger. The format is "dpmedian ledger
3", a log of chained lines. Formats 1 and 2, from versions 0.1.0 and 0.2.0, can be read and become format 3 with the
next charge.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import shutil
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpmedian.accounting import RECORD, Budget, Neighbours
from dpmedian.accounting.protection import neighbours_of, unit_of
from dpmedian.digests import parse_object
from dpmedian.ledger.entry import Entry
from dpmedian.ledger.errors import BrokenChain
from dpmedian.ledger.filters import Composition, Filter, filter_of
from dpmedian.ledger.log import Log

__all__ = ["FileStore", "MemoryStore", "Terms"]

_FORMAT, _SECOND_FORMAT, _FIRST_FORMAT = (f"dpmedian ledger {number}" for number in (3, 2, 1))

# The largest number of attempts to take a lock whose file is replaced each time. On a file system without stable file
# numbers the file always seems to be replaced. With this limit the process ends with an error instead of waiting
# forever.
_TRIES = 1000


@dataclass(frozen=True)
class Terms:
    """The terms that a ledger commits to when it is created, and that never change afterwards."""

    budget: Budget
    composition: Composition
    neighbours: Neighbours = "replace"
    unit: str = RECORD

    @classmethod
    def of(cls, budget: Budget, composition: str | None, neighbours: object, unit: object) -> Terms:
        """The requested terms, checked. If `composition` is None, the default filter of the budget is used."""
        name, _ = filter_of(budget, composition)
        return cls(budget, name, neighbours_of(neighbours), unit_of(unit))

    @property
    def filter(self) -> Filter:
        """The rule that admits costs."""
        return filter_of(self.budget, self.composition)[1]

    def difference(self, requested: Terms) -> str | None:
        """The first term that differs from the requested terms, in words. None if all terms agree."""
        if _limits(self.budget) != _limits(requested.budget):
            return f"the budget {self.budget}, not {requested.budget}"
        for name in ("composition", "neighbours", "unit"):
            own, other = getattr(self, name), getattr(requested, name)
            if own != other:
                return f"{name} = {own!r}, not {other!r}"
        return None

    def to_dict(self) -> dict[str, object]:
        """The terms as JSON."""
        names = {"composition": self.composition, "neighbours": self.neighbours, "unit": self.unit}
        return {"budget": self.budget.to_dict(), **names}


@dataclass(frozen=True)
class Stored:
    """A ledger as it is stored: its terms, its log, and the data from which the first link of the log is computed."""

    terms: Terms
    log: Log
    start: Mapping[str, Any]

    @classmethod
    def new(cls, terms: Terms, former: list[Entry] | None = None) -> Stored:
        """A ledger with a new identity. It is empty, or has the entries of an earlier format without a hash chain."""
        start = {"format": _FORMAT, "id": secrets.token_hex(16), **terms.to_dict(), "taken_over": len(former or ())}
        return cls(terms, Log(start) if former is None else Log.of_former(start, former), start)

    @classmethod
    def parse(cls, text: str) -> Stored:
        """Parse the text of a file."""
        stored = parse_object(text, "this is not a ledger")
        budget = Budget.of(**stored["budget"])
        if stored["format"] == _FIRST_FORMAT:
            # Format 1 admitted a release if any of several bounds admitted it, which is not a valid filter. From now on
            # one filter applies to all of its entries.
            terms = Terms.of(budget, None, "replace", RECORD)
        elif stored["format"] in (_SECOND_FORMAT, _FORMAT):
            terms = Terms.of(budget, stored["composition"], stored["neighbours"], stored["unit"])
        else:
            raise ValueError(f"its format is {stored['format']!r}")
        if stored["format"] != _FORMAT:
            return cls.new(terms, [Entry.from_dict(entry) for entry in stored["entries"]])
        start = {name: value for name, value in stored.items() if name not in ("log", "head")}
        return cls(terms, Log.read(start, stored["log"], stored["head"]), start)

    @property
    def text(self) -> str:
        """The content of the file, with one line of text for each line of the log."""
        start = json.dumps(self.start, indent=2, ensure_ascii=False, allow_nan=False)
        lines = [json.dumps(line, ensure_ascii=False, allow_nan=False) for line in self.log.lines]
        log = "".join(f"{',' if number else ''}\n    {line}" for number, line in enumerate(lines))
        return f'{start[:-2]},\n  "log": [{log}\n  ],\n  "head": "{self.log.head}"\n}}\n'


def _limits(budget: Budget) -> tuple[float | None, float, float | None]:
    return budget.epsilon, budget.delta or 0.0, budget.rho


class MemoryStore:
    """The log of a ledger without a file. A copy could spend the whole budget again, so a forked process refuses every
    charge.
    """

    path: Path | None = None

    def __init__(self, terms: Terms) -> None:
        self._stored = Stored.new(terms)
        self._lock = threading.Lock()
        self._process = os.getpid()

    def read(self) -> Stored:
        """The stored ledger. A transaction replaces the log and never changes it in place, so reading needs no lock."""
        return self._stored

    @contextlib.contextmanager
    def transaction(self, terms: Terms) -> Iterator[Log]:
        """Yield a copy of the log. At the end the copy replaces the log, unless there was an error."""
        if os.getpid() != self._process:
            raise RuntimeError(
                f"this in-memory ledger belongs to process {self._process}, and process {os.getpid()} has a copy of it "
                "that could spend the budget again: use a file, Ledger(..., path=...)"
            )
        with self._lock:
            log = self._stored.log.copy()
            yield log
            self._stored = replace(self._stored, log=log)


class FileStore:
    """A ledger in a file. The file is one JSON object and is replaced as a whole. The lock file is empty and is never
    removed.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # The path is resolved once, so that a later change of the directory, or of a link, does not lead to another
        # ledger.
        self.path = Path(os.path.realpath(path))
        # The identity of the ledger in the file, which is set when the ledger is stored.
        self._id: str | None = None

    @property
    def _fresh(self) -> Path:
        """The path to which new content is written before it replaces the file."""
        return self.path.with_name(self.path.name + ".new")

    def create(self, terms: Terms) -> None:
        """Create the file, or check that an existing file has the same terms. An existing file is never overwritten."""
        with self._lock():
            try:
                self._read()
            except FileNotFoundError:
                # If the file exists after all (it may have been invisible for a moment), the exclusive creation does
                # not change it.
                with contextlib.suppress(FileExistsError):
                    self._create(terms)
            stored = self._read()
        different = stored.terms.difference(terms)
        if different is not None:
            raise ValueError(
                f"the ledger {self.path} has {different}: open it with Ledger.open(path), or choose another file"
            )

    def read(self) -> Stored:
        """The stored ledger."""
        # Reading needs no lock, because the file is replaced as a whole. On Windows a lock is needed, because a file
        # cannot be replaced while it is read.
        with self._lock() if sys.platform == "win32" else contextlib.nullcontext():
            return self._read()

    @contextlib.contextmanager
    def transaction(self, terms: Terms) -> Iterator[Log]:
        """Yield the stored log. At the end the log is written back, unless there was an error. No other process can
        change it in between.
        """
        with self._lock(), self._content_lock():
            self._require_one_name()
            stored = self._read()
            different = stored.terms.difference(terms)
            if different is not None:
                raise ValueError(
                    f"the ledger {self.path} was changed since it was opened: it now has {different}; open it again"
                )
            yield stored.log
            self._replace(stored)
            self._id = stored.start["id"]

    def _require_one_name(self) -> None:
        """Raise an error if the file has a second name (a hard link).

        A charge would replace the file under one name only, and the file under the other name would keep its budget.
        """
        # A crash during the creation of the ledger may have left this file as a second name.
        self._fresh.unlink(missing_ok=True)
        links = self.path.stat().st_nlink
        if links > 1:
            raise ValueError(
                f"the ledger {self.path} has {links} names (hard links), and each of them would keep its "
                "own budget: delete the other names, and back the ledger up as a copy, not as a link"
            )

    def _read(self) -> Stored:
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise self._lost() from None
        try:
            stored = Stored.parse(text)
        except BrokenChain as error:
            raise BrokenChain(f"the ledger {self.path} is not consistent: {error}") from None
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(
                f"{self.path} is not a ledger that this version can read, and was not changed: {error}"
            ) from error
        if self._id not in (None, stored.start["id"]):
            raise ValueError(
                f"the file {self.path} was replaced by another ledger since it was opened, which does not "
                "contain the earlier "
                "entries: restore the original file"
            )
        return stored

    def _lost(self) -> FileNotFoundError:
        return FileNotFoundError(
            f"there is no ledger at {self.path}; if there was one, restore it, because a new ledger would not "
            "know what was "
            "spent"
        )

    def _create(self, terms: Terms) -> None:
        stored = Stored.new(terms)
        fresh = self._write_copy(stored)
        try:
            # A new link fails if the file exists, and otherwise the file appears with all of its content.
            os.link(fresh, self.path)
        except FileExistsError:
            raise
        except OSError:
            # On a file system without links the file is empty for a moment, but it is still created only if it did not
            # exist.
            with open(self.path, "xb") as file:
                file.write(fresh.read_bytes())
                file.flush()
                os.fsync(file.fileno())
        finally:
            fresh.unlink()
        self._sync_folder()

    def _replace(self, stored: Stored) -> None:
        fresh = self._write_copy(stored)
        shutil.copymode(self.path, fresh)
        os.replace(fresh, self.path)
        self._sync_folder()

    def _write_copy(self, stored: Stored) -> Path:
        text = stored.text
        # One fixed name suffices for the new file, because only the holder of the lock writes it. After a crash this
        # name may exist, perhaps as a second name of the ledger itself, so an old file is removed and never written to.
        fresh = self._fresh
        fresh.unlink(missing_ok=True)
        with open(fresh, "x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        return fresh

    def _sync_folder(self) -> None:
        if sys.platform != "win32":
            # After a power failure the new file is there only if the directory was written to disk.
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    # This module does not use the library `filelock`. A ledger needs an exclusive, blocking lock that the operating
    # system drops when the process dies. This lock is a single call. The library polls instead of waiting, is reentrant
    # by default, and may fall back to a lock that remains after a crash.
    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        # Every transaction opens the file again, so threads exclude each other in the same way as processes.
        lock_path = self.path.with_name(self.path.name + ".lock")
        if sys.platform != "win32":
            with self._locked(lock_path, "ab"):
                yield
            return
        import msvcrt

        with open(lock_path, "ab") as file:
            while True:
                try:
                    file.seek(0)
                    msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
                    break
                except OSError as error:
                    # The call gives up after ten seconds. Another process may be slow, so the call is repeated.
                    if error.errno not in (errno.EACCES, errno.EDEADLK):
                        raise
            try:
                yield
            finally:
                file.seek(0)
                msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

    @contextlib.contextmanager
    def _content_lock(self) -> Iterator[None]:
        # If somebody deletes the lock file while it is locked, the next process locks a new file, and two transactions
        # could run at once. Therefore the ledger itself is locked, too. On Windows an open file cannot be deleted.
        if sys.platform == "win32":
            yield
            return
        # A network file system can only lock files that are open for writing. On other file systems, a read-only file
        # can also be locked and replaced.
        mode = "r+b" if os.access(self.path, os.W_OK) else "rb"
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(self._locked(self.path, mode))
            except FileNotFoundError:
                raise self._lost() from None
            yield

    if sys.platform != "win32":

        @contextlib.contextmanager
        def _locked(self, path: Path, mode: str) -> Iterator[None]:
            """Hold the lock of the file that has this name at present.

            The lock of a file that was deleted or replaced in the meantime would not exclude other processes.
            """
            import fcntl

            for _ in range(_TRIES):
                with open(path, mode) as file:
                    try:
                        fcntl.flock(file, fcntl.LOCK_EX)
                    except OSError as error:
                        raise self._unlockable(error.errno, error.strerror) from error
                    try:
                        if _has_name(file.fileno(), path):
                            yield
                            return
                    finally:
                        fcntl.flock(file, fcntl.LOCK_UN)
            raise self._unlockable(errno.EAGAIN, f"{path.name} is replaced again and again")

    def _unlockable(self, number: int | None, reason: str | None) -> OSError:
        return OSError(
            number,
            f"the ledger {self.path} cannot be locked, so two processes could spend its budget twice: keep it on a "
            f"file system with locks ({reason})",
        )


def _has_name(descriptor: int, path: Path) -> bool:
    """Whether the open file is the file that has this name at present."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
