"""Kafka's cleaner and ours, each on the same log that Kafka wrote: what is left is the same, batch by batch.

What differs by design is taken out: bytes of codecs, the base timestamp (Kafka writes that of the first record that is
left, we leave it as it was, which no record's time depends on), and that our segments end with a batch, an empty one if
need be, so that a start after a crash knows what a segment replaces.
"""

import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harness.logs import HandClock, config, open_log
from moldau.log.log import Log
from moldau.records.batch import batches
from moldau.records.rows import Record, iterate
from moldau.runtime import Runtime
from tests.agreement.apache import COMPACTED, Written
from tests.agreement.dumping import DEEP, DumpTool
from tests.log.compaction.compacting import compact

RETENTION_MS = 86_400_000
SLACK_MS = 600_000


class Left(NamedTuple):
    """One batch as both cleaners must leave it."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    attributes: int
    producer: tuple[int, int, int]
    max_timestamp: int
    records: list[Record]


def logs(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix == ".log")


def left(folder: Path, cleaned_ms: int) -> list[Left]:
    found = []
    for path in logs(folder):
        data = path.read_bytes()
        for at, header in batches(data):
            records = list(iterate(data[at : at + header.size], control=True))
            assert len(records) == header.count
            if header.has_delete_horizon:
                assert abs(header.base_timestamp - RETENTION_MS - cleaned_ms) < SLACK_MS
            producer = header.producer_id, header.producer_epoch, header.base_sequence
            epoch, attributes = header.partition_leader_epoch, header.attributes
            found.append(
                Left(header.base_offset, header.last_offset, epoch, attributes, producer, header.max_timestamp, records)
            )
    return found


def indexes_of_aborted(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.txnindex")}


def cleaned_by_us(written: Written, topic: str, folder: Path, **settings: Any) -> Log:
    """Soon after Kafka's cleaner was there."""
    shutil.copytree(written.dirty / f"{topic}-0", folder / f"{topic}-0")
    settings = {
        "cleanup_policy": ("compact",),
        "min_cleanable_dirty_ratio": 0.01,
        "index_interval_bytes": 100,
    } | settings
    log = open_log(
        folder / f"{topic}-0",
        Runtime(clock=HandClock(written.at_ms)),
        config=config(**settings, file_delete_delay_ms=0),
    )
    assert compact(log, roll=False)
    log.services.doomed.remove_due(2**62)
    return log


@pytest.mark.parametrize("topic", COMPACTED)
def test_what_is_left_is_the_same(written: Written, topic: str, tmp_path: Path) -> None:
    before, after = written.dirty, written.killed
    cleaned_by_us(written, topic, tmp_path).close()
    ours, kafkas = (left(folder / f"{topic}-0", written.at_ms) for folder in (tmp_path, after))
    extra = [one for one in ours if one not in kafkas]
    assert [one for one in ours if one not in extra] == kafkas
    ends = [path.stem for path in logs(tmp_path / f"{topic}-0")[1:]]
    assert all(not one.records and f"{one.last_offset + 1:020d}" in ends for one in extra)
    assert len(left(before / f"{topic}-0", written.at_ms)) > len(kafkas)
    assert indexes_of_aborted(tmp_path / f"{topic}-0") == indexes_of_aborted(after / f"{topic}-0")


@pytest.mark.parametrize("topic", COMPACTED)
def test_kafkas_tool_finds_nothing_wrong(written: Written, topic: str, tmp_path: Path, tool: DumpTool) -> None:
    log = cleaned_by_us(written, topic, tmp_path)
    log.close()
    files = [path for path in sorted(log.folder.iterdir()) if path.suffix in (".log", ".index", ".timeindex")]
    assert tool.dump(files, "--index-sanity-check").complaints == []
    found = tool.dump(logs(log.folder), *DEEP)
    assert found.complaints == []
    assert len(found.records()) == sum(len(one.records) for one in left(log.folder, written.at_ms))
