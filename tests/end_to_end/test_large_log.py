"""A log that is far larger than memory is written, restarted, read anywhere, shortened and compacted by a broker that
stays small.

40 MB in `make test`, 200 MB in `make check`; `MOLDAU_TIER=long` writes 20 GB, or what half of the disk holds.
`MOLDAU_LARGE_LOG_MB` says how many.
"""

import os
import random
import shutil
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from crc32c import crc32c

from harness.brokers import Broker
from harness.patience import wait_until
from harness.tiers import LONG, sized
from moldau.client.administration.admin import Admin
from moldau.records.batch import ATTRIBUTES_AT, CRC_AT, MAX_TIMESTAMP_AT, batches, crc_holds, encode_batch
from moldau.records.rows import iterate
from tests.end_to_end.raw import Raw

MEGABYTE = 1_000_000
RESIDENT_MB_MAX = 300
RECORDS, VALUE_BYTES = 4000, 200
"""Of one batch, which is as large as a broker takes it."""
KEYS_MAX = 2_000_000
STEP_MS = 10
LOOKS = 100
SHARE_OF_DISK = 0.5
SETTLE_SECONDS_MAX = 1800 if LONG else 200
EARLIEST, LATEST = -2, -1
SETTINGS = {
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "500",
    "log.segment.delete.delay.ms": "500",
    "log.cleaner.backoff.ms": "500",
}


def wanted_bytes(folder: Path) -> int:
    asked = os.environ.get("MOLDAU_LARGE_LOG_MB")
    if asked:
        return int(asked) * MEGABYTE
    if LONG:
        return min(20_000 * MEGABYTE, int(shutil.disk_usage(folder).free * SHARE_OF_DISK))
    return sized(40, 80, 200) * MEGABYTE


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    ours = Broker(tmp_path, SETTINGS)
    ours.start()
    yield ours
    ours.kill()
    print(f"the end of the broker's log:\n{ours.log()}")
    shutil.rmtree(ours.data)


def peak_mb(broker: Broker) -> float:
    """The most memory that this process ever had."""
    lines = Path(f"/proc/{broker.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1000


def check_small(broker: Broker, after: str) -> None:
    peak = peak_mb(broker)
    print(f"after {after}: at most {peak:.0f} MB were resident")
    assert peak <= RESIDENT_MB_MAX, f"{peak:.0f} MB after {after}"


def soon(holds: Callable[[], bool], what: str) -> None:
    assert wait_until(holds, SETTLE_SECONDS_MAX, 0.1), what


class Times:
    """Batches that are alike but for their time: batch N was made N steps after the first."""

    def __init__(self) -> None:
        self.first_ms = time.time_ns() // 1_000_000 - 86_400_000
        rows = [(b"%d" % at, b"%06d" % at + b"." * VALUE_BYTES, self.first_ms, ()) for at in range(RECORDS)]
        self._batch = encode_batch(rows)

    def batch(self, number: int) -> bytes:
        at_ms = self.at_ms(number)
        struct.pack_into(">qq", self._batch, MAX_TIMESTAMP_AT - 8, at_ms, at_ms)
        struct.pack_into(">I", self._batch, CRC_AT, crc32c(memoryview(self._batch)[ATTRIBUTES_AT:]))
        return bytes(self._batch)

    def at_ms(self, number: int) -> int:
        return self.first_ms + number * STEP_MS


def write(raw: Raw, topic: str, size: int, batch: Callable[[int], bytes]) -> int:
    """How many batches it took."""
    number = written = 0
    while written < size:
        data = batch(number)
        error, base = raw.produce(topic, data)
        assert (error, base) == (0, number * RECORDS)
        number, written = number + 1, written + len(data)
    return number


def check_reads(raw: Raw, times: Times, count: int, first: int) -> None:
    """Anywhere between two batches: the record that was asked for, whole batches, and the time that leads there."""
    chance = random.Random(5)
    for _ in range(LOOKS):
        offset = chance.randrange(first * RECORDS, count * RECORDS)
        answer = raw.fetch("large", offset)
        assert not answer.error_code and crc_holds(answer.records)
        record = next(iterate(answer.records, offset))
        assert (record.offset, record.timestamp_ms) == (offset, times.at_ms(offset // RECORDS))
        assert record.value is not None and int(record.value[:6]) == offset % RECORDS
        number = chance.randrange(first, count)
        assert raw.offset_at("large", times.at_ms(number) - STEP_MS // 2) == number * RECORDS


@pytest.mark.timeout(0 if LONG else 600)
def test_a_log_larger_than_memory_is_written_restarted_read_anywhere_and_shortened(broker: Broker) -> None:
    size = wanted_bytes(broker.folder)
    segment_bytes = max(size // 20, 2 * MEGABYTE)
    times = Times()
    with Raw(broker.address) as raw:
        raw.create_topic("large", segment_bytes=str(min(segment_bytes, 1 << 30)), retention_ms="-1")
        count = write(raw, "large", size, times.batch)
        check_reads(raw, times, count, 0)
    check_small(broker, "writing and reading")
    for stop in (broker.stop, broker.kill):
        stop()
        broker.start()
        with Raw(broker.address) as raw:
            assert raw.offset_at("large", LATEST) == count * RECORDS
            check_reads(raw, times, count, 0)
        check_small(broker, "a restart")
    with Admin(broker.address) as admin:
        admin.alter_topic_configs("large", {"retention.bytes": str(size // 2)})
    most = size // 2 + segment_bytes
    soon(lambda: broker.log_bytes("large") <= most, f"retention leaves more than {most} bytes")
    with Raw(broker.address) as raw:
        start = raw.offset_at("large", EARLIEST)
        assert 0.4 < start / (count * RECORDS) < 0.6
        check_reads(raw, times, count, start // RECORDS)
    check_small(broker, "retention")


@pytest.mark.timeout(0 if LONG else 600)
def test_a_log_larger_than_memory_is_compacted_in_bounded_memory(broker: Broker) -> None:
    size = wanted_bytes(broker.folder) // 2
    segment_bytes = max(size // 20, 2 * MEGABYTE)
    keys = min(size // (VALUE_BYTES + 30) // 5, KEYS_MAX)
    now_ms = time.time_ns() // 1_000_000

    def batch(number: int) -> bytes:
        first = number * RECORDS
        rows = [
            (b"%d" % (at % keys), b"%d:" % at + b"." * VALUE_BYTES, now_ms, ()) for at in range(first, first + RECORDS)
        ]
        return bytes(encode_batch(rows))

    with Raw(broker.address) as raw:
        raw.create_topic("keyed", segment_bytes=str(min(segment_bytes, 1 << 30)))
        count = write(raw, "keyed", size, batch)
    check_small(broker, "writing")
    with Admin(broker.address) as admin:
        admin.alter_topic_configs("keyed", {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"})
    left = int(1.2 * keys * (VALUE_BYTES + 30)) + 2 * segment_bytes
    soon(lambda: broker.log_bytes("keyed") < left, f"compaction leaves more than {left} of {size} bytes")
    check_small(broker, "compaction")
    latest: dict[bytes, int] = {}
    with Raw(broker.address) as raw:
        at, end = 0, raw.offset_at("keyed", LATEST)
        assert end == count * RECORDS
        while at < end:
            data = raw.fetch("keyed", at, 8 * MEGABYTE).records
            for record in iterate(data, at):
                assert record.key is not None and record.value is not None
                latest[record.key] = int(record.value.partition(b":")[0])
            at = max(header.next_offset for _, header in batches(data))
    assert len(latest) == keys
    assert all(last == (end - 1 - int(key)) // keys * keys + int(key) for key, last in latest.items())
    check_small(broker, "reading it")
