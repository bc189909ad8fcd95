"""Fetch by hand: requests read and replies packed without an object per field, in every version.

`read_fetch` returns what `schema` would read, with a follower's positions in tuples of their own.
`pack_fetch` writes what `schema` would write, in pieces, because the records between the packed bytes are slices of
files; a reply with rarer fields is left to `schema`. The tests compare both for every version.
"""

import struct
import uuid
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from moldau.errors import ProtocolViolation
from moldau.protocol import codec
from moldau.protocol.apis import FETCH
from moldau.protocol.fetch_request import CONSUMER, Fetch, FetchPartition, FetchTopic, FollowerPositions, ForgottenTopic
from moldau.protocol.hot_topics import FOLLOWER, NAME_LENGTH_MAX, WIDE, append_topic, misfit, too_many
from moldau.protocol.primitives import (
    ZERO_UUID,
    Detached,
    length_reader,
    read_uvarint,
    sized,
    skip_tagged_fields,
    write_uvarint,
)
from moldau.protocol.schema import is_wide
from moldau.replies import FileSlice

if TYPE_CHECKING:
    from moldau.protocol.messages.fetch import FetchRequest, FetchResponse

FLEXIBLE_SINCE, NAMES_UNTIL, REPLICA_ID_UNTIL = 12, 12, 14
COMPARES_REPLICAS = -2
"""The replica id of a client that reads from followers too, to compare them: Kafka calls it a debugging consumer."""
REPLICA_STATE_TAG = 1
_INT32 = struct.Struct(">i").unpack_from
_PACK_INT32 = struct.Struct(">i").pack
_PACK_SIZE = struct.Struct(">i").pack_into
_SIZE_AND_CORRELATION = struct.Struct(">ii")
_LIMITS_V4 = struct.Struct(">iiib")  # max_wait_ms, min_bytes, max_bytes, isolation_level
_LIMITS_V7 = struct.Struct(">iiibii")  # ..., session_id, session_epoch
_PART_V4 = struct.Struct(">iqi")  # partition, fetch_offset, partition_max_bytes
_PART_V5 = struct.Struct(">iq8xi")  # ..., log_start_offset before the bytes
_PART_V9 = struct.Struct(">iiq8xi")  # partition, current_leader_epoch, ...
_PART_V12 = struct.Struct(">iiq12xi")  # ..., last_fetched_epoch and log_start_offset before the bytes
_ONE_BY_ID = struct.Struct(">iiibiiB16sBiiq12xiBBBBB")
"""The whole body from version 15 on, if it asks for one partition: the limits, a topic's id, a partition, no tags,
nothing forgotten, no rack."""
_BEFORE_NAME = struct.Struct(">iiiibiiih")  # replica_id, the limits, count of topics, length of the first name
_ONE_BY_NAME = struct.Struct(">iiiq8xii")  # count of partitions, the first one, count of forgotten topics
_NO_RACK = b"\0\0"
_FOLLOWER_AT = slice(-17, -13)
_READ_COUNT = length_reader(flexible=False, narrow=False), length_reader(flexible=True, narrow=False)
_READ_TEXT = sized("string", False, False)[0], sized("string", True, False)[0]
"""Readers of counts and of strings, for plain and for flexible versions."""
_NO_SESSION = (0, -1)
"""The session's id and epoch in versions without sessions."""
_new = tuple.__new__  # what a NamedTuple's constructor does, at a third of its cost


def read_fetch(frame: memoryview, version: int, at: int, most: int = WIDE) -> Fetch:
    """The body of a Fetch request, version 4 to 18, that starts at `at`. Raises `ProtocolViolation`, and `Wide` for
    more than `most` topics and partitions."""
    try:
        if (one := _read_one(frame, version, at)) is not None:
            return one
        if version > REPLICA_ID_UNTIL and frame[_FOLLOWER_AT] == FOLLOWER:
            from moldau.protocol import hot_follower  # a broker alone needs none of it

            if (of_follower := hot_follower.read_request(frame, version, at)) is not None:
                return of_follower
        replica_id, begins_at, rack = CONSUMER, at, None
        if version <= REPLICA_ID_UNTIL:
            (replica_id,) = _INT32(frame, at)
            at += 4
        limits = _LIMITS_V7 if version >= 7 else _LIMITS_V4
        fields = limits.unpack_from(frame, at)
        topics, at = _read_topics(frame, version, at + limits.size, most)
        forgotten: list[ForgottenTopic] = []
        if version >= 7:
            forgotten, at = _read_forgotten(frame, version, at, most)
        if version >= 11:
            rack, at = _text(frame, version, at)
        if version >= FLEXIBLE_SINCE:
            replica_id = _replica_in_tags(frame, version, at, replica_id) if frame[at] else replica_id
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ProtocolViolation("a Fetch request that ends early or is not UTF-8") from error
    session = () if version >= 7 else _NO_SESSION
    follower = None if replica_id == CONSUMER else positions_of(codec.read_request(FETCH, version, frame, begins_at))
    return _new(Fetch, (replica_id, *fields, *session, topics, forgotten, False, follower, rack))


def positions_of(message: "FetchRequest") -> FollowerPositions:
    """The positions in a request that `schema` has read."""
    topics = [
        (
            topic.topic_id.bytes,
            [
                (
                    part.partition,
                    part.current_leader_epoch,
                    part.fetch_offset,
                    part.last_fetched_epoch,
                    part.log_start_offset,
                    part.partition_max_bytes,
                )
                for part in topic.partitions
            ],
        )
        for topic in message.topics
    ]
    return FollowerPositions(message.replica_state.replica_epoch, topics)


def _read_one(frame: memoryview, version: int, at: int) -> Fetch | None:
    """The body of a request for one partition without rare fields: by far the commonest, read in one or two steps. None
    for all others. Raises what `unpack_from` does."""
    if version > REPLICA_ID_UNTIL:
        if len(frame) - at != _ONE_BY_ID.size:
            return None
        fields = _ONE_BY_ID.unpack_from(frame, at)
        if fields[6] != 2 or fields[8] != 2 or fields[13:] != (0, 0, 1, 1, 0):
            return None
        return _new(Fetch, (CONSUMER, *fields[:6], [(None, fields[7], [fields[9:13]])], [], False, None, ""))
    if not 9 <= version < FLEXIBLE_SINCE:
        return None
    fields = _BEFORE_NAME.unpack_from(frame, at)
    at += _BEFORE_NAME.size
    end = at + fields[8]
    if fields[7] != 1 or not at < end <= len(frame) - _ONE_BY_NAME.size:
        return None
    if fields[0] != CONSUMER:
        return None
    parts, index, epoch, offset, bytes_max, forgotten = _ONE_BY_NAME.unpack_from(frame, end)
    if parts != 1 or forgotten or (version == 11 and frame[end + _ONE_BY_NAME.size :] != _NO_RACK):
        return None
    name = str(frame[at:end], "utf-8")
    rack = "" if version == 11 else None
    return _new(Fetch, (*fields[:7], [(name, None, [(index, epoch, offset, bytes_max)])], [], False, None, rack))


def _read_topics(frame: memoryview, version: int, at: int, most: int) -> tuple[list[FetchTopic], int]:
    plain = version < FLEXIBLE_SINCE
    part = _PART_V12 if not plain else _PART_V9 if version >= 9 else _PART_V5 if version >= 5 else _PART_V4
    unpack, size = part.unpack_from, part.size
    topic_count, at = _count(frame, version, at)
    elements = topic_count
    topics: list[FetchTopic] = []
    for _ in range(topic_count):
        name, topic_id, count, at = _topic(frame, version, at)
        elements += count
        if elements > most:
            raise too_many(elements)
        parts: list[FetchPartition] = []
        for _ in range(count):
            fields = unpack(frame, at)
            at += size
            parts.append(fields if version >= 9 else (fields[0], -1, fields[1], fields[2]))
            if not plain:
                at = at + 1 if frame[at] == 0 else skip_tagged_fields(frame, at)
        if not plain:
            at = at + 1 if frame[at] == 0 else skip_tagged_fields(frame, at)
        topics.append((name, topic_id, parts))
    return topics, at


def _topic(frame: memoryview, version: int, at: int) -> tuple[str | None, bytes | None, int, int]:
    """A topic's name and id, the number of its partitions, and the position after them."""
    if version > NAMES_UNTIL:
        count, after = _count(frame, version, at + 16)
        return None, bytes(frame[at : at + 16]), count, after
    name, at = _text(frame, version, at)
    count, at = _count(frame, version, at)
    return name, None, count, at


def _count(frame: memoryview, version: int, at: int) -> tuple[int, int]:
    """The number of elements that follow, and the position after it."""
    count, at = _READ_COUNT[version >= FLEXIBLE_SINCE](frame, at)
    if not 0 <= count <= len(frame) - at:
        raise misfit(count, len(frame) - at)
    return count, at


def _text(frame: memoryview, version: int, at: int) -> tuple[str, int]:
    return _READ_TEXT[version >= FLEXIBLE_SINCE](frame, at)


def _read_forgotten(frame: memoryview, version: int, at: int, most: int) -> tuple[list[ForgottenTopic], int]:
    topic_count, at = _count(frame, version, at)
    elements = topic_count
    topics: list[ForgottenTopic] = []
    for _ in range(topic_count):
        name, topic_id, count, at = _topic(frame, version, at)
        elements += count
        if elements > most:
            raise too_many(elements)
        topics.append((name, topic_id, list(struct.unpack_from(f">{count}i", frame, at))))
        at += 4 * count
        if version >= FLEXIBLE_SINCE:
            at = skip_tagged_fields(frame, at)
    return topics, at


def _replica_in_tags(frame: memoryview, version: int, at: int, replica_id: int) -> int:
    """The replica id in the tagged fields at the request's end, where later versions carry it."""
    skip_tagged_fields(frame, at)
    count, at = read_uvarint(frame, at)
    for _ in range(count):
        tag, at = read_uvarint(frame, at)
        size, at = read_uvarint(frame, at)
        if tag == REPLICA_STATE_TAG and version > REPLICA_ID_UNTIL:
            (replica_id,) = _INT32(frame, at)
        at += size
    return replica_id


class FetchResult(NamedTuple):
    """The answer for one partition; `records` is the slice to send, or None.

    `aborted` is None for read_uncommitted; (producer id, first offset) pairs for read_committed. `preferred`: the
    broker that the reader is to read from instead, -1 for none; told from version 11 on.
    """

    index: int  # type: ignore[assignment]
    error: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: list[tuple[int, int]] | None = None
    records: FileSlice | None = None
    preferred: int = -1


Piece: TypeAlias = bytes | bytearray | FileSlice
_RESULT_V4 = struct.Struct(">ihqq")
_RESULT_V5 = struct.Struct(">ihqqq")
_ABORTED = struct.Struct(">qq").pack
_ERROR_AND_SESSION = struct.Struct(">hi").pack
_NO_PREFERRED_REPLICA = b"\xff\xff\xff\xff"
_CLOSING = b"\0\0\0"
"""Empty tagged fields: of a partition, its topic and the reply."""


class FetchReply(NamedTuple):
    """The answer of a request: an error of the whole request, the session's id, the topics, and the results of all
    their partitions in that order."""

    error: int
    session_id: int
    topics: Sequence[FetchTopic]
    results: Sequence[FetchResult]


def pack_fetch(
    version: int, correlation_id: int, _: Fetch, answer: "FetchReply | FetchResponse", throttle_ms: int = 0
) -> list[Piece]:
    """A whole reply in pieces, with its size in front, which includes the records. The records of a `FetchResponse` may
    be slices of files too."""
    # Rare replies (a follower's, a throttled client's) need fields that only the tables write.
    if type(answer) is not FetchReply or throttle_ms:
        response = fetch_response(answer) if isinstance(answer, FetchReply) else answer
        response.throttle_time_ms = throttle_ms
        return _pack_response(version, correlation_id, response)
    error, session_id, topics, results = answer
    if (
        len(results) == 1 == len(topics)
        and version >= 5
        and not (error or results[0].aborted or results[0].preferred >= 0)
        and (version > NAMES_UNTIL or len(topics[0][0] or "") <= NAME_LENGTH_MAX)
    ):
        return _pack_one(version, correlation_id, session_id, topics[0], results[0])
    flexible = version >= FLEXIBLE_SINCE
    first = out = bytearray(8)
    if flexible:
        out.append(0)
    out += bytes(4)
    if version >= 7:
        out += _ERROR_AND_SESSION(error, session_id)
    if flexible:
        write_uvarint(out, len(topics) + 1)
    else:
        out += _PACK_INT32(len(topics))
    pieces: list[Piece] = []
    size, following = -4, iter(results)
    for name, topic_id, parts in topics:
        append_topic(out, flexible, version > NAMES_UNTIL, name, topic_id, len(parts))
        for _part in parts:
            result = next(following)
            _append_result(out, version, result)
            # Records stay slices of a file: they end one piece of packed bytes, and the next one begins.
            if result.records is not None:
                pieces += (out, result.records)
                size += len(out) + result.records.length
                out = bytearray()
            if flexible:
                out.append(0)
        if flexible:
            out.append(0)
    if flexible:
        out.append(0)
    if out:
        pieces.append(out)
    # The size is known only now: it counts everything after its own four bytes.
    _SIZE_AND_CORRELATION.pack_into(first, 0, size + len(out), correlation_id)
    return pieces


def fetch_response(reply: FetchReply) -> "FetchResponse":
    """The reply as a message, whose records are slices of files."""
    from moldau.protocol.messages.fetch import (
        AbortedTransaction,
        FetchableTopicResponse,
        FetchResponse,
        PartitionData,
    )

    responses, following = [], iter(reply.results)
    for name, topic_id, parts in reply.topics:
        partitions = []
        for _, result in zip(parts, following, strict=False):
            aborted = result.aborted
            partition = PartitionData(
                partition_index=result.index,
                error_code=result.error,
                high_watermark=result.high_watermark,
                last_stable_offset=result.last_stable_offset,
                log_start_offset=result.log_start_offset,
                aborted_transactions=None
                if aborted is None
                else [AbortedTransaction(producer_id=producer, first_offset=first) for producer, first in aborted],
                preferred_read_replica=result.preferred,
                records=b"" if result.records is None else result.records,  # type: ignore[arg-type]
            )
            partitions.append(partition)
        by_id = uuid.UUID(bytes=topic_id) if topic_id else ZERO_UUID
        responses.append(FetchableTopicResponse(topic=name or "", topic_id=by_id, partitions=partitions))
    return FetchResponse(error_code=reply.error, session_id=reply.session_id, responses=responses)


def _pack_response(version: int, correlation_id: int, response: "FetchResponse") -> list[Piece]:
    """A message whose records are slices of files: they are cut out of it while `schema` writes the rest."""
    cut: list[tuple[Detached, FileSlice]] = []
    for topic in response.responses:
        for partition in topic.partitions:
            records: Any = partition.records
            if records is not None and not isinstance(records, (bytes, bytearray, memoryview)):
                cut.append((Detached(records.length), records))
                partition.records = cut[-1][0]  # type: ignore[assignment]
    packed = memoryview(codec.write_reply(FETCH, version, correlation_id, response)).toreadonly()
    head = bytearray(packed[:4])
    _PACK_SIZE(head, 0, len(packed) - 4 + sum(records.length for records, _ in cut))
    pieces: list[Piece] = []
    done = 4
    for place, records in cut:
        pieces += (head + packed[done : place.at], records)
        head, done = bytearray(), place.at
    if done < len(packed):
        pieces.append(head + packed[done:])
    return pieces


def is_wide_fetch(message: Any) -> bool:
    """Whether a request or an answer to it is wide."""
    if isinstance(message, Fetch):
        return message.is_wide
    return len(message.results) > WIDE if isinstance(message, FetchReply) else is_wide(message)


def _append_result(out: bytearray, version: int, result: FetchResult) -> None:
    """One partition up to its records."""
    flexible = version >= FLEXIBLE_SINCE
    out += _RESULT_V5.pack(*result[:5]) if version >= 5 else _RESULT_V4.pack(*result[:4])
    aborted = result.aborted
    count = -1 if aborted is None else len(aborted)
    if flexible:
        write_uvarint(out, count + 1)
    else:
        out += _PACK_INT32(count)
    for producer_id, first_offset in aborted or ():
        out += _ABORTED(producer_id, first_offset)
        if flexible:
            out.append(0)
    if version >= 11:
        out += _NO_PREFERRED_REPLICA if result.preferred < 0 else _PACK_INT32(result.preferred)
    length = 0 if result.records is None else result.records.length
    if flexible:
        write_uvarint(out, length + 1)
    else:
        out += _PACK_INT32(length)


def _pack_one(
    version: int, correlation_id: int, session_id: int, topic: FetchTopic, result: FetchResult
) -> list[Piece]:
    """A reply for one partition without aborted transactions and preferred replica: by far the commonest. The name of
    its topic is short, since it is kept."""
    records = result.records
    length = 0 if records is None else records.length
    pack, size, before, between = _reply_of_one(version, session_id, topic[0], topic[1], result.aborted is None)
    if version < FLEXIBLE_SINCE:
        head = pack(size + length, correlation_id, before, *result[:5], between, length)
        return [head] if records is None else [head, records]
    counted = bytearray()
    write_uvarint(counted, length + 1)
    head = pack(size + len(counted) + length, correlation_id, before, *result[:5], between) + counted
    return [head + _CLOSING] if records is None else [head, records, _CLOSING]


ReplyOfOne: TypeAlias = tuple[Callable[..., bytes], int, bytes, bytes]
"""The packer of a reply for one partition up to its records, and the parts that all such replies share: the size
without records (and without their length, where that varies in size), the bytes before the result, and those after
it."""


@lru_cache(4096)
def _reply_of_one(
    version: int, session_id: int, name: str | None, topic_id: bytes | None, uncommitted: bool
) -> ReplyOfOne:
    flexible = version >= FLEXIBLE_SINCE
    before, between = bytearray(b"\0" if flexible else b""), bytearray()
    before += bytes(4)
    if version >= 7:
        before += _ERROR_AND_SESSION(0, session_id)
    before += b"\2" if flexible else _PACK_INT32(1)
    append_topic(before, flexible, version > NAMES_UNTIL, name, topic_id, 1)
    if flexible:
        between.append(0 if uncommitted else 1)
    else:
        between += _PACK_INT32(-1 if uncommitted else 0)
    if version >= 11:
        between += _NO_PREFERRED_REPLICA
    fields = f">ii{len(before)}sihqqq{len(between)}s"
    packer = struct.Struct(fields if flexible else fields + "i")
    return packer.pack, packer.size - 4 + len(_CLOSING) * flexible, bytes(before), bytes(between)
