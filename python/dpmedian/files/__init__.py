"""Points from files and from stdin: delimited text, Parquet, Arrow, NPY and NPZ."""

from dpmedian.files.opening import open_points
from dpmedian.files.reading import FORMATS, read_points

__all__ = ["FORMATS", "open_points", "read_points"]
