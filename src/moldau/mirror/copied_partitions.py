"""The partitions that a worker copies: which they are, what is known of each, and which of them pause.

An error concerns its partition. It pauses, and then the mirror's leader is asked where the log ends, and both are
compared anew (`copies`). A partition whose source has lost records stops with a sentence; the others go on.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple
from uuid import UUID

from moldau.mirror.copies import PartitionCopy
from moldau.mirror.counters import MirrorCounters
from moldau.names import TopicPartition
from moldau.notices import Notices

PAUSE_S: Final = 0.5
"""After an error of a partition."""

logger = logging.getLogger(__name__)
notices = Notices(logger)


class CopiedTopic(NamedTuple):
    """`source`: its `mirror.source`. `topic_id`: the id in the source cluster, zero where topics have none;
    `mirror_id`: that of the mirror, zero before it is known."""

    source: str
    topic_id: UUID
    mirror_id: UUID


class CopiedPartitions:
    """`topics`: those that may be copied; `copies`: the partitions that are, where their topics may be."""

    def __init__(self) -> None:
        self.topics: dict[str, CopiedTopic] = {}
        self.copies: dict[TopicPartition, PartitionCopy] = {}
        self.counters = MirrorCounters()
        self._paused: dict[TopicPartition, float] = {}

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Copy these from now on, and no others."""
        before, wanted = self.copies, set(partitions)
        for tp in before.keys() - wanted:
            before[tp].forget()
            self._paused.pop(tp, None)
        self.copies = {tp: before.get(tp) or PartitionCopy(tp) for tp in sorted(wanted)}

    def mirror(self, topics: Mapping[str, CopiedTopic]) -> None:
        """These topics may be copied now. What was known of others, or of earlier ones of the same name, is
        forgotten."""
        before, self.topics = self.topics, dict(topics)
        for tp, copy in self.copies.items():
            if before.get(tp.topic) != topics.get(tp.topic):
                copy.forget()
                self.copies[tp] = PartitionCopy(tp)

    def copied(self, tp: TopicPartition) -> PartitionCopy | None:
        """What is known of a partition; None if it is copied no longer, which any wait may have changed."""
        return self.copies.get(tp) if tp.topic in self.topics else None

    def ready(self) -> list[TopicPartition]:
        """The partitions that may be copied now."""
        now_s = asyncio.get_running_loop().time()
        for tp in [tp for tp, until_s in self._paused.items() if until_s <= now_s]:
            del self._paused[tp]
        return [
            tp
            for tp, copy in self.copies.items()
            if not copy.stopped and tp.topic in self.topics and tp not in self._paused
        ]

    @property
    def paused_s(self) -> float:
        """How long until the next partition has paused for long enough; `PAUSE_S` if none pauses."""
        left_s = min(self._paused.values(), default=0.0) - asyncio.get_running_loop().time()
        return min(max(left_s, 0.0), PAUSE_S) if self._paused else PAUSE_S

    def pause(self, tp: TopicPartition, why: str = "", seconds: float = PAUSE_S) -> None:
        """Without a reason the pause is not logged."""
        if why:
            notices.warning(str(tp), "%s: mirroring pauses: %s", tp, why)
            self.counters.pauses += 1
        if tp in self.copies:
            self.copies[tp].forget()
            self._paused[tp] = asyncio.get_running_loop().time() + seconds

    def stop(self, tp: TopicPartition, why: str) -> None:
        logger.error("%s is mirrored no longer: %s", tp, why)
        if tp in self.copies:
            self.copies[tp].forget()
            self.copies[tp].stopped = why
