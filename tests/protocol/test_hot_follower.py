"""A follower's Fetch by hand is what the schema writes and reads, or left to it."""

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.errors import ProtocolViolation
from moldau.protocol import codec, hot_fetch, hot_follower
from moldau.protocol.apis import FETCH
from moldau.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from tests.protocol import drawn
from tests.protocol.fetches import as_by_hand

VERSIONS = range(hot_follower.SINCE, FETCH.high + 1)
INT16, INT32, INT64 = (drawn.VALUES[kind] for kind in ("int16", "int32", "int64"))
NUMBERS = st.lists(INT32, max_size=3)
parts_asked = st.builds(
    FetchPartition,
    partition=INT32,
    current_leader_epoch=INT32,
    fetch_offset=INT64,
    last_fetched_epoch=INT32,
    log_start_offset=INT64,
    partition_max_bytes=INT32,
)
topics_asked = st.builds(FetchTopic, topic_id=st.uuids(), partitions=st.lists(parts_asked, max_size=3))
requests = st.builds(
    FetchRequest,
    replica_state=st.builds(ReplicaState, replica_id=st.integers(0, 2**31 - 1), replica_epoch=INT64),
    max_wait_ms=INT32,
    min_bytes=INT32,
    max_bytes=INT32,
    session_id=INT32,
    session_epoch=INT32,
    topics=st.lists(topics_asked, max_size=3),
    forgotten_topics_data=st.lists(st.builds(ForgottenTopic, topic_id=st.uuids(), partitions=NUMBERS), max_size=3),
)
results = st.builds(
    PartitionData,
    partition_index=INT32,
    error_code=INT16,
    high_watermark=INT64,
    last_stable_offset=INT64,
    log_start_offset=INT64,
    aborted_transactions=st.none() | st.just([]),
    preferred_read_replica=INT32,
    records=st.none() | st.binary(max_size=5) | drawn.LONG_DATA,
)
topics_answered = st.builds(FetchableTopicResponse, topic_id=st.uuids(), partitions=st.lists(results, max_size=3))
replies = st.builds(
    FetchResponse,
    throttle_time_ms=INT32,
    error_code=INT16,
    session_id=INT32,
    responses=st.lists(topics_answered, max_size=3),
)
versions = pytest.mark.parametrize("version", VERSIONS)


def body_at(client_id: str) -> int:
    return 8 + 2 + len(client_id) + 1


@versions
@given(request=requests)
def test_a_request_is_written_and_read_as_by_the_schema(version: int, request: FetchRequest) -> None:
    expected = codec.write_request(FETCH, version, 7, "one", request)
    assert hot_follower.write(version, 7, "one", request) == expected
    frame, at = memoryview(expected)[4:], body_at("one")
    by_hand = hot_follower.read_request(frame, version, at)
    assert by_hand == as_by_hand(request, version)
    assert hot_fetch.read_fetch(frame, version, at) == by_hand


@versions
@given(request=requests, place=st.floats(0, 1, exclude_max=True), byte=st.integers(0, 255), cut=st.booleans())
def test_a_damaged_request_is_what_the_schema_reads_or_left_to_it(
    version: int, request: FetchRequest, place: float, byte: int, cut: bool
) -> None:
    frame, at = bytearray(codec.write_request(FETCH, version, 7, "one", request)[4:]), body_at("one")
    where = at + int(place * (len(frame) - at))
    if cut:
        del frame[where:]
    else:
        frame[where] = byte
    found = hot_follower.read_request(memoryview(frame), version, at)
    if found is not None:
        assert found == as_by_hand(codec.read_request(FETCH, version, frame, at), version)


@versions
@given(reply=replies)
def test_a_reply_is_read_as_by_the_schema(version: int, reply: FetchResponse) -> None:
    frame = memoryview(codec.write_reply(FETCH, version, 7, reply))[4:]
    assert hot_follower.read_reply(version, frame) == codec.read_reply(FETCH, version, frame) == reply


@versions
@given(reply=replies, place=st.floats(0, 1, exclude_max=True), byte=st.integers(0, 255), cut=st.booleans())
def test_a_damaged_reply_is_what_the_schema_reads_or_left_to_it(
    version: int, reply: FetchResponse, place: float, byte: int, cut: bool
) -> None:
    frame = bytearray(codec.write_reply(FETCH, version, 7, reply)[4:])
    where = 4 + int(place * (len(frame) - 4))
    if cut:
        del frame[where:]
    else:
        frame[where] = byte
    found = hot_follower.read_reply(version, memoryview(frame))
    if found is not None:
        assert found == codec.read_reply(FETCH, version, frame)


@pytest.mark.parametrize(
    "part",
    [
        PartitionData(diverging_epoch=EpochEndOffset(epoch=1, end_offset=2)),
        PartitionData(aborted_transactions=[AbortedTransaction(producer_id=1, first_offset=2)]),
    ],
)
def test_rare_replies_are_left_to_the_schema(part: PartitionData) -> None:
    reply: Any = FetchResponse(responses=[FetchableTopicResponse(partitions=[part])])
    frame = memoryview(codec.write_reply(FETCH, FETCH.high, 7, reply))[4:]
    assert hot_follower.read_reply(FETCH.high, frame) is None


def test_other_requests_are_left_to_the_schema() -> None:
    for request in (FetchRequest(rack_id="r"), FetchRequest(cluster_id="c")):
        assert hot_follower.write(FETCH.high, 7, "one", request) is None
    assert hot_follower.write(hot_follower.SINCE - 1, 7, "one", FetchRequest()) is None


def test_a_wide_request_is_wide() -> None:
    parts = [FetchPartition(partition=number) for number in range(1000)]
    state = ReplicaState(replica_id=1, replica_epoch=1)
    request = FetchRequest(replica_state=state, topics=[FetchTopic(partitions=parts)])
    packed = hot_follower.write(FETCH.high, 7, "one", request)
    assert packed is not None
    frame, at = memoryview(packed)[4:], body_at("one")
    assert hot_follower.read_request(frame, FETCH.high, at) is None
    with pytest.raises(ProtocolViolation):
        codec.read_request(FETCH, FETCH.high, frame[:-1], at)
    assert struct.unpack_from(">i", packed)[0] == len(frame)
