"""Batches, topic settings and logs on the real disk, for tests and benchmarks of the log."""

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from moldau.config import TopicConfig, broker_config
from moldau.log.appended import Appended
from moldau.log.compaction.cleaner import Candidate, Cleaner
from moldau.log.folders import opening
from moldau.log.folders.opening import LeftState
from moldau.log.log import Log
from moldau.log.services import LogServices
from moldau.log.times import TimestampOffset, TimestampSearch
from moldau.names import TopicPartition
from moldau.records.batch import Row, batches, encode_batch
from moldau.records.rows import Record, iterate
from moldau.records.validation import Rules, check_produce
from moldau.runtime import Runtime

TP = TopicPartition("flights", 0)
TOPIC_ID = uuid.UUID(int=77)
NOW_MS = 1_700_000_000_000
FOREVER = {"retention_ms": -1}


class HandClock:
    """A clock that a test moves."""

    def __init__(self, now_ms: int = NOW_MS):
        self.ms = now_ms
        self.set_back_ms = 0

    def now_ms(self) -> int:
        return self.ms - self.set_back_ms

    def elapsed_s(self) -> float:
        return self.ms / 1000


def config(**settings: Any) -> TopicConfig:
    return TopicConfig(**{**FOREVER, **settings})


def open_log(folder: Path, runtime: Runtime | None = None, *, clean: bool = True, **more: Any) -> Log:
    """`more`: `config`, `progress`, and fields of `LogServices` and `LeftState`."""
    settings = more.pop("config", None) or config()
    services = LogServices.alone(runtime or Runtime(clock=HandClock()))
    names = ("files", "doomed", "on_failure", "write_recovery_points")
    shared = {name: more.pop(name) for name in names if name in more}
    progress = more.pop("progress", None)
    left = LeftState(clean, **more)
    return opening.open_log(folder, TP, TOPIC_ID, settings, replace(services, **shared), left, progress)


def rows(count: int, timestamp_ms: int = NOW_MS, value: bytes = b"v") -> list[Row]:
    return [Row(b"k", value, timestamp_ms) for _ in range(count)]


def append(
    log: Log, records: Sequence[Row] | int = 1, now_ms: int = NOW_MS, leader_epoch: int = 0, **batch: Any
) -> Appended:
    """One batch, as a producer would send it and a broker check it."""
    data = memoryview(encode_batch(rows(records) if isinstance(records, int) else records, **batch))
    checked = check_produce(data, Rules(after_max_ms=2**62), now_ms)
    assert not checked.error, checked
    return log.append(data, checked, leader_epoch, now_ms)


def records_from(log: Log, offset: int) -> Iterator[Record]:
    """The records from `offset` on: fetched as consumers do, a slice at a time, when they are asked for."""
    at = offset
    while data := log.read_batches(at, 3000):
        yield from (record for record in iterate(data) if record.offset >= at)
        at = max(header.next_offset for _, header in batches(data))  # compaction leaves empty batches


def read_all(log: Log, offset: int | None = None) -> list[Record]:
    """Every record from `offset`, or the log's start, on."""
    return list(records_from(log, int(log.log_start_offset) if offset is None else offset))


def carried_out(search: TimestampSearch, result: Any = None) -> TimestampOffset | None:
    """The result of a search, with every step taken at once. `result`: that of its present step, if it has begun."""
    try:
        while True:
            step = search.send(result)
            result = None if step is None else step()
    except StopIteration as found:
        return cast(TimestampOffset | None, found.value)


def offset_for_time(log: Log, timestamp_ms: int) -> TimestampOffset | None:
    return carried_out(log.by_time.first_since(timestamp_ms))


def offset_of_max_timestamp(log: Log) -> TimestampOffset | None:
    return carried_out(log.by_time.first_of_largest())


def names(folder: Path, suffix: str = "") -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.endswith(suffix))


def candidate(log: Log) -> Candidate:
    """A log for the cleaner, of a partition with one replica: all of it is below the high watermark."""
    return Candidate(log, log.committed.last_stable_offset(log.log_end_offset))


def cleaner_of(logs: Iterable[Log], runtime: Runtime, settings: dict[str, str] | None = None) -> Cleaner:
    """A cleaner of these logs that is not started; `settings` of the broker, by name."""
    broker, _ = broker_config(settings or {})
    kept = list(logs)
    return Cleaner(lambda: [candidate(log) for log in kept], lambda: broker, runtime)
