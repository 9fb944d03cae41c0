"""The points that a caller passes. They are read once and kept for any number of releases.

`dataset.py` has the public class, and `reading.py` its options. `memory.py` reads arrays, frames, tables, streams and
batches; `stored.py` reads files and folders; `cluster.py` reads Dask collections. All these classes implement the
interface in `protocol.py`, so other packages do not depend on the kind of input.
"""

from dpmedian.dataset.dataset import SHARED, Dataset

__all__ = ["SHARED", "Dataset"]
