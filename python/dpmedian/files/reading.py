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
"""The formats, by the endings of their files' names."""

# What readers raise for files that were cut off or damaged, beside their ValueErrors; numpy reads headers as Python.
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
    """Reads points, one per row, from a file, from all files of a folder or of a list, or with "-" from stdin.

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
    error until `header` is told, and a file without a header needs `columns` by number or the dimension ``d``, as lists
    of no fixed length do.

    Parameters
    ----------
    path : path, list of paths, or "-" for stdin
        The file, or the folder or the files whose rows are read one after the other. Of a folder all files of one
        format count, also those in its folders, without those whose names begin with "_" or ".".
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
        The public dimension, if no record may decide it.
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
    """The rows of several files. The columns of the first are read of all of them, by their names."""
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
    """The files of a folder or of a list, and their format, of which there must be one."""
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

    A file or folder whose name begins with "_" or "." is left out, as pyarrow, pandas and Spark do: it is temporary, a
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
    """Whether this is a device such as /dev/zero. A terminal and a pipe end, so these are none."""
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
