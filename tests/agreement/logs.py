"""Logs that our log writes alone, with no broker around it: what only coordinators and cleaners bring about."""

from pathlib import Path
from typing import NamedTuple

from harness.logs import NOW_MS, append, config, open_log, rows
from moldau.log.log import Log
from moldau.records.batch import TRANSACTIONAL_BIT, Marker
from tests.log.compaction.compacting import put

SEGMENT = config(segment_bytes=1500, index_interval_bytes=100)
COORDINATOR_EPOCH = 4


class Ended(NamedTuple):
    producer_id: int
    marker: int
    """The offset of its marker."""
    commits: bool
    first: int


class Writer:
    """A transactional producer."""

    def __init__(self, log: Log, producer_id: int):
        self.log, self.producer_id = log, producer_id
        self.epoch = self.sequence = 0
        self.first = -1

    def write(self, count: int, codec: int = 0) -> None:
        appended = append(
            self.log,
            rows(count),
            codec=codec,
            attributes=TRANSACTIONAL_BIT,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
        )
        self.sequence += count
        self.first = appended.base_offset if self.first < 0 else self.first

    def end(self, commits: bool) -> Ended:
        self.epoch, self.sequence = self.epoch + 1, 0
        marker = Marker(commits, COORDINATOR_EPOCH)
        appended = self.log.append_marker(self.producer_id, self.epoch, marker, 2, 0, NOW_MS)
        first, self.first = self.first, -1
        return Ended(self.producer_id, appended.base_offset, commits, first)


def with_transactions(folder: Path) -> tuple[Log, list[Ended]]:
    """A log of many transactions in several segments, one of which is left open; how each ended."""
    log = open_log(folder, config=SEGMENT)
    one, other, open_one = Writer(log, 1), Writer(log, 2), Writer(log, 3)
    ended = []
    for i in range(12):
        one.write(2 + i % 3, codec=i % 5)
        append(log, 2)
        other.write(1)
        if i == 6:
            open_one.write(2)
        ended.append(one.end(commits=i % 2 == 0))
        if i % 4 == 3:
            ended.append(other.end(commits=False))
    return log, ended


def fill_compacted(log: Log, begin: int) -> None:
    """Keys written over and over in all codecs, tombstones, an idempotent producer, transactions."""
    for number in range(begin, begin + 60):
        pairs = [(f"k{(number * 7 + i) % 23}", f"value {number}") for i in range(4)]
        put(log, *pairs, codec=number % 5)
        if number % 6 == 0:
            put(log, (f"k{number % 23}", None), (f"gone{number}", None))
        if number % 5 == 0:
            put(log, ("sequenced", str(number)), producer_id=70, producer_epoch=0, base_sequence=number // 5)
        if number % 10 == 0:
            at = number // 10
            written = {"attributes": TRANSACTIONAL_BIT, "producer_id": 71, "producer_epoch": at, "base_sequence": 0}
            put(log, (f"k{number % 23}", "in a transaction"), (f"t{number % 20}", str(number)), codec=3, **written)
            ended = log.append_marker(71, at + 1, Marker(at % 2 == 0, 0), 2, 0, NOW_MS)
            assert not ended.error
