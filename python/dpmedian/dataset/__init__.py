"""What a caller hands over as points: read once, whatever its kind, and kept for any number of releases.

`dataset.py` has the public class, and `reading.py` its options. `memory.py` reads arrays, frames, tables, streams and
batches, `stored.py` files and folders, and `cluster.py` the collections of Dask. Each offers the same protocol,
`protocol.py`, so nothing outside of this package asks which kind of input it has.
"""

from dpmedian.dataset.dataset import Dataset

__all__ = ["Dataset"]
