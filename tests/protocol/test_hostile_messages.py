"""Bytes that are no message: each raises `ProtocolViolation`, whatever they claim to hold, and costs little memory."""

import contextlib
import struct
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.index import load_request_schema

from harness.tiers import examples
from moldau.errors import ProtocolViolation
from moldau.protocol import schema
from moldau.protocol.apis import APIS, DESCRIBE_GROUPS, DESCRIBE_PRODUCERS, METADATA, OFFSET_FETCH, PRODUCE, Api
from moldau.protocol.codec import WIDE_BYTES, read_header, read_request
from moldau.protocol.primitives import TAGGED_FIELDS_MAX, read_uvarint, write_uvarint
from moldau.protocol.schema import ARRAY_MAX, ELEMENTS_MAX
from tests.protocol import drawn
from tests.protocol.kio_reference import KIO_LACKS
from tests.protocol.test_codec import EVERY_VERSION

every_version = pytest.mark.parametrize(
    ("api", "version"), [row for row in EVERY_VERSION if row.values not in KIO_LACKS]
)
"""But for those of Kafka 4.4.0: `test_messages_against_kafka.py` cuts their messages short."""
few = settings(max_examples=examples(2, 2), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
HUGE_COUNTS = (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f", b"\x80\x00\x00\x00")


@every_version
@few
@given(data=st.data())
def test_a_request_cut_short_anywhere_is_a_violation_and_a_damaged_one_another_or_a_violation(
    api: Api, version: int, data: st.DataObject
) -> None:
    flexible = api.is_flexible(version)
    message = data.draw(drawn.messages(api.request, load_request_schema(api.key, version), version))
    whole = bytes(schema.write(message, version, flexible))
    for end in range(len(whole)):
        with pytest.raises(ProtocolViolation):
            schema.read(api.request, version, flexible, whole[:end])
    damaged = bytearray(whole)
    at = data.draw(st.integers(0, max(0, len(damaged) - 1)))
    damaged[at : at + 4] = data.draw(st.binary(max_size=5) | st.sampled_from(HUGE_COUNTS))
    peak = peak_bytes(api.request, version, flexible, bytes(damaged))
    assert peak < 60_000 + 60 * len(damaged)


def peak_bytes(message: type[Any], version: int, flexible: bool, data: bytes) -> int:
    """The most memory that reading takes; violations are welcome, everything else is not."""
    with contextlib.suppress(ProtocolViolation):
        schema.read(message, version, flexible, data)  # builds the reader, which is not to be counted
    tracemalloc.start()
    try:
        with contextlib.suppress(ProtocolViolation):
            schema.read(message, version, flexible, data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("count", [1, 5, 1000, 2**31 - 1])
def test_an_array_of_more_elements_than_bytes_remain_is_refused_before_it_is_made(count: int) -> None:
    assert peak_bytes(METADATA.request, 1, False, struct.pack(">i", count)) < 10_000
    with pytest.raises(ProtocolViolation):
        schema.read(METADATA.request, 1, False, struct.pack(">i", count))


def test_a_count_that_a_five_byte_varint_can_hold_is_refused() -> None:
    for claimed in (2, 2**31, 2**32 - 1):
        data = bytearray()
        write_uvarint(data, claimed)
        with pytest.raises(ProtocolViolation):
            schema.read(METADATA.request, 9, True, data)


@pytest.mark.parametrize("data", [b"\x80\x80\x80\x80\x80\x00", b"\xff\xff\xff\xff\x7f", b"\x80", b""])
def test_a_varint_too_long_or_cut_short_is_a_violation(data: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        read_uvarint(data, 0)


@given(st.integers(0, 2**32 - 1))
def test_every_unsigned_number_of_32_bits_survives_as_a_varint(value: int) -> None:
    out = bytearray()
    write_uvarint(out, value)
    assert read_uvarint(out, 0) == (value, len(out))


def test_a_string_that_is_not_utf_8_is_a_violation() -> None:
    for bad in (b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xf5\x80\x80\x80"):
        with pytest.raises(ProtocolViolation, match="UTF-8"):
            schema.read(DESCRIBE_GROUPS.request, 0, False, struct.pack(">ih", 1, len(bad)) + bad)
        with pytest.raises(ProtocolViolation, match="UTF-8"):
            schema.read(DESCRIBE_GROUPS.request, 5, True, bytes([2, len(bad) + 1]) + bad + b"\0\0")


def test_null_where_no_null_may_be_is_a_violation() -> None:
    with pytest.raises(ProtocolViolation):
        schema.read(DESCRIBE_GROUPS.request, 5, True, b"\x00\x00\x00")  # the array
    with pytest.raises(ProtocolViolation):
        schema.read(DESCRIBE_GROUPS.request, 5, True, b"\x02\x00\x00\x00")  # its only string
    with pytest.raises(ProtocolViolation):
        schema.read(METADATA.request, 0, False, b"\xff\xff\xff\xff")  # null topics are of version 1 on


def test_any_negative_length_is_null_where_null_may_be_as_for_kafka() -> None:
    for length in (-1, -2, -(2**31)):
        assert schema.read(METADATA.request, 1, False, struct.pack(">i", length))[0].topics is None


def test_tagged_fields_of_huge_size_or_number_are_violations() -> None:
    for tags in (b"\xff\xff\xff\xff\x0f", b"\x01\x00\xff\xff\xff\xff\x0f", b"\x02\x00\x00", b"\x01\x05\x02a"):
        with pytest.raises(ProtocolViolation):
            schema.read(DESCRIBE_GROUPS.request, 5, True, b"\x01\x00" + tags)


def test_more_tagged_fields_than_any_client_sends_are_a_violation_also_in_a_header() -> None:
    """Each takes two bytes: ten thousand of them are read, one more is refused before any is."""
    for count in (TAGGED_FIELDS_MAX, TAGGED_FIELDS_MAX + 1):
        tags = bytearray()
        write_uvarint(tags, count)
        for number in range(count):
            write_uvarint(tags, 100 + number)
            tags.append(0)
        fetch, body = bytes(schema.write(APIS[1].request(), 12, True)), b"\x01\x00" + bytes(tags)
        assert fetch.endswith(b"\0")
        header = struct.pack(">hhih", DESCRIBE_GROUPS.key, 5, 1, -1) + bytes(tags)
        reads: tuple[Callable[[], object], ...] = (
            lambda body=body: schema.read(DESCRIBE_GROUPS.request, 5, True, body),  # type: ignore[misc]
            lambda body=fetch[:-1] + tags: schema.read(APIS[1].request, 12, True, body),  # type: ignore[misc]
            lambda frame=header: read_header(frame),  # type: ignore[misc]
        )
        for read in reads:
            if count <= TAGGED_FIELDS_MAX:
                read()
            else:
                with pytest.raises(ProtocolViolation, match="10001 tagged fields; at most 10000 are allowed"):
                    read()


def test_an_array_of_more_than_a_million_elements_is_a_violation_however_many_bytes_follow() -> None:
    elements = ARRAY_MAX + 1
    body = b"\x02\x02t" + b"\xc2\x84\x3d" + bytes(4 * elements)
    assert read_uvarint(body, 3) == (elements + 1, 6)
    with pytest.raises(ProtocolViolation, match="an array of 1000001 elements; at most 1000000 are allowed"):
        schema.read(DESCRIBE_PRODUCERS.request, 0, True, body)


def test_a_tagged_field_shorter_or_longer_than_its_value_is_a_violation() -> None:
    fetch = APIS[1]
    whole = bytes(schema.write(fetch.request(cluster_id="abc"), 12, True))
    assert whole.endswith(b"\x01\x00\x04\x04abc")
    for wrong in (b"\x01\x00\x03\x04abc", b"\x01\x00\x05\x04abc\0"):
        with pytest.raises(ProtocolViolation):
            schema.read(fetch.request, 12, True, whole[:-7] + wrong)


@pytest.mark.parametrize("api", [OFFSET_FETCH, PRODUCE], ids=lambda api: api.name)
def test_three_bytes_an_element_cannot_fill_the_memory(api: Api) -> None:
    """Three megabytes of the smallest elements would be 130 MB of objects: the budget stops before the first."""
    version, elements = (8, 1_000_000)
    start = b"\x02\x02g" if api is OFFSET_FETCH else b""
    if api is PRODUCE:
        version, start = 9, b"\x00\x00\x01\x00\x00\x00\x00"
    body = bytearray(start)
    write_uvarint(body, elements + 1)
    body += b"\x01\x01\x00" * elements + b"\x00\x00\x00"
    frame = struct.pack(">hhih", api.key, version, 1, -1) + b"\0" + body
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolViolation, match="more elements"):
            read_request(api, version, frame, read_header(frame).body)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_numbers_are_counted_too_since_handlers_make_objects_of_them() -> None:
    elements = 1_000_000
    body = bytearray(b"\x02\x02t")
    write_uvarint(body, elements + 1)
    body += bytes(4 * elements) + b"\x00\x00"
    frame = struct.pack(">hhih", DESCRIBE_PRODUCERS.key, 0, 1, -1) + b"\0" + body
    with pytest.raises(ProtocolViolation, match="more elements"):
        read_request(DESCRIBE_PRODUCERS, 0, frame, read_header(frame).body)


def test_the_largest_request_that_is_not_counted_and_the_largest_number_of_elements_cost_little() -> None:
    for elements in (WIDE_BYTES // 3 - 20, ELEMENTS_MAX - 1):
        body = bytearray(b"\x02\x02g")
        write_uvarint(body, elements + 1)
        body += b"\x01\x01\x00" * elements + b"\x00\x00\x00"
        frame = struct.pack(">hhih", OFFSET_FETCH.key, 8, 1, -1) + b"\0" + body
        tracemalloc.start()
        try:
            read = read_request(OFFSET_FETCH, 8, frame, read_header(frame).body)
            assert len(read.groups[0].topics) == elements
            assert tracemalloc.get_traced_memory()[1] < 16 << 20
        finally:
            tracemalloc.stop()
