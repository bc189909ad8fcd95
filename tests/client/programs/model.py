"""What a program of one group has processed, and so what its committed offsets may cover.

A record is processed when the program has come back from it: by `poll` from all that the last call returned, in a loop
from each record when it asks for the next one. The program may also say so: by a commit, or by seeking past a record.
No consumer and no broker is known here.
"""

from collections.abc import Iterable, Mapping

from moldau.client.consuming.fetched.record import Record
from moldau.names import TopicPartition


class Lost(AssertionError):
    """A record that nobody has processed is not handed out, or will not be."""


class Progress:
    """The records of each partition, offsets 0 to `ends`, that the group's members have processed."""

    def __init__(self, ends: Mapping[TopicPartition, int]):
        self.ends = ends
        self.processed: dict[TopicPartition, set[int]] = {tp: set() for tp in ends}
        self.reached: dict[TopicPartition, int] = dict.fromkeys(ends, 0)
        """The highest position that any member has had."""

    def add(self, tp: TopicPartition, offsets: Iterable[int]) -> None:
        self.processed[tp].update(offsets)

    def reach(self, tp: TopicPartition, position: int) -> None:
        self.reached[tp] = max(self.reached[tp], position)

    def check_before(self, tp: TopicPartition, offset: int, what: str) -> None:
        """Raises `Lost` unless each record before that offset was processed."""
        for missing in range(offset):
            if missing not in self.processed[tp]:
                raise Lost(f"{what} {tp}@{offset}, and {missing} was not processed")

    @property
    def unprocessed(self) -> list[str]:
        return [f"{tp}@{at}" for tp, end in self.ends.items() for at in range(end) if at not in self.processed[tp]]


class Seen:
    """What one member was handed: `pending` records it has not come back from, the next offset of each partition, and
    what it has committed itself."""

    def __init__(self, progress: Progress):
        self.progress = progress
        self.next: dict[TopicPartition, int | None] = {}
        self.paused: set[TopicPartition] = set()
        self.pending: list[Record] = []
        self.committed: dict[TopicPartition, int] = {}
        self.assigned_once = False

    def assigned(self, partitions: Iterable[TopicPartition]) -> None:
        self.assigned_once = True
        self.next |= dict.fromkeys(partitions)

    def revoked(self, partitions: Iterable[TopicPartition]) -> None:
        for tp in partitions:
            self.next.pop(tp, None)
            self.committed.pop(tp, None)
            self.paused.discard(tp)

    def come_back(self) -> None:
        for record in self.pending:
            self.progress.add(record.topic_partition, [record.offset])
        self.pending = []

    def handed(self, record: Record) -> None:
        """Raises `Lost` if records before this one are left out, `AssertionError` if it must not be handed out."""
        tp = record.topic_partition
        assert tp in self.next, f"{record} of a partition that is not assigned: {sorted(self.next)}"
        assert tp not in self.paused, f"{record} of a partition that is paused"
        due = self.next[tp]
        if due is None:
            self.progress.check_before(tp, record.offset, "reading begins at")
        elif record.offset != due:
            raise Lost(f"{tp}@{record.offset} was handed out, {due} was next")
        self.next[tp] = record.offset + 1
        self.progress.reach(tp, record.offset + 1)
        self.pending.append(record)

    def sought(self, tp: TopicPartition, offset: int) -> None:
        self.progress.add(tp, range(self.next[tp] or 0, offset))
        self.next[tp] = offset
        self.progress.reach(tp, offset)
        self.committed.pop(tp, None)

    def commits(self, offsets: Mapping[TopicPartition, int]) -> None:
        """The program says that it is done with all before these offsets, whether the commit succeeds or not."""
        for tp, offset in offsets.items():
            self.progress.add(tp, range(offset))
            self.committed[tp] = offset

    @property
    def delivered(self) -> dict[TopicPartition, int]:
        return {tp: at for tp, at in self.next.items() if at is not None}

    def due_at_close(self, tp: TopicPartition) -> int | None:
        """The offset that an automatic commit covers if this member is closed now; None if that is not certain."""
        at = self.next.get(tp)
        if at is None:
            return None
        covered = min([at, *(record.offset for record in self.pending if record.topic_partition == tp)])
        own = self.committed.get(tp, -1)
        return own if covered < own <= at else covered

    @property
    def ready(self) -> int:
        """How many records are certainly there for this member, if it has all partitions."""
        if self.next.keys() != self.progress.ends.keys():
            return 0
        return sum(self.progress.ends[tp] - at for tp, at in self.delivered.items() if tp not in self.paused)

    @property
    def ready_whatever_befalls(self) -> int:
        """How many records are certainly there, even if this member loses its partitions and gets them back."""
        if self.ready == 0:
            return 0
        left = {tp: end - self.progress.reached[tp] for tp, end in self.progress.ends.items()}
        return sum(count for tp, count in left.items() if tp not in self.paused)
