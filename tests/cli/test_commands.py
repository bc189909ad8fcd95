"""Topics, groups, produce and consume against a broker."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.brokers import Broker
from moldau.client.administration.admin import Admin
from moldau.client.producing.producer import Producer
from moldau.names import OffsetAndMetadata, TopicPartition
from tests.cli.conftest import Moldau


def test_a_topic_from_its_making_to_its_end(moldau: Moldau, topic: str) -> None:
    made = moldau("topics", "create", topic, "--partitions", "3", "--config", "retention.ms=-1")
    assert (made.code, made.out) == (0, f"created topic {topic}\n")
    listed = {entry["topic"]: entry for entry in moldau("topics", "list", "--json").json}
    assert listed[topic] == {"topic": topic, "partitions": 3, "replication_factor": 1, "internal": False}
    assert f"{topic}" in moldau("topics", "list").out
    [described] = moldau("topics", "describe", topic, "--json").json
    assert described["configs"] == {"retention.ms": "-1"}
    assert [p["partition"] for p in described["partitions"]] == [0, 1, 2]
    assert moldau("topics", "describe", topic).lines[0].endswith("retention.ms=-1")
    assert moldau("topics", "delete", topic).out == f"deleted topic {topic}\n"
    assert topic in moldau("topics", "describe", topic).error


def test_a_topic_is_altered_and_what_it_cannot_be_is_an_error(moldau: Moldau, topic: str) -> None:
    moldau("topics", "create", topic, "--config", "segment.ms=60000")
    altered = moldau("topics", "alter", topic, "-p", "3", "--config", "retention.ms=5", "--delete-config", "segment.ms")
    assert (altered.code, altered.out) == (0, f"altered topic {topic}\n")
    [described] = moldau("topics", "describe", topic, "--json").json
    assert described["configs"] == {"retention.ms": "5"}
    assert len(described["partitions"]) == 3
    assert moldau("topics", "alter", topic, "--partitions", "4", "--json").json == {"altered": [topic]}
    assert "has 4 partitions, and 2 is not more" in moldau("topics", "alter", topic, "--partitions", "2").error
    assert "retention.ms must be a whole number" in moldau("topics", "alter", topic, "--config", "retention.ms=x").error
    fewer = moldau("topics", "alter", topic, "--partitions", "2", "--config", "retention.ms=9")
    assert "2 is not more" in fewer.error
    assert moldau("topics", "describe", topic, "--json").json[0]["configs"] == {"retention.ms": "5"}, "nothing changed"
    assert "1 broker of the cluster is up" in moldau("topics", "alter", topic, "--replication-factor", "2").error
    assert "has 1 replica already" in moldau("topics", "alter", topic, "--replication-factor", "1").err
    assert "give --partitions, --replication-factor, --config" in moldau("topics", "alter", topic).error
    assert "both in" in moldau("topics", "alter", topic, "--config", "a=1", "--delete-config", "a").error
    assert "unknown topic" in moldau("topics", "alter", "absent", "--config", "retention.ms=5").error


def test_settings_of_everything_are_described_and_altered(moldau: Moldau, topic: str) -> None:
    moldau("topics", "create", topic)
    for kind, name, setting, value, source in (
        ("topic", topic, "retention.ms", "86400000", "topic"),
        ("broker", "1", "message.max.bytes", "2000000", "broker"),
        ("broker", "", "log.cleaner.backoff.ms", "7000", "all brokers"),
        ("group", topic, "consumer.session.timeout.ms", "50000", "group"),
        ("logger", "1", "moldau.groups", "ERROR", "logger"),
    ):
        of = [kind, name] if name else [kind]
        altered = moldau("configs", "alter", *of, "--config", f"{setting}={value}")
        assert altered.out == f"changed 1 setting of {f'{kind} {name}' if name else 'all brokers'}\n", altered
        assert [setting, value, *source.split()] in [line.split() for line in moldau("configs", "describe", *of).lines]
        told = moldau("configs", "describe", *of, "--json").json
        assert (told["kind"], told["name"]) == (kind, name)
        one = {"name": setting, "value": value, "source": source, "read_only": False, "sensitive": False}
        assert one in told["configs"]
        taken = moldau("configs", "alter", *of, "--delete-config", setting, "--json")
        assert taken.json == {"kind": kind, "name": name, "changed": {setting: None}}
        if kind != "logger":
            assert setting not in moldau("configs", "describe", *of).out


def test_all_settings_are_told_only_if_one_asks_for_them(moldau: Moldau) -> None:
    few, all_of_them = (moldau("configs", "describe", "broker", "1", *more).lines for more in ([], ["--all"]))
    assert any(line.split() == ["num.partitions", "1", "file"] for line in few)
    assert not any(line.split()[-1] == "default" for line in few)
    assert any(line.split() == ["num.recovery.threads.per.data.dir", "2", "default"] for line in all_of_them)


def test_settings_that_cannot_be_are_one_sentence(moldau: Moldau, topic: str) -> None:
    for arguments, sentence in (
        (["describe", "topic", "absent"], "topic absent"),
        (["describe", "topic"], "give the topic's name"),
        (["describe", "logger"], "give the broker's"),
        (["describe", "broker", "7"], "this is broker 1, not 7"),
        (["describe", "bridge", "7"], "bridge"),
        (["alter", "broker", "1"], "give --config"),
        (["alter", "broker", "1", "--config", "num.partitions=3"], "num.partitions cannot be changed while the broker"),
        (["alter", "group", "g", "--config", "no.such=3"], "there is no group setting 'no.such'"),
        (["alter", "logger", "1", "--config", "root=loud"], "must be one of TRACE, DEBUG, INFO"),
        (["alter", "topic", topic, "--config", "retention.ms"], "is not of the form NAME=VALUE"),
    ):
        assert sentence in moldau("configs", *arguments).error, arguments


def test_making_and_deleting_twice_is_an_error_unless_one_says_otherwise(moldau: Moldau, topic: str) -> None:
    assert moldau("topics", "create", topic, "--json").json == {"created": [topic]}
    assert topic in moldau("topics", "create", topic).error
    assert moldau("topics", "create", topic, "--if-not-exists", "--json").json == {"created": []}
    assert moldau("topics", "delete", topic, "--json").json == {"deleted": [topic]}
    assert topic in moldau("topics", "delete", topic).error
    assert moldau("topics", "delete", topic, "--if-exists").code == 0


def test_what_is_done_is_told_when_a_command_fails_half_way(moldau: Moldau, topic: str, broker: Broker) -> None:
    failed = moldau("topics", "create", topic, topic, "--json")
    assert (failed.code, failed.json) == (1, {"created": [topic]})
    assert failed.err == f"error: topic {topic} exists already\n"
    failed = moldau("topics", "alter", topic, "absent", "--config", "retention.ms=1")
    assert (failed.code, failed.out) == (1, ""), "everything is checked before anything is changed"
    failed = moldau("topics", "delete", topic, topic)
    assert (failed.code, failed.out) == (1, f"deleted topic {topic}\n")
    moldau("topics", "create", topic)
    with Admin(broker.address) as admin:
        admin.alter_group_offsets(topic, {TopicPartition(topic, 0): OffsetAndMetadata(0)})
    failed = moldau("groups", "delete", topic, topic, "--json")
    assert (failed.code, failed.json) == (1, {"deleted": [topic]})


def test_lines_become_records_and_records_lines(moldau: Moldau, topic: str) -> None:
    produced = moldau("produce", topic, "--json", stdin=b"one\ntwo\r\n\nlast without end")
    assert produced.json == {"topic": topic, "delivered": 4, "failed": 0}
    consumed = moldau("consume", topic, "--from-beginning", "--max-messages", "4")
    assert consumed.lines == ["one", "two", "", "last without end"]


def test_files_are_sent_one_after_the_other(moldau: Moldau, topic: str, tmp_path: Path) -> None:
    files = [tmp_path / "a", tmp_path / "b"]
    files[0].write_bytes(b"1\n2\n")
    files[1].write_bytes(b"3\n")
    assert moldau("produce", topic, *map(str, files), "--compression", "zstd", "--acks", "1").code == 0
    assert moldau("consume", topic, "--from-beginning", "-n", "3").lines == ["1", "2", "3"]
    assert "no-such-file: No such file" in moldau("produce", topic, "no-such-file").error


def test_a_separator_splits_keys_from_values(moldau: Moldau, topic: str) -> None:
    moldau("produce", topic, "--key-separator", "\\t", stdin=b"k1\tv1\nk2\tv\t2\n")
    shown = moldau("consume", topic, "--from-beginning", "-n", "2", "--format", "{offset}:{key}\\t{value}")
    assert shown.lines == ["0:k1\tv1", "1:k2\tv\t2"]


def test_a_line_without_a_key_ends_it_and_what_came_before_is_sent(moldau: Moldau, topic: str) -> None:
    said = moldau("produce", topic, "--key-separator", ":", stdin=b"a:1\nb2\nc:3\n").error
    assert said == "line 2 of standard input has no ':' between key and value (1 record before it delivered)"
    assert moldau("consume", topic, "--from-beginning", "--timeout", "0.3").lines == ["1"]


def test_records_that_are_not_delivered_are_counted_and_the_reason_is_told(moldau: Moldau, topic: str) -> None:
    moldau("topics", "create", topic, "--config", "max.message.bytes=100")
    failed = moldau("produce", topic, "--json", stdin=b"x" * 500 + b"\n")
    assert failed.code == 1
    assert failed.json == {"topic": topic, "delivered": 0, "failed": 1}
    assert failed.err.startswith("error: 1 of 1 record not delivered: ")
    assert topic in failed.err


def test_a_record_as_json_has_everything(moldau: Moldau, broker: Broker, topic: str) -> None:
    with Admin(broker.address) as admin:
        admin.create_topic(topic, configs={"retention.ms": "-1"})
    with Producer(broker.address) as producer:
        producer.send(topic, "řeka", b"\xff\x00", timestamp_ms=1_356_998_400_123, headers=[("h", b"1"), ("n", None)])
        producer.send(topic, None, None, timestamp_ms=0)
    first, second = map(json.loads, moldau("consume", topic, "--from-beginning", "-n", "2", "--json").lines)
    assert first == {
        "topic": topic,
        "partition": 0,
        "offset": 0,
        "timestamp": "2013-01-01T00:00:00.123Z",
        "timestamp_ms": 1_356_998_400_123,
        "key_base64": "/wA=",
        "value": "řeka",
        "headers": [{"name": "h", "value": "1"}, {"name": "n", "value": None}],
    }
    assert (second["key"], second["value"], second["offset"]) == (None, None, 1)


def test_placeholders_show_a_records_parts_and_unknown_ones_are_refused(moldau: Moldau, topic: str) -> None:
    moldau("produce", topic, stdin=b"v\n")
    shown = moldau("consume", topic, "--from-beginning", "-n", "1", "--format", "{topic} {partition} {key} {value} {{x")
    assert shown.lines == [f"{topic} 0 null v {{{{x"]
    assert "{vlaue}" in moldau("consume", topic, "--format", "{vlaue}").error


def test_one_partition_from_an_offset(moldau: Moldau, topic: str) -> None:
    moldau("produce", topic, stdin=b"0\n1\n2\n3\n")
    assert moldau("consume", topic, "--partition", "0", "--offset", "2", "-n", "2").lines == ["2", "3"]
    assert "--offset needs --partition" in moldau("consume", topic, "--offset", "2").error
    assert "no partition 9" in moldau("consume", topic, "--partition", "9").error


def test_without_from_beginning_what_is_there_already_is_not_shown(moldau: Moldau, topic: str) -> None:
    moldau("produce", topic, stdin=b"old\n")
    silent = moldau("consume", topic, "--timeout", "0.2")
    assert (silent.code, silent.out) == (0, "")
    assert silent.err == "no record came within 0.2 s; --from-beginning also prints those that exist already\n"


def test_a_time_out_that_ends_it_early_is_told_and_one_that_was_to_end_it_is_not(moldau: Moldau, topic: str) -> None:
    moldau("produce", topic, stdin=b"1\n2\n")
    from_beginning = ("consume", topic, "--from-beginning", "--timeout", "0.2")
    assert moldau(*from_beginning).err == ""
    few = moldau(*from_beginning, "-n", "5")
    assert (few.code, few.lines, few.err) == (0, ["1", "2"], "2 of 5 records came, then none within 0.2 s\n")
    assert moldau(*from_beginning, "-n", "0").err == ""


def test_a_group_goes_on_after_what_it_printed_and_its_lag_is_shown(
    moldau: Moldau, topic: str, fresh: Callable[[], str]
) -> None:
    group = fresh()
    moldau("produce", topic, stdin=b"0\n1\n2\n3\n4\n")
    reading = ("consume", topic, "--group", group, "--from-beginning", "--max-messages")
    assert moldau(*reading, "2").lines == ["0", "1"]
    assert moldau(*reading, "2").lines == ["2", "3"]
    [described] = moldau("groups", "describe", group, "--json").json
    assert (described["group"], described["state"], described["members"]) == (group, "Empty", [])
    [partition] = described["partitions"]
    assert (partition["committed"], partition["end"], partition["lag"]) == (4, 5, 1)
    listed = moldau("groups", "list", "--json").json
    assert {"group": group, "type": "classic", "state": "Empty", "protocol_type": "consumer"} in listed
    table = moldau("groups", "describe", group).lines
    assert table[0] == f"{group}  classic  Empty  0 members"
    assert table[2].split()[:5] == [topic, "0", "4", "5", "1"]
    assert group in moldau("groups", "list").out


@pytest.mark.parametrize("command", [["groups", "describe", "nobody"], ["consume", "nothing"]], ids=" ".join)
def test_what_is_not_there_is_named(command: list[str], moldau: Moldau) -> None:
    assert command[-1] in moldau(*command).error


def test_an_offset_that_the_partition_does_not_have_is_an_error_with_its_range(moldau: Moldau, topic: str) -> None:
    moldau("topics", "create", topic)
    from_offset = ("consume", topic, "--partition", "0", "--timeout", "0.2", "--offset")
    assert moldau(*from_offset, "1").error == f"--offset 1: partition {topic}-0 is empty, its next offset is 0"
    moldau("produce", topic, stdin=b"0\n1\n2\n")
    beyond = f"partition {topic}-0 has offsets 0 to 2"
    assert moldau(*from_offset, "999999").error == f"--offset 999999: {beyond}"
    assert moldau(*from_offset, "999999", "--json").error == f"--offset 999999: {beyond}"
    assert moldau(*from_offset, "3").code == 0, "the next record will have it"
    with Admin(os.environ["MOLDAU_BOOTSTRAP_SERVER"]) as admin:
        admin.delete_records({TopicPartition(topic, 0): 2})
    assert moldau(*from_offset, "1").error == f"--offset 1: partition {topic}-0 has offsets 2 to 2"
    assert moldau(*from_offset, "2").lines == ["2"]
