"""Where assigned partitions are read from at first: the group's committed offset, else as `auto_offset_reset` says."""

import asyncio
from collections.abc import Collection, Iterable

from moldau.client.consuming.consumer_settings import ConsumerSettings, reset_time
from moldau.client.consuming.fetched.assigned import Assigned, no_such_partition
from moldau.client.consuming.groups.membership import GroupMembership
from moldau.client.consuming.polling import UNKNOWN_S_MAX, Poller
from moldau.client.offsets import LATEST, offsets_at
from moldau.client.routing import Router
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition


class PositionLocator:
    """Finds the positions of the partitions of `poller` that have none."""

    def __init__(self, router: Router, poller: Poller, membership: GroupMembership, settings: ConsumerSettings):
        self._router = router
        self._poller = poller
        self._membership = membership
        self._settings = settings

    @property
    def missing(self) -> bool:
        return any(state.position is None for state in list(self._poller.assigned.values()))

    async def locate(self, only: Collection[TopicPartition] | None = None) -> None:
        """Find all positions that are unknown, or those of some partitions. Raises `KafkaError`: OFFSET_OUT_OF_RANGE if
        there is neither a commit nor a reset, UNKNOWN_TOPIC_OR_PARTITION if the application assigned a partition that
        does not exist."""
        unknown = {
            tp: state
            for tp, state in self._poller.assigned.items()
            if state.position is None and (only is None or tp in only)
        }
        if self._poller.by_hand:
            await self.check_exist(unknown)
        fresh = [tp for tp, state in unknown.items() if not state.out_of_range]
        if fresh and self._settings.group_id:
            for tp, committed in (await self._membership.committed(fresh)).items():
                self._start(unknown.pop(tp), committed.offset, committed.leader_epoch)
        if not unknown:
            return
        now_ms = self._router.runtime.clock.now_ms()
        time_ms = reset_time(self._settings.auto_offset_reset, now_ms)
        if time_ms is None:
            tp = min(unknown)
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"{tp} has no committed offset in range, and auto_offset_reset is none"
            )
        offsets = await self.at(dict.fromkeys(unknown, time_ms))
        for tp, offset in offsets.items():
            self._start(unknown[tp], offset)

    async def at(self, times: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The offset at each partition's `EARLIEST`, `LATEST` or time in ms, or its end if no record is so late."""
        committed = self._settings.committed
        offsets = await offsets_at(self._router, times, committed=committed)
        late = [tp for tp, offset in offsets.items() if offset < 0]
        if late:
            offsets |= await offsets_at(self._router, dict.fromkeys(late, LATEST), committed=committed)
        return offsets

    def _start(self, state: Assigned, offset: int, epoch: int | None = None) -> None:
        with self._poller.lock:
            if state.position is None:  # the application may have sought meanwhile
                state.start(offset, epoch)

    async def check_exist(self, partitions: Iterable[TopicPartition]) -> None:
        """Raise `NoSuchPartition` if one of these partitions stays unknown for longer than a new one takes to appear;
        other `KafkaError`s if it cannot be read."""
        view, loop = self._router.view, asyncio.get_running_loop()
        wanted = [tp for tp in partitions if isinstance(view.leader(tp), ErrorCode)]
        deadline_s = loop.time() + UNKNOWN_S_MAX
        topics = sorted({tp.topic for tp in wanted})
        while wanted:
            await self._router.retrying(lambda: self._router.refresh(topics))
            for tp in wanted:
                why = view.leader(tp)
                if isinstance(why, ErrorCode) and not why.retriable:
                    raise KafkaError(why, f"{tp} cannot be read: {why.sentence}")
            wanted = [tp for tp in wanted if view.leader(tp) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
            if wanted and loop.time() >= deadline_s:
                raise no_such_partition(wanted[0], view)
            if wanted:
                await asyncio.sleep(UNKNOWN_S_MAX / 10)
