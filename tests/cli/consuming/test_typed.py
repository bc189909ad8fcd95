"""Keys and values that are numbers, and records of internal topics."""

import json
import struct
from collections.abc import Callable

import pytest

from harness.brokers import Broker
from moldau.cli.consuming.typed import ContentType, reader_of
from moldau.client.producing.producer import Producer
from tests.cli.conftest import Moldau


@pytest.mark.parametrize(
    ("kind", "data", "value"),
    [
        (ContentType.SHORT, b"\xff\xfe", -2),
        (ContentType.INT, b"\0\0\x01\0", 256),
        (ContentType.LONG, b"\0" * 7 + b"\x07", 7),
        (ContentType.FLOAT, struct.pack(">f", 0.5), 0.5),
        (ContentType.DOUBLE, struct.pack(">d", float("nan")), "nan"),
        (ContentType.BOOLEAN, b"\x01", True),
        (ContentType.HEX, b"\x00\xff", "00ff"),
        (ContentType.BASE64, b"\x00\xff", "AP8="),
    ],
)
def test_bytes_become_what_their_type_says(kind: ContentType, data: bytes, value: object) -> None:
    read = reader_of(kind, "value")
    assert read is not None and read(data) == value


def test_other_lengths_stay_bytes_and_are_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    read = reader_of(ContentType.LONG, "key")
    assert read is not None and [read(b"abc"), read(b"abcd")] == [b"abc", b"abcd"]
    assert capsys.readouterr().err == "warning: a key of 3 bytes is no long; such data is printed as it is\n"


def test_counts_of_a_java_program_are_readable(moldau: Moldau, broker: Broker, topic: str) -> None:
    moldau("topics", "create", topic)
    with Producer(broker.address) as producer:
        producer.send(topic, struct.pack(">q", 12), b"words")
        producer.send(topic, None, b"gone")
    counts = ("consume", topic, "--from-beginning", "--to-end", "--value-type", "long")
    assert moldau(*counts, "--format", "{key}={value} {epoch}", "--null-marker", "-").lines == [
        "words=12 0",
        "gone=- 0",
    ]
    assert [json.loads(line)["value"] for line in moldau(*counts, "--json").lines] == [12, None]


def test_an_option_of_lines_of_text_is_not_ignored_where_json_is_printed(offline: Moldau) -> None:
    for words, sentence in (
        (["--json", "--format", "{key}"], "--format cannot be combined with --json"),
        (["--internal", "--format", "{key}"], "--format cannot be combined with --internal"),
        (["--format", "json", "--null-marker", "-"], "JSON has null of its own"),
    ):
        done = offline("consume", "t", *words)
        assert done.code == 2 and sentence in done.error


def test_commits_of_groups_are_decoded(moldau: Moldau, topic: str, fresh: Callable[[], str]) -> None:
    group = fresh()
    moldau("produce", topic, stdin=b"1\n2\n")
    moldau("consume", topic, "--group", group, "--from-beginning", "-n", "2")
    ran = moldau("consume", "__consumer_offsets", "--from-beginning", "--to-end", "--internal")
    stored = [json.loads(line)["record"] for line in ran.lines]
    ours = [one for one in stored if one.get("group") == group and one["type"] == "offset"]
    assert ours and ours[-1]["topic"] == topic and ours[-1]["value"]["offset"] == 2
