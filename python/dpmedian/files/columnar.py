"""Parquet and Arrow files. Their columns have types, which are public like the names of the columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, BinaryIO

from dpmedian.sources.cells import Intake
from dpmedian.sources.columns import divide, labels
from dpmedian.sources.frames import from_frame
from dpmedian.sources.labels import as_labels
from dpmedian.sources.records import Records

__all__ = ["pyarrow", "read_columnar"]


def pyarrow() -> Any:
    """Return the library pyarrow, or raise an error that explains how to install it."""
    try:
        import pyarrow  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise ImportError("reading Parquet and Arrow needs pyarrow: pip install 'dpmedian[files]'") from error
    return pyarrow


def read_columnar(
    source: BinaryIO,
    kind: str,
    wanted: Sequence[str | int] | None,
    intake: Intake,
    label_columns: Sequence[str | int] = (),
) -> Records:
    """Read the chosen columns of numbers, or a single column of lists of numbers, and the label columns."""
    arrow = pyarrow()
    import pyarrow.feather as feather  # type: ignore[import-untyped, unused-ignore]
    import pyarrow.parquet as parquet  # type: ignore[import-untyped, unused-ignore]

    opened: Any = arrow.PythonFile(source, mode="r")
    if kind == "parquet":
        file = parquet.ParquetFile(opened)
        names = list(file.schema_arrow.names)
        places, others = divide(names, wanted, label_columns)
        # pyarrow selects columns by name only, so a file with a repeated name is read as a whole.
        all_places = [*places, *others]
        table = file.read(columns=[names[i] for i in all_places]) if len(set(names)) == len(names) else file.read()
        table = table.select([names[i] for i in all_places] if len(set(names)) == len(names) else all_places)
    else:
        table = feather.read_table(opened)
        names = list(table.schema.names)
        places, others = divide(names, wanted, label_columns)
        table = table.select([*places, *others])
    found = {
        str(name): replace(as_labels(table.column(len(places) + i), str(name)), name=str(name))
        for i, name in enumerate(label_columns)
    }
    chosen = table.select(range(len(places))).rename_columns(labels(names, places))
    framed = from_frame(chosen, replace(intake, typed=True, choose="columns=[...] (--columns)"))
    assert framed is not None, "a table is a frame"
    return Records(*framed, labels=found)
