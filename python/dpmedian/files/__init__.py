"""Points from files and from stdin: delimited text, Parquet, Arrow, NPY and NPZ."""

from dpmedian.files.reading import FORMATS, read_points

__all__ = ["FORMATS", "read_points"]
