"""The one compiled extension: all work that is done per record.

`reading` walks the records of a batch (scan on append, decode to columns), `writing` encodes rows and columns. Both are
Cython in its pure-Python mode: compiled where there was a compiler, interpreted elsewhere, from the same files.
"""

from moldau.records.columns.reading import COMPILED as READING_COMPILED
from moldau.records.columns.reading import FLAWS, rows, scan
from moldau.records.columns.writing import COMPILED as WRITING_COMPILED
from moldau.records.columns.writing import encode_rows

COMPILED: bool = READING_COMPILED and WRITING_COMPILED

__all__ = ["COMPILED", "FLAWS", "encode_rows", "rows", "scan"]
