"""The records of an internal topic in the order in which they took effect.

A record that was written in a transaction takes effect with the marker that commits it, and never without one: the
offsets that a producer committed in its transactions stand in the topic whatever became of these. What is undecided at
the end of the log has no effect yet. Source: KIP-98.
"""

from collections.abc import Iterator

from moldau.coordinators.outcome import Record
from moldau.records import rows
from moldau.records.batch import batches, read_marker

Buffer = bytes | bytearray | memoryview


class Replaying:
    """Chunks of one partition, from its start on."""

    def __init__(self) -> None:
        self._undecided: dict[int, list[Record]] = {}

    def records(self, chunk: Buffer) -> Iterator[Record]:
        """What takes effect with the whole batches of the next chunk. Raises `KafkaError` for bytes that are none."""
        headers = list(batches(chunk))
        if not any(header.is_transactional for _, header in headers):
            yield from _records(chunk)
            return
        view = memoryview(chunk)
        for at, header in headers:
            batch = view[at : at + header.size]
            if header.is_control:
                marker = read_marker(batch)
                undecided = self._undecided.pop(header.producer_id, []) if marker is not None else []
                if marker is not None and marker.commits:
                    yield from undecided
            elif header.is_transactional:
                self._undecided.setdefault(header.producer_id, []).extend(_records(batch))
            else:
                yield from _records(batch)


def _records(buffer: Buffer) -> Iterator[Record]:
    return (Record(row.key, row.value) for row in rows.iterate(buffer) if row.key is not None)
