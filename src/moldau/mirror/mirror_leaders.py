"""The leaders of the mirrors: batches are sent to them, and their answers say where the mirrors' logs end."""

import asyncio
from collections.abc import Mapping
from typing import Final

from moldau.client.failures import STALE_METADATA, sentence
from moldau.client.routing import Router
from moldau.errors import ErrorCode, KafkaError
from moldau.mirror.copied_partitions import CopiedPartitions
from moldau.mirror.copies import PartitionCopy
from moldau.mirror.requests import ASKS_ONLY, Appending, MirrorAnswer, append, by_leader
from moldau.names import TopicPartition

DAMAGED_AGAIN_S: Final = 30.0
"""How long a partition pauses whose next batch is damaged in the source: somebody has to do something first."""


class MirrorLeaders:
    def __init__(self, target: Router, copied: CopiedPartitions):
        self._target = target
        self._copied = copied

    async def append(self, wanted: Mapping[TopicPartition, Appending], purpose: str) -> None:
        """Those whose leaders do not take them pause; the others go on. `purpose` names the connections."""
        led = await by_leader(self._target, wanted)
        for tp, failure in led.failures.items():
            self._copied.pause(tp, f"the mirror: {failure}")
        await asyncio.gather(
            *(self.send(leader, {tp: wanted[tp] for tp in some}, purpose) for leader, some in led.leaders.items())
        )

    async def send(self, leader: int, wanted: Mapping[TopicPartition, Appending], purpose: str) -> None:
        """To one leader, which leads all of them."""
        try:
            answers = await append(self._target, leader, wanted, purpose)
        except KafkaError as failure:
            for tp in wanted:
                self._target.stale(tp.topic)
                self._copied.pause(tp, f"the mirror: {failure}")
            return
        for tp, answer in answers.items():
            self._answered(tp, wanted[tp], answer)

    def _answered(self, tp: TopicPartition, sent: Appending, answer: MirrorAnswer) -> None:
        copy, counters = self._copied.copied(tp), self._copied.counters
        if copy is None or (sent.end != ASKS_ONLY and copy.end != sent.end):  # it was forgotten meanwhile
            return
        if answer.error is ErrorCode.CORRUPT_MESSAGE and sent.end != ASKS_ONLY:
            self._damaged(copy, sent)
            return
        if answer.error:
            if answer.error in STALE_METADATA:
                self._target.stale(tp.topic)
            self._copied.pause(tp, answer.message or sentence(answer.error))
            return
        copy.end, copy.mirror_start = answer.end, answer.start
        if sent.end == ASKS_ONLY:
            return
        if answer.end < copy.position:  # what is fetched meanwhile would leave a gap
            self._copied.pause(tp, f"the mirror ends at {answer.end}, before {copy.position}")
            return
        copy.damaged = ""
        copy.latency.arrived(sent.times, self._target.runtime.clock.now_ms(), asyncio.get_running_loop().time())
        counters.appends += 1
        counters.appended_bytes += len(sent.records)
        counters.appended_offsets += max(answer.end - sent.end, 0)
        copy.records_behind = max((copy.records_behind or 0) - (answer.end - sent.end), 0)
        if answer.end > copy.position:  # another worker has appended
            copy.read_to(answer.end)

    def _damaged(self, copy: PartitionCopy, sent: Appending) -> None:
        """One of the batches is damaged in the source. Those before it are copied, and it is never skipped."""
        if sent.end >= copy.careful_until:  # there were several, or they were damaged on their way
            copy.careful_until = copy.position
            self._copied.pause(copy.tp)
            return
        copy.damaged = f"the source's batch behind offset {sent.end} is damaged"
        why = f"{copy.damaged}; it is asked for again in {DAMAGED_AGAIN_S:g} s"
        self._copied.pause(copy.tp, why, DAMAGED_AGAIN_S)
