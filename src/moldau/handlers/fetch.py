"""Fetch (key 1), versions 4 to 18: slices of the log, up to where this reader may see.

Kafka's behaviour: the request's and each partition's byte limit hold but for the first batch of the first partition
that has one, which goes out whole (KIP-74); fewer than `min_bytes` wait for up to `max_wait_ms`, unless a partition
has an error. Sessions (KIP-227) are refused by answering session id 0, so every request is a full one. From version 13
a topic is named by its id. Slices end where the watermark stands; a batch that contains the offset asked for is sent
from its start.
"""

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from moldau.errors import ErrorCode, KafkaError
from moldau.protocol.codec import RequestHeader
from moldau.protocol.hot import FetchReply, FetchResult
from moldau.replication.hosted import Hosted
from moldau.replication.partitions import Partitions
from moldau.replication.waiting import Wait
from moldau.runtime import Answer, FileSlice, Reply

if TYPE_CHECKING:  # the dispatcher has imported it when a request is here
    from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic

NO_SESSION = 0
FULL_EPOCHS = (0, -1)
"""Session epochs of a request that names all its partitions."""
NOT_THERE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
"""Kafka answers these before it looks at a log, with no aborted transactions instead of null."""
READ_COMMITTED = 1
CONSUMER = -1


class PartRead(NamedTuple):
    result: FetchResult
    records: FileSlice | None
    hosted: Hosted | None


class FetchHandler:
    def __init__(self, partitions: Partitions, bytes_max: int):
        self._partitions = partitions
        self._bytes_max = bytes_max

    def __call__(self, header: RequestHeader, request: "FetchRequest") -> Answer:
        if request.session_epoch not in FULL_EPOCHS:
            reply = FetchReply(
                header.version, header.correlation_id, ErrorCode.FETCH_SESSION_ID_NOT_FOUND, NO_SESSION, 0
            )
            return reply.end()
        reads, size, ready = self._read(header, request)
        if ready or size >= request.min_bytes or request.max_wait_ms <= 0:
            return _pack(header, request, reads)
        _release(reads)
        return self._wait(header, request, reads, request.min_bytes - size)

    async def _wait(self, header: RequestHeader, request: "FetchRequest", reads: list[PartRead], missing: int) -> Reply:
        waiters = [read.hosted.waiters for read in reads if read.hosted is not None]
        await Wait(missing, request.max_wait_ms / 1000, waiters, asyncio.get_running_loop()).done
        return _pack(header, request, self._read(header, request)[0])

    def _read(self, header: RequestHeader, request: "FetchRequest") -> tuple[list[PartRead], int, bool]:
        """What every partition has, how many bytes that is, and whether something must be told at once."""
        left = min(request.max_bytes, self._bytes_max)
        reads: list[PartRead] = []
        size, ready = 0, not request.topics
        committed = request.isolation_level == READ_COMMITTED
        follower = max(request.replica_id, request.replica_state.replica_id) != CONSUMER
        for topic in request.topics:
            for part in topic.partitions:
                found = self._find(header.version, topic, part, follower)
                if not isinstance(found, Hosted):
                    reads.append(_error(part, found, found in NOT_THERE))
                    ready = True
                    continue
                read = _read_one(found, part, max(left - size, 0), size > 0, committed)
                ready = ready or read.result.error != 0
                size += read.result.length
                reads.append(read)
        return reads, size, ready

    def _find(self, version: int, topic: "FetchTopic", part: "FetchPartition", follower: bool) -> Hosted | ErrorCode:
        topic_id = topic.topic_id.bytes if version >= 13 else None
        hosted = self._partitions.find(topic.topic, topic_id, part.partition)
        if hosted is None:
            return self._partitions.absence(topic.topic, topic_id, part.partition)
        if follower:  # there is no other broker that could follow us
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return hosted.leadership_error(part.current_leader_epoch) or hosted


def _read_one(hosted: Hosted, part: "FetchPartition", left: int, not_first: bool, committed: bool) -> PartRead:
    try:
        records = hosted.read(part.fetch_offset, max(min(part.partition_max_bytes, left), 0), not not_first)
    except KafkaError as error:
        return _error(part, error.code)
    watermark = hosted.high_watermark
    length = records.length if records is not None else 0
    aborted: list[tuple[int, int]] | None = [] if committed else None
    start = hosted.log.log_start_offset
    return PartRead(FetchResult(part.partition, 0, watermark, watermark, start, length, aborted), records, hosted)


def _error(part: "FetchPartition", code: ErrorCode, not_there: bool = False) -> PartRead:
    return PartRead(FetchResult(part.partition, code, -1, -1, -1, 0, [] if not_there else None), None, None)


def _release(reads: list[PartRead]) -> None:
    for read in reads:
        if read.records is not None and read.records.release:
            read.records.release()


def _pack(header: RequestHeader, request: "FetchRequest", reads: list[PartRead]) -> Reply:
    reply = FetchReply(header.version, header.correlation_id, 0, NO_SESSION, len(request.topics))
    following = iter(reads)
    for topic in request.topics:
        reply.topic(topic.topic, topic.topic_id, len(topic.partitions))
        for _ in topic.partitions:
            read = next(following)
            reply.partition(read.result, read.records)
        reply.close_topic()
    return reply.end()
