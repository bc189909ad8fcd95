"""Produce by hand: read and packed without an object per field, in every version, for the broker's hot path.

`read_produce` returns views into the frame, no copy. `pack_produce` writes what `schema` would write for the same
answer, which the tests compare for every version; a reply with more than codes and offsets is left to `schema`.
"""

import struct
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from moldau.errors import ProtocolViolation
from moldau.protocol import codec
from moldau.protocol.apis import PRODUCE
from moldau.protocol.hot_topics import NAME_LENGTH_MAX, WIDE, append_topic, misfit, too_many
from moldau.protocol.primitives import ZERO_UUID, read_uvarint, skip_tagged_fields, write_uvarint
from moldau.protocol.schema import is_wide

if TYPE_CHECKING:
    from moldau.protocol.messages.produce import ProduceResponse

_PRODUCE_PLAIN = struct.Struct(">hhiih")  # transactional id's length, acks, timeout_ms, count of topics, name's length
_PRODUCE_FIXED = struct.Struct(">hii")  # acks, timeout_ms, count of topics
_INT16 = struct.Struct(">h").unpack_from
_INT32 = struct.Struct(">i").unpack_from
_TWO_INT32 = struct.Struct(">ii").unpack_from
_PACK_INT32 = struct.Struct(">i").pack
_SIZE_AND_CORRELATION = struct.Struct(">ii")
_new = tuple.__new__  # what a NamedTuple's constructor does, at a third of its cost


ProducePartition: TypeAlias = tuple[int, memoryview | None]
"""A partition's number and its record set, as a view into the frame; None where the request has null."""
ProduceTopic: TypeAlias = tuple[str | None, bytes | None, list[ProducePartition]]
"""A topic's name (None from version 13 on), its id (None before), and its partitions."""
ProduceResult: TypeAlias = tuple[int, int, int, int, int]
"""The result of one partition: its number, error code, base offset, log append time, log start offset. Record errors
are rare, and written by `schema`. All are plain tuples, since one of each is made for every batch."""


class Produce(NamedTuple):
    """A request. `is_wide`: it has more topics and partitions than one turn of the loop answers, and its record sets
    have been copied out of the frame."""

    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[ProduceTopic]
    is_wide: bool = False


class Details(Protocol):
    """Why a batch was refused: a sentence, and sentences about single records by their number in the batch."""

    @property
    def message(self) -> str | None: ...
    @property
    def record_errors(self) -> Sequence[tuple[int, str]]: ...


NO_DETAILS: Mapping[int, Details] = {}


def read_produce(frame: memoryview, version: int, at: int, most: int = WIDE) -> Produce:
    """The body of a Produce request, version 3 to 13, that starts at `at`. Raises `ProtocolViolation`, and `Wide` for
    more than `most` topics and partitions."""
    try:
        if version >= 9:
            return _read_produce_flexible(frame, version, at, most)
        end = len(frame)
        start = at + _PRODUCE_PLAIN.size
        if end > start:
            no_id, acks, timeout_ms, topic_count, length = _PRODUCE_PLAIN.unpack_from(frame, at)
            if no_id == -1 and topic_count == 1 and 0 <= length <= NAME_LENGTH_MAX:  # one batch: by far the commonest
                fixed = _ONE_PARTITION[length]
                if start + fixed.size <= end:
                    encoded, count, index, size = fixed.unpack_from(frame, start)
                    start += fixed.size
                    # The sizes add up to exactly this frame: nothing else needs a check.
                    if count == 1 and start + size == end and size >= 0:
                        one = [(str(encoded, "utf-8"), None, [(index, frame[start:])])]
                        return _new(Produce, (None, acks, timeout_ms, one, False))
        return _read_produce_plain(frame, at, most)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ProtocolViolation("a Produce request that ends early or is not UTF-8") from error


_ONE_PARTITION = [struct.Struct(f">{length}siii") for length in range(NAME_LENGTH_MAX + 1)]
"""By its length, a topic's name and its first partition: count of partitions, index, size."""


def _read_produce_plain(frame: memoryview, at: int, most: int) -> Produce:
    end = len(frame)
    (length,) = _INT16(frame, at)
    at += 2
    transactional_id = None
    if length >= 0:
        transactional_id = str(frame[at : at + length], "utf-8")
        at += length
    acks, timeout_ms, topic_count = _PRODUCE_FIXED.unpack_from(frame, at)
    at += 10
    # A hostile count: every topic takes at least one byte.
    if topic_count < 0 or topic_count > end - at:
        raise ProtocolViolation(f"{topic_count} topics in {end - at} bytes")
    if topic_count > most:
        raise too_many(topic_count)
    topics: list[ProduceTopic] = []
    elements = topic_count
    for _ in range(topic_count):
        (length,) = _INT16(frame, at)
        at += 2
        if length < 0:
            raise ProtocolViolation("a null topic name")
        name = str(frame[at : at + length], "utf-8")
        (count,) = _INT32(frame, at + length)
        at += length + 4
        if count < 0 or count > end - at:
            raise ProtocolViolation(f"{count} partitions in {end - at} bytes")
        elements += count
        if elements > most:
            raise too_many(elements)
        partitions: list[ProducePartition] = []
        for _ in range(count):
            index, size = _TWO_INT32(frame, at)
            at += 8
            # A null record set: the handler refuses it, for this partition only.
            if size < 0:
                partitions.append((index, None))
                continue
            if size > end - at:
                raise ProtocolViolation("a record set that ends after its request")
            partitions.append((index, frame[at : at + size]))
            at += size
        topics.append((name, None, partitions))
    return Produce(transactional_id, acks, timeout_ms, topics)


def _read_produce_flexible(frame: memoryview, version: int, at: int, most: int) -> Produce:
    end = len(frame)
    length, at = read_uvarint(frame, at)
    transactional_id = None
    if length:
        if not 0 <= length - 1 <= end - at:
            raise misfit(length - 1, end - at)
        transactional_id = str(frame[at : at + length - 1], "utf-8")
        at += length - 1
    (acks,) = _INT16(frame, at)
    (timeout_ms,) = _INT32(frame, at + 2)
    count, at = read_uvarint(frame, at + 6)
    if not 0 <= count - 1 <= end - at:
        raise misfit(count - 1, end - at)
    elements = count - 1
    if elements > most:
        raise too_many(elements)
    topics: list[ProduceTopic] = []
    for _ in range(count - 1):
        name = topic_id = None
        if version >= 13:
            topic_id = bytes(frame[at : at + 16])
            at += 16
        else:
            length, at = read_uvarint(frame, at)
            if not 0 <= length - 1 <= end - at:
                raise misfit(length - 1, end - at)
            name = str(frame[at : at + length - 1], "utf-8")
            at += length - 1
        count, at = read_uvarint(frame, at)
        if not 0 <= count - 1 <= end - at:
            raise misfit(count - 1, end - at)
        elements += count - 1
        if elements > most:
            raise too_many(elements)
        partitions: list[ProducePartition] = []
        for _ in range(count - 1):
            (index,) = _INT32(frame, at)
            size, at = read_uvarint(frame, at + 4)
            records = None
            if size:
                if not 0 <= size - 1 <= end - at:
                    raise misfit(size - 1, end - at)
                records = frame[at : at + size - 1]
                at += size - 1
            at = at + 1 if frame[at] == 0 else skip_tagged_fields(frame, at)
            partitions.append((index, records))
        at = skip_tagged_fields(frame, at)
        topics.append((name, topic_id, partitions))
    skip_tagged_fields(frame, at)
    return Produce(transactional_id, acks, timeout_ms, topics)


_RESULT_V8 = struct.Struct(">ihqqqih")  # ..., record errors: int32 count 0, error message: int16 -1
_RESULT_V5 = struct.Struct(">ihqqq")
_RESULT_V2 = struct.Struct(">ihqq")
_RESULT_V9 = struct.Struct(">ihqqqBBB")  # ..., count 0 + 1, null message, no tagged fields


def pack_produce(
    version: int,
    correlation_id: int,
    request: Produce,
    answer: "list[ProduceResult] | ProduceResponse | None",
    throttle_ms: int = 0,
) -> list[bytes] | None:
    """A whole Produce reply, its size in front; None for an `answer` of None: a request with acks=0 gets no reply. A
    list has the results of all partitions in the request's order."""
    if type(answer) is list and not throttle_ms:
        if len(answer) == 1 and version >= 5 and len(request.topics) == 1:
            name, topic_id, _ = request.topics[0]
            if name is None or len(name) <= NAME_LENGTH_MAX:
                pack, size, before, after = _reply_of_one(version, name, topic_id)
                return [pack(size, correlation_id, before, *answer[0], after)]
        return [_pack_produce(version, correlation_id, request.topics, answer)]
    if answer is None:
        return None
    response: Any = produce_response(request, answer) if isinstance(answer, list) else answer
    response.throttle_time_ms = throttle_ms
    return [codec.write_reply(PRODUCE, version, correlation_id, response)]


def produce_response(
    request: Produce, results: Sequence[ProduceResult], details: Mapping[int, Details] = NO_DETAILS
) -> "ProduceResponse":
    """The results of all partitions, in the request's order, as a message. `details` are by position in that order;
    versions before 8 leave them out."""
    from moldau.protocol.messages.produce import (
        BatchIndexAndErrorMessage,
        PartitionProduceResponse,
        ProduceResponse,
        TopicProduceResponse,
    )

    topics, position = [], 0
    for name, topic_id, asked in request.topics:
        parts = []
        for _ in asked:
            index, error, base_offset, time_ms, start = results[position]
            part = PartitionProduceResponse(
                index=index,
                error_code=error,
                base_offset=base_offset,
                log_append_time_ms=time_ms,
                log_start_offset=start,
            )
            refused = details.get(position)
            if refused is not None:
                part.error_message = refused.message
                part.record_errors = [
                    BatchIndexAndErrorMessage(batch_index=number, batch_index_error_message=message)
                    for number, message in refused.record_errors
                ]
            parts.append(part)
            position += 1
        by_id = uuid.UUID(bytes=topic_id) if topic_id else ZERO_UUID
        topics.append(TopicProduceResponse(name=name or "", topic_id=by_id, partition_responses=parts))
    return ProduceResponse(responses=topics)


def is_wide_produce(message: Any) -> bool:
    """Whether a request or an answer to it is wide."""
    if isinstance(message, Produce):
        return message.is_wide
    return len(message) > WIDE if isinstance(message, list) else message is not None and is_wide(message)


def in_own_memory(request: Produce) -> Produce:
    """The same request with its record sets in memory of its own, for as long as it is needed: those of `read_produce`
    are views into the frame, which is valid only until the first step of answering it has ended."""
    if request.is_wide:
        return request
    topics: list[ProduceTopic] = [
        (name, topic_id, [(index, records and memoryview(bytearray(records))) for index, records in parts])
        for name, topic_id, parts in request.topics
    ]
    return request._replace(topics=topics)


def without_records(request: Produce) -> Produce:
    """The same request without its record sets: what its reply is packed with."""
    topics: list[ProduceTopic] = [
        (name, topic_id, [(index, None) for index, _ in parts]) for name, topic_id, parts in request.topics
    ]
    return _new(Produce, (request.transactional_id, request.acks, request.timeout_ms, topics, request.is_wide))


ReplyOfOne: TypeAlias = tuple[Callable[..., bytes], int, bytes, bytes]
"""The packer of a reply for one partition, and the parts that all such replies share: the size, and the bytes before
and after the result."""


@lru_cache(4096)
def _reply_of_one(version: int, name: str | None, topic_id: bytes | None) -> ReplyOfOne:
    """For one partition of that topic. The names are kept, so they must be short: clients choose them."""
    whole = _pack_produce(version, 0, [(name, topic_id, [(0, None)])], [(0, 0, 0, 0, 0)])
    after = len(whole) - (4 if version < 8 else 10 if version == 8 else 9)
    before = after - _RESULT_V5.size
    pack = struct.Struct(f">ii{before - 8}sihqqq{len(whole) - after}s").pack
    return pack, len(whole) - 4, whole[8:before], whole[after:]


def _pack_produce(version: int, correlation_id: int, topics: list[ProduceTopic], results: list[ProduceResult]) -> bytes:
    out = bytearray(8)
    flexible = version >= 9
    if flexible:
        out.append(0)
        write_uvarint(out, len(topics) + 1)
    else:
        out += _PACK_INT32(len(topics))
    following = iter(results)
    for name, topic_id, partitions in topics:
        append_topic(out, flexible, version >= 13, name, topic_id, len(partitions))
        for _ in partitions:
            result = next(following)
            if flexible:
                out += _RESULT_V9.pack(*result, 1, 0, 0)
            elif version == 8:
                out += _RESULT_V8.pack(*result, 0, -1)
            elif version >= 5:
                out += _RESULT_V5.pack(*result)
            else:
                out += _RESULT_V2.pack(*result[:4])
        if flexible:
            out.append(0)
    out += b"\0\0\0\0\0" if flexible else b"\0\0\0\0"
    _SIZE_AND_CORRELATION.pack_into(out, 0, len(out) - 4, correlation_id)
    return bytes(out)
