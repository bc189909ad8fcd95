"""Headers and whole frames, read by kio what we wrote and by us what kio wrote."""

import io
import struct
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.request_header.v1.header import RequestHeader as KioHeaderV1
from kio.schema.request_header.v2.header import RequestHeader as KioHeaderV2
from kio.schema.response_header.v0.header import ResponseHeader as KioReplyHeaderV0
from kio.schema.response_header.v1.header import ResponseHeader as KioReplyHeaderV1
from kio.serial import entity_reader, entity_writer

from moldau.errors import ConfigError, ProtocolViolation
from moldau.protocol.apis import (
    API_VERSIONS,
    APIS,
    ASSIGN_REPLICAS_TO_DIRS,
    CREATE_TOPICS,
    ENVELOPE,
    HEARTBEAT,
    OFFSET_DELETE,
    PRODUCE,
    Api,
)
from moldau.protocol.codec import (
    read_header,
    read_reply,
    read_request,
    request_name,
    write_reply,
    write_request,
    write_request_around,
)
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.heartbeat import HeartbeatRequest
from moldau.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.primitives import Detached

EVERY_VERSION = [
    pytest.param(api, version, id=f"{api.name}-v{version}")
    for api in (*APIS.values(), ENVELOPE, ASSIGN_REPLICAS_TO_DIRS)
    for version in range(max(api.low, api.lowest), api.high + 1)
]
every_version = pytest.mark.parametrize(("api", "version"), EVERY_VERSION)


@every_version
def test_kio_reads_the_header_of_a_request_that_we_write(api: Api, version: int) -> None:
    frame = write_request(api, version, 7, "client ü", api.request())
    assert struct.unpack_from(">i", frame) == (len(frame) - 4,)
    kio_class = KioHeaderV2 if api.is_flexible(version) else KioHeaderV1
    header, size = entity_reader(kio_class)(frame, 4)
    assert (header.request_api_key, header.request_api_version) == (api.key, version)
    assert (header.correlation_id, header.client_id) == (7, "client ü")
    read = read_header(memoryview(frame)[4:])
    assert read == (api.key, version, 7, "client ü", size)
    assert read_request(api, version, memoryview(frame)[4:], read.body) == api.request()


@pytest.mark.parametrize("version", range(PRODUCE.lowest, PRODUCE.high + 1))
def test_a_request_around_records_has_the_bytes_of_one_that_holds_them(version: int) -> None:
    held = [b"first", b"", b"x" * 1_000]
    places = [Detached(len(data)) for data in held]

    def request(records: Sequence[bytes | Detached]) -> ProduceRequest:
        parts = [PartitionProduceData(index=number, records=data) for number, data in enumerate(records)]
        topics = [TopicProduceData(name="t", partition_data=parts[:2]), TopicProduceData(partition_data=parts[2:])]
        return ProduceRequest(acks=-1, timeout_ms=7, topic_data=topics)

    pieces = write_request_around(PRODUCE, version, 7, "c", request(places), [*zip(places, held, strict=True)])
    assert b"".join(pieces) == write_request(PRODUCE, version, 7, "c", request(held))
    assert all(any(piece is data for piece in pieces) for data in held), "no record is copied"


@every_version
def test_kio_reads_the_header_of_a_reply_that_we_write(api: Api, version: int) -> None:
    reply = write_reply(api, version, -3, api.response())
    assert struct.unpack_from(">i", reply) == (len(reply) - 4,)
    kio_class = KioReplyHeaderV1 if api.is_flexible(version) and api is not API_VERSIONS else KioReplyHeaderV0
    header, size = entity_reader(kio_class)(reply, 4)
    assert header.correlation_id == -3
    assert size == (5 if kio_class is KioReplyHeaderV1 else 4)
    assert read_reply(api, version, memoryview(reply)[4:]) == api.response()


@given(correlation_id=st.integers(-(2**31), 2**31 - 1), client_id=st.none() | st.text(max_size=300))
def test_we_read_the_headers_that_kio_writes(correlation_id: int, client_id: str | None) -> None:
    for api, version in ((OFFSET_DELETE, 0), (PRODUCE, 8), (PRODUCE, 9), (API_VERSIONS, 4)):
        kio_class = KioHeaderV2 if api.is_flexible(version) else KioHeaderV1
        out = io.BytesIO()
        header = kio_class(
            request_api_key=api.key, request_api_version=version, correlation_id=correlation_id, client_id=client_id
        )
        entity_writer(kio_class)(out, header)
        frame = out.getvalue()
        assert read_header(frame) == (api.key, version, correlation_id, client_id, len(frame))


def test_tagged_fields_in_a_header_that_nobody_knows_are_passed_over() -> None:
    frame = struct.pack(">hhih", HEARTBEAT.key, 4, 1, -1) + b"\x02\x00\x03abc\x09\x01z" + b"rest"
    assert read_header(frame).body == len(frame) - 4


def test_a_version_of_api_versions_that_we_do_not_have_is_read_as_far_as_its_client_id() -> None:
    frame = struct.pack(">hhih", API_VERSIONS.key, 99, 5, 2) + b"me"
    assert read_header(frame) == (API_VERSIONS.key, 99, 5, "me", 12)


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        struct.pack(">hhi", 12, 0, 1),
        struct.pack(">hhih", 999, 0, 1, -1),
        struct.pack(">hhih", -1, 0, 1, -1),
        struct.pack(">hhih", 12, 0, 1, 3) + b"ab",
        struct.pack(">hhih", 12, 0, 1, 2) + b"\xff\xfe",
        struct.pack(">hhih", 12, 4, 1, -1),
        struct.pack(">hhih", 12, 4, 1, -1) + b"\xff\xff\xff\xff\x0f",
        struct.pack(">hhih", 12, 4, 1, -1) + b"\x01\x00\xff\xff\xff\xff\x0f",
        struct.pack(">hhih", 12, 4, 1, -1) + b"\x80\x80\x80\x80\x80\x00",
    ],
)
def test_a_header_that_is_none_is_a_violation(frame: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        read_header(frame)


def test_the_log_repeats_the_beginning_of_a_client_id() -> None:
    """A client that has not authenticated chooses it."""
    head = struct.pack(">hhih", HEARTBEAT.key, 4, 1, 30_000) + b"c" * 30_000
    assert request_name(head) == f"Heartbeat version 4 of client '{'c' * 100}'"
    assert request_name(head[:12]) == "Heartbeat version 4 of client 'cc'"


def test_any_negative_length_of_a_client_id_is_null_as_for_kafka() -> None:
    assert read_header(struct.pack(">hhih", 12, 0, 1, -2)).client_id is None


def test_bytes_after_a_request_are_ignored_as_kafka_does() -> None:
    frame = write_request(HEARTBEAT, 4, 1, "c", HeartbeatRequest(group_id="g"))[4:] + b"more"
    assert read_request(HEARTBEAT, 4, frame, read_header(frame).body).group_id == "g"


@pytest.mark.parametrize(
    ("topic", "sentence"),
    [
        (
            {"num_partitions": 10**11},
            "a number in CreateTopics is too large or too small: it must be -2147483648 to",
        ),
        ({"replication_factor": -(10**5)}, "it must be -32768 to 32767"),
        ({"name": "\udcff"}, "a text in CreateTopics has characters that are not Unicode"),
    ],
)
def test_what_the_protocol_cannot_carry_is_a_sentence(topic: dict[str, Any], sentence: str) -> None:
    request = CreateTopicsRequest(topics=[CreatableTopic(**{"name": "t", **topic})], timeout_ms=1)
    with pytest.raises(ConfigError) as refused:
        write_request(CREATE_TOPICS, 7, 1, "client", request)
    assert sentence in str(refused.value)
    with pytest.raises(ConfigError, match="a number in CreateTopics is too large or too small"):
        write_request(CREATE_TOPICS, 7, 1, "c" * 40_000, CreateTopicsRequest(topics=[], timeout_ms=1))
    with pytest.raises(ConfigError, match="a number in CreateTopics is too large"):
        write_request(CREATE_TOPICS, 7, 10**30, "client", CreateTopicsRequest(topics=[], timeout_ms=1))
