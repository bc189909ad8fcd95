"""The dump tool, and our reading of what it says, see what is wrong: copies of good files with one thing bent each."""

import struct
from collections.abc import Callable
from pathlib import Path

import crc32c
import pytest

from harness.logs import NOW_MS, append, config, open_log, rows
from tests.agreement.dumping import DEEP, DumpTool, read

COUNT = 200
LOG, INDEX, TIMES = "00000000000000000000.log", "00000000000000000000.index", "00000000000000000000.timeindex"
SNAPSHOT = f"{COUNT:020}.snapshot"
RECORDS = 61
"""Where the records of a log's first batch begin."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A partition of batches with one record each, and what Kafka finds good about it."""
    log = open_log(tmp_path / "t-0", config=config(index_interval_bytes=200))
    for i in range(COUNT):
        now_ms = NOW_MS + i * 10
        append(log, rows(1, now_ms), now_ms, producer_id=5, producer_epoch=0, base_sequence=i)
    log.close()
    return tmp_path / "t-0"


def flip(at: int, bit: int = 1) -> Callable[[bytearray], None]:
    def bend(data: bytearray) -> None:
        data[at] ^= bit

    return bend


def cut(size: int) -> Callable[[bytearray], None]:
    def bend(data: bytearray) -> None:
        del data[size:]

    return bend


def put(form: str, at: int, *values: int) -> Callable[[bytearray], None]:
    def bend(data: bytearray) -> None:
        struct.pack_into(form, data, at, *values)

    return bend


def another_value(data: bytearray) -> None:
    """The first record has another value, and the batch a checksum that holds."""
    size = struct.unpack_from(">i", data, 8)[0] + 12
    data[size - 2] ^= 1
    struct.pack_into(">I", data, 17, crc32c.crc32c(bytes(data[21:size])))


def without_third_batch(data: bytearray) -> None:
    at = 0
    for _ in range(2):
        at += struct.unpack_from(">i", data, at + 8)[0] + 12
    del data[at : at + struct.unpack_from(">i", data, at + 8)[0] + 12]


def bent(folder: Path, name: str, bend: Callable[[bytearray], None]) -> Path:
    data = bytearray((folder / name).read_bytes())
    bend(data)
    (folder / name).write_bytes(data)
    return folder / name


def test_nothing_is_said_of_what_is_right(tool: DumpTool, folder: Path) -> None:
    dump = tool.dump(sorted(folder.glob("0*")), *DEEP)
    assert (dump.complaints, dump.gaps) == ([], [])
    assert len(dump.records()) == COUNT
    assert dump.files[folder / SNAPSHOT].entries[0]["lastSequence"] == str(COUNT - 1)


@pytest.mark.parametrize(
    ("name", "bend", "options"),
    [
        (LOG, flip(RECORDS), DEEP),
        (LOG, flip(30), DEEP),
        (LOG, cut(-1), DEEP),
        (LOG, cut(100), DEEP),
        (INDEX, put(">i", 4, 3), ("--verify-index-only",)),
        (INDEX, put(">i", 8, 7), ("--verify-index-only",)),
        (INDEX, put(">i", -8, -1), ("--index-sanity-check",)),
        (INDEX, cut(-3), ("--index-sanity-check",)),
        (TIMES, put(">q", 12, NOW_MS - 1), ("--verify-index-only",)),
        (TIMES, put(">q", -12, 0), ("--index-sanity-check",)),
        (TIMES, cut(-5), ("--index-sanity-check",)),
        (SNAPSHOT, flip(20), ()),
        (SNAPSHOT, put(">h", 0, 9), ()),
    ],
)
def test_what_is_wrong_is_complained_about(
    tool: DumpTool, folder: Path, name: str, bend: Callable[[bytearray], None], options: tuple[str, ...]
) -> None:
    assert tool.dump([bent(folder, name, bend)], *options).complaints != []


def test_a_batch_that_is_missing_is_a_gap(tool: DumpTool, folder: Path) -> None:
    dump = tool.dump([bent(folder, LOG, without_third_batch)], *DEEP)
    assert dump.gaps == [(1, 3)]


def test_another_value_is_another_record(tool: DumpTool, folder: Path) -> None:
    before = tool.dump([folder / LOG], *DEEP)
    after = tool.dump([bent(folder, LOG, another_value)], *DEEP)
    assert after.complaints == []
    assert after.records()[0]["payload"] != before.records()[0]["payload"]
    assert after.records()[1:] == before.records()[1:]


def test_a_line_nobody_knows_and_a_batch_that_does_not_hold_are_complaints() -> None:
    assert read(["Dumping /x/0.log", "Log starting offset: 0", "", "whatever"]).complaints == ["whatever"]
    assert len(read(["baseOffset: 0 lastOffset: 0 count: 1 crc: 1 isvalid: false"]).complaints) == 1
