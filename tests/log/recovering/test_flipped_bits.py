"""A bit flips in any file of a stopped folder: the next start repairs or refuses, in a sentence, and serves what is
right.

What the flip cannot have touched is all there, wherever one begins to read and whatever time one asks for. A batch
whose checksum does not hold is never served where recovery read it, which is after an unclean stop; after a clean one
the log's own bytes are not read, and whoever consumes them finds the checksum wrong. `MOLDAU_SEED` repeats a run.
"""

import logging
import random
import shutil
import uuid
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.logs import NOW_MS, HandClock, append, config, offset_for_time
from harness.tiers import LONG, seed_or, sized
from moldau.config import TopicConfig
from moldau.errors import ErrorCode, KafkaError, StorageError
from moldau.log.checkpoints import LOG_STARTS, RECOVERY_POINTS
from moldau.log.folders.folder import LogFolder
from moldau.log.folders.identity import CLEAN_MARKER
from moldau.log.log import Log
from moldau.names import TopicPartition
from moldau.records.batch import TRANSACTIONAL_BIT, Marker, Row, batches, crc_holds
from moldau.records.rows import Record, iterate
from moldau.runtime import File, RealDisk, RealFile, Runtime
from tests.log.compaction.compacting import COMPACTED, compact, put

FLIPS = sized(100, 100, 20_000)
SEED = seed_or(8)
STEP_MS = 1000
PLAIN, TABLE, BANK = (TopicPartition(name, 0) for name in ("plain", "table", "bank"))
KNOWN = {tp.topic: uuid.UUID(int=number) for number, tp in enumerate((PLAIN, TABLE, BANK), 1)}
SMALL = {"segment_bytes": 4000, "index_interval_bytes": 200, "segment_index_bytes": 2000, "file_delete_delay_ms": 0}
CONFIGS = {
    "plain": config(**SMALL),
    "table": config(**{**COMPACTED, **SMALL, "delete_retention_ms": 0}),
    "bank": config(**SMALL),
}


def config_of(topic: str) -> TopicConfig:
    return CONFIGS[topic]


class QuickFile(RealFile):
    def __init__(self, opened: RealFile):
        self._fd, opened._fd = opened._fd, -1

    def flush(self) -> None:
        pass


class QuickDisk(RealDisk):
    """Nothing here loses power, so nothing is flushed."""

    def open(self, path: Path, *, create: bool = False, writable: bool = True) -> File:
        opened = super().open(path, create=create, writable=writable)
        assert isinstance(opened, RealFile)
        return QuickFile(opened)

    def sync_folder(self, folder: Path) -> None:
        pass


def opened(path: Path) -> LogFolder:
    return LogFolder(path, Runtime(clock=HandClock(), disk=QuickDisk()))


class Held(NamedTuple):
    """What a partition holds, as readers see it."""

    records: list[Record]
    all: list[Record]
    """Those below the log's start too, as long as they are in its files."""
    end: int
    aborted: list[tuple[int, ...]]


class Stopped(NamedTuple):
    """A folder at rest: every file, and what is in it."""

    files: dict[str, bytes]
    held: dict[TopicPartition, Held]


def all_records(log: Log) -> list[Record]:
    """Read as consumers do; raises `KafkaError` (CORRUPT_MESSAGE) where a checksum does not hold."""
    found: list[Record] = []
    at, end = int(log.log_start_offset), int(log.log_end_offset)
    while at < end:
        data = log.read_batches(at, 3000)
        found += iterate(data, at, control=True)
        behind = max((header.next_offset for _, header in batches(data)), default=at)
        if behind <= at:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"nothing can be read at {at} of {end}")
        at = behind
    return found


def filled(path: Path) -> Stopped:
    folder = opened(path)
    folder.load({}, config_of)
    folder.claim("cluster", 1)
    plain, table, bank = (folder.create(tp, KNOWN[tp.topic], CONFIGS[tp.topic]) for tp in (PLAIN, TABLE, BANK))
    chance = random.Random(1)
    for number in range(150):
        rows = [
            Row(b"k", bytes(chance.randbytes(chance.randrange(60))), NOW_MS + number * STEP_MS)
            for _ in range(chance.randint(1, 5))
        ]
        append(plain, rows, leader_epoch=number // 50, codec=chance.choice((0, 0, 1, 2, 3, 4)))
        append(plain, 1, leader_epoch=number // 50, producer_id=number % 3, producer_epoch=0, base_sequence=number // 3)
    plain.delete_records_before(200)
    plain.retain(NOW_MS, int(plain.log_end_offset))
    for number in range(300):
        put(table, (f"key-{chance.randrange(40)}", "v" * chance.randrange(80)), now_ms=NOW_MS + number * STEP_MS)
        if number % 100 == 99:
            compact(table)
    for number in range(60):
        producer = {"producer_id": number % 4, "producer_epoch": 0, "attributes": TRANSACTIONAL_BIT}
        append(bank, 3, base_sequence=number // 4 * 3, **producer)
        bank.append_marker(number % 4, 0, Marker(number % 3 > 0, 1), 1, 0, NOW_MS)
    held = {
        tp: Held(all_records(log), in_files(log), int(log.log_end_offset), aborted(log))
        for tp, log in ((PLAIN, plain), (TABLE, table), (BANK, bank))
    }
    folder.remove_due(NOW_MS)
    folder.close(high_watermarks={tp: of.end for tp, of in held.items()})
    return Stopped({str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}, held)


def in_files(log: Log) -> list[Record]:
    files = (segment.log.get().read(segment.size, 0) for segment in log.segments)
    return [record for data in files for record in iterate(data, control=True)]


def aborted(log: Log) -> list[tuple[int, ...]]:
    return [tuple(found) for found in log.committed.aborted_between(0, log.log_end_offset)]


def kind_of(name: str) -> str:
    base = Path(name).name
    return base.lstrip("0123456789") if base[:1].isdigit() else base


class Flip(NamedTuple):
    """One bit of one file, and whether the stop before was clean."""

    name: str
    bit: int
    clean: bool

    @property
    def kind(self) -> str:
        return kind_of(self.name)

    def is_in(self, tp: TopicPartition) -> bool:
        return self.name.startswith(f"{tp}/")


def chosen(stopped: Stopped, chance: random.Random) -> Flip:
    """Every kind of file as often as any other."""
    kind = chance.choice(sorted({kind_of(name) for name, data in stopped.files.items() if data}))
    name = chance.choice(sorted(name for name, data in stopped.files.items() if data and kind_of(name) == kind))
    return Flip(name, chance.randrange(8 * len(stopped.files[name])), chance.random() < 0.5)


def lay_out(stopped: Stopped, flip: Flip, path: Path) -> None:
    """The folder with the bit flipped. After an unclean stop nothing counts as flushed, so that all of it is read."""
    shutil.rmtree(path, ignore_errors=True)
    for name, data in stopped.files.items():
        if not flip.clean and name in (CLEAN_MARKER, RECOVERY_POINTS):
            continue
        if name == flip.name:
            changed = bytearray(data)
            changed[flip.bit // 8] ^= 1 << flip.bit % 8
            data = bytes(changed)
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)


def check_served(log: Log, tp: TopicPartition, held: Held, flip: Flip) -> None:
    """What is served is what was there, but for what the flip took."""
    log_is_hit = flip.is_in(tp) and flip.kind == ".log"
    if log_is_hit and flip.clean:
        check_hit(log, held)
        return
    records = all_records(log)
    times = {record.offset: record.timestamp_ms for record in records}
    if log_is_hit:
        assert contents(records) <= contents(held.all)
    elif flip.name == LOG_STARTS:
        assert records == held.all[len(held.all) - len(records) :]
    else:
        assert records == held.records
        assert int(log.log_end_offset) == held.end
    if not flip.clean and not log_is_hit and flip.name != LOG_STARTS:
        assert aborted(log) == held.aborted
    is_index = flip.is_in(tp) and flip.kind.endswith("index")
    for offset in times if is_index else list(times)[:: 1 + len(times) // 7]:
        data = log.read_batches(offset, 1)
        assert crc_holds(data) and next(iterate(data, offset, control=True)).offset == offset
    moments = list(dict.fromkeys(times.values()))
    for time in moments if is_index else moments[:: 1 + len(moments) // 7]:
        found = offset_for_time(log, time)
        assert found is not None and found.offset == next(at for at in times if times[at] >= time)


def check_hit(log: Log, held: Held) -> None:
    """The flip is in a log that nobody has read: a consumer finds it, or it changed nothing that a consumer sees."""
    try:
        records = all_records(log)
    except KafkaError as error:
        if error.code is not ErrorCode.CORRUPT_MESSAGE:
            raise
        return
    assert contents(records) <= contents(held.all)


def contents(records: list[Record]) -> set[tuple[bytes | None, bytes | None, int]]:
    """What a checksum covers: it does not cover a batch's offset."""
    return {(record.key, record.value, record.timestamp_ms) for record in records}


def start(path: Path, stopped: Stopped, flip: Flip) -> str:
    """Start on the folder and look at everything; says what came of it."""
    try:
        folder = opened(path)
        try:
            strays = folder.load(KNOWN, config_of)
            folder.claim("cluster", 1)
        except BaseException:
            folder.close(clean=False)
            raise
    except StorageError:
        return "refused"
    for tp, held in stopped.held.items():
        log = folder.logs.get(tp)
        if log is None:
            assert strays == [str(tp)] and flip.is_in(tp)
        else:
            check_served(log, tp, held, flip)
    folder.close()
    again = opened(path)
    assert again.load(KNOWN, config_of) == strays
    assert again.clean
    for tp, log in folder.logs.items():
        assert again.logs[tp].log_end_offset == log.log_end_offset
    again.close()
    return "reported" if strays else "served"


@pytest.mark.timeout(0 if LONG else 120)
def test_whatever_bit_flips_a_start_repairs_or_refuses_and_serves_what_is_right(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stopped = filled(tmp_path / "made")
    chance = random.Random(SEED)
    outcomes: Counter[str] = Counter()
    for number in range(FLIPS):
        flip = chosen(stopped, chance)
        lay_out(stopped, flip, tmp_path / "data")
        try:
            outcome = start(tmp_path / "data", stopped, flip)
        except Exception as failure:
            raise AssertionError(f"seed {SEED}, flip {number}: {flip}") from failure
        said = [
            record for record in caplog.records if record.name.startswith("moldau.")
        ]  # other tests' loops speak too
        assert not any(record.levelno >= logging.ERROR and record.exc_info for record in said)
        caplog.clear()
        outcomes[f"{flip.kind} {outcome}"] += 1
    print(", ".join(f"{what} ({times})" for what, times in sorted(outcomes.items())))
    kinds = {kind_of(name) for name, data in stopped.files.items() if data}
    assert {".log", ".index", ".timeindex", ".txnindex", ".snapshot", "partition.metadata"} < kinds
    assert {what.split(" ")[0] for what in outcomes} == kinds
