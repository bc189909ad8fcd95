"""Paths and texts of groups in ZooKeeper, byte for byte those of Kafka 0.8.2 and 0.7.2."""

import json

import pytest

from moldau.client.consuming.groups.streams_wanted import BLACK_LIST, STATIC, WHITE_LIST, StreamsWanted
from moldau.client.consuming.groups.zookeeper.registered_members import (
    GroupNodes,
    check_filter,
    member_id,
    read_registration,
    registration,
    stream_ids,
    topics_of,
)
from moldau.client.zookeeper.group_names import GroupLayout, check_group
from moldau.errors import ConfigError

pytestmark = pytest.mark.re2

TWO = StreamsWanted(STATIC, {"orders": 2, "events": 1})
WHITE, BLACK = StreamsWanted(WHITE_LIST, {"ord.*|ev.*": 3}), StreamsWanted(BLACK_LIST, {"test.*": 1})
REGISTERED = [
    (
        TWO,
        GroupLayout.KAFKA_0_8,
        '{"version":1,"subscription":{"orders":2,"events":1},"pattern":"static","timestamp":"17"}',
    ),
    (
        WHITE,
        GroupLayout.KAFKA_0_8,
        '{"version":1,"subscription":{"ord.*|ev.*":3},"pattern":"white_list","timestamp":"17"}',
    ),
    (BLACK, GroupLayout.KAFKA_0_8, '{"version":1,"subscription":{"test.*":1},"pattern":"black_list","timestamp":"17"}'),
    (TWO, GroupLayout.KAFKA_0_7, '{ "orders": 2,"events": 1 }'),
    (WHITE, GroupLayout.KAFKA_0_7, "*3*ord.*|ev.*"),
    (BLACK, GroupLayout.KAFKA_0_7, "!1!test.*"),
]


@pytest.mark.parametrize(("wanted", "layout", "text"), REGISTERED)
def test_a_registration_is_the_text_of_kafka_and_is_read_again(
    wanted: StreamsWanted, layout: GroupLayout, text: str
) -> None:
    assert registration(wanted, layout, 17).decode() == text
    assert read_registration(text.encode()) == wanted


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[1]",
        b"7",
        b'"orders"',
        b'{"orders":"2"}',
        b'{"orders":0}',
        b'{"orders":true}',
        b'{"orders":1000000000}',
        b'{"version":1,"subscription":{"a":1},"pattern":7}',
        b'{"version":1,"subscription":{"a":1},"pattern":"some_list"}',
        b'{"version":1,"subscription":{"a":1,"b":1},"pattern":"white_list"}',
        b'{"version":1,"subscription":{"(":1},"pattern":"white_list"}',
        b"*x*a",
        b"*1",
        b"!1!(",
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_a_text_that_is_not_a_registration_is_none(text: bytes) -> None:
    assert read_registration(text) is None


def test_a_filter_selects_from_the_topics_that_exist_as_kafka_reads_it() -> None:
    existing = dict.fromkeys(["orders", "orders-2", "events", "__consumer_offsets"], 0)

    def names(pattern: str, regex: str) -> list[str]:
        return list(topics_of(StreamsWanted(pattern, {regex: 2}), existing))

    assert names(WHITE_LIST, "orders") == ["orders"], "the whole name"
    assert names(WHITE_LIST, "orders, events") == ["orders", "events"], "a comma is an or, spaces are nothing"
    assert names(WHITE_LIST, "\"orders.*'") == ["orders", "orders-2"], "quotes of a properties file"
    assert names(BLACK_LIST, "orders.*") == ["events"], "internal topics are never read"
    assert names(WHITE_LIST, ".*") == ["orders", "orders-2", "events"]
    assert topics_of(TWO, existing) == {"orders": 2, "events": 1}
    assert topics_of(StreamsWanted(STATIC, {"absent": 1}), existing) == {}


def test_an_expression_that_others_could_not_read_is_refused() -> None:
    check_filter(TWO)
    with pytest.raises(ConfigError, match="RE2"):
        check_filter(StreamsWanted(WHITE_LIST, {"(?<=a)b": 1}))


def test_the_paths_are_those_of_kafka() -> None:
    nodes = GroupNodes("billing", GroupLayout.KAFKA_0_8)
    assert nodes.members == "/consumers/billing/ids"
    assert nodes.owner("orders", nodes.partition_name(3, 101)) == "/consumers/billing/owners/orders/3"
    assert nodes.offsets("orders") == "/consumers/billing/offsets/orders"
    older = GroupNodes("billing", GroupLayout.KAFKA_0_7)
    assert older.owner("orders", older.partition_name(3, 0)) == "/consumers/billing/owners/orders/0-3"


def test_a_member_and_its_streams_have_the_ids_of_kafka() -> None:
    member = member_id("billing", "host", 1_700_000_000_000, bytes.fromhex("00ff10203040"))
    assert member == "billing_host-1700000000000-00ff1020"
    assert stream_ids(member, 2) == [f"{member}-0", f"{member}-1"]


@pytest.mark.parametrize("group", ["a/b", ".", "..", "a\0", "a\x1f", "\ud800", "\uf000"])
def test_a_group_whose_id_cannot_be_a_node_is_refused(group: str) -> None:
    with pytest.raises(ConfigError, match="cannot be the name of a node"):
        check_group(group)


def test_a_topic_of_any_name_is_registered_as_json() -> None:
    odd = StreamsWanted(STATIC, {'a"b': 1})
    assert json.loads(registration(odd, GroupLayout.KAFKA_0_7, 0)) == {'a"b': 1}
