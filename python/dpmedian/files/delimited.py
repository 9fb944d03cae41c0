"""Delimited text, read line by line. Only the header and the caller's options decide how records are read."""

from __future__ import annotations

import csv
import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import BinaryIO, NamedTuple

import numpy as np

from dpmedian.sources.cells import Intake, read_number
from dpmedian.sources.columns import as_number, divide, labels, numbered
from dpmedian.sources.labels import as_labels
from dpmedian.sources.records import Records

__all__ = ["HINT", "Dialect", "read_delimited"]

HINT = (
    "correct it, or replace such records by the center with nonfinite='center' (--nonfinite center), or leave them "
    "out with nonfinite='drop', if the number of records is private (--neighbours add_remove, groups)"
)

# Texts that spreadsheets and data frames write for a missing value.
_MISSING = {"", "na", "n/a", "nan", "null", "none"}

# Delimiters that a header may have. A space is not among them, because names may contain spaces.
_DELIMITERS = (",", ";", "\t", "|")

# The largest length of a line. A line holds one record, and even a record of a million coordinates is shorter. Without
# this limit, a file without line ends would fill the memory.
_LINE_BYTES = 1 << 26

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Dialect:
    """How a file writes cells and numbers. The delimiter is None if it has to be found in the header."""

    delimiter: str | None
    decimal: str
    encoding: str

    @classmethod
    def of(cls, delimiter: str | None, decimal: str, encoding: str, usual: str | None) -> Dialect:
        """Check the options of the caller and return the dialect.

        `usual` is the delimiter of the format, or None if the format does not determine it.
        """
        if decimal not in (".", ","):
            raise ValueError(f"decimal must be '.' or ',', got {decimal!r}")
        named = {"tab": "\t", r"\t": "\t", None: usual}.get(delimiter, delimiter)
        if named is not None and (len(named) != 1 or named.isalnum() or named in "\"'+-._\r\n\0" or named == decimal):
            raise ValueError(
                f"delimiter must be one character that no number contains, or 'tab'; got {delimiter!r}, with the "
                f"decimal sign {decimal!r}"
            )
        try:
            # The bytes are divided into lines before they are decoded, so that a record cannot extend into the next
            # line.
            plain = encoding.lower().replace("_", "-").removesuffix("-sig")
            if "\n,;0".encode(plain) != b"\n,;0" or b"0".decode(plain) != "0":
                raise ValueError(
                    f"encoding must write ASCII as single bytes, got {encoding!r}; convert the file to UTF-8"
                )
        except LookupError:
            raise ValueError(f"encoding must be an encoding of Python, such as 'latin-1', got {encoding!r}") from None
        return cls(named, decimal, plain)

    def number(self, cell: str) -> float:
        """Convert a cell to a double, or raise a `ValueError`."""
        if self.decimal == ",":
            if "." in cell:
                raise ValueError("the number contains a point, but the decimal sign is a comma")
            cell = cell.replace(",", ".")
        return read_number(cell)

    def number_or_nan(self, cell: str) -> float:
        try:
            return self.number(cell)
        except ValueError:
            return math.nan

    def split(self, line: str) -> list[str]:
        """Return the cells of one line. If a quote is not closed in the line, a `csv.Error` is raised."""
        if '"' not in line:
            return line.split(self.delimiter)
        return next(csv.reader([line], delimiter=self.delimiter or ",", strict=True))

    def resolved(self, first: str, is_header: bool | None) -> Dialect:
        """Return the dialect with its delimiter: the given delimiter, or the only delimiter that occurs in the
        header.
        """
        if self.delimiter is not None:
            return self
        if is_header is False:
            return self._with(",")
        outside = "".join(first.split('"')[::2])
        found = [delimiter for delimiter in _DELIMITERS if delimiter in outside]
        if len(found) > 1:
            both = " and ".join(map(repr, found))
            raise ValueError(
                f"the first line contains {both}: say which of them separates the cells, delimiter=... (--delimiter)"
            )
        return self._with(found[0] if found else "," if self.decimal == "." else ";")

    def _with(self, delimiter: str) -> Dialect:
        if delimiter == self.decimal:
            raise ValueError(
                "the comma would be both the delimiter and the decimal sign: state the delimiter, delimiter=... "
                "(--delimiter)"
            )
        return replace(self, delimiter=delimiter)


class _Options(NamedTuple):
    """The caller's options for reading a file."""

    dialect: Dialect
    header: bool | None
    wanted: Sequence[str | int] | None
    intake: Intake
    label_columns: Sequence[str | int]


def read_delimited(
    stream: BinaryIO,
    dialect: Dialect,
    header: bool | None,
    wanted: Sequence[str | int] | None,
    intake: Intake,
    label_columns: Sequence[str | int] = (),
) -> Records:
    """Read the chosen columns of all records, and the label columns."""
    options = _Options(dialect, header, wanted, intake, label_columns)
    return _read_unattended(stream, options) if intake.unattended else _read_attended(stream, options)


def _records(
    values: array[float],
    d: int,
    columns: tuple[str, ...],
    label_columns: Sequence[str | int],
    texts: Sequence[Sequence[str]],
) -> Records:
    points = np.frombuffer(values, dtype=np.float64) if values else np.empty(0)
    found = {str(name): as_labels(cells, str(name)) for name, cells in zip(label_columns, texts, strict=True)}
    named = {name: replace(label, name=name) for name, label in found.items()}
    return Records(points.reshape(-1, d), columns, labels=named)


def _is_header(first: Sequence[str], dialect: Dialect, unattended: bool) -> bool:
    """Return whether the first line is a header. A line of names is a header, and a line of numbers is a record.

    In any other case the caller must pass `header`. In an unattended run a first line of numbers is an error, because
    otherwise a record would decide whether the file has a header. The first name may be blank, because pandas and R
    write a column of row numbers without a name.
    """
    numbers = sum(not math.isnan(dialect.number_or_nan(cell)) for cell in first)
    missing = any(cell.strip().lower() in _MISSING for i, cell in enumerate(first) if i or cell.strip())
    if numbers == len(first) and not unattended:
        return False
    if numbers or missing:
        what = "has only numbers" if numbers == len(first) else "has both names and numbers"
        raise ValueError(
            f"the first line {what}: state whether it is a header, header=True or False (--header or --no-header)"
        )
    return True


# Attended reading: the curator sees every error.


def _read_attended(stream: BinaryIO, options: _Options) -> Records:
    dialect, header, wanted, _, label_columns = options
    lines = _decoded(_lines(stream, unattended=False), dialect.encoding)
    # Without a header, even a blank first line is a record, with a missing value, if the file has one column.
    skipped, first = next(((i, line) for i, line in enumerate(lines) if header is False or line.strip()), (0, None))
    if first is None:
        raise ValueError("the file is empty")
    resolved = dialect.resolved(first, header)
    rows = csv.reader(chain([first], lines), delimiter=resolved.delimiter or ",", strict=True)
    try:
        row = next(rows) or [""]
        named = _is_header(row, resolved, unattended=False) if header is None else header
        if not named and resolved.delimiter not in (dialect.delimiter, ",") and len(row) > 1:
            raise ValueError(
                f"with the delimiter {resolved.delimiter!r} the first line is a record, but a record must not decide "
                "which delimiter is used; state delimiter=... and header=False (--delimiter, --no-header)"
            )
        names = [cell.strip() for cell in row] if named else numbered(len(row))
        places, others = divide(names, wanted, label_columns)
        chosen = labels(names, places)
        values, count = array("d"), 0
        texts: list[list[str]] = [[] for _ in others]
        records = rows if named else chain([row], rows)
        for row in records:
            # A blank line is not a record, except in a file with one column, where a blank line is a missing value.
            if row or len(names) == 1:
                row = row or [""]
                count += 1
                where = f"row {count} (line {skipped + rows.line_num})"
                if len(row) != len(names):
                    raise ValueError(f"{where} has {len(row)} cells instead of {len(names)}; {HINT}")
                values.extend(_cell(row[i], resolved, where, name) for i, name in zip(places, chosen, strict=True))
                for cells, i in zip(texts, others, strict=True):
                    cells.append(row[i].strip())
    except csv.Error as error:
        raise ValueError(f"line {skipped + rows.line_num}: {error}; {HINT}") from None
    return _records(values, len(places), chosen, label_columns, texts)


def _lines(stream: BinaryIO, unattended: bool) -> Iterator[bytes]:
    """Yield the lines.

    A line longer than `_LINE_BYTES` raises an error with its number, or becomes blank in an unattended run.
    """
    number = 0
    while raw := stream.readline(_LINE_BYTES):
        number += 1
        if len(raw) < _LINE_BYTES or raw.endswith(b"\n"):
            yield raw
            continue
        if not unattended:
            raise ValueError(f"line {number} has more than {_LINE_BYTES >> 20} MiB: this is not delimited text")
        while (rest := stream.readline(_LINE_BYTES)) and not rest.endswith(b"\n"):
            pass
        yield b"\n"


def _decoded(stream: Iterable[bytes], encoding: str) -> Iterator[str]:
    for number, raw in enumerate(stream, 1):
        try:
            yield (raw.removeprefix(_BYTE_ORDER_MARK) if number == 1 else raw).decode(encoding)
        except UnicodeDecodeError:
            raise ValueError(
                f"line {number} is not valid {encoding}: state the encoding, such as encoding='latin-1' (--encoding "
                "latin-1)"
            ) from None


def _cell(cell: str, dialect: Dialect, where: str, name: str) -> float:
    try:
        value = dialect.number(cell)
    except ValueError:
        if cell.strip().lower() not in _MISSING:
            comma = "; if the comma is a decimal sign, decimal=',' (--decimal ,)" if "," in cell else ""
            point = (
                "; the decimal sign is a comma, as decimal= states" if dialect.decimal == "," and "." in cell else ""
            )
            raise ValueError(
                f"{where}, column {name!r}: {cell[:40]!r} is not a number; choose the columns with numbers, "
                f"columns=[...] (--columns){point or comma}"
            ) from None
        value = math.nan
    if math.isfinite(value):
        return value
    raise ValueError(f"{where}, column {name!r}: the value is {'missing' if math.isnan(value) else 'infinite'}; {HINT}")


# Unattended reading: nothing after the header raises an error, and every line is a separate record.


def _read_unattended(stream: BinaryIO, options: _Options) -> Records:
    dialect, header, wanted, intake, label_columns = options
    lines = _lines(stream, unattended=True)
    if header is False:
        resolved = dialect.resolved("", False)
        places, width = _numbered_columns(wanted, intake.d, label_columns)
        others = _numbers(label_columns) if label_columns else []
        chosen = tuple(str(i + 1) for i in places)
    else:
        head = next((raw for raw in lines if raw.removeprefix(_BYTE_ORDER_MARK).strip()), None)
        if head is None:
            raise ValueError("the file is empty, so there is no header")
        first = next(_decoded([head], dialect.encoding)).rstrip("\r\n")
        resolved = dialect.resolved(first, True)
        try:
            cells = resolved.split(first)
        except csv.Error as error:
            raise ValueError(f"the header cannot be read: {error}") from None
        if header is None:
            _is_header(cells, resolved, unattended=True)
        names = [cell.strip() for cell in cells]
        (places, others), width = divide(names, wanted, label_columns), len(names)
        chosen = labels(names, places)
    last, values, nothing = max([*places, *others]), array("d"), [math.nan] * len(places)
    texts: list[list[str]] = [[] for _ in others]
    for number, raw in enumerate(lines):
        if number == 0 and header is False:
            raw = raw.removeprefix(_BYTE_ORDER_MARK)
        try:
            row = resolved.split(raw.decode(resolved.encoding, errors="replace").removesuffix("\n").removesuffix("\r"))
            good = len(row) == width if width is not None else len(row) > last
            record = [resolved.number_or_nan(row[i]) for i in places] if good else nothing
            found = [row[i].strip() for i in others] if good else [""] * len(others)
        except Exception:
            record, found = nothing, [""] * len(others)
        values.extend(record)
        for cells, text in zip(texts, found, strict=True):
            cells.append(text)
    return _records(values, len(places), chosen, label_columns, texts)


def _numbered_columns(
    wanted: Sequence[str | int] | None, d: int | None, label_columns: Sequence[str | int]
) -> tuple[list[int], int | None]:
    """Return the chosen columns of a file without a header, and how many columns there are. Only the caller's options
    decide this.
    """
    if wanted is None:
        if d is None or label_columns:
            raise ValueError(
                "without a header the first record would decide how many columns there are: choose the columns by "
                "number, columns=['1', '2', ...] (--columns 1,2,...)"
            )
        return list(range(d)), d
    return _numbers([*wanted, *label_columns])[: len(wanted)], None


def _numbers(wanted: Sequence[str | int]) -> list[int]:
    numbers = [as_number(name) for name in wanted]
    places = [place for place in numbers if place is not None and place >= 0]
    if not places or len(places) != len(numbers) or len(set(places)) != len(places):
        raise ValueError(f"columns of a file without a header must be different numbers from 1, got {list(wanted)}")
    return places
