"""A model of what takes effect of an internal topic, beside which the state machines of coordinators are tested."""

from collections.abc import Iterator

from moldau.coordinators.decision import InternalRecord
from moldau.coordinators.replaying import Buffer, steps
from moldau.records.batch import NO_PRODUCER_ID


class Replaying:
    """Reads one partition from its start, chunk by chunk, and returns only the records that take effect."""

    def __init__(self) -> None:
        self._undecided: dict[int, dict[bytes, tuple[int, InternalRecord]]] = {}
        self._written = 0

    def records(self, chunk: Buffer) -> Iterator[InternalRecord]:
        """The records that take effect with the next chunk of whole batches, in that order. Raises as `steps` does."""
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
        """Undecided records of that key which were written earlier lose their effect."""
        for undecided in self._undecided.values():
            if record.key in undecided and undecided[record.key][0] < order:
                del undecided[record.key]
