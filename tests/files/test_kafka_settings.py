import random
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from moldau.errors import StorageError
from moldau.files.kafka_settings import read_metadata
from moldau.files.metadata_log import (
    KINDS,
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from moldau.protocol import schema
from moldau.records.batch import CONTROL_BIT, Row, encode_batch
from moldau.runtime import RealDisk

ONE = uuid.UUID(int=1)
NUMBERS = {kind: number for number, kind in KINDS.items()}
NO_OP = bytes.fromhex("01 14 00 00")
KAFKAS = bytes.fromhex("01040002") + b"\x13__consumer_offsets" + b"\x0fcleanup.policy" + b"\x08compact" + b"\0"
"""As Kafka 4.3.1 wrote it."""


def framed(record: Any) -> bytes:
    return bytes([1, NUMBERS[type(record)], 0]) + schema.write(record, 0, True)


def config(topic: str, name: str, value: str | None, kind: int = 2) -> bytes:
    return framed(ConfigRecord(resource_type=kind, resource_name=topic, name=name, value=value))


def batches(values: Sequence[bytes], base: int = 0) -> bytes:
    """One batch a record, behind what a leader writes first."""
    leader = encode_batch([Row(b"\0\0\0\2", b"\0", 1)], attributes=CONTROL_BIT, base_offset=base)
    rest = [encode_batch([Row(None, value, 1)], base_offset=base + 1 + at) for at, value in enumerate(values)]
    return bytes(leader + b"".join(rest))


def settings(folder: Path) -> dict[str, dict[str, str]]:
    return read_metadata(RealDisk(), folder).settings


def log(folder: Path, *values: bytes, base: int = 0) -> Path:
    path = folder / f"{base:020d}.log"
    path.write_bytes(batches(values, base))
    return path


def test_what_kafka_wrote_is_read(tmp_path: Path) -> None:
    log(tmp_path, NO_OP, KAFKAS)
    assert settings(tmp_path) == {"__consumer_offsets": {"cleanup.policy": "compact"}}


def test_settings_are_those_that_were_last_written(tmp_path: Path) -> None:
    log(
        tmp_path,
        framed(TopicRecord(name="a", topic_id=ONE)),
        config("a", "retention.ms", "1"),
        config("a", "segment.bytes", "2"),
        config("a", "retention.ms", "3"),
        config("a", "segment.bytes", None),
        config("1", "log.retention.ms", "9", kind=4),
    )
    assert settings(tmp_path) == {"a": {"retention.ms": "3"}}


def test_a_topic_that_was_removed_leaves_nothing_to_one_of_its_name(tmp_path: Path) -> None:
    gone = [framed(TopicRecord(name="a", topic_id=ONE)), config("a", "retention.ms", "1")]
    log(tmp_path, *gone, framed(RemoveTopicRecord(topic_id=ONE)), config("a", "segment.bytes", "5"))
    assert settings(tmp_path) == {"a": {"segment.bytes": "5"}}


def test_what_a_transaction_did_that_was_aborted_or_never_ended_was_not_done(tmp_path: Path) -> None:
    begin, end, abort = map(framed, (BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord()))
    done = [begin, config("a", "retention.ms", "1"), end]
    log(tmp_path, *done, begin, config("a", "retention.ms", "2"), abort, begin, config("a", "retention.ms", "3"))
    assert settings(tmp_path) == {"a": {"retention.ms": "1"}}


def test_the_newest_snapshot_comes_first_and_the_log_goes_on_behind_it(tmp_path: Path) -> None:
    log(tmp_path, config("a", "retention.ms", "1"), config("a", "retention.ms", "2"), config("b", "retention.ms", "4"))
    (tmp_path / f"{1:020d}-0000000001.checkpoint").write_bytes(b"an older one is not looked at")
    snapshot = batches([config("a", "retention.ms", "7"), config("c", "retention.ms", "8")])
    (tmp_path / f"{3:020d}-0000000001.checkpoint").write_bytes(snapshot)
    found = settings(tmp_path)
    assert found == {"a": {"retention.ms": "7"}, "b": {"retention.ms": "4"}, "c": {"retention.ms": "8"}}


def test_a_log_may_end_early_but_not_be_wrong(tmp_path: Path) -> None:
    path = log(tmp_path, config("a", "retention.ms", "1"), config("b", "retention.ms", "2"))
    sound = path.read_bytes()
    path.write_bytes(sound[:-5])
    assert settings(tmp_path) == {"a": {"retention.ms": "1"}}
    path.write_bytes(sound[:200] + b"\xff" + sound[201:])
    with pytest.raises(StorageError, match="settings of topics cannot be read"):
        settings(tmp_path)
    (tmp_path / f"{0:020d}-0000000001.checkpoint").write_bytes(sound[:-5])
    path.unlink()
    with pytest.raises(StorageError, match="settings of topics cannot be read"):
        settings(tmp_path)


def test_any_bytes_are_settings_or_a_sentence(tmp_path: Path) -> None:
    chance = random.Random(8)
    for _ in range(300):
        value = bytearray(config("topic", "retention.ms", "1"))
        value[chance.randrange(len(value))] ^= 1 << chance.randrange(8)
        log(tmp_path, bytes(value[: chance.randrange(len(value) + 1)]))
        try:
            settings(tmp_path)
        except StorageError:
            continue
