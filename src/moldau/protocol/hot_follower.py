"""A follower's Fetch by hand: its request written and read, its reply read, without the tables of `schema`.

Versions from 15 on, in which the request carries the follower in a tagged field. The messages are those of
`messages.fetch`; what is rare in them (a rack, diverging epochs, aborted transactions, unknown tagged fields) is left
to the tables: the functions here return None then. The tests compare both.
"""

import struct
import uuid
from typing import Final

from moldau.errors import ProtocolViolation
from moldau.protocol.apis import FETCH
from moldau.protocol.codec import FIXED_HEADER
from moldau.protocol.fetch_request import Fetch, FollowerPositions, FollowerTopic, ForgottenTopic
from moldau.protocol.hot_topics import FOLLOWER, WIDE
from moldau.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
    SnapshotId,
)
from moldau.protocol.primitives import read_uvarint, write_uvarint

SINCE: Final = 15
_LIMITS = struct.Struct(">iiibii")  # max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch
_ONE = struct.Struct(">iiibiiB16sBiiqiqiBBBBBBBiqB")
"""The whole body of a request for one partition of one topic."""
_PART = struct.Struct(">iiqiqiB")  # partition, epoch, offset, last fetched epoch, log start, most bytes, no tags
_END = struct.Struct(">BBBBiqB")  # no rack, one tag: the replica state and its size; id, epoch, no tags
_REPLY = struct.Struct(">Bihi")  # no tags, throttle_time_ms, error, session id
_RESULT = struct.Struct(">ihqqqBi")  # index, error, high watermark, stable offset, log start, no aborted, any replica
_NULL, _EMPTY, _ONE_ELEMENT = 0, 1, 2
"""The lengths of a null and of an empty array, and of an array of one, in flexible versions."""
_new = tuple.__new__  # what a NamedTuple's constructor does, at a third of its cost
_NO_EPOCH_END, _NO_LEADER, _NO_SNAPSHOT = EpochEndOffset(), LeaderIdAndEpoch(), SnapshotId()


def write(version: int, correlation_id: int, client_id: str, request: FetchRequest) -> bytes | None:
    """A whole request, with its size in front."""
    if version < SINCE or request.cluster_id is not None or request.rack_id:
        return None
    name = client_id.encode()
    out = bytearray(4)
    out += FIXED_HEADER.pack(FETCH.key, version, correlation_id, len(name))
    out += name
    out.append(0)
    out += _LIMITS.pack(
        request.max_wait_ms,
        request.min_bytes,
        request.max_bytes,
        request.isolation_level,
        request.session_id,
        request.session_epoch,
    )
    write_uvarint(out, len(request.topics) + 1)
    for topic in request.topics:
        out += topic.topic_id.bytes
        write_uvarint(out, len(topic.partitions) + 1)
        for part in topic.partitions:
            out += _PART.pack(
                part.partition,
                part.current_leader_epoch,
                part.fetch_offset,
                part.last_fetched_epoch,
                part.log_start_offset,
                part.partition_max_bytes,
                0,
            )
        out.append(0)
    write_uvarint(out, len(request.forgotten_topics_data) + 1)
    for forgotten in request.forgotten_topics_data:
        out += forgotten.topic_id.bytes
        write_uvarint(out, len(forgotten.partitions) + 1)
        out += struct.pack(f">{len(forgotten.partitions)}iB", *forgotten.partitions, 0)
    state = request.replica_state
    out += _END.pack(*FOLLOWER, state.replica_id, state.replica_epoch, 0)
    struct.pack_into(">i", out, 0, len(out) - 4)
    return bytes(out)


def read_request(frame: memoryview, version: int, at: int) -> Fetch | None:
    """The body of a request that starts at `at`, if it is one as `write` makes it and not wide."""
    end = len(frame) - _END.size
    if version < SINCE or end < at or frame[end : end + len(FOLLOWER)] != FOLLOWER or frame[-1]:
        return None
    if len(frame) - at == _ONE.size:
        fields = _ONE.unpack_from(frame, at)
        if fields[6] == fields[8] == _ONE_ELEMENT and not (fields[15] or fields[16]) and fields[17] == _EMPTY:
            return _fetch(fields[:6], [(fields[7], [fields[9:15]])], [], fields[22], fields[23])
    try:
        limits = _LIMITS.unpack_from(frame, at)
        topics, at = _read_topics(frame, at + _LIMITS.size)
        forgotten, at = _read_forgotten(frame, at)
    except (struct.error, IndexError, ValueError, ProtocolViolation):
        return None
    if at != end:
        return None
    *_, replica_id, replica_epoch, _ = _END.unpack_from(frame, end)
    return _fetch(limits, topics, forgotten, replica_id, replica_epoch)


def _fetch(
    limits: tuple[int, ...],
    topics: list[FollowerTopic],
    forgotten: list[ForgottenTopic],
    replica_id: int,
    replica_epoch: int,
) -> Fetch:
    read = [(None, topic_id, [(*part[:3], part[5]) for part in parts]) for topic_id, parts in topics]
    positions = _new(FollowerPositions, (replica_epoch, topics))
    return _new(Fetch, (replica_id, *limits, read, forgotten, False, positions, ""))


def _counted(frame: memoryview, at: int) -> tuple[int, int]:
    """A number of elements, and the position after it. Raises `ValueError`."""
    length, at = read_uvarint(frame, at)
    if not 1 <= length <= WIDE:
        raise ValueError
    return length - 1, at


def _topic(frame: memoryview, at: int) -> tuple[bytes, int, int]:
    """A topic's id, the number of its partitions, and the position after it. Raises `ValueError`."""
    count, after = _counted(frame, at + 16)
    return bytes(frame[at : at + 16]), count, after


def _read_topics(frame: memoryview, at: int) -> tuple[list[FollowerTopic], int]:
    count, at = _counted(frame, at)
    left = WIDE - count
    topics = []
    for _ in range(count):
        topic_id, part_count, at = _topic(frame, at)
        left -= part_count
        if left < 0:
            raise ValueError
        parts = []
        for _ in range(part_count):
            *part, tags = _PART.unpack_from(frame, at)
            if tags:
                raise ValueError
            at += _PART.size
            parts.append(tuple(part))
        if frame[at]:
            raise ValueError
        at += 1
        topics.append((topic_id, parts))
    return topics, at


def _read_forgotten(frame: memoryview, at: int) -> tuple[list[ForgottenTopic], int]:
    count, at = _counted(frame, at)
    left = WIDE - count
    forgotten: list[ForgottenTopic] = []
    for _ in range(count):
        topic_id, part_count, at = _topic(frame, at)
        left -= part_count
        if left < 0:
            raise ValueError
        *numbers, tags = struct.unpack_from(f">{part_count}iB", frame, at)
        if tags:
            raise ValueError
        at += 4 * part_count + 1
        forgotten.append((None, topic_id, list(numbers)))
    return forgotten, at


def read_reply(version: int, frame: memoryview) -> FetchResponse | None:
    """The message of a reply frame, whose correlation id is the first four bytes; the records are views into it."""
    if version < SINCE:
        return None
    try:
        tags, throttle_ms, error, session_id = _REPLY.unpack_from(frame, 4)
        count, at = _counted(frame, 4 + _REPLY.size)
        topics = []
        for _ in range(count):
            topic_id, part_count, at = _topic(frame, at)
            parts = []
            for _ in range(part_count):
                part, at = _read_result(frame, at)
                parts.append(part)
            tags |= frame[at]
            at += 1
            topics.append(FetchableTopicResponse(topic_id=uuid.UUID(bytes=topic_id), partitions=parts))
        tags |= frame[at]
    except (struct.error, IndexError, ValueError, ProtocolViolation):
        return None
    if tags or at + 1 != len(frame):
        return None
    return FetchResponse(throttle_time_ms=throttle_ms, error_code=error, session_id=session_id, responses=topics)


def _read_result(frame: memoryview, at: int) -> tuple[PartitionData, int]:
    """One partition, and the position after it. Raises `ValueError`."""
    index, error, watermark, stable, start, aborted, preferred = _RESULT.unpack_from(frame, at)
    length, at = read_uvarint(frame, at + _RESULT.size)
    end = at + max(length - 1, 0)
    if aborted > _EMPTY or frame[end]:
        raise ValueError
    part = PartitionData(
        partition_index=index,
        error_code=error,
        high_watermark=watermark,
        last_stable_offset=stable,
        log_start_offset=start,
        diverging_epoch=_NO_EPOCH_END,
        current_leader=_NO_LEADER,
        snapshot_id=_NO_SNAPSHOT,
        aborted_transactions=None if aborted == _NULL else [],
        preferred_read_replica=preferred,
        records=None if length == _NULL else frame[at:end],
    )
    return part, end + 1
