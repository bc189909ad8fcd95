"""`moldau groups`: resetting offsets in every way, lag in records and seconds, deleting."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.brokers import Broker
from moldau.client.administration.admin import Admin
from moldau.client.consuming.consumer import Consumer
from moldau.client.producing.producer import Producer
from moldau.names import OffsetAndMetadata, TopicPartition
from tests.cli.conftest import Moldau
from tests.newer_members import joined

HOUR_MS = 3_600_000


@pytest.fixture
def filled(broker: Broker, moldau: Moldau, fresh: Callable[[], str]) -> str:
    """A topic of two partitions; ten records in the first, the n-th of them 10 - n hours old."""
    name = fresh()
    moldau("topics", "create", name, "--partitions", "2")
    now_ms = int(time.time() * 1000)
    with Producer(broker.address) as producer:
        for number in range(10):
            producer.send(name, b"%d" % number, partition=0, timestamp_ms=now_ms - (10 - number) * HOUR_MS)
    return name


def committed(broker: Broker, group: str) -> dict[TopicPartition, int]:
    with Admin(broker.address) as admin:
        return {tp: found.offset for tp, found in admin.group_offsets(group).items()}


@pytest.mark.parametrize(
    ("way", "offset"),
    [
        (["--to-earliest"], 0),
        (["--to-latest"], 10),
        (["--to-offset", "3"], 3),
        (["--to-offset", "300"], 10),
        (["--by-duration", "PT5H30M"], 5),
        (["--by-duration", "PT30M"], 10),
        (["--by-duration", "P7D"], 0),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_a_group_goes_on_where_it_is_told_to(
    way: list[str], offset: int, moldau: Moldau, broker: Broker, filled: str, fresh: Callable[[], str]
):
    group = fresh()
    shown = moldau("groups", "reset-offsets", group, "--topic", filled, *way, "--json")
    assert shown.json[0] == {"topic": filled, "partition": 0, "from": None, "to": offset}
    assert committed(broker, group) == {}
    moldau("groups", "reset-offsets", group, "--topic", filled, *way, "--execute")
    assert committed(broker, group) == {TopicPartition(filled, 0): offset, TopicPartition(filled, 1): 0}


def test_offsets_are_shifted_kept_and_written_to_a_file(
    moldau: Moldau, broker: Broker, filled: str, fresh: Callable[[], str], tmp_path: Path
):
    group, other, first = fresh(), fresh(), TopicPartition(filled, 0)
    reset = ("groups", "reset-offsets", group, "--topic", f"{filled}:0")
    assert "no committed offset for" in moldau(*reset, "--shift-by", "1").error
    moldau(*reset, "--to-offset", "4", "--execute")
    moldau(*reset, "--shift-by", "-3", "--execute")
    assert committed(broker, group) == {first: 1}
    moldau(*reset, "--shift-by", "100", "--execute")
    assert committed(broker, group) == {first: 10}
    moldau(*reset, "--to-datetime", "1999-01-01T00:00:00", "--execute")
    assert committed(broker, group) == {first: 0}
    moldau(*reset, "--to-offset", "7", "--execute")
    exported = moldau("groups", "reset-offsets", group, "--all-topics", "--to-current", "--export").out
    assert exported == f"{filled},0,7\n"
    file = tmp_path / "offsets.csv"
    file.write_text(exported)
    moldau("groups", "reset-offsets", other, "--from-file", str(file), "--execute")
    assert committed(broker, other) == {first: 7}


def test_a_group_keeps_its_leader_epochs_when_it_is_saved_and_restored(
    moldau: Moldau, broker: Broker, filled: str, fresh: Callable[[], str], tmp_path: Path
):
    group, other, at = fresh(), fresh(), {TopicPartition(filled, 0): OffsetAndMetadata(7, leader_epoch=0)}
    with Admin(broker.address) as admin:
        admin.alter_group_offsets(group, at)
        exported = moldau("groups", "reset-offsets", group, "--all-topics", "--to-current", "--export").out
        assert exported == f"{filled},0,7,0\n"
        file = tmp_path / "offsets.csv"
        file.write_text(exported)
        moldau("groups", "reset-offsets", other, "--from-file", str(file), "--execute")
        assert admin.group_offsets(other) == at
        moldau("groups", "reset-offsets", group, "--all-topics", "--to-current", "--execute")
        assert admin.group_offsets(group) == at
        moldau("groups", "reset-offsets", group, "--all-topics", "--shift-by", "-1", "--execute")
        assert admin.group_offsets(group) == {TopicPartition(filled, 0): OffsetAndMetadata(6)}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--topic", "{}"],
        ["--to-earliest"],
        ["--topic", "{}", "--to-earliest", "--to-latest"],
        ["--topic", "{}", "--all-topics", "--to-latest"],
        ["--topic", "{}", "--to-latest", "--execute", "--dry-run"],
        ["--topic", "{}:7", "--to-latest"],
        ["--topic", "nothing", "--to-latest"],
        ["--topic", "{}", "--by-duration", "yesterday"],
        ["--from-file", "/nowhere.csv"],
    ],
    ids=" ".join,
)
def test_what_cannot_be_meant_is_refused_in_one_sentence(arguments: list[str], moldau: Moldau, filled: str):
    assert moldau("groups", "reset-offsets", "g", *(one.format(filled) for one in arguments)).error


def test_a_group_without_offsets_is_given_some_for_named_topics_only(moldau: Moldau, filled: str, group: str):
    said = moldau("groups", "reset-offsets", group, "--all-topics", "--to-latest").error
    assert said == f"group {group} has no committed offsets, so there is nothing to reset: name topics"
    reset = ["groups", "reset-offsets", group, "--topic", filled, "--to-latest"]
    shown = moldau(*reset)
    assert shown.err.startswith(f"group {group} does not exist: these are its first offsets\n") and shown.code == 0
    assert moldau(*reset, "--execute").err == f"group {group} did not exist: these are its first offsets\n"
    assert moldau(*reset, "--execute").err == ""
    assert moldau("groups", "reset-offsets", group, "--all-topics", "--to-earliest", "--execute").code == 0


def test_a_group_with_members_is_left_alone(moldau: Moldau, broker: Broker, filled: str, fresh: Callable[[], str]):
    group = fresh()
    reset = ("groups", "reset-offsets", group, "--topic", filled, "--to-latest")
    with Consumer(broker.address, group_id=group, auto_offset_reset="earliest") as consumer:
        consumer.subscribe([filled])
        while not consumer.poll(1000):
            pass
        assert f"group {group} has 1 member: stop them first" in moldau(*reset, "--execute").error
        assert moldau(*reset).code == 0
    assert moldau(*reset, "--execute").code == 0
    assert moldau("groups", "delete", group).code == 0
    assert committed(broker, group) == {}


def test_lag_is_counted_in_records_and_in_seconds_since_the_oldest_unread_one(
    moldau: Moldau, broker: Broker, filled: str, fresh: Callable[[], str]
):
    group = fresh()

    def lag() -> list[tuple[int, float]]:
        [described] = moldau("groups", "describe", group, "--json").json
        return [(part["lag"], part["lag_seconds"]) for part in described["partitions"]]

    reset = ("groups", "reset-offsets", group, "--topic", filled, "--execute")
    moldau(*reset, "--to-earliest")
    (records, seconds), empty = lag()
    assert (records, empty) == (10, (0, 0.0))
    assert 36_000 <= seconds < 36_600
    moldau(*reset, "--to-offset", "9")
    (records, seconds), _ = lag()
    assert records == 1
    assert 3_600 <= seconds < 4_200
    moldau(*reset, "--to-latest")
    assert lag() == [(0, 0.0), (0, 0.0)]
    moldau(*reset, "--to-offset", "2")
    with Admin(broker.address) as admin:
        admin.delete_records({TopicPartition(filled, 0): 8})
        assert lag()[0][0] == 2
        admin.delete_records({TopicPartition(filled, 0): -1})
    assert lag() == [(0, 0.0), (0, 0.0)]


def test_groups_of_both_protocols_are_listed_and_described(
    moldau: Moldau, broker: Broker, filled: str, fresh: Callable[[], str]
):
    classic, newer = fresh(), fresh()
    reset = ("--topic", filled, "--to-earliest", "--execute")
    assert moldau("groups", "reset-offsets", classic, *reset).code == 0
    assert moldau("groups", "reset-offsets", newer, *reset).code == 0
    with joined(broker.address, newer, filled):
        types = {one["group"]: (one["type"], one["state"]) for one in moldau("groups", "list", "--json").json}
        assert (types[classic], types[newer]) == (("classic", "Empty"), ("consumer", "Stable"))
        one, other = moldau("groups", "describe", classic, newer, "--json").json
        assert (one["type"], one["state"], one["members"]) == ("classic", "Empty", [])
        assert (other["type"], other["state"], [m["member_id"] for m in other["members"]]) == (
            "consumer",
            "Stable",
            ["m"],
        )
        assert [(p["partition"], p["lag"], p["client_id"]) for p in other["partitions"]] == [
            (0, 10, "reader"),
            (1, 0, "reader"),
        ]
        assert f"{newer}  consumer  Stable  1 member\n" in moldau("groups", "describe", newer).out
        assert f"group {newer} has 1 member: stop them first" in moldau("groups", "reset-offsets", newer, *reset).error
