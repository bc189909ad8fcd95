"""Looks up offsets of partitions: the earliest, the latest, the first at or after a time. On asyncio."""

from collections.abc import Mapping

from moldau.client.failures import STALE_METADATA, check, error_of
from moldau.client.fetching import EARLIEST, LATEST, MAX_TIMESTAMP, list_offsets_request
from moldau.client.routing import Router
from moldau.names import TopicPartition
from moldau.protocol.apis import LIST_OFFSETS

__all__ = ["EARLIEST", "LATEST", "MAX_TIMESTAMP", "offsets_at"]


async def offsets_at(
    router: Router, wanted: Mapping[TopicPartition, int], *, committed: bool = False
) -> dict[TopicPartition, int]:
    """For each partition the offset at its `EARLIEST`, `LATEST`, `MAX_TIMESTAMP` or time in ms; -1 if no record is at
    or after the time. With `committed`, LATEST is the last stable offset."""
    found: dict[TopicPartition, int] = {}

    async def ask() -> None:
        by_leader: dict[int, dict[TopicPartition, int]] = {}
        for tp, time_ms in wanted.items():
            if tp not in found:
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
                    found[tp] = p.offset

    await router.retrying(ask)
    return {tp: found[tp] for tp in wanted}
