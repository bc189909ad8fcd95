"""A write that fails in the middle: nothing is answered, nothing follows the half batch, and a start cuts it off."""

import errno
from pathlib import Path

import pytest

from harness.logs import TOPIC_ID, TP, HandClock, append, config, read_all, rows
from moldau.errors import ErrorCode, KafkaError
from moldau.log.folders.folder import LogFolder
from moldau.log.log import Log
from moldau.names import TopicPartition
from moldau.runtime import Buffer, File, RealDisk, RealFile, Runtime


class ShortFile(RealFile):
    """Of one write it takes the first half, and then there is no space."""

    full = False

    def write(self, data: Buffer, at: int) -> None:
        if ShortFile.full:
            super().write(memoryview(data)[: len(data) // 2], at)
            raise OSError(errno.ENOSPC, "No space left on device")
        super().write(data, at)


class ShortDisk(RealDisk):
    def open(self, path: Path, *, create: bool = False, writable: bool = True) -> File:
        real = super().open(path, create=create, writable=writable)
        assert isinstance(real, RealFile)
        short = ShortFile(real._fd)
        real._fd = -1
        return short


def append_two(log: Log) -> None:
    for _ in range(2):
        append(log, rows(5, value=b"x" * 200))


@pytest.mark.parametrize("kind", ["log", "index"])
def test_after_half_a_write_nothing_follows_even_if_there_is_space_again(tmp_path: Path, kind: str) -> None:
    ShortFile.full = False
    folder = LogFolder(tmp_path, Runtime(clock=HandClock(), disk=ShortDisk()))
    folder.load({}, lambda _: config())
    log = folder.create(TP, TOPIC_ID, config(index_interval_bytes=100_000 if kind == "log" else 200))
    other = folder.create(TopicPartition(TP.topic, 1), TOPIC_ID, config())
    append(log, 5)
    kept = read_all(log)
    ShortFile.full = True
    if kind == "index":  # the batch is written whole, its index entry is not
        full_at = log.active_segment.log.get()
        assert isinstance(full_at, ShortFile)
        full_at.write = lambda data, at: RealFile.write(full_at, data, at)  # type: ignore[method-assign]
    with pytest.raises(KafkaError) as raised:
        append_two(log)
    assert raised.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    ShortFile.full = False
    for each in (log, other):
        with pytest.raises(KafkaError):
            append(each, 1)
        with pytest.raises(KafkaError):
            each.read(0, 1000, 5)
        with pytest.raises(KafkaError):
            each.flush()
    folder.close()
    again = LogFolder(tmp_path, Runtime(clock=HandClock()))
    assert not again.clean
    again.load({TP.topic: TOPIC_ID}, lambda _: config())
    found = read_all(again.logs[TP])
    assert found[: len(kept)] == kept
    assert [record.offset for record in found] == list(range(len(found)))
    assert append(again.logs[TP], 1).base_offset == len(found)
    again.close()
