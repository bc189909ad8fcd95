"""`moldau dead-letters` against a broker, with dead letters of our own consumer."""

import json
import time
from collections.abc import Callable

import pytest

from harness.brokers import Broker
from moldau.client.consuming.consumer import Consumer
from moldau.client.consuming.fetched.record import Record
from moldau.client.producing.producer import Producer
from moldau.names import TopicPartition
from tests.cli.conftest import Moldau

VALUES = (b"good", b"bad", b"good again", b"worse")
AT_MS = int(time.time() * 1000) - 60_000


@pytest.fixture
def failed(moldau: Moldau, broker: Broker, topic: str, fresh: Callable[[], str]) -> tuple[str, str]:
    """A topic of two partitions, two of whose four records have failed, and the topic of the failed ones."""
    letters = f"{topic}.dlq"
    moldau("topics", "create", topic, "-p", "2")
    with Producer(broker.address) as producer:
        for number, value in enumerate(VALUES):
            producer.send(topic, value, b"key", partition=1, timestamp_ms=AT_MS + number, headers=[("h", b"1")])

    def handle(record: Record) -> None:
        if not record.value.startswith(b"good"):
            raise ValueError(f"no price in {record.value.decode()}")

    with Consumer(broker.address, group_id=fresh(), auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic])
        done: list[int] = []

        def counted(record: Record) -> None:
            if record.offset == len(VALUES) - 1:
                done.append(1)
            handle(record)

        assert consumer.process(counted, retries=0, dead_letter=letters, until=lambda: bool(done)) == len(VALUES)
    return topic, letters


def values(broker: Broker, topic: str, partition: int) -> list[Record]:
    with Consumer(broker.address, isolation_level="read_committed") as consumer:
        tp = TopicPartition(topic, partition)
        consumer.assign([tp])
        consumer.seek_to_beginning(tp)
        found: list[Record] = []
        while consumer.position(tp) < consumer.end_offsets([tp])[tp]:
            found += consumer.poll(500)
        return found


def test_dead_letters_are_counted_shown_and_sent_back_once(
    moldau: Moldau, broker: Broker, failed: tuple[str, str]
) -> None:
    topic, letters = failed
    [row] = moldau("dead-letters", "list", letters, "--json").json
    assert (row["from"], row["exception"], row["records"]) == (topic, "builtins.ValueError", 2)
    assert row["message"] == "no price in worse" and row["first"] < row["last"]
    assert "builtins.ValueError" in moldau("dead-letters", "list", letters).lines[1]
    shown = list(map(json.loads, moldau("dead-letters", "show", letters, "--json").lines))
    assert [one["from"] for one in shown] == [{"topic": topic, "partition": 1, "offset": at} for at in (1, 3)]
    assert (shown[0]["key"], shown[0]["value"], shown[0]["headers"]) == ("key", "bad", [{"name": "h", "value": "1"}])
    lines = moldau("dead-letters", "show", letters, "--exception", "WORSE", "--stacktrace").lines
    assert f"from {topic}-1@3" in lines[0] and lines[1] == "  builtins.ValueError: no price in worse"
    assert lines[-2:] == ["  key    key", "  value  worse"] and any("Traceback" in line for line in lines)
    assert len(moldau("dead-letters", "show", letters, "--last", "1").lines) == 4

    counted = moldau("dead-letters", "replay", letters)
    assert counted.lines == [f"{topic}: 2 records would be sent"] and "add --execute" in counted.err
    assert len(values(broker, topic, 1)) == 4
    done = moldau("dead-letters", "replay", letters, "--execute", "--json").json
    assert done == {"group": f"moldau-replay-{letters}", "executed": True, "replayed": {topic: 2}, "passed_over": 0}
    back = values(broker, topic, 1)[4:]
    assert [(one.value, one.key, one.headers) for one in back] == [
        (b"bad", b"key", [("h", b"1")]), (b"worse", b"key", [("h", b"1")])
    ]  # fmt: skip
    assert [one.timestamp_ms for one in back] == [AT_MS + 1, AT_MS + 3]
    again = moldau("dead-letters", "replay", letters, "--execute")
    assert (again.out, again.err) == ("", f"nothing to replay behind the position of group moldau-replay-{letters}\n")


def test_a_filter_passes_over_the_others_for_its_group_only(
    moldau: Moldau, broker: Broker, failed: tuple[str, str]
) -> None:
    topic, letters = failed
    other = f"{topic}-other"
    moldau("topics", "create", other)
    some = moldau("dead-letters", "replay", letters, "--exception", "worse", "--to", other, "--execute")
    assert some.lines == [f"{other}: 1 record sent", "passed over: 1 record"]
    assert [one.value for one in values(broker, other, 0)] == [b"worse"]
    one = ("dead-letters", "replay", letters, "--group", "another", "-n", "1", "--execute")
    assert moldau(*one).lines == [f"{topic}: 1 record sent"]
    assert moldau(*one).lines == [f"{topic}: 1 record sent"]
    assert [one.value for one in values(broker, topic, 1)[4:]] == [b"bad", b"worse"]


def test_a_letter_that_names_no_topic_needs_one(moldau: Moldau, broker: Broker, topic: str) -> None:
    with Producer(broker.address) as producer:
        producer.send(topic, b"x", headers=[("__connect.errors.exception.message", b"broken")])
        producer.send(topic, b"no dead letter")
    assert f"{topic}-0@0 does not say" in moldau("dead-letters", "replay", topic).error
    assert "is the topic of the dead letters itself" in moldau("dead-letters", "replay", topic, "--to", topic).error
    assert moldau("dead-letters", "show", topic, "--exception", "other").err == f"no such dead letter in {topic}\n"
    assert moldau("dead-letters", "list", topic, "--json").json[0]["from"] is None
