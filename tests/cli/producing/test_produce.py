"""`moldau produce`: what `moldau consume --json` writes becomes the same records again, and what each line may be."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.brokers import Broker
from harness.tiers import examples
from moldau.client.administration.admin import Admin
from moldau.client.producing.producer import Producer
from tests.cli.conftest import Moldau

CONTENT = st.none() | st.binary(max_size=20) | st.text(max_size=20).map(str.encode)
RECORDS = st.lists(
    st.fixed_dictionaries(
        {
            "value": CONTENT,
            "key": CONTENT,
            "partition": st.integers(0, 2),
            "timestamp_ms": st.integers(-1, 1_700_000_000_000),
            "headers": st.lists(
                st.tuples(st.sampled_from(["", "a", "ř\u2028"]) | st.text(max_size=5), CONTENT), max_size=4
            ),
        }
    ),
    min_size=1,
    max_size=30,
)


def as_json(moldau: Moldau, topic: str, count: int) -> list[dict[str, Any]]:
    """The records of a topic by partition, in order, without their topic and offset."""
    out = moldau("consume", topic, "--from-beginning", "-n", str(count), "--json").out
    records = [json.loads(line) for line in out.removesuffix("\n").split("\n")]
    records = [{name: record[name] for name in record.keys() - {"topic", "offset"}} for record in records]
    return sorted(records, key=lambda record: int(record["partition"]))


@settings(max_examples=examples(2, 6), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=RECORDS)
def test_what_consume_writes_becomes_the_same_records(
    records: list[dict[str, Any]], moldau: Moldau, broker: Broker, fresh: Callable[[], str], tmp_path: Path
) -> None:
    first, second = fresh(), fresh()
    with Admin(broker.address) as admin:
        for topic in (first, second):
            admin.create_topic(topic, partitions=3, configs={"retention.ms": -1})
    with Producer(broker.address) as producer:
        for record in records:
            producer.send(first, **record)
    lines = tmp_path / "lines"
    lines.write_text(moldau("consume", first, "--from-beginning", "-n", str(len(records)), "--json").out)
    produced = moldau("produce", second, str(lines), "--format", "json", "--json")
    assert produced.json == {"topic": second, "delivered": len(records), "failed": 0}
    copied = as_json(moldau, second, len(records))
    assert copied == as_json(moldau, first, len(records))
    assert sorted(record["timestamp_ms"] for record in copied) == sorted(record["timestamp_ms"] for record in records)


def test_a_json_line_needs_a_value_alone_and_its_partition_gives_way_to_the_option(moldau: Moldau, topic: str) -> None:
    lines = b'{"value": null, "key": "k"}\n{"value_base64": "/w==", "partition": 7}\n'
    assert moldau("produce", topic, "--format", "json", "--partition", "0", stdin=lines).code == 0
    tombstone, other = as_json(moldau, topic, 2)
    assert (tombstone["key"], tombstone["value"], other["key"], other["value_base64"]) == ("k", None, None, "/w==")
    assert tombstone["timestamp_ms"] > 1_700_000_000_000


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b"hello", " is not JSON: Expecting value, at character 1"),
        (b"\xff", " is not JSON: 'utf-8' codec can't decode"),
        (b"", " is not JSON: Expecting value, at character 1"),
        (b'{"value": "a"} {}', " is not JSON: Extra data, at character 16"),
        (b"[" * 100_000, " is not JSON: "),
        (b"[1]", " is JSON, but not an object with a record's fields"),
        (b'{"key": "k"}', " has no value: null makes a tombstone"),
        (b'{"value": 5}', " has a value that is neither text nor null"),
        (b'{"value": "a", "value_base64": ""}', " has both value and value_base64"),
        (b'{"value": "a", "value": "b"}', " is not JSON: it has 'value' twice"),
        (b'{"value_base64": "*"}', " has a value_base64 that is not base64"),
        (b'{"value_base64": null}', " has a value_base64 that is not base64"),
        (b'{"value": "\\ud800"}', " has a value that is not Unicode"),
        (
            b'{"value": "a", "vlaue": 1}',
            " has a field 'vlaue'; a record has key, value, headers, partition, timestamp_ms",
        ),
        (b'{"value": "a", "partition": "0"}', " has a partition that is not a whole number"),
        (b'{"value": "a", "timestamp_ms": true}', " has a timestamp_ms that is not a whole number"),
        (b'{"value": "a", "headers": {"a": "b"}}', " has headers that are not a list"),
        (b'{"value": "a", "headers": [{"value": "b"}]}', " has a header that is not an object with a name"),
        (b'{"value": "a", "headers": [{"name": "\\udfff", "value": "b"}]}', " has a header's name that is not Unicode"),
        (b'{"value": "a", "headers": [{"name": "n", "text": "b"}]}', " has a header with a field 'text'"),
        (
            b'{"value": "a", "partition": 99}',
            ": topic TOPIC has no partition 99: it has 1 partition, 0; `moldau topics alter TOPIC --partitions 100`",
        ),
        (b'{"value": "a", "partition": -1}', ": partition=-1 is below 0"),
        (b'{"value": "a", "timestamp_ms": 9223372036854775808}', ": timestamp_ms=9223372036854775808 is not between"),
    ],
)
def test_a_wrong_line_is_one_sentence_with_its_place_and_with_what_was_sent(
    line: bytes, sentence: str, moldau: Moldau, topic: str
) -> None:
    lines = b'{"value": "before"}\n' + line + b'\n{"value": "behind"}\n'
    said = moldau("produce", topic, "--format", "json", stdin=lines).error
    assert said.startswith(f"line 2 of standard input{sentence.replace('TOPIC', topic)}")
    assert said.endswith("(1 record before it delivered)") and "\n" not in said
    assert [record["value"] for record in as_json(moldau, topic, 1)] == ["before"]


def test_lines_have_headers_keys_and_nulls_as_kafkas_producer_reads_them(moldau: Moldau, topic: str) -> None:
    lines = b"a:1,b:NULL,a:2\tk:v\nNULL\tNULL:NULL\n\tk:\n"
    options = ("--headers", "--key-separator", ":", "--null-marker", "NULL")
    assert moldau("produce", topic, *options, stdin=lines).code == 0
    first, second, third = as_json(moldau, topic, 3)
    assert [(h["name"], h["value"]) for h in first["headers"]] == [("a", "1"), ("b", None), ("a", "2")]
    assert (first["key"], first["value"]) == ("k", "v")
    assert (second["headers"], second["key"], second["value"]) == ([], None, None)
    assert (third["headers"], third["key"], third["value"]) == ([], "k", "")


def test_the_separators_of_headers_may_be_others(moldau: Moldau, topic: str) -> None:
    options = ("--headers", "--headers-delimiter", "|", "--headers-separator", ";", "--headers-key-separator", "=")
    assert moldau("produce", topic, *options, stdin=b"a=1;b=2|v,1:2\n").code == 0
    [record] = as_json(moldau, topic, 1)
    assert [(h["name"], h["value"]) for h in record["headers"]] == [("a", "1"), ("b", "2")]
    assert record["value"] == "v,1:2"


@pytest.mark.parametrize(
    ("options", "line", "sentence"),
    [
        (["--headers"], b"a:1", "line 1 of standard input has no '\\t' after the headers (--headers-delimiter)"),
        (["--headers"], b"a\tv", "line 1 of standard input has no ':' in header 'a' (--headers-key-separator)"),
        (["--headers"], b"\xff:1\tv", "line 1 of standard input has a header whose name '\\\\xff' is not UTF-8"),
        (
            ["--headers", "--null-marker", "N"],
            b"N:1\tv",
            "line 1 of standard input has a header whose name is the null",
        ),
        (["--headers-separator", ";"], b"", "separators of headers need --headers"),
        (["--headers", "--headers-separator", ""], b"", "--headers-separator is empty"),
        (["--headers", "--headers-separator", ":"], b"", "--headers-separator and --headers-key-separator must differ"),
        (["--key-separator", "N", "--null-marker", "N"], b"", "--null-marker and --key-separator must differ"),
        (["--format", "json", "--null-marker", "N"], b"", "--format json has keys, headers and null of its own"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(
    options: list[str], line: bytes, sentence: str, moldau: Moldau, topic: str
) -> None:
    assert sentence in moldau("produce", topic, *options, stdin=line + b"\n").error


def test_settings_of_the_client_come_from_a_file_and_from_properties(
    moldau: Moldau, topic: str, group: str, tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "bootstrap.servers=elsewhere:1\ncompression.type=zstd\nkey.serializer=com.example.Keys\nfetch.min.bytes=1\n"
        "auto.offset.reset=earliest\nkey.deserializer=com.example.Keys\nsecurity.protocol=PLAINTEXT\n"
    )
    assert moldau("produce", topic, "--command-config", str(file), stdin=b"one\n").code == 0
    with_group = ("--command-config", str(file), "--command-property", f"group.id={group}")
    assert moldau("consume", topic, *with_group, "-n", "1").lines == ["one"]
    assert group in moldau("groups", "list").out
    refused = moldau("produce", topic, "--command-property", "linger.ms=soon", stdin=b"x\n").error
    assert refused == "linger.ms='soon' is not a whole number"
    refused = moldau("consume", topic, "--command-property", "security.protocol=TLS").error
    assert refused.startswith("security_protocol='TLS' is not one of PLAINTEXT, SSL")
    assert "cannot read" in moldau("produce", topic, "--command-config", str(tmp_path / "no"), stdin=b"x\n").error
