"""Producer snapshots: what is known of the producers at an offset, in a file named by that offset.

    00000000000000000120.snapshot
         0   2  version                 1
         2   4  crc                     CRC-32C of everything below
         6   4  count                   entries that follow, each of 46 bytes:
         0   8  producer_id
         8   2  producer_epoch
        10   4  last_sequence           of its last batch; -1 if that has none
        14   8  last_offset             -1 if no batch of its epoch is known
        22   4  offset_delta            last offset - first offset of that batch
        26   8  timestamp               of its last batch
        34   4  coordinator_epoch       of the last transaction marker, or -1
        38   8  transaction_start       first offset of the open transaction, or -1

Only the last of a producer's batches is in it; the log puts the older ones back from the batches before it. A file that
does not hold is reported as absent: the log deletes it and tries an older one.
"""

import struct
from pathlib import Path
from typing import Final

from moldau.checksums import crc32c
from moldau.log.checkpoints import CorruptCheckpoint, read_whole, replace_file
from moldau.log.file_names import SNAPSHOT_SUFFIX, file_name
from moldau.log.producers.producer_state import NO_TRANSACTION, BatchMetadata, ProducerStateEntry
from moldau.log.producers.producers import Producers
from moldau.log.producers.snapshot_entries import ENTRY
from moldau.names import Offset
from moldau.runtime import Disk

_HEADER: Final = struct.Struct(">hIi")
_COUNT_AT: Final = 6
VERSION: Final = 1
assert _HEADER.size == 10


def encode(producers: Producers) -> bytes:
    entries = producers.entries.packed()
    count = struct.pack(">i", len(producers))
    return b"".join((struct.pack(">hI", VERSION, crc32c(entries, crc32c(count))), count, entries))


def decode(data: bytes) -> Producers | None:
    """The producers of a snapshot; None if it does not hold."""
    if len(data) < _HEADER.size:
        return None
    version, crc, count = _HEADER.unpack_from(data)
    if (
        version != VERSION
        or crc != crc32c(memoryview(data)[_COUNT_AT:])
        or len(data) != _HEADER.size + count * ENTRY.size
    ):
        return None
    known: dict[int, ProducerStateEntry] = {}
    for entry in ENTRY.iter_unpack(memoryview(data)[_HEADER.size :]):
        producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator_epoch, transaction_start = entry
        producer = ProducerStateEntry(epoch)
        if last_offset >= 0:
            producer.add(BatchMetadata(last_sequence, last_offset, delta, timestamp))
        producer.last_timestamp = timestamp
        producer.coordinator_epoch = coordinator_epoch
        producer.transaction_start = max(transaction_start, NO_TRANSACTION)
        known[producer_id] = producer
    return Producers(known)


def write(disk: Disk, folder: Path, producers: Producers, offset: int) -> None:
    """Snapshot the producers, which are those up to `offset`. Until it is flushed it may not last: then the log is read
    again."""
    replace_file(disk, folder / file_name(offset, SNAPSHOT_SUFFIX), encode(producers), flush=False)


def restore(disk: Disk, folder: Path, producers: Producers, offset: int) -> Path:
    """See to it that there is a snapshot of the producers, which are those up to `offset`, and leave one that is right
    alone: it may have been flushed."""
    path, data = folder / file_name(offset, SNAPSHOT_SUFFIX), encode(producers)
    try:
        is_right = read_whole(disk, path) == data
    except CorruptCheckpoint:
        is_right = False
    if not is_right:
        replace_file(disk, path, data)
    return path


def read(disk: Disk, folder: Path, offset: int) -> Producers | None:
    """The producers up to `offset`; None if there is no such snapshot, or it does not hold."""
    try:
        data = read_whole(disk, folder / file_name(offset, SNAPSHOT_SUFFIX))
    except CorruptCheckpoint:
        return None
    producers = decode(data) if data is not None else None
    if producers is not None:
        producers.end_offset = Offset(offset)
    return producers
