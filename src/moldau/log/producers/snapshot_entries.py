"""The entries of a partition's producer snapshot, kept packed, so that a snapshot of 300,000 producers takes no longer
than copying its bytes.

The log snapshots its producers when it begins a segment, on the event loop. Packing all of them there would hold the
loop for 0.1 s. Therefore an entry is packed soon after its producer changed: each changed producer is noted once, and
all noted ones are packed when there are `AT_ONCE`, or when a snapshot is made. `snapshots.py` documents the fields.
"""

import struct
from collections.abc import Mapping
from typing import Final

from moldau.log.producers.producer_state import NO_ENTRY, BatchMetadata, ProducerStateEntry

ENTRY: Final = struct.Struct(">qhiqiqiq")
_ID: Final = struct.Struct(">q")
assert ENTRY.size == 46
AT_ONCE: Final = 1000


class SnapshotEntries:
    """Of `known`, which stays its owner's: every change of a producer in it is noted here, after the change."""

    __slots__ = ("_changed", "_known", "_packed")

    def __init__(self, known: Mapping[int, ProducerStateEntry]):
        self._known = known
        self._packed = bytearray()
        self._changed: list[tuple[int, ProducerStateEntry]] = []
        for producer_id, producer in known.items():
            self.note(producer_id, producer)

    def note(self, producer_id: int, producer: ProducerStateEntry) -> None:
        """This producer is new, or not what it was."""
        if not producer.changed:
            producer.changed = True
            self._changed.append((producer_id, producer))
            if len(self._changed) >= AT_ONCE:
                self._pack()

    def packed(self) -> bytearray:
        """All entries, one behind the other. To be copied before the next change."""
        self._pack()
        return self._packed

    def remove(self, producer_id: int) -> None:
        """Drop the entry of a producer that is still in `known`. The last entry takes its place."""
        self._pack()
        packed, at = self._packed, self._known[producer_id].entry
        last = len(packed) - ENTRY.size
        self._known[_ID.unpack_from(packed, last)[0]].entry = at
        packed[at : at + ENTRY.size] = packed[last:]
        del packed[last:]

    def _pack(self) -> None:
        packed = self._packed
        for producer_id, producer in self._changed:
            if producer.entry == NO_ENTRY:
                producer.entry = len(packed)
                packed += bytes(ENTRY.size)
            last = producer.batches[-1] if producer.batches else BatchMetadata(-1, -1, 0, producer.last_timestamp)
            ENTRY.pack_into(
                packed, producer.entry, producer_id, producer.epoch, last.last_sequence, last.last_offset,
                last.offset_delta, producer.last_timestamp, producer.coordinator_epoch, producer.transaction_start,
            )  # fmt: skip
            producer.changed = False
        self._changed.clear()
