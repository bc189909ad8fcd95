"""One partition's copy: what is known of it, and whether the mirror is a beginning of its source. Pure.

Nothing that a worker remembers is believed. The mirror's end is asked from its leader when work begins or resumes and
after every error. Then, and whenever the source has another leader, the mirror's last batch is compared with the
source's at the same offset: a source that lost records (an unclean election, a restored disk) must not be followed in
silence.
"""

import uuid
from typing import NamedTuple

from moldau.mirror.latency import ReplicationLatency
from moldau.mirror.source_session import SourceSession, WantedPartition
from moldau.names import TopicPartition
from moldau.records.batch import BatchHeader


class LogSpan(NamedTuple):
    """Where a partition's log starts and ends."""

    start: int
    end: int


class PartitionCopy:
    """`end`: where the mirror's log ends, None if its leader must be asked. `position`: the offset that is fetched
    next; what is between both is on its way into the mirror. `mirror_start`: where the mirror's log starts.
    `source_start`: where the source's log starts, as the source's leader said. `source_epoch`: the leader epoch of the
    source that the mirror was compared in, None before; `leader`: the broker that led then. `session`: where it is
    fetched, if it is. `stopped`: why nothing is copied any more. `damaged`: why nothing is copied now. Batches before
    `careful_until` are appended one by one, because one of them is damaged. `records_behind` counts offsets up to the
    source's end. `latency`: of the records that this worker has brought."""

    __slots__ = (
        "careful_until", "damaged", "end", "latency", "leader", "mirror_start", "position", "records_behind", "session",
        "source_epoch", "source_start", "stopped", "tp",
    )  # fmt: skip

    def __init__(self, tp: TopicPartition):
        self.tp = tp
        self.end: int | None = None
        self.position = 0
        self.mirror_start = 0
        self.source_start = 0
        self.source_epoch: int | None = None
        self.leader: int | None = None
        self.session: SourceSession | None = None
        self.records_behind: int | None = None
        self.stopped = ""
        self.damaged = ""
        self.careful_until = -1
        self.latency = ReplicationLatency()

    @property
    def owes_start(self) -> bool:
        """Whether the mirror's log starts before the source's, and can start where the source's does: it has come so
        far, or the source has nothing behind its start."""
        if self.end is None or self.mirror_start >= self.source_start:
            return False
        return self.source_start <= self.end or (self.source_start == self.position and self.records_behind == 0)

    def is_followed(self, leader: int, source_epoch: int) -> bool:
        """Whether it is fetched, and the metadata that name this leader say nothing new."""
        if self.session is None or self.source_epoch is None:
            return False
        return source_epoch < self.source_epoch or (source_epoch, leader) == (self.source_epoch, self.leader)

    def join(self, session: SourceSession, topic_id: uuid.UUID) -> None:
        """Fetch it in this session, from the mirror's end on, or behind it if the source has deleted what follows."""
        assert self.end is not None and self.source_epoch is not None, "asked and compared before"
        self.position, self.session = max(self.end, self.source_start), session
        session.want(self.tp, WantedPartition(topic_id, self.position, self.source_epoch))

    def read_to(self, offset: int) -> None:
        """The records before this offset have been fetched."""
        self.position = offset
        if self.session is not None:
            self.session.read_to(self.tp, offset)

    def forget(self) -> None:
        """Fetch it no more; ask the mirror's leader again, and compare."""
        self.end = self.source_epoch = None
        session, self.session = self.session, None
        if session is not None:
            session.drop(self.tp)


def divergence(
    tp: TopicPartition,
    source: LogSpan,
    mirror: LogSpan,
    of_source: BatchHeader | None,
    of_mirror: BatchHeader | None,
) -> str:
    """Why the source's log does not go on from the mirror's: a sentence, empty if it does. `of_source`, `of_mirror`:
    the batch that holds the last offset of the mirror, None where a log has none there (any more)."""
    if source.end < mirror.end:
        return (
            f"{tp} ends at {source.end} in the source cluster, before the mirror's end {mirror.end}: the source has "
            "lost records. Fail over to the mirror, or delete it to mirror the topic anew"
        )
    if of_source is None or of_mirror is None:
        return ""
    same = of_source.crc == of_mirror.crc and of_source.base_offset == of_mirror.base_offset
    was_cleaned = _was_cleaned(of_source) or _was_cleaned(of_mirror)
    if same or (was_cleaned and _written_as(of_source) == _written_as(of_mirror)):
        return ""
    return (
        f"{tp} has other records at offset {mirror.end - 1} in the source cluster than in the mirror: the source has "
        "lost records and has new ones there. Fail over to the mirror, or delete it to mirror the topic anew"
    )


def _was_cleaned(batch: BatchHeader) -> bool:
    """Whether compaction has written the batch anew, which it shows. The topic's settings do not say so: its policy may
    be another one today, and the two clusters clean at other times."""
    return batch.count <= batch.last_offset_delta or batch.has_delete_horizon


def _written_as(batch: BatchHeader) -> tuple[int, int, int, int]:
    """What compaction leaves of a batch as it was."""
    return batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.last_offset
