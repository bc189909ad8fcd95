"""What a consumer has handed out and its caller has not come back from yet: the line between delivered and processed.

`poll` hands out a list: it counts as processed when the caller polls again. Iteration hands out a run of records one by
one: each counts as processed when the next one is asked for. How far a run was iterated is read off its iterator, so
that iterating costs nothing extra per record.
"""

from collections.abc import Callable, Iterator
from operator import length_hint

from moldau.client.consuming.fetched.record import Record
from moldau.names import TopicPartition


class Handout:
    """The records that the caller has now, and those of a run that it has not asked for yet. Another thread may commit,
    seek or pause meanwhile: none of it may make a record count that the caller was not handed."""

    def __init__(self) -> None:
        self.may_deliver: Callable[[], bool] | None = None
        """Asked before each record of a run, if the right to hand them out may end; none is handed out after that."""
        self._taken: dict[TopicPartition, int] = {}
        self._polled: dict[TopicPartition, int] = {}
        self._cut: dict[TopicPartition, int] = {}
        self._last: dict[TopicPartition, int] = {}
        """The record that was asked for last before the run was made anew."""
        self._runs = 0
        self._run: tuple[list[Record], Iterator[Record]] = [], iter(())
        """Its records, and what iterates over them: one attribute, so that no thread sees one without the other."""

    def taking(self, firsts: dict[TopicPartition, int]) -> None:
        """Records are on their way to the caller; `firsts` has the first offset of each partition. Call it under the
        lock under which their positions move."""
        self._taken = firsts

    def polled(self, firsts: dict[TopicPartition, int]) -> None:
        """`poll` returned records; `firsts` has the first offset of each partition."""
        self._polled = firsts
        self._taken = {}

    def iterating(self, records: list[Record]) -> Iterator[Record]:
        """Begin a run. The caller iterates over the result and nothing else."""
        walk = walk_over(records, self.may_deliver)
        self._runs += 1
        self._last = {}
        self._run = records, walk
        self._taken = {}
        return walk

    @property
    def walk(self) -> Iterator[Record] | None:
        """The iterator of the run if it has records left, and may deliver them; else None."""
        walk = self._run[1]
        if self.may_deliver is not None and not self.may_deliver():
            return None
        return walk if length_hint(walk) else None

    @property
    def given(self) -> int:
        """How many records of the run were asked for."""
        run, walk = self._run
        return len(run) - length_hint(walk)

    @property
    def progress(self) -> tuple[int, int]:
        """Another value once the caller has asked for another record."""
        return self._runs, self.given

    def cut(self) -> None:
        """End the run behind the record that is asked for next; the others have to be handed out again."""
        run, given = self._run[0], self.given
        left = run[given + 1 :]
        del run[given + 1 :]
        self._cut = {**_firsts(left), **self._cut}

    def end(self) -> None:
        """End the run at once, also for a loop that is in it."""
        self._run[0].clear()

    def come_back(self) -> dict[TopicPartition, int]:
        """The caller asks for other records: all that it got is processed. Returns the first offset of each partition
        that the caller never asked for; those records have to be handed out again."""
        left = self.undelivered()
        self._polled, self._cut = {}, {}
        self.iterating([])
        return left

    def drop(self, tp: TopicPartition) -> None:
        """Hand out no more records of this partition from the run. If any are left, the run ends, and another one goes
        on with the others: records that moved up would be missed by a thread that iterates meanwhile."""
        self._cut.pop(tp, None)
        run, given = self._run[0], self.given
        left = run[given:]
        kept = [record for record in left if record.place.tp != tp]
        if len(kept) < len(left):
            last = _firsts(run[given - 1 : given]) if given else self._last
            self._runs += 1
            self._last, self._run = last, (kept, iter(kept))
            del run[given:]

    def left(self) -> dict[TopicPartition, int]:
        """The offset of the next record of each partition that the run has left."""
        return {**self._cut, **_firsts(self._run[0][self.given :])}

    def undelivered(self) -> dict[TopicPartition, int]:
        """The offset of the next record of each partition with records that the caller has not asked for."""
        return {**self._taken, **self.left()}

    def unprocessed(self) -> dict[TopicPartition, int]:
        """The offset of the first record of each partition that was fetched for the caller and is not processed."""
        run, given = self._run[0], self.given
        last = {} if given else self._last
        return {**self._taken, **self._cut, **_firsts(run[max(given - 1, 0) :]), **last, **self._polled}


class GuardedWalk:
    """Iterates over records as long as they may be delivered."""

    __slots__ = ("_may_deliver", "_walk")

    def __init__(self, records: list[Record], may_deliver: Callable[[], bool]):
        self._walk, self._may_deliver = iter(records), may_deliver

    def __iter__(self) -> Iterator[Record]:
        return self

    def __next__(self) -> Record:
        if not self._may_deliver():
            raise StopIteration
        return next(self._walk)

    def __length_hint__(self) -> int:
        return length_hint(self._walk)


def walk_over(records: list[Record], may_deliver: Callable[[], bool] | None) -> Iterator[Record]:
    """What iterates over records, for a loop of the caller's."""
    return iter(records) if may_deliver is None else GuardedWalk(records, may_deliver)


def _firsts(records: list[Record]) -> dict[TopicPartition, int]:
    return {record.place.tp: record.offset for record in reversed(records)}
