"""Produce by hand is, byte for byte and in every version, what the schema reads and writes."""

import tracemalloc
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.index import load_request_schema

from harness.tiers import examples
from moldau.errors import ProtocolViolation
from moldau.protocol import hot_produce, schema
from moldau.protocol.apis import PRODUCE
from moldau.protocol.codec import write_reply
from moldau.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from moldau.protocol.primitives import write_uvarint
from tests.protocol import drawn

PRODUCE_VERSIONS = range(PRODUCE.lowest, PRODUCE.high + 1)
few = settings(max_examples=examples(10, 15), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
INT16, INT32, INT64 = (drawn.VALUES[kind] for kind in ("int16", "int32", "int64"))

produce_results = st.tuples(INT32, INT16, INT64, INT64, INT64)
produce_topics = st.lists(st.tuples(st.text(max_size=9), st.uuids(), st.lists(produce_results, max_size=3)), max_size=3)


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
@few
@given(data=st.data(), before=st.binary(max_size=3), patch=st.binary(min_size=1, max_size=5), place=st.floats(0, 1))
def test_a_produce_request_is_read_as_by_the_schema_cut_short_a_violation_and_damaged_another_or_a_violation(
    version: int, data: st.DataObject, before: bytes, patch: bytes, place: float
) -> None:
    message = data.draw(drawn.messages(PRODUCE.request, load_request_schema(PRODUCE.key, version), version))
    body = bytes(schema.write(message, version, PRODUCE.is_flexible(version)))
    read = hot_produce.read_produce(memoryview(before + body), version, len(before))
    assert (read.transactional_id, read.acks, read.timeout_ms) == (
        message.transactional_id,
        message.acks,
        message.timeout_ms,
    )
    assert [
        (name, topic_id, [(index, records) for index, records in parts]) for name, topic_id, parts in read.topics
    ] == [
        (
            topic.name if version < 13 else None,
            topic.topic_id.bytes if version >= 13 else None,
            [(p.index, p.records) for p in topic.partition_data],
        )
        for topic in message.topic_data
    ]
    for end in range(len(body)):
        with pytest.raises(ProtocolViolation):
            hot_produce.read_produce(memoryview(body)[:end], version, 0)
    frame = bytearray(body)
    at = int(place * len(frame))
    frame[at : at + len(patch)] = patch
    try:
        by_hand = hot_produce.read_produce(memoryview(frame), version, 0, schema.ELEMENTS_MAX)
    except ProtocolViolation:
        return
    by_schema, _ = schema.read(PRODUCE.request, version, PRODUCE.is_flexible(version), frame)
    assert [[records for _, records in parts] for _, _, parts in by_hand.topics] == [
        [p.records for p in topic.partition_data] for topic in by_schema.topic_data
    ]


@pytest.mark.parametrize("version", [3, 13])
def test_records_of_a_produce_request_are_views_into_the_frame(version: int) -> None:
    message: Any = PRODUCE.request()
    topic, partition = schema_classes()
    message.topic_data = [topic(name="t", partition_data=[partition(records=b"abc")])]
    frame = schema.write(message, version, PRODUCE.is_flexible(version))
    records = hot_produce.read_produce(memoryview(frame), version, 0).topics[0][2][0][1]
    assert records is not None
    records[0:1] = b"x"
    assert b"xbc" in frame


def schema_classes() -> tuple[type[Any], type[Any]]:
    from moldau.protocol.messages.produce import PartitionProduceData, TopicProduceData

    return TopicProduceData, PartitionProduceData


def test_three_bytes_a_topic_cannot_fill_the_memory() -> None:
    frame = bytearray(b"\x00\x00\x01\x00\x00\x00\x00")
    write_uvarint(frame, 1_000_001)
    frame += b"\x01\x01\x00" * 1_000_000 + b"\x00"
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolViolation):
            hot_produce.read_produce(memoryview(frame), 9, 0)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
@few
@given(topics=produce_topics, correlation_id=INT32, throttle_ms=st.just(0) | INT32)
def test_a_produce_reply_is_what_the_schema_writes(
    version: int, topics: list[Any], correlation_id: int, throttle_ms: int
) -> None:
    meant = ProduceResponse(
        throttle_time_ms=throttle_ms,
        responses=[
            TopicProduceResponse(
                name=name,
                topic_id=topic_id,
                partition_responses=[
                    PartitionProduceResponse(
                        index=index,
                        error_code=error_code,
                        base_offset=base_offset,
                        log_append_time_ms=time_ms,
                        log_start_offset=start,
                    )
                    for index, error_code, base_offset, time_ms, start in results
                ],
            )
            for name, topic_id, results in topics
        ],
    )
    asked = [(name, topic_id.bytes, [(index, None) for index, *_ in results]) for name, topic_id, results in topics]
    request = hot_produce.Produce(None, 1, 0, asked)
    results = [result for _, _, results in topics for result in results]
    packed = hot_produce.pack_produce(version, correlation_id, request, results, throttle_ms)
    assert packed == [write_reply(PRODUCE, version, correlation_id, meant)]


@pytest.mark.parametrize("version", [8, 12])
def test_names_that_no_topic_has_are_kept_by_no_reply(version: int) -> None:
    """Clients choose them: a few hundred long ones would fill the memory."""
    asked = [hot_produce.Produce(None, 1, 0, [(f"{number}" * 9_000, None, [(0, None)])]) for number in range(100, 150)]
    results = [(0, 3, -1, -1, -1)]
    tracemalloc.start()
    try:
        for number, request in enumerate(asked):
            packed = hot_produce.pack_produce(version, number, request, results)
            meant = hot_produce.produce_response(request, results)
            assert packed == [write_reply(PRODUCE, version, number, meant)]
        assert tracemalloc.get_traced_memory()[0] < 500_000
    finally:
        tracemalloc.stop()
