"""`read_points` finds the format of a file and reads it.

As long as nothing has been spent, errors name the row and the column: they are for the holder of the data. In
unattended runs (`nonfinite` "center" or "drop") the content of a record raises no error and is not shown.
"""

from __future__ import annotations

import gzip
import io
import os
import stat
import sys
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from dpmedian.files.arrays import read_array
from dpmedian.files.columnar import read_columnar
from dpmedian.files.delimited import HINT, Dialect, read_delimited
from dpmedian.sources.cells import Intake
from dpmedian.sources.labels import Labels
from dpmedian.sources.records import Records, first_nonfinite

__all__ = ["FORMATS", "Paths", "file_format", "files_of", "is_several", "named", "read_points"]

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A file or a folder, or a list of files."""

FORMATS = ("csv", "tsv", "csv.gz", "tsv.gz", "parquet", "arrow", "feather", "npy", "npz")
"""The formats, by the extensions of file names."""

# What readers raise for truncated or damaged files besides ValueError; numpy parses headers as Python.
_DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile, SyntaxError, tokenize.TokenError)


def read_points(
    path: Paths,
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
    """Read points, one per row, from a file, from all files of a folder or a list, or from stdin if the path is "-".

    `format` is csv, tsv, csv.gz, tsv.gz, parquet, arrow, feather, npy or npz; by default the extension of the file's
    name, or csv for stdin. `columns` selects by name or by number from 1; a text is a name if there is such a name, and
    an integer is always a number. `name` selects an array of an NPZ file. A single column of lists in a Parquet or
    Arrow file becomes as many columns as the lists have numbers.

    Delimited text: the first line that is not blank is the header. With `header=None`, a first line with numbers only
    is a record instead, and one with both names and numbers raises an error; `header=True` or `header=False` decides.
    The delimiter is the one among comma, semicolon, tab and bar that occurs in the header, unless it is given. A file
    without a header has commas (tabs for tsv) by default. `decimal` is "." or ",", and `encoding` is UTF-8 by default.
    Blank lines are not records, except in a file with one column, in which they are missing values.

    With `nonfinite="raise"` an error names the first cell that is missing, infinite or not a number. With "center" and
    "drop" such cells become NaN or stay infinite, for a run that replaces or drops their records. Then no record can
    cause an error, be shown, or decide how others are read. Every line after the header is one record, including blank
    lines, and quotes end with their line. A line with another number of cells becomes NaN. A first line with numbers
    only is an error unless `header` is given. A file without a header needs `columns` by number or the dimension ``d``,
    and so do lists of no fixed length.

    Parameters
    ----------
    path : path, list of paths, or "-" for stdin
        The file, or the folder or list of files whose rows are read one file after the other. In a folder all files of
        one format count, including those in subfolders; names that begin with "_" or "." are skipped.
    columns : list of str or int, optional
        Columns by name, or by number from 1; all by default.
    header : bool, optional
        Whether delimited text has a header.
    name : str, optional
        An array of an NPZ file.
    nonfinite : {"raise", "center", "drop"}
        What happens to cells that are not finite numbers.
    format, delimiter, decimal, encoding : str, optional
        How the file is written, if its name or its header does not determine it.
    d : int, optional
        The public dimension, if no record may decide it.
    labels : list of str or int, optional
        Columns that hold ids or names of groups, by name or by number from 1. Blanks around a label are ignored, and an
        empty label is missing.

    Returns
    -------
    Records
        The points as an array, the names of their columns, and the labels.
    """
    intake = Intake.of(nonfinite, d)
    if isinstance(columns, (str, bytes)):
        raise TypeError(f"columns must be a list of names or numbers, got {columns!r}; one column is [{columns!r}]")
    if is_several(path):
        options = {"header": header, "name": name, "nonfinite": nonfinite, "delimiter": delimiter, "decimal": decimal}
        files, kind = files_of(path, format)
        return _joined(files, columns, {**options, "format": kind, "encoding": encoding, "d": d, "labels": labels})
    path = cast("str | os.PathLike[str]", path)
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
        except _DAMAGED as error:
            raise ValueError(f"{named(path)} is no complete {kind} file: {error}") from error
        except (MemoryError, NotImplementedError) as error:
            raise ValueError(f"{named(path)} cannot be read as {kind}, it may be damaged: {error}") from error
        except (ValueError, TypeError) as error:
            raise (ValueError if isinstance(error, ValueError) else TypeError)(f"{named(path)}: {error}") from error
    if d is not None and records.array.shape[1] != d:
        raise ValueError(f"{named(path)} has {records.array.shape[1]} chosen columns, and d = {d} was told")
    if not intake.unattended:
        _require_finite(records, path)
    return records


def _joined(files: Sequence[Path], columns: Sequence[str | int] | None, options: Mapping[str, Any]) -> Records:
    """The rows of several files. The columns of the first file are read from all files, by name."""
    parts: list[Records] = []
    for file in files:
        first = parts[0] if parts else None
        chosen = columns if first is None or columns is not None else list(first.columns or ())
        parts.append(read_points(file, columns=chosen, **options))
        if parts[-1].shape[1] != parts[0].shape[1]:
            raise ValueError(f"{named(file)} has {parts[-1].shape[1]} columns, and the first file {parts[0].shape[1]}")
    found = {name: Labels.joined([part.labels[name] for part in parts]) for name in parts[0].labels}
    return Records(np.concatenate([part.array for part in parts]), parts[0].columns, labels=found)


def is_several(path: Any) -> bool:
    """Whether this is a folder or a list of files."""
    return isinstance(path, (list, tuple)) or (os.fspath(path) != "-" and Path(path).is_dir())


def files_of(path: Any, told: str | None) -> tuple[list[Path], str]:
    """The files of a folder or a list, and their common format."""
    if isinstance(path, (list, tuple)):
        files = [Path(file) for file in path]
        kinds = {file_format(file, told) for file in files}
        where = "the list"
    else:
        endings = FORMATS if told is None else (told,)
        files = sorted(_visible_files(Path(path), tuple(f".{ending}" for ending in endings)))
        kinds = {file_format(file, told) for file in files}
        where = f"the folder {Path(path).name!r}"
        if not files:
            listed = ", ".join(f".{ending}" for ending in endings)
            raise ValueError(f"{where} has no files that end in {listed}")
    if len(kinds) > 1:
        raise ValueError(
            f"{where} has files of the formats {', '.join(sorted(kinds))}: pass a list of the files of one format"
        )
    return files, kinds.pop()


def _visible_files(folder: Path, endings: tuple[str, ...]) -> Iterator[Path]:
    """The files of a folder that belong to its data.

    A file or folder whose name begins with "_" or "." is skipped, as pyarrow, pandas and Spark do: it is temporary, a
    checkpoint or metadata (`_temporary`, `.ipynb_checkpoints`), and copies of rows would give a person several records.
    """
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(("_", "."))]
        for name in names:
            file = Path(place, name)
            if name.lower().endswith(endings) and not name.startswith(("_", ".")) and file.is_file():
                yield file


@contextmanager
def _opened(path: str | os.PathLike[str], kind: str) -> Iterator[BinaryIO]:
    """The bytes of the file or of stdin. Formats with an index at their end need all bytes at once."""
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
    """The format that the caller gave, or that the name of the file implies."""
    stdin = os.fspath(path) == "-"
    if told is not None and told not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {told!r}")
    if not stdin and not Path(path).exists():
        raise FileNotFoundError(f"there is no file {os.fspath(path)!r}{_advice(os.fspath(path))}")
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


def _advice(path: str) -> str:
    if "://" in path:
        return "; of a remote file pass what reads it, such as pyarrow.dataset.dataset(...) or polars.scan_parquet(...)"
    if any(sign in path for sign in "*?["):
        return "; of a pattern pass the list of files, sorted(glob.glob(...))"
    return ""


def _is_device(path: str | os.PathLike[str]) -> bool:
    """Whether this is a device such as /dev/zero. Terminals and pipes do not count, because they end."""
    mode = os.stat(path).st_mode
    if stat.S_ISBLK(mode):
        return True
    if not stat.S_ISCHR(mode):
        return False
    with open(path, "rb", buffering=0) as opened:
        return not opened.isatty()


def named(path: Any) -> str:
    """The name of the file for messages."""
    if isinstance(path, (list, tuple)):
        return "the list of files"
    return "stdin" if os.fspath(path) == "-" else repr(Path(path).name)


def _require_finite(records: Records, path: str | os.PathLike[str]) -> None:
    place = first_nonfinite(records.array)
    if place is not None and records.columns is not None:
        row, column = place
        what = "missing" if np.isnan(records.array[place]) else "infinite"
        raise ValueError(
            f"{named(path)}: row {row + 1}, column {records.columns[column]!r}: the value is {what}; {HINT}"
        )
