"""Replays an internal topic: records, records in transactions, and how these transactions ended.

A record that was written in a transaction takes effect with the marker that commits the transaction. Records of aborted
transactions stay in the topic without effect, and so far do those of transactions that are open at the end of the log.
If two committed records share a key, the higher offset wins, whichever transaction ended first: state machines see to
that (`offsets/pending.py`). Source: KIP-98; the answers of Kafka 4.3.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from moldau.coordinators.decision import InternalRecord
from moldau.records import columns
from moldau.records.batch import NO_PRODUCER_ID, batches, read_marker
from moldau.records.sections import sections

_make: Any = partial(tuple.__new__, InternalRecord)

Buffer = bytes | bytearray | memoryview


class ReplayStep(NamedTuple):
    """Consecutive records, or the end of a producer's transaction. `producer_id` is the producer in whose transaction
    the records were written, -1 if in none. `commits` says how that transaction ends here; None if it stays open."""

    records: list[InternalRecord]
    producer_id: int = NO_PRODUCER_ID
    commits: bool | None = None


def steps(chunk: Buffer) -> Iterator[ReplayStep]:
    """The contents of whole batches, in order. Raises `KafkaError` if the bytes are not batches."""
    view = memoryview(chunk)
    for at, header in batches(view):
        batch = view[at : at + header.size]
        if not header.is_transactional:
            for records in _records(batch):
                yield ReplayStep(records)
        elif header.is_control:
            marker = read_marker(batch)
            if marker is not None:
                yield ReplayStep([], header.producer_id, marker.commits)
        else:
            for records in _records(batch):
                yield ReplayStep(records, header.producer_id)


def _records(batch: Buffer) -> Iterator[list[InternalRecord]]:
    """The key and value of each record of the batch; records without a key are left out."""
    for section in sections(batch):
        yield [_make(row[3:5]) for row in columns.rows(section) if row[3] is not None]
