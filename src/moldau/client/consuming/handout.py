"""What a consumer has handed out and its caller has not come back from yet: the line between delivered and processed.

`poll` hands out a list: it counts as processed when the caller polls again. Iteration hands out a run of records one by
one: each counts as processed when the next one is asked for. How far a run was iterated is read off its iterator, so
that iterating costs nothing extra per record.
"""

from collections.abc import Iterator
from operator import length_hint

from moldau.client.consuming.record import Record
from moldau.names import TopicPartition


class Handout:
    """The records that the caller has now, and those of a run that it has not asked for yet."""

    def __init__(self) -> None:
        self._polled: dict[TopicPartition, int] = {}
        self._cut: dict[TopicPartition, int] = {}
        self._runs = 0
        self._run: list[Record] = []
        self._walk: Iterator[Record] = iter(self._run)

    def polled(self, firsts: dict[TopicPartition, int]) -> None:
        """`poll` returned records; `firsts` has the first offset of each partition."""
        self._polled = firsts

    def iterating(self, records: list[Record]) -> Iterator[Record]:
        """Begin a run. The caller iterates over the result and nothing else."""
        self._runs += 1
        self._run = records
        self._walk = iter(records)
        return self._walk

    @property
    def walk(self) -> Iterator[Record] | None:
        """The iterator of the run if it has records left, else None."""
        return self._walk if length_hint(self._walk) else None

    @property
    def given(self) -> int:
        """How many records of the run were asked for."""
        return len(self._run) - length_hint(self._walk)

    @property
    def progress(self) -> tuple[int, int]:
        """Another value once the caller has asked for another record."""
        return self._runs, self.given

    def cut(self) -> None:
        """End the run behind the record that is asked for next; the others have to be handed out again."""
        given = self.given
        left = self._run[given + 1 :]
        del self._run[given + 1 :]
        self._cut = {**_firsts(left), **self._cut}

    def come_back(self) -> dict[TopicPartition, int]:
        """The caller asks for other records: all that it got is processed. Returns the first offset of each partition
        that the caller never asked for; those records have to be handed out again."""
        left = self.undelivered()
        self._polled, self._cut = {}, {}
        self.iterating([])
        return left

    def drop(self, tp: TopicPartition) -> None:
        """Hand out no more records of this partition from the run."""
        self._cut.pop(tp, None)
        given = self.given
        self._run[given:] = [record for record in self._run[given:] if record.place.tp != tp]

    def undelivered(self) -> dict[TopicPartition, int]:
        """The offset of the next record of each partition with records that the caller has not asked for."""
        return {**self._cut, **_firsts(self._run[self.given :])}

    def unprocessed(self) -> dict[TopicPartition, int]:
        """The offset of the first record of each partition that was fetched for the caller and is not processed."""
        return {**self._cut, **_firsts(self._run[max(self.given - 1, 0) :]), **self._polled}


def _firsts(records: list[Record]) -> dict[TopicPartition, int]:
    return {record.place.tp: record.offset for record in reversed(records)}
