"""Parquet and Arrow files, whose columns have types; these are as public as their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, BinaryIO

from dpmedian.files.columns import labels, select
from dpmedian.sources.records import Intake, Records

__all__ = ["read_columnar"]


def read_columnar(source: BinaryIO, kind: str, wanted: Sequence[str | int] | None, intake: Intake) -> Records:
    """The wanted columns of numbers, or a single column of lists of numbers."""
    try:
        import pyarrow as arrow  # type: ignore[import-untyped, unused-ignore]
        import pyarrow.feather as feather  # type: ignore[import-untyped, unused-ignore]
        import pyarrow.parquet as parquet  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise ImportError("reading Parquet and Arrow needs pyarrow: pip install 'dpmedian[files]'") from error
    opened: Any = arrow.PythonFile(source, mode="r")
    if kind == "parquet":
        file = parquet.ParquetFile(opened)
        names = list(file.schema_arrow.names)
        places = select(names, wanted)
        # A file with a name twice has to be read as a whole: columns can be asked for by name only.
        table = file.read(columns=[names[i] for i in places]) if len(set(names)) == len(names) else file.read()
        table = table.select([names[i] for i in places] if len(set(names)) == len(names) else places)
    else:
        table = feather.read_table(opened)
        names = list(table.schema.names)
        places = select(names, wanted)
        table = table.select(places)
    from dpmedian.sources.frames import from_frame

    framed = from_frame(
        table.rename_columns(labels(names, places)), replace(intake, choose="columns=[...] (--columns)")
    )
    assert framed is not None, "a table is a frame"
    return Records(*framed)
