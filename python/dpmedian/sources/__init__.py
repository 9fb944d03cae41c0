"""Sources: objects that hold records, in memory, in a file or in a cluster. They answer statistics with exact integers
that only the tape can open.

`protocol.py` defines the interface of a source. `records.py` converts rows to one array, and `file.py` describes
records that stay in a file; `array.py` answers queries about both. `partitioned.py` is for records in several parts,
and `dask.py` for records in the workers of a cluster. The package `dataset` chooses the source for an input.
"""
