"""Sources: where the records are. They answer statistics with exact integers that only the tape can open.

`protocol.py` says what a source is, `records.py` turns what a caller has into one array, `array.py` holds records in
memory, and `partitioned.py` holds them in several parts whose answers are added up.
"""
