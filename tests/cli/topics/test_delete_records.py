"""`moldau topics delete-records`: from options, from Kafka's file, and what is refused."""

import json
from pathlib import Path

import pytest

from harness.brokers import Broker
from moldau.client.producing.producer import Producer
from tests.cli.conftest import Moldau


def fill(broker: Broker, topic: str, count: int) -> None:
    with Producer(broker.address) as producer:
        for _ in range(count):
            producer.send(topic, b"x", partition=0)


def test_records_below_an_offset_go(moldau: Moldau, broker: Broker, topic: str) -> None:
    moldau("topics", "create", topic, "-p", "2")
    fill(broker, topic, 5)
    assert moldau("topics", "delete-records", f"{topic}:0", "--before", "2").lines[1].split() == [topic, "0", "2"]
    earliest = moldau("topics", "offsets", topic, "--time", "earliest", "--json").json
    assert [row["offset"] for row in earliest] == [2, 0]
    rows = moldau("topics", "delete-records", topic, "--before", "end", "--json").json
    assert [(row["partition"], row["first_offset"]) for row in rows] == [(0, 5), (1, 0)]


def test_a_file_of_kafkas_form_names_partitions_and_each_is_answered(
    moldau: Moldau, broker: Broker, topic: str, tmp_path: Path
) -> None:
    moldau("topics", "create", topic)
    fill(broker, topic, 5)
    file = tmp_path / "offsets.json"
    wanted = [{"topic": topic, "partition": 0, "offset": 3}, {"topic": topic, "partition": 9, "offset": -1}]
    file.write_text(json.dumps({"partitions": wanted, "version": 1}))
    ran = moldau("topics", "delete-records", "--offset-json-file", str(file))
    assert ran.code == 1
    assert ran.lines[1:] and ran.lines[1].split() == [topic, "0", "3"]
    assert ran.err.startswith(f"error: partition 9 of topic {topic}") and ran.err.count("\n") == 1


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"partitions": 1}', '{"partitions": [{"topic": "t", "partition": "0", "offset": 1}]}',
             '{"partitions": [{"topic": "t", "partition": 0, "offset": -2}]}', "[" * 100_000]
)  # fmt: skip
def test_another_file_is_refused(text: str, offline: Moldau, tmp_path: Path) -> None:
    file = tmp_path / "offsets.json"
    file.write_text(text)
    assert "is not of the form" in offline("topics", "delete-records", "--offset-json-file", str(file)).error


def test_options_that_do_not_go_together_are_refused(offline: Moldau) -> None:
    for options in ([], ["t"], ["--before", "3"], ["t", "--before", "3", "--offset-json-file", "f"]):
        assert "give topics and --before OFFSET" in offline("topics", "delete-records", *options).error
    assert "neither an offset nor end" in offline("topics", "delete-records", "t", "--before", "-1").error
