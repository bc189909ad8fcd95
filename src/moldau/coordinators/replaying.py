"""The records of an internal topic in the order in which they took effect.

A record that was written in a transaction takes effect with the marker that commits it, and never without one: the
offsets that a producer committed in its transactions stand in the topic whatever became of these. What is undecided at
the end of the log has no effect yet. Source: KIP-98.
"""

from collections.abc import Iterator
from functools import partial
from operator import itemgetter
from typing import Any

from moldau.coordinators.outcome import Record
from moldau.records import columns
from moldau.records.batch import batches, read_marker
from moldau.records.sections import sections

_key_and_value: Any = itemgetter(3, 4)
_make: Any = partial(tuple.__new__, Record)

Buffer = bytes | bytearray | memoryview


class Replaying:
    """Chunks of one partition, from its start on."""

    def __init__(self) -> None:
        self._undecided: dict[int, list[Record]] = {}

    def records(self, chunk: Buffer) -> Iterator[Record]:
        """What takes effect with the whole batches of the next chunk. Raises `KafkaError` for bytes that are none."""
        view = memoryview(chunk)
        for at, header in batches(view):
            batch = view[at : at + header.size]
            if not header.is_transactional:
                yield from _records(batch)
            elif header.is_control:
                marker = read_marker(batch)
                undecided = self._undecided.pop(header.producer_id, []) if marker is not None else []
                if marker is not None and marker.commits:
                    yield from undecided
            else:
                self._undecided.setdefault(header.producer_id, []).extend(_records(batch))


def _records(batch: Buffer) -> Iterator[Record]:
    """Those of one batch that have a key, and nothing else of them."""
    for section in sections(batch):
        yield from [_make(row) for row in columns.rows(section, _key_and_value) if row[0] is not None]
