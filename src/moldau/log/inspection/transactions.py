"""Entries of a transaction index as they lie in the file: the aborted transactions whose last record is in a segment.

 0  2  version              0
 2  8  producer_id
10  8  first_offset         of the transaction
18  8  last_offset          of the marker that ended it
26  8  last_stable_offset   when it ended
"""

import struct
from typing import Final, NamedTuple

ENTRY: Final = struct.Struct(">hqqqq")
VERSION: Final = 0
assert ENTRY.size == 34


class Aborted(NamedTuple):
    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
