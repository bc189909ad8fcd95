"""What the tests of compaction make: one cleaning of one log, as the broker's cleaner does it, in one call."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.logs import NOW_MS, HandClock, append, candidate, cleaner_of, config, open_log, read_all
from moldau.config import broker_config
from moldau.log.compaction.cleaner import Cleaner
from moldau.log.log import Log
from moldau.records.batch import Row
from moldau.runtime import Runtime

COMPACTED: dict[str, Any] = {
    "cleanup_policy": ("compact",),
    "segment_bytes": 1000,
    "index_interval_bytes": 100,
    "min_cleanable_dirty_ratio": 0.0,
    "file_delete_delay_ms": 0,
}


def compacted_log(folder: Path, now_ms: int = NOW_MS, runtime: Runtime | None = None, **settings: Any) -> Log:
    runtime = runtime or Runtime(clock=HandClock(now_ms))
    return open_log(folder, runtime, config=config(**{**COMPACTED, **settings}))


def put(log: Log, *pairs: tuple[str | None, str | None], now_ms: int = NOW_MS, **batch: Any) -> int:
    """One batch of keys and values; its base offset."""
    rows = [Row(*(None if text is None else text.encode() for text in pair), now_ms) for pair in pairs]
    return int(append(log, rows, now_ms, **batch).base_offset)


def compact(log: Log, settings: dict[str, str] | None = None, *, roll: bool = True) -> bool:
    """Clean a log, but for its active segment, which is closed before if `roll`; False if it was not dirty."""
    runtime: Runtime = log.services.runtime
    if roll and log.active_segment.size:
        log.roll(runtime.clock.now_ms())
    return asyncio.run(cleaner_of([log], runtime, settings).clean_dirtiest())


def latest(log: Log) -> dict[str, str]:
    """What a reader who goes from start to end knows."""
    known: dict[str, str] = {}
    for record in read_all(log):
        assert record.key is not None
        if record.value is None:
            known.pop(record.key.decode(), None)
        else:
            known[record.key.decode()] = record.value.decode()
    return known


def clean_offsets(log: Log, map_bytes: int = 1 << 20) -> Callable[[], bool]:
    """A cleaner of one log, which it cleans when called, with a map of that size; False where nothing is dirty."""
    runtime: Runtime = log.services.runtime
    broker, _ = broker_config({})
    settings = replace(broker, log_cleaner_dedupe_buffer_size=map_bytes)
    cleaner = Cleaner(lambda: [candidate(log)], lambda: settings, runtime)
    return lambda: asyncio.run(cleaner.clean_dirtiest())
