"""Sources: where the records are. They answer statistics with exact integers that only the tape can open.

`protocol.py` says what a source is. `records.py` turns rows into one array, and `file.py` knows records that stay in a
file: `array.py` answers for both. `partitioned.py` holds records in several parts whose answers are added up, and
`dask.py` in the workers of a cluster. The package `dataset` decides which of them serves what a caller hands over.
"""
