"""Looks up offsets of partitions: the earliest, the latest, the first at or after a time. On asyncio."""

from collections.abc import Mapping
from typing import NamedTuple

from moldau.client.failures import STALE_METADATA, all_of, check, error_of
from moldau.client.fetching import EARLIEST, LATEST, MAX_TIMESTAMP, list_offsets_request
from moldau.client.routing import Router
from moldau.names import TopicPartition
from moldau.protocol.apis import LIST_OFFSETS

__all__ = ["EARLIEST", "LATEST", "MAX_TIMESTAMP", "OffsetAndTimestamp", "offsets_at", "offsets_for_times"]


class OffsetAndTimestamp(NamedTuple):
    """A record found by its time: offset and timestamp in ms since 1970."""

    offset: int
    timestamp_ms: int


async def offsets_at(
    router: Router, wanted: Mapping[TopicPartition, int], *, committed: bool = False
) -> dict[TopicPartition, int]:
    """For each partition the offset at its `EARLIEST`, `LATEST`, `MAX_TIMESTAMP` or time in ms; -1 if no record is at
    or after the time. With `committed`, LATEST is the last stable offset."""
    return {tp: at.offset for tp, at in (await _look_up(router, wanted, committed=committed)).items()}


async def offsets_for_times(
    router: Router, times: Mapping[TopicPartition, int], *, committed: bool = False
) -> dict[TopicPartition, OffsetAndTimestamp | None]:
    """For each partition the first record at or after a time in ms; None if there is none, with `committed` below the
    last stable offset."""
    offsets = await _look_up(router, times, committed=committed)
    return {tp: at if at.offset >= 0 else None for tp, at in offsets.items()}


async def _look_up(
    router: Router, wanted: Mapping[TopicPartition, int], *, committed: bool
) -> dict[TopicPartition, OffsetAndTimestamp]:
    offsets: dict[TopicPartition, OffsetAndTimestamp] = {}

    async def ask() -> None:
        by_leader: dict[int, dict[TopicPartition, int]] = {}
        for tp, time_ms in wanted.items():
            if tp not in offsets:
                by_leader.setdefault(await router.leader(tp), {})[tp] = time_ms
        for leader, partitions in by_leader.items():
            link = await router.broker(leader)
            request = list_offsets_request(partitions, committed=committed)
            reply = await link.call(LIST_OFFSETS, request, router.request_timeout_ms)
            for topic in reply.topics:
                for p in topic.partitions:
                    if error_of(p.error_code) in STALE_METADATA:
                        router.stale(topic.name)
                    tp = TopicPartition(topic.name, p.partition_index)
                    check(p.error_code, f"listing the offsets of {tp}")
                    offsets[tp] = OffsetAndTimestamp(p.offset, p.timestamp)

    await router.retrying(ask)
    return all_of(offsets, wanted)
