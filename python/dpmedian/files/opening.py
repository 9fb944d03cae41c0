"""`open_points` opens files without loading them.

NPY and Arrow files are read in place. Other files are converted to a cache.

A cache belongs to this process. It is a temporary file that only the user of the process can read. On Linux and macOS
the file is unlinked from its folder before the first record is written, so no file is left when the process ends for
any reason.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from dpmedian._core import RecordFile
from dpmedian.files.arrays import header_of, require_size
from dpmedian.files.columnar import pyarrow
from dpmedian.files.reading import Paths, file_format, files_of, is_several, named, read_points
from dpmedian.progress import Progress
from dpmedian.sources.cells import Floats, Intake
from dpmedian.sources.columns import labels, numbered, select
from dpmedian.sources.file import Column, FileRecords
from dpmedian.sources.frames import from_frame
from dpmedian.sources.records import Records

__all__ = ["open_points"]

# The number of values that are converted together (8 MiB of doubles).
_BLOCK = 1 << 20

Wanted = Sequence[str | int] | None
Show = bool | Callable[[float], object] | None


def open_points(
    path: Paths,
    *,
    columns: Wanted = None,
    nonfinite: str = "raise",
    header: bool | None = None,
    name: str | None = None,
    format: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    cache: str | os.PathLike[str] | None = None,
    d: int | None = None,
    progress: Show = None,
) -> FileRecords | Records:
    """Open a file of points, one per row. Releases read the file in blocks, so the memory does not grow with the file.

    NPY files of float32 and float64, and uncompressed Arrow files without missing values, are read in place. Other
    Arrow files, and Parquet files or folders, are converted once to a temporary file in the folder `cache`. Only the
    user can read this file, and it disappears when the process ends. Text and NPZ archives are loaded into memory.

    Parameters
    ----------
    path : path or list of paths
        The file, or a folder or list of files. Several files are read one after the other; the files of a folder are
        sorted by name.
    columns : list of str or int, optional
        Columns by name, or by number from 1. The default is all columns.
    nonfinite : {"raise", "center", "drop"}
        The treatment of cells that are not finite numbers, as in `read_points`.
    header, name, format, delimiter, decimal, encoding : optional
        As in `read_points`.
    cache : path, optional
        The folder for a conversion. The default is the system's folder for temporary files.
    d : int, optional
        The public dimension. It is checked if it is given. It is required in an unattended run if otherwise a record
        would decide the dimension.
    progress : bool or callable, optional
        True shows a progress bar, False shows none, and a function is called with the finished fraction. None shows a
        bar on a terminal if a conversion takes more than two seconds.

    Returns
    -------
    FileRecords or Records
        The points, for any number of calls of `geometric_median` and `Plan.run`.
    """
    intake = Intake.of(nonfinite, d)
    if isinstance(columns, (str, bytes)):
        raise TypeError(f"columns must be a list of names or numbers, got {columns!r}; one column is [{columns!r}]")
    several = is_several(path)
    files, kind = files_of(path, format) if several else ([], file_format(cast(str, path), format))
    text = {"header": header, "name": name, "delimiter": delimiter, "decimal": decimal, "encoding": encoding}
    single = Path("-" if several else cast(str, path))
    stdin = not several and os.fspath(single) == "-"
    if cache is not None and (stdin or kind not in ("arrow", "feather", "parquet")):
        raise ValueError(
            "cache= (--cache) is only for Arrow and Parquet files, because other files and stdin are not converted: "
            "leave it out"
        )
    stays = not stdin and all(option is None for option in text.values())
    drop = nonfinite == "drop"
    opened: FileRecords | None = None
    try:
        if stays and not several and not drop and kind == "npy":
            opened = _npy(single, columns)
        elif stays and not several and not drop and kind in ("arrow", "feather"):
            opened = _arrow(single, columns)
        if stays and opened is None and kind in ("arrow", "feather", "parquet"):
            names, total, batches = _batches(files or [single], kind, columns)
            blocks = _blocks(batches, replace(intake, typed=True, choose="columns=[...] (--columns)"), drop)
            opened = _cached(blocks, names, total, named(path), cache, progress, drop)
    except (ValueError, TypeError) as error:
        raise (ValueError if isinstance(error, ValueError) else TypeError)(f"{named(path)}: {error}") from error
    except (MemoryError, NotImplementedError, EOFError) as error:
        raise ValueError(f"{named(path)} cannot be read as {kind}, it may be damaged: {error}") from error
    except OSError as error:
        if error.errno is not None:
            raise  # Errors of the operating system, such as a full disk, already name the file.
        raise OSError(f"{named(path)}: {error}") from error
    if opened is None:
        options: dict[str, Any] = {**text, "format": format, "d": d}
        return read_points(path, columns=columns, nonfinite=nonfinite, **options)
    if d is not None and opened.shape[1] != d:
        raise ValueError(f"{named(path)} has {opened.shape[1]} chosen columns, but d = {d} was given")
    return opened


# Files that are read in place.


def _npy(path: Path, wanted: Wanted) -> FileRecords | None:
    """Open an NPY file with an array of floats, in C or Fortran order. Return None for any other array."""
    file = RecordFile(path)
    with path.open("rb") as stream:
        require_size(stream, path.stat().st_size)
        stream.seek(0)
        header = header_of(stream, np.lib.format.read_magic(stream))
        if header is None:
            return None
        shape, fortran, dtype = header
        start = stream.tell()
    if len(shape) != 2 or 0 in shape or dtype not in (np.dtype("<f4"), np.dtype("<f8")):
        return None
    (n, d), width = shape, dtype.itemsize
    names = numbered(d)
    places = select(names, wanted)
    step, stride = (n * width, width) if fortran else (width, d * width)
    return FileRecords.of(file, [(n, [(start + j * step, stride, width == 8) for j in places])], labels(names, places))


def _arrow(path: Path, wanted: Wanted) -> FileRecords | None:
    """Open an Arrow file with columns of floats. Return None if a column is compressed, has missing values, or has
    another type.
    """
    arrow = pyarrow()
    file = RecordFile(path)
    # The memory map is used only to find the positions of the columns.
    with arrow.memory_map(os.fspath(path)) as mapped:
        size = mapped.size()
        try:
            reader = arrow.ipc.open_file(mapped)
        except arrow.ArrowInvalid:
            return None
        mapped.seek(0)
        base = mapped.read_buffer(1).address
        names = list(reader.schema.names)
        places = select(names, wanted)
        pieces: list[tuple[int, list[Column]]] = []
        for i in range(reader.num_record_batches):
            batch = reader.get_batch(i)
            found = [_buffer(arrow, batch.column(j), base, size) for j in places]
            columns = [column for column in found if column is not None]
            if len(columns) < len(found):
                return None
            pieces.append((batch.num_rows, columns))
    return FileRecords.of(file, pieces, labels(names, places)) if pieces else None


def _buffer(arrow: Any, column: Any, base: int, size: int) -> Column | None:
    kind = column.type
    if not (arrow.types.is_float32(kind) or arrow.types.is_float64(kind)) or column.null_count:
        return None
    width = kind.bit_width // 8
    if not len(column):
        return 0, width, width == 8
    offset = column.buffers()[1].address - base + column.offset * width
    return (offset, width, width == 8) if 0 <= offset <= size - len(column) * width else None


# Files that are converted.


def _batches(files: Sequence[Path], kind: str, wanted: Wanted) -> tuple[tuple[str, ...], int, Iterator[Any]]:
    """Return the names of the chosen columns, the number of records, and an iterator over tables of records."""
    arrow = pyarrow()
    read = _parquet if kind == "parquet" else _ipc
    try:
        names = read(arrow, files[0], None)[0]
        places = select(names, wanted)
        if len(set(names)) < len(names):
            raise ValueError("two columns have the same name; rename one of them")
        chosen = [names[i] for i in places]
        parts = [read(arrow, file, chosen) for file in files]
    except arrow.ArrowInvalid as error:
        raise ValueError(f"this is not a complete {kind} file: {error}") from error
    tables = (table for _, _, tables in parts for table in tables)
    return labels(names, places), sum(n for _, n, _ in parts), tables


Part = tuple[list[str], int, Iterator[Any]]


def _parquet(arrow: Any, path: Path, chosen: Sequence[str] | None) -> Part:
    """Return the names of the columns, the number of records, and tables of bounded size of the chosen columns."""
    import pyarrow.parquet as parquet  # type: ignore[import-untyped, unused-ignore]

    metadata = parquet.read_metadata(path)
    names = list(metadata.schema.to_arrow_schema().names)

    def tables() -> Iterator[Any]:
        with parquet.ParquetFile(path, pre_buffer=False) as file:
            _require_columns(path, names, chosen)
            rows = max(1, _BLOCK // max(1, len(chosen or ())))
            for batch in file.iter_batches(batch_size=rows, columns=chosen, use_threads=False):
                yield arrow.Table.from_batches([batch])

    return names, metadata.num_rows, tables()


def _ipc(arrow: Any, path: Path, chosen: Sequence[str] | None) -> Part:
    """Return the names of the columns, the number of records, and the batches of an Arrow file."""
    with arrow.OSFile(os.fspath(path)) as source:
        reader = arrow.ipc.open_file(source)
        names, n = list(reader.schema.names), reader.count_rows()

    def tables() -> Iterator[Any]:
        with arrow.OSFile(os.fspath(path)) as source:
            reader = arrow.ipc.open_file(source)
            for i in range(reader.num_record_batches):
                yield arrow.Table.from_batches([reader.get_batch(i)]).select(chosen)

    return names, n, tables()


def _require_columns(path: Path, names: Sequence[str], chosen: Sequence[str] | None) -> None:
    missing = [name for name in chosen or () if name not in names]
    if missing:
        raise ValueError(f"{path.name!r} has no column {missing[0]!r}, only {', '.join(map(repr, names))}")


def _blocks(tables: Iterable[Any], intake: Intake, drop: bool) -> Iterator[tuple[Floats, tuple[str, ...]]]:
    first = 0
    for table in tables:
        try:
            framed = from_frame(table, intake)
        except ValueError as error:
            raise ValueError(f"in the records from row {first + 1} on: {error}") from error
        assert framed is not None, "a table is a frame"
        first += table.num_rows
        records = Records(*framed)
        yield (records.finite() if drop else records).array, framed[1]


def _cached(
    blocks: Iterable[tuple[Floats, tuple[str, ...]]],
    names: tuple[str, ...],
    total: int,
    source: str,
    cache: str | os.PathLike[str] | None,
    progress: Show,
    drop: bool,
) -> FileRecords:
    """Write the blocks one after the other to a temporary file."""
    folder = tempfile.gettempdir() if cache is None else os.fspath(cache)
    handle, path = tempfile.mkstemp(prefix="dpmedian-", suffix=".cache", dir=folder)
    try:
        file = RecordFile(path)
        if os.name == "posix":
            os.unlink(path)
        n, d = 0, len(names)
        dtype: np.dtype[Any] | None = None
        with os.fdopen(handle, "wb") as out, Progress(1.0, None if callable(progress) else progress) as meter:
            advance = meter.span()
            for block, found in blocks:
                if dtype is None:
                    # A column of lists becomes several columns, one for each position in the lists.
                    names, d, dtype = found, block.shape[1], block.dtype
                    _require_room(folder, total * d * dtype.itemsize, source)
                if block.shape[1] != d:
                    raise ValueError(
                        f"all lists must have the same length, but the lists from row {n + 1} on have another length"
                    )
                _write(out, np.ascontiguousarray(block, dtype).tobytes(), folder, source)
                n += len(block)
                advance(n / max(total, 1))
        width = 8 if dtype is None else dtype.itemsize
        opened = FileRecords.of(file, [(n, [(j * width, d * width, width == 8) for j in range(d)])], names, drop)
    finally:
        if os.name != "posix" and "opened" not in locals():
            Path(path).unlink(missing_ok=True)
    if os.name != "posix":
        weakref.finalize(opened, Path(path).unlink, missing_ok=True)
    return opened


def _require_room(folder: str, needed: int, source: str) -> None:
    if shutil.disk_usage(folder).free < needed:
        raise OSError(errno.ENOSPC, f"{_no_room(folder, source)}; the conversion needs {needed / 2**20:.0f} MiB")


def _write(out: BinaryIO, block: bytes, folder: str, source: str) -> None:
    try:
        out.write(block)
        out.flush()
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise OSError(errno.ENOSPC, _no_room(folder, source)) from error
        raise


def _no_room(folder: str, source: str) -> str:
    return f"the disk of {folder!r} is too full to convert {source}: choose another folder, cache=... (--cache)"
