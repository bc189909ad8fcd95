"""Offsets and records of partitions: list offsets by position or time, delete records from the front."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple

from moldau.client.administration.asking import AdminPart
from moldau.client.failures import all_of, check
from moldau.errors import ConfigError, ErrorCode, KafkaError
from moldau.names import TopicPartition, by_topic
from moldau.protocol.apis import DELETE_RECORDS, LIST_OFFSETS

EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3
"""Positions that ListOffsets understands instead of a time: the first record, the end, the largest timestamp."""
_ISOLATION = {"read_uncommitted": 0, "read_committed": 1}
_NAMED: dict[object, int] = {"earliest": EARLIEST, "latest": LATEST, "max_timestamp": MAX_TIMESTAMP}
KNOWN_MS = 2000
"""With `known_only`, a leader is asked for at most this long."""
Position = int | datetime | Literal["earliest", "latest", "max_timestamp"]
"""A position by name (or `EARLIEST`, `LATEST`, `MAX_TIMESTAMP`), or a time: a `datetime`, or ms since 1970."""


class ListedOffset(NamedTuple):
    """An offset of a partition. `timestamp_ms` is None unless a time was asked for; `leader_epoch` is -1 if unknown."""

    offset: int
    timestamp_ms: int | None
    leader_epoch: int


class _Listing:
    """The `offsets` that leaders know, and the partitions whose leaders do not know the offset yet (`unknown`)."""

    def __init__(self, isolation_level: int, known_only: bool):
        self.isolation_level = isolation_level
        self.known_only = known_only
        self.offsets: dict[TopicPartition, ListedOffset | None] = {}
        self.unknown: set[TopicPartition] = set()


class RecordsPart(AdminPart):
    """The part of an admin client for offsets and records."""

    async def list_offsets(
        self,
        wanted: Mapping[TopicPartition, Position],
        *,
        isolation_level: str = "read_uncommitted",
        known_only: bool = False,
    ) -> dict[TopicPartition, ListedOffset | None]:
        """The offset of each partition at a position (earliest, latest, max_timestamp) or time; None if no record is at
        or after the time. With `read_committed`, latest is the last stable offset. A new leader does not know the end
        before its in-sync replicas have asked it for records (KIP-207): that is waited for. With `known_only` such a
        partition is left out, and so is one whose leader does not answer in two seconds. Raises
        `UnknownTopicOrPartition` and others."""
        if isolation_level not in _ISOLATION:
            raise ConfigError(f"isolation_level={isolation_level!r} is not one of {', '.join(_ISOLATION)}")
        times = {tp: _time_ms(position) for tp, position in wanted.items()}
        listing = _Listing(_ISOLATION[isolation_level], known_only)
        if times:
            await self._refresh(times)
        if known_only:
            await self._list_known(times, listing)
        elif times:
            await self._router.retrying(lambda: self._list(times, listing, self._timeout_ms))
        return all_of(listing.offsets, [tp for tp in times if tp in listing.offsets] if known_only else times)

    async def _list_known(self, times: Mapping[TopicPartition, int], listing: "_Listing") -> None:
        """List the offsets that leaders tell in `KNOWN_MS`."""
        timeout_ms = min(KNOWN_MS, self._timeout_ms)

        async def list_some(asked: Mapping[TopicPartition, int]) -> None:
            try:
                await self._router.retrying(lambda: self._list(asked, listing, timeout_ms), timeout_ms=timeout_ms)
            except KafkaError as failure:
                if not failure.retriable:
                    raise

        by_leader: dict[object, dict[TopicPartition, int]] = {}
        for tp, time_ms in times.items():
            by_leader.setdefault(self._router.view.leader(tp), {})[tp] = time_ms
        await asyncio.gather(*map(list_some, by_leader.values()))

    async def _list(self, times: Mapping[TopicPartition, int], listing: "_Listing", timeout_ms: int) -> None:
        """List those offsets that are not listed yet. Raises `KafkaError`."""
        messages, known = LIST_OFFSETS.messages, listing.offsets.keys() | listing.unknown
        missing = {tp: time_ms for tp, time_ms in times.items() if tp not in known}
        for leader, partitions in (await self._by_leader(missing)).items():
            topics = _topics(
                partitions,
                messages.ListOffsetsTopic,
                lambda number, time_ms: messages.ListOffsetsPartition(partition_index=number, timestamp=time_ms),
            )
            link = await self._router.broker(leader)
            request = messages.ListOffsetsRequest(replica_id=-1, isolation_level=listing.isolation_level, topics=topics)
            reply = await link.call(LIST_OFFSETS, request, timeout_ms)
            for topic in reply.topics:
                for p in topic.partitions:
                    tp = TopicPartition(topic.name, p.partition_index)
                    if listing.known_only and p.error_code == ErrorCode.OFFSET_NOT_AVAILABLE:
                        listing.unknown.add(tp)
                        continue
                    check(p.error_code, f"listing the offsets of {tp}")
                    timestamp_ms = p.timestamp if p.timestamp >= 0 else None
                    is_there = p.offset >= 0
                    listing.offsets[tp] = ListedOffset(p.offset, timestamp_ms, p.leader_epoch) if is_there else None

    async def offsets(
        self, wanted: Mapping[TopicPartition, Position], *, known_only: bool = False
    ) -> dict[TopicPartition, int]:
        """The offset of each partition at a position (earliest, latest, max_timestamp) or time; -1 if no record is at
        or after the time. `list_offsets` returns more."""
        listed = await self.list_offsets(wanted, known_only=known_only)
        return {tp: -1 if one is None else one.offset for tp, one in listed.items()}

    async def watermarks(self, topic: str) -> dict[TopicPartition, tuple[int, int]]:
        """The log start offset and the end offset of each partition of a topic. Raises `UnknownTopicOrPartition`."""
        await self._router.retrying(lambda: self._router.refresh([topic]))
        view = self._router.view.topics.get(topic)
        partitions = [TopicPartition(topic, p) for p in (view.partitions if view else [0])]
        first = await self.offsets(dict.fromkeys(partitions, EARLIEST))
        end = await self.offsets(dict.fromkeys(partitions, LATEST))
        return {tp: (first[tp], end[tp]) for tp in partitions}

    async def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Delete the records below these offsets (-1: all records). Returns each partition's new log start offset.
        Raises `OffsetOutOfRange`, `PolicyViolation` for a compacted topic, and others."""
        messages = DELETE_RECORDS.messages
        low: dict[TopicPartition, int] = {}

        async def attempt() -> None:
            missing = {tp: offset for tp, offset in before.items() if tp not in low}
            for leader, partitions in (await self._by_leader(missing)).items():
                topics = _topics(
                    partitions,
                    messages.DeleteRecordsTopic,
                    lambda number, offset: messages.DeleteRecordsPartition(partition_index=number, offset=offset),
                )
                link = await self._router.broker(leader)
                request = messages.DeleteRecordsRequest(topics=topics, timeout_ms=self._timeout_ms)
                reply = await link.call(DELETE_RECORDS, request, self._timeout_ms * 2)
                for topic in reply.topics:
                    for p in topic.partitions:
                        tp = TopicPartition(topic.name, p.partition_index)
                        check(p.error_code, f"deleting records of {tp}")
                        low[tp] = p.low_watermark

        if before:
            await self._refresh(before)
            await self._router.retrying(attempt)
        return all_of(low, before)


def _topics(wanted: Mapping[TopicPartition, int], topic: Any, partition: Callable[[int, int], Any]) -> list[Any]:
    """The topics of a request, with what is wanted of each partition."""
    return [
        topic(name=name, partitions=[partition(number, wanted[TopicPartition(name, number)]) for number in numbers])
        for name, numbers in by_topic(wanted).items()
    ]


def _time_ms(position: Position) -> int:
    if isinstance(position, datetime):
        return int(position.timestamp() * 1000)
    if isinstance(position, int):
        return position
    if position not in _NAMED:
        raise ConfigError(f"{position!r} is not a time, nor one of {', '.join(map(str, _NAMED))}")
    return _NAMED[position]
