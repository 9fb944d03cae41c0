"""Sources: where the records are. They answer statistics with exact integers that only the tape can open.

`protocol.py` says what a source is. `records.py` turns rows into one array, and `file.py` describes records that stay
in a file; `array.py` answers queries about both. `partitioned.py` has records in several parts and adds their answers,
and `dask.py` has records in the workers of a cluster. The package `dataset` decides which source serves the input.
"""
