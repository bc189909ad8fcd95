"""An internal topic read back: what was written for good, what was written in transactions, and how these ended.

A record that was written in a transaction takes effect with the marker that commits it, and never without one: the
offsets that a producer committed in its transactions stand in the topic whatever became of these. What is undecided at
the end of the log has no effect yet. Of two records of one key that take effect the later one in the log counts, be it
decided before the earlier one or after. Source: KIP-98; what Kafka 4.3 answers.
"""

from collections.abc import Iterator
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

from moldau.coordinators.decision import InternalRecord
from moldau.records import columns
from moldau.records.batch import NO_PRODUCER_ID, batches, read_marker
from moldau.records.sections import sections

_key_and_value: Any = itemgetter(3, 4)
_make: Any = partial(tuple.__new__, InternalRecord)

Buffer = bytes | bytearray | memoryview


class Step(NamedTuple):
    """Records that follow each other, or the end of a producer's transaction. `producer_id`: of the transaction whose
    end these records wait for, -1 if for none. `commits`: how that transaction ends here, None if it goes on."""

    records: list[InternalRecord]
    producer_id: int = NO_PRODUCER_ID
    commits: bool | None = None


def steps(chunk: Buffer) -> Iterator[Step]:
    """What stands in whole batches, in their order. Raises `KafkaError` for bytes that are none."""
    view = memoryview(chunk)
    for at, header in batches(view):
        batch = view[at : at + header.size]
        if not header.is_transactional:
            for records in _records(batch):
                yield Step(records)
        elif header.is_control:
            marker = read_marker(batch)
            if marker is not None:
                yield Step([], header.producer_id, marker.commits)
        else:
            for records in _records(batch):
                yield Step(records, header.producer_id)


def _records(batch: Buffer) -> Iterator[list[InternalRecord]]:
    """Those of one batch that have a key, and nothing else of them."""
    for section in sections(batch):
        yield [_make(row) for row in columns.rows(section, _key_and_value) if row[0] is not None]


class Replaying:
    """Chunks of one partition, from its start on, for who only wants to know what took effect."""

    def __init__(self) -> None:
        self._undecided: dict[int, dict[bytes, tuple[int, InternalRecord]]] = {}
        self._written = 0

    def records(self, chunk: Buffer) -> Iterator[InternalRecord]:
        """What takes effect with the whole batches of the next chunk, in that order. Raises as `steps` does."""
        for step in steps(chunk):
            if step.commits is not None:
                ended = self._undecided.pop(step.producer_id, {})
                if step.commits:
                    for order, record in ended.values():
                        self._overtake(record, order)
                        yield record
            elif step.producer_id != NO_PRODUCER_ID:
                undecided = self._undecided.setdefault(step.producer_id, {})
                for record in step.records:
                    self._written += 1
                    undecided[record.key] = self._written, record
            elif self._undecided:
                for record in step.records:
                    self._overtake(record, self._written + 1)
                    yield record
            else:
                yield from step.records

    def _overtake(self, record: InternalRecord, order: int) -> None:
        """What is undecided of that key and was written before has no effect any more."""
        for undecided in self._undecided.values():
            if record.key in undecided and undecided[record.key][0] < order:
                del undecided[record.key]
