"""Fetch by hand is, byte for byte and in every version, what the schema reads and writes."""

import struct
import tracemalloc
import uuid
from typing import Any, NamedTuple, cast
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.index import load_request_schema

from harness.tiers import examples
from moldau.errors import ProtocolViolation
from moldau.protocol import hot_fetch, schema
from moldau.protocol.apis import FETCH
from moldau.protocol.codec import write_reply
from moldau.protocol.fetch_request import CONSUMER, Fetch
from moldau.protocol.hot_fetch import FetchReply, FetchResult, pack_fetch, read_fetch
from moldau.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from moldau.protocol.primitives import write_uvarint
from moldau.replies import FileSlice
from tests.protocol import drawn
from tests.protocol.fetches import as_by_hand

VERSIONS = range(FETCH.low, FETCH.high + 1)
REQUEST = Fetch(CONSUMER, 0, 0, 0, 0, 0, 0, [], [])
few = settings(max_examples=examples(10, 15), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
INT16, INT32, INT64 = (drawn.VALUES[kind] for kind in ("int16", "int32", "int64"))
aborted = st.none() | st.lists(st.tuples(INT64, INT64), max_size=2)
partitions = st.tuples(
    st.builds(
        FetchResult, INT32, INT16, INT64, INT64, INT64, aborted, st.none(), st.just(-1) | st.integers(0, 2**31 - 1)
    ),
    st.binary(max_size=5) | drawn.LONG_DATA,
)
topics_of_replies = st.lists(st.tuples(st.text(max_size=9), st.uuids(), st.lists(partitions, max_size=3)), max_size=3)
one_topic = st.tuples(st.text(max_size=9), st.uuids(), st.lists(partitions, min_size=1, max_size=1)).map(lambda t: [t])


class Sent(NamedTuple):
    """Bytes that stand for a slice of a file: as long, and told apart from packed bytes."""

    data: bytes

    @property
    def length(self) -> int:
        return len(self.data)


def drawn_request(data: st.DataObject, version: int) -> tuple[Any, bytes]:
    message = data.draw(drawn.messages(FETCH.request, load_request_schema(FETCH.key, version), version))
    return message, bytes(schema.write(message, version, FETCH.is_flexible(version)))


@pytest.mark.parametrize("version", VERSIONS)
@few
@given(data=st.data(), before=st.binary(max_size=3), patch=st.binary(min_size=1, max_size=5), place=st.floats(0, 1))
def test_a_request_is_read_as_the_schema_reads_it_cut_short_a_violation_and_damaged_another_or_a_violation(
    version: int, data: st.DataObject, before: bytes, patch: bytes, place: float
):
    message, body = drawn_request(data, version)
    assert read_fetch(memoryview(before + body), version, len(before)) == as_by_hand(message, version)
    for end in range(len(body)):
        with pytest.raises(ProtocolViolation):
            read_fetch(memoryview(body)[:end], version, 0)
    frame = bytearray(body)
    at = int(place * len(frame))
    frame[at : at + len(patch)] = patch
    try:
        by_hand = read_fetch(memoryview(frame), version, 0, schema.ELEMENTS_MAX)
    except ProtocolViolation:
        return
    try:
        by_schema, _ = schema.read(FETCH.request, version, FETCH.is_flexible(version), frame)
    except ProtocolViolation:
        return  # in a tagged field that is skipped by hand
    assert by_hand == as_by_hand(by_schema, version)


def by_the_general_way(frame: memoryview, version: int, at: int) -> Fetch:
    with mock.patch.object(hot_fetch, "_read_one", return_value=None):
        return read_fetch(frame, version, at)


@pytest.mark.parametrize("version", VERSIONS)
@few
@given(data=st.data(), place=st.floats(0, 1), byte=st.integers(0, 255))
def test_a_request_for_one_partition_is_read_as_any_other(version: int, data: st.DataObject, place: float, byte: int):
    topic = st.builds(
        FetchTopic,
        topic=st.text(min_size=1, max_size=9),
        topic_id=st.uuids(),
        partitions=st.lists(st.builds(FetchPartition, partition=INT32, fetch_offset=INT64), min_size=1, max_size=1),
    )
    message = FetchRequest(topics=[data.draw(topic)], session_epoch=data.draw(INT32) if version >= 7 else -1)
    frame = bytearray(schema.write(message, version, FETCH.is_flexible(version)))
    assert read_fetch(memoryview(frame), version, 0) == as_by_hand(message, version)
    frame[int(place * (len(frame) - 1))] = byte
    found = []
    for read in (read_fetch, by_the_general_way):
        try:
            found.append(read(memoryview(frame), version, 0))
        except ProtocolViolation:
            found.append(None)
    assert found[0] == found[1]


def test_a_few_bytes_a_topic_cannot_fill_the_memory():
    frame = bytearray(struct.pack(">iiiibii", -1, 0, 0, 0, 0, 0, -1))
    write_uvarint(frame, 1_000_001)
    frame += b"\x01\x01\x00" * 1_000_000 + b"\x01\x01\x00"
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolViolation):
            read_fetch(memoryview(frame), 12, 0)
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("version", VERSIONS)
@few
@given(
    topics=topics_of_replies | one_topic,
    correlation_id=INT32,
    error=st.just(0) | INT16,
    session_id=st.just(0) | INT32,
    throttle_ms=st.just(0) | INT32,
)
def test_a_reply_is_what_the_schema_writes(
    version: int, topics: list[Any], correlation_id: int, error: int, session_id: int, throttle_ms: int
):
    meant = FetchResponse(
        throttle_time_ms=throttle_ms,
        error_code=error,
        session_id=session_id,
        responses=[
            FetchableTopicResponse(
                topic=name, topic_id=topic_id, partitions=[partition_data(result, data) for result, data in found]
            )
            for name, topic_id, found in topics
        ],
    )
    by_hand = packed(version, correlation_id, error, session_id, topics, throttle_ms)
    assert by_hand == write_reply(FETCH, version, correlation_id, meant)


def partition_data(result: FetchResult, records: bytes) -> PartitionData:
    aborted = result.aborted
    return PartitionData(
        partition_index=result.index,
        error_code=result.error,
        high_watermark=result.high_watermark,
        last_stable_offset=result.last_stable_offset,
        log_start_offset=result.log_start_offset,
        aborted_transactions=None
        if aborted is None
        else [AbortedTransaction(producer_id=pid, first_offset=first) for pid, first in aborted],
        preferred_read_replica=result.preferred,
        records=records,
    )


def packed(
    version: int, correlation_id: int, error: int, session_id: int, topics: list[Any], throttle_ms: int = 0
) -> bytes:
    """The pieces joined, with bytes where the broker would send a slice of a file."""
    asked = [
        (name, topic_id.bytes, [(result.index, -1, 0, 0) for result, _ in found]) for name, topic_id, found in topics
    ]
    results = [
        result._replace(records=cast(FileSlice, Sent(data)) if data else None)
        for _, _, found in topics
        for result, data in found
    ]
    reply = FetchReply(error, session_id, asked, results)
    pieces = pack_fetch(version, correlation_id, REQUEST, reply, throttle_ms)
    return b"".join(piece.data if isinstance(piece, Sent) else bytes(cast(bytes, piece)) for piece in pieces)


def test_the_size_in_front_of_a_reply_counts_the_records():
    result = FetchResult(0, 0, 9, 9, 0)
    reply = packed(12, 3, 0, 0, [("t", uuid.UUID(int=1), [(result, b"r" * 1000)])])
    assert struct.unpack_from(">ii", reply) == (len(reply) - 4, 3)


@pytest.mark.parametrize("version", [11, 12])
def test_names_that_no_topic_has_are_kept_by_no_reply(version: int) -> None:
    """Clients choose them: a few hundred long ones would fill the memory."""
    result, by_id = FetchResult(0, 3, -1, -1, -1), uuid.UUID(int=0)
    names = [f"{number}" * 9_000 for number in range(100, 150)]
    tracemalloc.start()
    try:
        for name in names:
            parts = [partition_data(result, b"")]
            meant = FetchResponse(responses=[FetchableTopicResponse(topic=name, partitions=parts)])
            assert packed(version, 7, 0, 0, [(name, by_id, [(result, b"")])]) == write_reply(FETCH, version, 7, meant)
        assert tracemalloc.get_traced_memory()[0] < 500_000
    finally:
        tracemalloc.stop()
