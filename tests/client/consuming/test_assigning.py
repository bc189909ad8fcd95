"""The bytes that members exchange are those of Java's client, and a leader understands members of every client."""

import pytest

import moldau
from moldau.assignors.sticky import Claim
from moldau.client.consuming.assigning import (
    ASSIGNORS,
    Subscriber,
    assignment_of,
    is_cooperative,
    read_assignment,
    read_subscription,
    subscription_bytes,
)
from moldau.client.consuming.consumer_settings import ConsumerSettings
from moldau.errors import ConfigError, InconsistentGroupProtocol
from moldau.names import TopicPartition
from moldau.protocol.consumer import ConsumerProtocolSubscription, versioned

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
TWO = {"t": [frozenset[str]()] * 2}
"""A topic of two partitions, whose brokers are in no rack."""
BEGINNING = "0003 00000001 0001 74"


def of_bytes(*datas: bytes) -> dict[str, Subscriber]:
    return {name: Subscriber(None, read_subscription(data)) for name, data in zip("abcdef", datas, strict=False)}


@pytest.mark.parametrize(
    ("assignor", "owned", "last", "expected"),
    [
        ("range", [], Claim([T0], 4), "ffffffff 00000000 00000004 ffff"),
        ("roundrobin", [], Claim(), "ffffffff 00000000 ffffffff ffff"),
        ("sticky", [], Claim(), "ffffffff 00000000 ffffffff ffff"),
        (
            "sticky",
            [],
            Claim([T0, T1], 4),
            "00000017 00000001 0001 74 00000002 00000000 00000001 00000004 00000000 00000004 ffff",
        ),
        (
            "cooperative-sticky",
            [T1],
            Claim([T1], 4),
            "00000004 00000004 00000001 0001 74 00000001 00000001 00000004 ffff",
        ),
    ],
)
def test_a_subscription_is_javas_byte_for_byte(
    assignor: str, owned: list[TopicPartition], last: Claim, expected: str
) -> None:
    assert subscription_bytes(assignor, ["t"], owned, last).hex() == (BEGINNING + expected).replace(" ", "")


def test_the_rack_is_told() -> None:
    said = subscription_bytes("range", ["t"], [], Claim(), "here")
    assert read_subscription(said).rack_id == "here"


def test_a_sticky_leader_leaves_partitions_where_the_user_data_says_they_were() -> None:
    members = of_bytes(
        subscription_bytes("sticky", ["t"], [], Claim([T1], 3)), subscription_bytes("sticky", ["t"], [], Claim([T0], 3))
    )
    assert ASSIGNORS["sticky"](members, TWO) == {"a": [T1], "b": [T0]}


def test_user_data_that_is_not_an_assignors_is_no_claim() -> None:
    odd = versioned(ConsumerProtocolSubscription(topics=["t"], user_data=b"\x00\x00\x00\x09"), 0)
    for name in ("sticky", "cooperative-sticky"):
        assert ASSIGNORS[name](of_bytes(odd), TWO) == {"a": [T0, T1]}


def test_a_cooperative_leader_takes_no_partition_from_a_member_before_it_gave_it_up() -> None:
    members = of_bytes(
        subscription_bytes("cooperative-sticky", ["t"], [T0, T1], Claim([T0, T1], 3)),
        subscription_bytes("cooperative-sticky", ["t"], [], Claim()),
    )
    assert ASSIGNORS["cooperative-sticky"](members, TWO) == {"a": [T0], "b": []}


def test_the_generation_of_older_cooperative_members_is_in_their_user_data() -> None:
    members = of_bytes(
        subscription_bytes("cooperative-sticky", ["t"], [T0], Claim([T0], 3)),
        versioned(read_subscription(subscription_bytes("cooperative-sticky", ["t"], [T0], Claim([T0], 5))), 1),
    )
    assert members["b"].subscription.generation_id == -1
    assert ASSIGNORS["cooperative-sticky"](members, {"t": [frozenset()]}) == {"a": [], "b": [T0]}


def test_an_assignment_is_read_as_it_was_written() -> None:
    assert read_assignment(versioned(assignment_of([T0, T1]), 1)) == [T0, T1]
    assert read_assignment(b"") == []
    for read in (read_assignment, read_subscription):
        with pytest.raises(InconsistentGroupProtocol):
            read(b"\x00")


def test_members_keep_their_partitions_only_if_every_assignor_allows_it() -> None:
    assert is_cooperative(["cooperative-sticky"])
    assert not is_cooperative(["range", "cooperative-sticky"])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("roundrobin", ("roundrobin",)),
        ("sticky, range", ("sticky", "range")),
        (["cooperative-sticky"], ("cooperative-sticky",)),
        ("org.apache.kafka.clients.consumer.CooperativeStickyAssignor,RangeAssignor", ("cooperative-sticky", "range")),
    ],
)
def test_assignors_are_given_as_text_or_a_list_or_by_the_names_of_javas_classes(
    given: str | list[str], expected: tuple[str, ...]
) -> None:
    assert ConsumerSettings(partition_assignment_strategy=given).assignors == expected


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"partition_assignment_strategy": "stucky"}, "partition_assignment_strategy='stucky' is not one of range, "),
        ({"partition_assignment_strategy": []}, "does not name one or more"),
        ({"partition_assignment_strategy": "range,range"}, "does not name one or more different assignors"),
        ({"group_protocol": "newest"}, "group_protocol='newest' is not one of classic, consumer"),
        ({"group_remote_assignor": "uniform"}, "group_remote_assignor needs group_protocol='consumer'"),
        ({"group_protocol": "consumer", "session_timeout_ms": 9_000}, "group.consumer.session.timeout.ms"),
        ({"group_protocol": "consumer", "partition_assignment_strategy": "range"}, "see group_remote_assignor"),
    ],
)
def test_settings_that_do_not_fit_together_are_one_sentence(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        moldau.Consumer(group_id="g", **settings)
