"""Where `moldau consume` begins and ends: times, groups, offsets, the present end."""

from collections.abc import Callable

import pytest

from harness.brokers import Broker
from moldau.client.producing.producer import Producer
from tests.cli.conftest import Moldau

AT_MS = 1_700_000_000_000


@pytest.fixture
def ten(moldau: Moldau, broker: Broker, topic: str) -> str:
    """A topic of two partitions with the numbers 0 to 9, one each second, the even ones in the first partition."""
    moldau("topics", "create", topic, "-p", "2", "--config", "retention.ms=-1")
    with Producer(broker.address) as producer:
        for number in range(10):
            producer.send(topic, b"%d" % number, partition=number % 2, timestamp_ms=AT_MS + number * 1000)
    return topic


def numbers(moldau: Moldau, *arguments: str) -> list[int]:
    ran = moldau("consume", *arguments)
    assert (ran.code, ran.err) == (0, ""), ran
    return sorted(map(int, ran.lines))


def test_it_ends_at_the_present_end_of_each_partition(moldau: Moldau, ten: str) -> None:
    assert numbers(moldau, ten, "--from-beginning", "--to-end") == [*range(10)]
    assert numbers(moldau, ten, "--to-end") == []
    assert numbers(moldau, ten, "--last", "2", "--to-end") == [6, 7, 8, 9]
    assert numbers(moldau, ten, "--last", "99", "--to-end", "--partition", "1") == [1, 3, 5, 7, 9]


def test_an_empty_topic_ends_at_once(moldau: Moldau, topic: str) -> None:
    moldau("topics", "create", topic)
    assert numbers(moldau, topic, "--from-beginning", "--to-end") == []


def test_markers_of_transactions_at_the_end_are_passed(moldau: Moldau, broker: Broker, topic: str) -> None:
    moldau("topics", "create", topic)
    with Producer(broker.address, transactional_id=topic) as producer, producer.transaction():
        producer.send(topic, b"1")
    committed = ("--command-property", "isolation.level=read_committed")
    assert numbers(moldau, topic, "--from-beginning", "--to-end", *committed) == [1]
    assert numbers(moldau, topic, "--from-beginning", "--to-end") == [1]


def test_a_span_of_time_is_printed(moldau: Moldau, ten: str) -> None:
    span = ("--from-time", str(AT_MS + 3000), "--until-time", str(AT_MS + 7000))
    assert numbers(moldau, ten, *span) == [3, 4, 5, 6]
    assert numbers(moldau, ten, "--from-beginning", "--until-time", "2023-11-14T22:13:22") == [0, 1]
    assert numbers(moldau, ten, "--from-beginning", "--until-time", "2099-01-01T00:00:00") == [*range(10)]


def committed(moldau: Moldau, group: str) -> list[int]:
    [described] = moldau("groups", "describe", group, "--json").json
    return [partition["committed"] for partition in described["partitions"]]


def test_it_begins_where_a_group_has_committed_and_leaves_the_group_alone(
    moldau: Moldau, ten: str, fresh: Callable[[], str]
) -> None:
    group = fresh()
    assert len(numbers(moldau, ten, "--group", group, "--from-beginning", "-n", "4")) == 4
    before = committed(moldau, group)
    first = numbers(moldau, ten, "--from-group", group, "--from-beginning", "--to-end")
    assert len(first) == 6 and first == numbers(moldau, ten, "--from-group", group, "--from-beginning", "--to-end")
    assert committed(moldau, group) == before
    assert numbers(moldau, ten, "--from-group", fresh(), "--to-end") == [], "what was never committed begins at the end"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--from-time", "2h", "--from-beginning"], "--from-time and --from-beginning both say where to begin"),
        (["--from-time", "2h", "--offset", "3", "--partition", "0"], "--from-time and --offset both say"),
        (["--last", "3", "--from-group", "g"], "--last and --from-group both say"),
        (["--from-time", "soon"], "--from-time 'soon' is neither"),
        (["--until-time", "soon"], "--until-time 'soon' is neither"),
        (["--group", "g", "--from-time", "2h"], "a group begins where it has committed"),
        (["--group", "g", "--last", "1"], "a group begins where it has committed"),
        (["--group", "g", "--from-group", "h"], "--from-group does not join a group"),
        (["--group", "g", "--to-end"], "a group shares the partitions with its members"),
        (["--group", "g", "--partition", "0"], "--group and --partition cannot be combined"),
        (
            ["--key-type", "int", "--value-type", "int", "--schema-registry", "http://x"],
            "--key-type and --schema-registry both say",
        ),
        (["--internal"], "--internal decodes the topics __consumer_offsets and __transaction_state, not t"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else "",
)
def test_options_that_do_not_go_together_are_refused(options: list[str], sentence: str, offline: Moldau) -> None:
    assert offline("consume", "t", *options).error.startswith(sentence)
