"""Message types of a schema, and the message indexes of the wire format."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.client.registry.proto.messages import MessageTypes, indexes_in, packed_indexes
from moldau.client.registry.schemas import PROTOBUF, Schema
from moldau.errors import DoesNotFit, SchemaInvalid

NESTED = """syntax = "proto3"; package cz;
message River { map<string, Place> places = 1; message Place { message Spot {} } message Ford {} }
enum Kind { NONE = 0; } message Lake {}"""


def types(text: str) -> MessageTypes:
    return MessageTypes(Schema(text, PROTOBUF), {})


def test_messages_are_counted_where_they_are_written_and_entries_of_maps_are_not() -> None:
    found = types(NESTED)
    names = ["cz.River", "cz.River.Place", "cz.River.Place.Spot", "cz.River.Ford", "cz.Lake"]
    indexes = [(0,), (0, 0), (0, 0, 0), (0, 1), (1,)]
    assert [found.indexes_of(name) for name in names] == indexes
    assert [found.name_at(one) for one in indexes] == names
    assert found.class_of("cz.River.Ford").DESCRIPTOR.full_name == "cz.River.Ford"


@pytest.mark.parametrize(
    ("indexes", "written"),
    [((0,), b"\0"), ((1,), b"\2\2"), ((0, 0), b"\4\0\0"), ((1, 70), b"\4\2\x8c\1"), ((2, 0, 300), b"\6\4\0\xd8\4")],
)
def test_indexes_are_zigzag_varints_behind_their_count(indexes: tuple[int, ...], written: bytes) -> None:
    assert packed_indexes(indexes) == written
    assert indexes_in(b"12345" + written + b"rest", 5) == (indexes, 5 + len(written))


def test_the_index_zero_may_be_written_in_full() -> None:
    assert indexes_in(b"\2\0x", 0) == ((0,), 2)


@given(st.binary(max_size=40))
def test_any_bytes_are_indexes_or_refused(data: bytes) -> None:
    try:
        indexes, at = indexes_in(data, 0)
    except DoesNotFit:
        return
    assert 1 <= len(indexes) <= 32 and min(indexes) >= 0 and at <= len(data)


@pytest.mark.parametrize("data", [b"", b"\1\0", b"\x80", b"\x80\x80\x80\x80\x80\x00", b"\2", b"\2\1", b"\x7e" * 70])
def test_what_is_no_index_is_refused(data: bytes) -> None:
    with pytest.raises(DoesNotFit, match="message ind"):
        indexes_in(data, 0)


@pytest.mark.parametrize("text", ["", "enum E { A = 0; }", "message", 'import "x.proto"; message M {}'])
def test_a_schema_without_a_message_is_refused(text: str) -> None:
    with pytest.raises(SchemaInvalid, match="the Protobuf schema"):
        types(text)
    with pytest.raises(SchemaInvalid, match=r"no message cz\.Sea; it has cz\.River"):
        types(NESTED).indexes_of("cz.Sea")
    with pytest.raises(DoesNotFit, match="at the indexes 5, 1"):
        types(NESTED).name_at((5, 1))
