"""What a start after a clean stop costs: a look at each partition's folder, never at its records."""

from pathlib import Path

from harness.logs import TOPIC_ID, HandClock, append, config, rows
from moldau.log.folders.folder import LogFolder
from moldau.names import TopicPartition
from moldau.runtime import File, RealDisk, RealFile, Runtime


class Counted(RealFile):
    read_bytes = 0
    reads = 0

    def read(self, length: int, at: int) -> bytes:
        data = super().read(length, at)
        Counted.read_bytes += len(data)
        Counted.reads += 1
        return data


class CountingDisk(RealDisk):
    def __init__(self) -> None:
        self.listed: list[Path] = []
        self.opened: list[str] = []

    def list(self, folder: Path) -> list[str]:
        self.listed.append(folder)
        return super().list(folder)

    def open(self, path: Path, *, create: bool = False, writable: bool = True) -> File:
        self.opened.append(path.name)
        real = super().open(path, create=create, writable=writable)
        assert isinstance(real, RealFile)
        counted = Counted(real._fd)
        real._fd = -1
        return counted


def test_a_start_after_a_clean_stop_reads_next_to_nothing(tmp_path: Path) -> None:
    partitions = [TopicPartition("t", number) for number in range(8)]
    folder = LogFolder(tmp_path, Runtime(clock=HandClock()))
    settings = config(segment_bytes=200_000)
    for number, tp in enumerate(partitions):
        log = folder.create(tp, TOPIC_ID, settings)
        for turn in range(number * 8):
            append(log, rows(10, value=b"v" * 5000), producer_id=number, producer_epoch=0, base_sequence=turn * 10)
    assert len(log.segments) > 10
    folder.close()

    disk = CountingDisk()
    Counted.read_bytes = Counted.reads = 0
    again = LogFolder(tmp_path, Runtime(clock=HandClock(), disk=disk))
    assert again.load({"t": TOPIC_ID}, lambda _: settings) == []
    assert [int(again.logs[tp].log_end_offset) for tp in partitions] == [number * 80 for number in range(8)]
    assert len(disk.listed) == 1 + len(partitions)
    assert disk.opened.count("00000000000000000000.log") <= len(partitions)
    assert Counted.read_bytes / len(partitions) < 70_000, "a batch behind the last index entry, and a page of an index"
    assert Counted.reads / len(partitions) < 30, "among them the headers of batches that a producer may send again"
    again.close()
