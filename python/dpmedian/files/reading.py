"""`read_points` finds the format of a file and reads it.

Errors of these functions are raised before any budget is spent, and only the holder of the data sees them. So the
errors may name the row and the column. In unattended runs (`nonfinite` "center" or "drop") the content of a record
never raises an error and is never shown.
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

# Errors other than ValueError that readers raise for truncated or damaged files. numpy parses the header of an NPY file
# as Python, so it may raise a SyntaxError or a TokenError.
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
    """Read points, one per row, from a file, from the files of a folder or a list, or from stdin (path "-").

    `format` is csv, tsv, csv.gz, tsv.gz, parquet, arrow, feather, npy or npz. The default is the extension of the file
    name, and csv for stdin. An integer in `columns` is a column number, counted from 1. A text is a column name, or a
    column number if no column has this name. `name` selects an array of an NPZ file. A single column of lists in a
    Parquet or Arrow file becomes several columns, one for each position in the lists.

    Delimited text: by default, the first line that is not blank is the header. If this line has only numbers, it is a
    record, and if it has both names and numbers, an error is raised. `header=True` or `header=False` states whether
    there is a header. The delimiter of a tsv file is a tab. In other files it is the delimiter that occurs in the
    header (a comma, a semicolon, a tab or a bar), unless `delimiter` is given. Without a header, or if none of these
    occurs, the delimiter is a comma, or a semicolon with `decimal=","`. `decimal` is "." or ",". The default `encoding`
    is UTF-8. Blank lines are not records, except in a file with one column, in which they are missing values.

    With `nonfinite="raise"` an error names the first cell that is missing, infinite or not a number. With "center" and
    "drop" such cells become NaN or stay infinite, for a run that replaces or drops their records. With these two
    values, no record can cause an error, be shown in a message, or decide how other records are read. Every line after
    the header is one record, including blank lines, and a quoted cell cannot continue on the next line. A line with
    another number of cells becomes NaN. A first line with only numbers is an error unless `header` is given. A file
    without a header needs `columns` by number or the dimension ``d``. A column of lists without a fixed length needs
    ``d``.

    Parameters
    ----------
    path : path, list of paths, or "-" for stdin
        The file, or a folder or list of files. Several files are read one after the other. In a folder and its
        subfolders, the files with a known format (or with the given `format`) are read; if they have several formats,
        an error is raised. Names that begin with "_" or "." are skipped.
    columns : list of str or int, optional
        Columns by name, or by number from 1. The default is all columns. Names are looked up in every file, and numbers
        count the columns of every file.
    header : bool, optional
        Whether delimited text has a header.
    name : str, optional
        The name of the array in an NPZ file. It may be left out if there is only one array.
    nonfinite : {"raise", "center", "drop"}
        The treatment of cells that are not finite numbers.
    format, delimiter, decimal, encoding : str, optional
        Properties of the file, if its name or its header does not determine them.
    d : int, optional
        The public dimension. It is checked if it is given. It is required in an unattended run if otherwise a record
        would decide the dimension.
    labels : list of str or int, optional
        Columns of ids or of names of groups, by column name or by number from 1. Blanks around a label are ignored, and
        an empty label counts as missing.

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
    text_options = {"header": header, "delimiter": delimiter, "decimal": decimal, "encoding": encoding}
    unused = [option for option, value in text_options.items() if value is not None and not text]
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
            raise ValueError(f"{named(path)} is not a complete {kind} file: {error}") from error
        except (MemoryError, NotImplementedError) as error:
            raise ValueError(f"{named(path)} cannot be read as {kind}, it may be damaged: {error}") from error
        except (ValueError, TypeError) as error:
            raise (ValueError if isinstance(error, ValueError) else TypeError)(f"{named(path)}: {error}") from error
    if d is not None and records.array.shape[1] != d:
        raise ValueError(f"{named(path)} has {records.array.shape[1]} chosen columns, but d = {d} was given")
    if not intake.unattended:
        _require_finite(records, path)
    return records


def _joined(files: Sequence[Path], columns: Sequence[str | int] | None, options: Mapping[str, Any]) -> Records:
    """Read the rows of several files. If `columns` is None, the columns of the first file are read from all files, by
    name.
    """
    parts: list[Records] = []
    for file in files:
        first = parts[0] if parts else None
        chosen = columns if first is None or columns is not None else list(first.columns or ())
        parts.append(read_points(file, columns=chosen, **options))
        if parts[-1].shape[1] != parts[0].shape[1]:
            raise ValueError(
                f"{named(file)} has {parts[-1].shape[1]} columns, but the first file has {parts[0].shape[1]}"
            )
    found = {name: Labels.joined([part.labels[name] for part in parts]) for name in parts[0].labels}
    return Records(np.concatenate([part.array for part in parts]), parts[0].columns, labels=found)


def is_several(path: Any) -> bool:
    """Return whether `path` is a folder or a list of files."""
    return isinstance(path, (list, tuple)) or (os.fspath(path) != "-" and Path(path).is_dir())


def files_of(path: Any, named: str | None) -> tuple[list[Path], str]:
    """Return the files of a folder or a list, and their common format."""
    if isinstance(path, (list, tuple)):
        files = [Path(file) for file in path]
        if not files:
            raise ValueError("the list of files is empty")
        kinds = {file_format(file, named) for file in files}
        where = "the list"
    else:
        endings = FORMATS if named is None else (named,)
        files = sorted(_visible_files(Path(path), tuple(f".{ending}" for ending in endings)))
        kinds = {file_format(file, named) for file in files}
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
    """Yield the data files of a folder and its subfolders.

    A file or folder whose name begins with "_" or "." is skipped, as in pyarrow, pandas and Spark. Such files are
    temporary files, checkpoints or metadata (`_temporary`, `.ipynb_checkpoints`). They may contain copies of rows. If
    the copies were read, a person would have several records.
    """
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(("_", "."))]
        for name in names:
            file = Path(place, name)
            if name.lower().endswith(endings) and not name.startswith(("_", ".")) and file.is_file():
                yield file


@contextmanager
def _opened(path: str | os.PathLike[str], kind: str) -> Iterator[BinaryIO]:
    """Open the file or stdin as bytes. Formats with an index at the end are read from stdin as a whole."""
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


def file_format(path: str | os.PathLike[str], named: str | None) -> str:
    """Return the format that the caller stated, or the format that the name of the file implies."""
    stdin = os.fspath(path) == "-"
    if named is not None and named not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {named!r}")
    if not stdin and not Path(path).exists():
        raise FileNotFoundError(f"there is no file {os.fspath(path)!r}{_advice(os.fspath(path))}")
    if not stdin and _is_device(path):
        raise ValueError(f"{os.fspath(path)!r} is a device, which may have no end; pass a file, or '-' for stdin")
    ending = "csv" if stdin else next((kind for kind in FORMATS if Path(path).name.lower().endswith(f".{kind}")), None)
    found = named or ending
    if found is None:
        raise ValueError(
            f"cannot tell the format of {Path(path).name!r} from its name: pass format=... (--format), one of "
            f"{', '.join(FORMATS)}"
        )
    return found


def _advice(path: str) -> str:
    if "://" in path:
        return "; for a remote file, pass a reader such as pyarrow.dataset.dataset(...) or polars.scan_parquet(...)"
    if any(sign in path for sign in "*?["):
        return "; for a pattern, pass the list of files, sorted(glob.glob(...))"
    return ""


def _is_device(path: str | os.PathLike[str]) -> bool:
    """Return whether `path` is a device such as /dev/zero, which has no end. Terminals and pipes end, so they do not
    count.
    """
    mode = os.stat(path).st_mode
    if stat.S_ISBLK(mode):
        return True
    if not stat.S_ISCHR(mode):
        return False
    with open(path, "rb", buffering=0) as opened:
        return not opened.isatty()


def named(path: Any) -> str:
    """Return the name of the file for messages."""
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
