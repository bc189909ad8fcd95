"""A log folder of ours with everything in it that an inspection looks at: segments, codecs, producers, transactions."""

import uuid
from pathlib import Path

from harness.logs import NOW_MS, HandClock, append, config
from moldau.log.folders.folder import LogFolder
from moldau.log.log import Log
from moldau.names import TopicPartition
from moldau.records.batch import Marker, Row
from moldau.runtime import Runtime
from tests.log.test_transaction_index import Writer

FLIGHTS, BOOKINGS, HOLLOW = (TopicPartition(name, 0) for name in ("flights", "bookings", "hollow"))
IDS = {"flights": uuid.UUID(int=1), "bookings": uuid.UUID(int=2), "hollow": uuid.UUID(int=3)}
SMALL = config(segment_bytes=6000, index_interval_bytes=300)
BATCHES, BATCH_RECORDS = 60, 10
RECORDS = BATCHES * BATCH_RECORDS


def fill(path: Path, *, clean: bool = True, runtime: Runtime | None = None) -> None:
    """Write the folder and stop, cleanly or as a crash of the process does."""
    folder = LogFolder(path, runtime or Runtime(clock=HandClock()))
    folder.claim("the-cluster", 1)
    flights, bookings, _ = (folder.create(tp, IDS[tp.topic], SMALL) for tp in (FLIGHTS, BOOKINGS, HOLLOW))
    _fly(flights)
    _book(bookings)
    if clean:
        folder.close(high_watermarks={tp: int(log.log_end_offset) for tp, log in folder.logs.items()})
        return
    for log in folder.logs.values():
        log.flush()
    folder.checkpoint({tp: int(log.log_end_offset) for tp, log in folder.logs.items()})
    append(flights, 5, leader_epoch=3)
    append(flights, 5, leader_epoch=3)
    folder.close(clean=False)


def _fly(log: Log) -> None:
    """All codecs, keys and values of every kind, a producer that counts, two leader epochs."""
    sequence = 0
    for number in range(BATCHES):
        rows = [
            Row(
                None if at % 3 == 0 else b"key-%d" % at,
                None if at % 4 == 1 else b"\xff\x00" if at % 5 == 0 else b"value " * at,
                NOW_MS + number * 100 + at,
                [("name", b"\xfe"), ("none", None)] if at % 7 == 0 else [],
            )
            for at in range(BATCH_RECORDS)
        ]
        counted = {"producer_id": 70, "producer_epoch": 1, "base_sequence": sequence} if number % 2 else {}
        sequence += BATCH_RECORDS * (number % 2)
        appended = append(log, rows, leader_epoch=number // 30 * 3, codec=number % 5, **counted)
        assert not appended.error, appended


def _book(log: Log) -> None:
    """Transactions: committed, aborted, and one that is open."""
    one, other = Writer(log, 5), Writer(log, 6)
    for number in range(30):
        one.write(3)
        other.write(2)
        one.end(Marker(number % 2 == 0, 4))
        other.end(Marker(number % 3 == 0, 4))
    one.write(2)
