"""The storage of a ledger's entries: in memory, or in a JSON file that several processes share.

The file is replaced as a whole, so a crash leaves the old or the new file. A process that changes it holds two locks:
one on the lock file, which exists before the ledger does, and one on the ledger's file itself, which nobody can delete
without losing the ledger. The format is "dpmedian ledger 3", a log of chained lines. Formats 1 and 2, of versions 0.1.0
and 0.2.0, can be read and become format 3 with the next charge.
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

# How often a lock is tried again because its file was replaced in the meantime. Nobody deletes files so often, but a
# file system without stable file numbers would look like it, and waiting forever would give no reason.
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
        """The requested terms, checked; None takes the budget's default filter."""
        name, _ = filter_of(budget, composition)
        return cls(budget, name, neighbours_of(neighbours), unit_of(unit))

    @property
    def filter(self) -> Filter:
        """The rule that admits costs."""
        return filter_of(self.budget, self.composition)[1]

    def difference(self, asked: Terms) -> str | None:
        """The first term that differs from the requested terms, in words; None if they agree."""
        if _limits(self.budget) != _limits(asked.budget):
            return f"the budget {self.budget}, not {asked.budget}"
        for name in ("composition", "neighbours", "unit"):
            own, other = getattr(self, name), getattr(asked, name)
            if own != other:
                return f"{name} = {own!r}, not {other!r}"
        return None

    def to_dict(self) -> dict[str, object]:
        """The terms as JSON."""
        names = {"composition": self.composition, "neighbours": self.neighbours, "unit": self.unit}
        return {"budget": self.budget.to_dict(), **names}


@dataclass(frozen=True)
class Stored:
    """A ledger as it is stored: its terms, its log, and what the first link of the log is computed from."""

    terms: Terms
    log: Log
    start: Mapping[str, Any]

    @classmethod
    def new(cls, terms: Terms, former: list[Entry] | None = None) -> Stored:
        """A ledger with a new identity, empty or with the entries of an earlier format, which had no chain."""
        start = {"format": _FORMAT, "id": secrets.token_hex(16), **terms.to_dict(), "taken_over": len(former or ())}
        return cls(terms, Log(start) if former is None else Log.of_former(start, former), start)

    @classmethod
    def parse(cls, text: str) -> Stored:
        """Parse the text of a file."""
        stored = parse_object(text, "this is no ledger")
        budget = Budget.of(**stored["budget"])
        if stored["format"] == _FIRST_FORMAT:
            # Format 1 admitted a release by one bound or another, which is no filter. From now on its entries are held
            # to one filter.
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
        """The content of the file: one line of text for each line of the log."""
        start = json.dumps(self.start, indent=2, ensure_ascii=False, allow_nan=False)
        lines = [json.dumps(line, ensure_ascii=False, allow_nan=False) for line in self.log.lines]
        log = "".join(f"{',' if number else ''}\n    {line}" for number, line in enumerate(lines))
        return f'{start[:-2]},\n  "log": [{log}\n  ],\n  "head": "{self.log.head}"\n}}\n'


def _limits(budget: Budget) -> tuple[float | None, float, float | None]:
    return budget.epsilon, budget.delta or 0.0, budget.rho


class MemoryStore:
    """The log in one process. Each copy could spend the whole budget, so a forked copy refuses every charge."""

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
        """A copy of the log, which replaces the log at the end, unless there was an error."""
        if os.getpid() != self._process:
            raise RuntimeError(
                f"this in-memory ledger belongs to process {self._process}, and process {os.getpid()} has a copy of it "
                "that could spend the budget again: share a file, Ledger(..., path=...)"
            )
        with self._lock:
            log = self._stored.log.copy()
            yield log
            self._stored = replace(self._stored, log=log)


class FileStore:
    """A ledger in a file: one JSON object, replaced as a whole. The lock file is empty and stays."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # Resolved once, so that a later change of directory, or of a link, does not lead to another ledger.
        self.path = Path(os.path.realpath(path))
        # The identity of the ledger in the file, once it is stored.
        self._id: str | None = None

    @property
    def _fresh(self) -> Path:
        """The path to which new content is written before it replaces the file."""
        return self.path.with_name(self.path.name + ".new")

    def create(self, terms: Terms) -> None:
        """Create the file, or check that an existing one has the same terms; an existing file is never overwritten."""
        with self._lock():
            try:
                self._read()
            except FileNotFoundError:
                # If the file was only invisible and does exist, the exclusive creation does not change it.
                with contextlib.suppress(FileExistsError):
                    self._create(terms)
            stored = self._read()
        different = stored.terms.difference(terms)
        if different is not None:
            raise ValueError(
                f"the ledger {self.path} has {different}: open it with Ledger.open(path), or choose another file"
            )

    def read(self) -> Stored:
        """What is stored now."""
        # The file is replaced as a whole, so reading needs no lock, except on Windows, on which a file cannot be
        # replaced while it is read.
        with self._lock() if sys.platform == "win32" else contextlib.nullcontext():
            return self._read()

    @contextlib.contextmanager
    def transaction(self, terms: Terms) -> Iterator[Log]:
        """The stored log, written back at the end unless there was an error; no other process can interrupt."""
        with self._lock(), self._content_lock():
            self._require_one_name()
            stored = self._read()
            different = stored.terms.difference(terms)
            if different is not None:
                raise ValueError(
                    f"the ledger {self.path} was changed behind its back, it has {different}: open it again"
                )
            yield stored.log
            self._replace(stored)
            self._id = stored.start["id"]

    def _require_one_name(self) -> None:
        """Raises if the file has a second name: a charge would replace one of them, and the other would keep its full
        budget.
        """
        # A crash during the creation of the ledger may have left this second name of the file.
        self._fresh.unlink(missing_ok=True)
        links = self.path.stat().st_nlink
        if links > 1:
            raise ValueError(
                f"the ledger {self.path} has {links} names (hard links), and each of them would keep a budget of its "
                "own: delete the other names, and back the ledger up as a copy, not as a link"
            )

    def _read(self) -> Stored:
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise self._lost() from None
        try:
            stored = Stored.parse(text)
        except BrokenChain as error:
            raise BrokenChain(f"the ledger {self.path} does not fit together: {error}") from None
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(
                f"{self.path} is not a ledger this version can read, and was left as it is: {error}"
            ) from error
        if self._id not in (None, stored.start["id"]):
            raise ValueError(
                f"another ledger has taken the place of {self.path} since it was opened, and would not know what was "
                "spent: restore the one that was there"
            )
        return stored

    def _lost(self) -> FileNotFoundError:
        return FileNotFoundError(
            f"there is no ledger at {self.path}; if there was one, restore it, since a new one would not know what was "
            "spent"
        )

    def _create(self, terms: Terms) -> None:
        stored = Stored.new(terms)
        fresh = self._write_beside(stored)
        try:
            # Unlike a replacement, a link is refused if the file exists, and it appears with all of its content.
            os.link(fresh, self.path)
        except FileExistsError:
            raise
        except OSError:
            # On a file system without links the file is empty for a moment, but it is still created only if there was
            # none.
            with open(self.path, "xb") as file:
                file.write(fresh.read_bytes())
                file.flush()
                os.fsync(file.fileno())
        finally:
            fresh.unlink()
        self._sync_folder()

    def _replace(self, stored: Stored) -> None:
        fresh = self._write_beside(stored)
        shutil.copymode(self.path, fresh)
        os.replace(fresh, self.path)
        self._sync_folder()

    def _write_beside(self, stored: Stored) -> Path:
        text = stored.text
        # One name suffices for the new file, because only the holder of the lock writes it, and a crash leaves at most
        # this file. A crash may have left it as a second name of the ledger, so it is removed and never written into.
        fresh = self._fresh
        fresh.unlink(missing_ok=True)
        with open(fresh, "x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        return fresh

    def _sync_folder(self) -> None:
        if sys.platform != "win32":
            # The new name survives a power failure only if the directory is written to disk.
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    # The lock is our own code and not the library `filelock`. It must be an exclusive, blocking lock that the operating
    # system drops when its holder dies, which is one call on either system. The library polls instead of waiting, is
    # reentrant by default, and may fall back to a lock that a crash leaves behind, while this package prefers to
    # refuse; it would also be the second dependency at run time.
    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        # Every transaction opens the file again, so threads exclude each other as processes do.
        beside = self.path.with_name(self.path.name + ".lock")
        if sys.platform != "win32":
            with self._locked(beside, "ab"):
                yield
            return
        import msvcrt

        with open(beside, "ab") as file:
            while True:
                try:
                    file.seek(0)
                    msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
                    break
                except OSError as error:  # The call gives up after ten seconds; another process may be slow.
                    if error.errno not in (errno.EACCES, errno.EDEADLK):
                        raise
            try:
                yield
            finally:
                file.seek(0)
                msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

    @contextlib.contextmanager
    def _content_lock(self) -> Iterator[None]:
        # The lock file can be deleted while it is locked, and the next process would lock a new file: two transactions
        # at once. Therefore the ledger itself is locked, too. On Windows nobody can delete an open file.
        if sys.platform == "win32":
            yield
            return
        # A network file system locks only files that are open for writing. On other file systems a ledger that its
        # owner made read-only can still be locked and replaced.
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
            """Hold the lock of the file that has this name now, not of a file that was deleted or replaced in the
            meantime.
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
            raise self._unlockable(errno.EAGAIN, f"{path.name} changes all the time")

    def _unlockable(self, number: int | None, reason: str | None) -> OSError:
        return OSError(
            number,
            f"the ledger {self.path} cannot be locked, so two processes could spend its budget twice: keep it on a "
            f"file system with locks ({reason})",
        )


def _has_name(descriptor: int, path: Path) -> bool:
    """Whether an open file is the one that has this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
