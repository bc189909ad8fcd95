"""`moldau topics offsets`: positions, times, partitions, and what is not there."""

from harness.brokers import Broker
from moldau.client.producing.producer import Producer
from tests.cli.conftest import Moldau

HOUR_MS = 3_600_000
MORNING_MS = 1_795_000_000_000


def test_offsets_are_found_by_position_and_by_time(moldau: Moldau, broker: Broker, topic: str) -> None:
    moldau("topics", "create", topic, "-p", "2")
    with Producer(broker.address) as producer:
        for number in (0, 2, 1):
            producer.send(topic, b"x", partition=0, timestamp_ms=MORNING_MS + number * HOUR_MS).result()

    def found(*options: str) -> list[object]:
        return [row["offset"] for row in moldau("topics", "offsets", topic, *options, "--json").json]

    assert found() == [3, 0]
    assert found("--time", "earliest") == [0, 0]
    assert found("--time", "last-stable") == [3, 0]
    assert found("--time", "max-timestamp") == [1, None]
    assert found("--time", str(MORNING_MS + HOUR_MS)) == [1, None]
    assert found("--time", "2026-11-18T11:06:40") == [0, None]
    assert found("--time", "0ms") == [None, None]
    shown = moldau("topics", "offsets", f"{topic}:0", "--time", "max-timestamp")
    assert shown.lines[0].split() == ["TOPIC", "PARTITION", "OFFSET", "TIMESTAMP"]
    assert shown.lines[1].split() == [topic, "0", "1", "2026-11-18T13:06:40.000Z"]


def test_all_topics_are_listed_unless_some_are_named(moldau: Moldau, topic: str) -> None:
    moldau("topics", "create", topic)
    assert topic in [row["topic"] for row in moldau("topics", "offsets", "--json").json]


def test_what_is_not_there_is_one_sentence(moldau: Moldau, topic: str) -> None:
    moldau("topics", "create", topic)
    assert moldau("topics", "offsets", f"{topic}:7").error == f"topic {topic} has no partition 7, only 0 to 0"
    assert "unknown topic" in moldau("topics", "offsets", "absent").error
    assert "--time 'noon' is neither" in moldau("topics", "offsets", topic, "--time", "noon").error
    assert "neither TOPIC nor TOPIC:PARTITION" in moldau("topics", "offsets", f"{topic}:x").error
