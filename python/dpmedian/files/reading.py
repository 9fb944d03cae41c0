"""`read_points`: which format a file has, and who reads it.

Errors name the row and the column while nothing has been spent yet: they are for the holder of the data. In unattended
runs (`nonfinite` "center" or "drop") nothing that a record holds is an error, and nothing of it is shown.
"""

from __future__ import annotations

import gzip
import io
import os
import stat
import sys
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from dpmedian.files.arrays import read_array
from dpmedian.files.columnar import read_columnar
from dpmedian.files.delimited import HINT, Dialect, read_delimited
from dpmedian.sources.records import Intake, Records, first_nonfinite

__all__ = ["FORMATS", "file_format", "named", "read_points"]

FORMATS = ("csv", "tsv", "csv.gz", "tsv.gz", "parquet", "arrow", "feather", "npy", "npz")
"""The formats, by the endings of their files' names."""


def read_points(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str | int] | None = None,
    header: bool | None = None,
    name: str | None = None,
    nonfinite: str = "raise",
    format: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    d: int | None = None,
    labels: Sequence[str | int] = (),
) -> Records:
    """Reads points, one per row, from a file or, with the path "-", from stdin.

    `format` is the ending of the file's name unless it is told (of stdin, "csv"): csv, tsv, both also with .gz,
    parquet, arrow, feather, npy or npz. `columns` selects by name or by number from 1; names come first, and an integer
    is always a number. `name` picks an array of an NPZ file. A single column of lists in a Parquet or Arrow file
    becomes as many columns as the lists have numbers.

    Delimited text: the first line that is not blank is the header. With `header=None` a first line of numbers only is a
    record instead, and one of names and numbers is an error; `header=True` and `header=False` say it. The delimiter is
    the one of comma, semicolon, tab and bar that the header has, or is told; a file without a header has commas (tabs
    for tsv) unless it is told. `decimal` is "." or ",", `encoding` is UTF-8 unless told. Blank lines are no records,
    except in a file of one column, where they are missing values.

    With `nonfinite="raise"` an error names the first cell that is missing, infinite or no number. With "center" and
    "drop" such cells become NaN or stay infinite, for a run that replaces or drops their records, and no record can
    cause an error, be shown, or decide how the others are read: every line after the header is one record (a blank one
    too, and quotes end with their line), a line with another number of cells is NaN, a first line of numbers only is an
    error until `header` is told, and a file without a header needs `columns` by number or the dimension `d`, as lists
    of no fixed length do.

    Parameters
    ----------
    path : path, or "-" for stdin
        The file.
    columns : list of str or int, optional
        Columns by name, or by number from 1; all by default.
    header : bool, optional
        Whether delimited text has a header.
    name : str, optional
        An array of an NPZ file.
    nonfinite : {"raise", "center", "drop"}
        What happens to cells that are no finite numbers.
    format, delimiter, decimal, encoding : str, optional
        How the file is written, where its name or its header does not say it.
    d : int, optional
        The public dimension, where no record may decide it.
    labels : list of str or int, optional
        Columns beside the points, by name or by number from 1, that hold ids or the names of groups. Blanks around a
        label do not count, and an empty one is missing.

    Returns
    -------
    Records
        The points as an array, the names of their columns, and the labels.
    """
    intake = Intake.of(nonfinite, d)
    if isinstance(columns, (str, bytes)):
        raise TypeError(f"columns must be a list of names or numbers, got {columns!r}; one column is [{columns!r}]")
    kind = file_format(path, format)
    text = kind.startswith(("csv", "tsv"))
    told = {"header": header, "delimiter": delimiter, "decimal": decimal, "encoding": encoding}
    unused = [option for option, value in told.items() if value is not None and not text]
    if unused or (name is not None and kind != "npz"):
        raise ValueError(f"{unused[0] if unused else 'name'}= does not apply to the format {kind}")
    dialect = Dialect.of(delimiter, decimal or ".", encoding or "utf-8", "\t" if kind.startswith("tsv") else None)
    with _opened(path, kind) as stream:
        try:
            if text:
                records = read_delimited(stream, dialect, header, columns, intake, labels)
            elif kind in ("npy", "npz"):
                records = read_array(stream, kind, name, columns, intake, labels)
            else:
                records = read_columnar(stream, kind, columns, intake, labels)
        except (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile) as error:
            raise ValueError(f"{named(path)} is no complete {kind} file: {error}") from error
        except (ValueError, TypeError) as error:
            raise (ValueError if isinstance(error, ValueError) else TypeError)(f"{named(path)}: {error}") from error
    if d is not None and records.array.shape[1] != d:
        raise ValueError(f"{named(path)} has {records.array.shape[1]} chosen columns, and d = {d} was told")
    if not intake.unattended:
        _require_finite(records, path)
    return records


@contextmanager
def _opened(path: str | os.PathLike[str], kind: str) -> Iterator[BinaryIO]:
    """The bytes of the file or of stdin, of which formats with an index at their end need all at once."""
    text = kind.startswith(("csv", "tsv"))
    if os.fspath(path) != "-":
        with open(path, "rb") as file:
            yield _decompressed(file, kind)
    elif sys.stdin is None:
        raise OSError("stdin is closed")
    else:
        yield _decompressed(sys.stdin.buffer if text else io.BytesIO(sys.stdin.buffer.read()), kind)


def _decompressed(stream: BinaryIO, kind: str) -> BinaryIO:
    return cast(BinaryIO, gzip.GzipFile(fileobj=stream)) if kind.endswith(".gz") else stream


def file_format(path: str | os.PathLike[str], told: str | None) -> str:
    """The format that was told, or that the name of the file says."""
    stdin = os.fspath(path) == "-"
    if told is not None and told not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {told!r}")
    if not stdin and not Path(path).exists():
        raise FileNotFoundError(f"there is no file {os.fspath(path)!r}")
    if not stdin and _is_device(path):
        raise ValueError(f"{os.fspath(path)!r} is a device, which may have no end; pass a file, or '-' for stdin")
    ending = "csv" if stdin else next((kind for kind in FORMATS if Path(path).name.lower().endswith(f".{kind}")), None)
    found = told or ending
    if found is None:
        raise ValueError(
            f"cannot tell the format of {Path(path).name!r} from its name: say it, format=... (--format), one of "
            f"{', '.join(FORMATS)}"
        )
    return found


def _is_device(path: str | os.PathLike[str]) -> bool:
    """Whether this is a device such as /dev/zero. A terminal and a pipe end, so these are none."""
    mode = os.stat(path).st_mode
    if stat.S_ISBLK(mode):
        return True
    if not stat.S_ISCHR(mode):
        return False
    with open(path, "rb", buffering=0) as opened:
        return not opened.isatty()


def named(path: str | os.PathLike[str]) -> str:
    """The name of the file for messages."""
    return "stdin" if os.fspath(path) == "-" else repr(Path(path).name)


def _require_finite(records: Records, path: str | os.PathLike[str]) -> None:
    place = first_nonfinite(records.array)
    if place is not None and records.columns is not None:
        row, column = place
        what = "missing" if np.isnan(records.array[place]) else "infinite"
        raise ValueError(
            f"{named(path)}: row {row + 1}, column {records.columns[column]!r}: the value is {what}; {HINT}"
        )
