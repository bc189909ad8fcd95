"""What must be known of a partition before it is fetched: where the mirror's log ends, as its leader says, and whether
the source's log goes on from there, in the present leader epoch of the source (`copies.divergence`).

It happens beside the fetching: a partition that waits for an answer holds up no other.
"""

import asyncio
import logging
from collections.abc import Collection
from typing import Final

from moldau.client.offsets import EARLIEST, LATEST, offsets_at
from moldau.client.routing import Router
from moldau.errors import KafkaError
from moldau.mirror.copied_partitions import CopiedPartitions
from moldau.mirror.copies import LogSpan, PartitionCopy, divergence
from moldau.mirror.mirror_leaders import MirrorLeaders
from moldau.mirror.requests import ASKS_ONLY, Appending, batch_at
from moldau.names import TopicPartition
from moldau.notices import Notices

COMPARED_AT_ONCE: Final = 16
PURPOSE: Final = "asking"

notices = Notices(logging.getLogger(__name__))


class Preparation:
    def __init__(self, source: Router, target: Router, copied: CopiedPartitions, mirrors: MirrorLeaders):
        self._source = source
        self._target = target
        self._copied = copied
        self._mirrors = mirrors

    async def prepare(self, leader: int, partitions: Collection[TopicPartition]) -> list[PartitionCopy]:
        """Those of the partitions, which this broker of the source leads, that can be fetched now; the others pause or
        have stopped."""
        known = {tp: copy for tp in partitions if (copy := self._copied.copied(tp)) is not None}
        epochs = {tp: self._source.view.leader_epoch(tp) for tp in known}
        unasked = {
            tp: Appending(self._copied.topics[tp.topic].source, ASKS_ONLY, -1, memoryview(b""))
            for tp, copy in known.items()
            if copy.end is None
        }
        await self._mirrors.append(unasked, PURPOSE)
        asked = [tp for tp, copy in known.items() if self._copied.copied(tp) is copy and copy.end is not None]
        for at in range(0, len(asked), COMPARED_AT_ONCE):
            some = asked[at : at + COMPARED_AT_ONCE]
            await asyncio.gather(*(self._compare(tp, leader, epochs[tp]) for tp in some))
        return [
            copy
            for tp, copy in known.items()
            if self._copied.copied(tp) is copy and not copy.stopped and None not in (copy.end, copy.source_epoch)
        ]

    async def _compare(self, tp: TopicPartition, leader: int, source_epoch: int) -> None:
        copy, topic = self._copied.copied(tp), self._copied.topics.get(tp.topic)
        if copy is None or topic is None or copy.end is None:  # others were compared before
            return
        end = copy.end
        try:
            starts, ends = await asyncio.gather(
                offsets_at(self._source, {tp: EARLIEST}), offsets_at(self._source, {tp: LATEST})
            )
            source, mirror = LogSpan(starts[tp], ends[tp]), LogSpan(copy.mirror_start, end)
            of_source = of_mirror = None
            if mirror.start < mirror.end and source.start < mirror.end <= source.end:
                of_source = await batch_at(self._source, tp, topic.topic_id, mirror.end - 1)
                of_mirror = await batch_at(self._target, tp, topic.mirror_id, mirror.end - 1)
        except KafkaError as failure:
            self._copied.pause(tp, str(failure))
            return
        if self._copied.copied(tp) is not copy or copy.end != end:
            return
        why = divergence(tp, source, mirror, of_source, of_mirror)
        if why:
            self._copied.stop(tp, why)
            return
        if mirror.start < mirror.end < source.start:
            missed = source.start - mirror.end
            notices.warning(
                str(tp), "%s: the source has deleted up to %d offsets that were not mirrored yet", tp, missed
            )
        copy.source_start, copy.source_epoch, copy.leader = source.start, source_epoch, leader
