"""What a client is asked for: all subscriptions that match it, put together, under the number that Kafka gives."""

import uuid
from collections.abc import Mapping

import pytest

from moldau.handlers.telemetry.subscribing import (
    ATTRIBUTE_CHARS_MAX,
    NOTHING_ASKED,
    AskedMetrics,
    ClientMetricsSubscriptions,
)

pytestmark = pytest.mark.re2
CLIENT = {
    "client_instance_id": "AAAAAAAAAAAAAAAAAAAABQ",
    "client_id": "billing-7",
    "client_software_name": "apache-kafka-java",
    "client_software_version": "4.3.1",
    "client_source_address": "10.0.0.7",
    "client_source_port": "40123",
}


def asked(subscriptions: Mapping[str, Mapping[str, str]], **other: str) -> tuple[AskedMetrics, int]:
    """What the client is asked for, and how many elements of turns that took."""
    known = ClientMetricsSubscriptions()
    known.follow(subscriptions)
    steps, count = known.asked({**CLIENT, **other}), 0
    while True:
        try:
            next(steps)
            count += 1
        except StopIteration as done:
            return done.value, count


def test_a_client_that_no_subscription_matches_is_asked_for_nothing() -> None:
    assert asked({})[0] == NOTHING_ASKED == AskedMetrics((), 300_000)
    assert asked({"s": {"metrics": "a.", "match": "client_id=other"}})[0] == NOTHING_ASKED


@pytest.mark.parametrize(
    ("match", "matches"),
    [
        ("", True),
        ("client_id=billing-.*", True),
        ("client_id=billing", False),
        ("client_id=.*,client_software_version=4\\..*", True),
        ("client_id=.*,client_software_version=3\\..*", False),
        ("client_source_address=10\\.0\\.0\\.7,client_source_port=4.*", True),
        ("client_instance_id=A*BQ", True),
        ("client_software_name=Apache.*", False),
    ],
)
def test_every_expression_has_to_match_a_whole_attribute(match: str, matches: bool) -> None:
    assert asked({"s": {"metrics": "a.", "match": match}})[0].metrics == (("a.",) if matches else ())


def test_all_that_match_are_put_together_and_the_shortest_interval_counts() -> None:
    subscriptions = {
        "one": {"metrics": "org.b.,org.a.", "interval.ms": "60000"},
        "two": {"metrics": "org.a.,org.c.", "interval.ms": "1000", "match": "client_id=b.*"},
        "rare": {"interval.ms": "3600000"},
        "other": {"metrics": "*", "interval.ms": "100", "match": "client_id=x"},
    }
    got = asked(subscriptions)[0]
    assert (sorted(got.metrics), got.interval_ms) == (["org.a.", "org.b.", "org.c."], 1000)
    assert asked(subscriptions, client_id="x")[0] == AskedMetrics(("*",), 100)


def test_an_interval_above_the_default_does_not_count_as_in_kafka() -> None:
    assert asked({"rare": {"metrics": "a.", "interval.ms": "3600000"}})[0].interval_ms == 300_000


def test_the_number_depends_on_what_is_asked_for_and_on_the_client() -> None:
    one, other = uuid.UUID(int=5), uuid.UUID(int=6 << 64)
    numbers = {
        AskedMetrics(metrics, interval_ms).number(client)
        for metrics in ((), ("a.",))
        for interval_ms in (1000, 2000)
        for client in (one, other)
    }
    assert len(numbers) == 8
    assert all(-(1 << 31) <= number < 1 << 31 for number in numbers)


def test_a_subscription_that_this_broker_cannot_use_matches_nobody_and_is_told() -> None:
    known = ClientMetricsSubscriptions()
    known.follow({"broken": {"metrics": "*", "match": "client_id=("}, "late": {"interval.ms": "soon"}})
    steps = known.asked(CLIENT)
    for _ in steps:
        pass
    assert {name: why.split(":")[0] for name, why in known.refusals.items()} == {
        "broken": "the expression of client_id in match cannot be used",
        "late": "interval.ms must be a whole number, not 'soon'",
    }


def test_the_version_changes_with_the_subscriptions_only() -> None:
    known = ClientMetricsSubscriptions()
    known.follow({"s": {"metrics": "*"}})
    known.follow({"s": {"metrics": "*"}})
    assert known.version == 1
    known.follow({})
    assert known.version == 2


def test_matching_long_attributes_by_large_expressions_is_done_in_turns_and_bounded() -> None:
    large = {"s": {"metrics": "*", "match": f"client_id={'(a|b)*' * 40}c"}}
    got, count = asked(large, client_id="ab" * (ATTRIBUTE_CHARS_MAX // 2))
    assert got.metrics == ()
    assert count > 50, "it takes that many elements of a turn"
    everything = {"s": {"metrics": "*", "match": "client_id=.*"}}
    assert asked(everything, client_id="a" * ATTRIBUTE_CHARS_MAX)[0].metrics == ("*",)
    assert asked(everything, client_id="a" * (ATTRIBUTE_CHARS_MAX + 1))[0].metrics == ()
    assert asked(everything, client_id="\udc80")[0].metrics == ()


def test_metrics_are_listed_as_javas_hash_set_lists_them() -> None:
    """`new HashSet<>(List.of(...)).toString()` of OpenJDK 17."""
    listed = {metrics: asked({"s": {"metrics": metrics}})[0].metrics for metrics in ("b,a,c,a", "Aa,BB", "BB,Aa")}
    assert listed["b,a,c,a"] == ("a", "b", "c")
    assert listed["Aa,BB"] == ("Aa", "BB"), "equal hashes stay in the order in which they were added"
    assert listed["BB,Aa"] == ("BB", "Aa")
