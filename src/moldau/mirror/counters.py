"""What a worker has done since it began, and how its partitions are: for its log, and for metrics. Pure."""

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(slots=True)
class MirrorCounters:
    """`fetches`: answers of leaders of the source that had something; `appends`: answers of leaders of mirrors to
    batches. `appended_bytes`, `appended_offsets`: what is committed in the mirrors, gaps included. `pauses`: how often
    a partition paused because of an error."""

    fetches: int = 0
    appends: int = 0
    appended_bytes: int = 0
    appended_offsets: int = 0
    pauses: int = 0


class MirrorGauges(NamedTuple):
    """At this moment: the partitions of this worker, those of them that are followed and that are mirrored no longer,
    the offsets that their mirrors lack, and the topics that are refused."""

    partitions: int
    followed: int
    stopped: int
    offsets_behind: int
    refused_topics: int
