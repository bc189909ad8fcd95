"""One partition's copy: what is known of it, and whether the mirror is a beginning of its source. Pure.

Nothing that a worker remembers is believed. The mirror's end is asked from its leader when work begins or resumes and
after every error. Then, and whenever the source has another leader, the mirror's last batch is compared with the
source's at the same offset: a source that lost records (an unclean election, a restored disk) must not be followed in
silence.
"""

from typing import NamedTuple

from moldau.names import TopicPartition
from moldau.records.batch import BatchHeader


class LogSpan(NamedTuple):
    """Where a partition's log starts and ends."""

    start: int
    end: int


class PartitionCopy:
    """`end`: where the mirror's log ends, None if its leader must be asked. `mirror_start`: where it starts.
    `source_start`: where the source's log starts, as the mirror was told. `source_epoch`: the leader epoch of the
    source that the mirror was compared in, None before. `stopped`: why nothing is copied any more. `records_behind`
    counts offsets up to the source's end."""

    __slots__ = ("end", "mirror_start", "records_behind", "source_epoch", "source_start", "stopped", "tp")

    def __init__(self, tp: TopicPartition):
        self.tp = tp
        self.end: int | None = None
        self.mirror_start = 0
        self.source_start = 0
        self.source_epoch: int | None = None
        self.records_behind: int | None = None
        self.stopped = ""

    @property
    def fetch_from(self) -> int:
        """The offset to fetch next: behind the mirror's end if the source has deleted what follows it."""
        assert self.end is not None, "asked before"
        return max(self.end, self.source_start)

    def forget(self) -> None:
        """Ask the mirror's leader again, and compare."""
        self.end = self.source_epoch = None


def divergence(
    tp: TopicPartition,
    source: LogSpan,
    mirror: LogSpan,
    of_source: BatchHeader | None,
    of_mirror: BatchHeader | None,
    compacted: bool,
) -> str:
    """Why the source's log does not go on from the mirror's: a sentence, empty if it does. `of_source`, `of_mirror`:
    the batch that holds the last offset of the mirror, None where a log has none there (any more). `compacted`: batches
    lose records."""
    if source.end < mirror.end:
        return (
            f"{tp} ends at {source.end} in the source cluster, before the mirror's end {mirror.end}: the source has "
            "lost records. Fail over to the mirror, or delete it to mirror the topic anew"
        )
    if of_source is None or of_mirror is None:
        return ""
    same = of_source.crc == of_mirror.crc and of_source.base_offset == of_mirror.base_offset
    if same or (compacted and _same_writer(of_source, of_mirror)):
        return ""
    return (
        f"{tp} has other records at offset {mirror.end - 1} in the source cluster than in the mirror: the source has "
        "lost records and has new ones there. Fail over to the mirror, or delete it to mirror the topic anew"
    )


def _same_writer(one: BatchHeader, other: BatchHeader) -> bool:
    """Whether two batches may be what compaction left of the same one."""
    return (one.producer_id, one.producer_epoch, one.last_offset) == (
        other.producer_id,
        other.producer_epoch,
        other.last_offset,
    )
