"""`TopicScan`: reads ranges of offsets, window by window, as Arrow batches, and takes out the hits.

It blocks, on sockets of its own, and is advanced in a thread of its own (`thread`: memory of many threads would not be
used again by others): `step` reads one batch. It holds one reply and one batch
at a time, whatever the size of the topic. `close` may be called at any time, from another thread; a step that runs then
is the last one.
"""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pyarrow as pa

from moldau.client.blocking import Caller
from moldau.client.fetching import READ_COMMITTED, READ_UNCOMMITTED, read_range
from moldau.client.security.brokers import Brokers
from moldau.console.search.masking import TopicMask
from moldau.console.search.matching import SearchMatcher
from moldau.console.search.records import Decode, ShownRecord, found, readable
from moldau.console.search.rounds import Ranges, SearchWindow, rounds
from moldau.console.search.wanted import SearchWanted
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition
from moldau.records.arena import Arena

FETCH_BYTES, INFLATED_BYTES = 256 << 10, 2 << 20
INFLATED_MAX = 64 << 20
"""The most bytes that one batch may inflate to here: searches and live tails share the console's memory."""
TIMEOUT_MS = 10_000
COLUMNS = ("key", "value", "partition", "offset", "timestamp", "headers")


class ScanStep(NamedTuple):
    """Hits of one batch and the offsets passed so far. `left` is what is left of each partition at the end of a round,
    else None."""

    hits: list[ShownRecord]
    scanned: int
    left: Ranges | None = None


class TopicScan:
    """A search of one topic; `preview` as for `found`."""

    def __init__(
        self,
        brokers: Brokers,
        topic: str,
        ranges: Ranges,
        wanted: SearchWanted,
        mask: TopicMask,
        decode: Decode | None = None,
        preview: int | None = None,
    ):
        self._brokers, self._topic, self._wanted = brokers, topic, wanted
        self._matcher = SearchMatcher(wanted)
        self._mask, self._decode, self._preview = mask, decode, preview
        self._ranges = ranges
        self.thread = ThreadPoolExecutor(1, "moldau-console-search")
        self._lock = threading.Lock()
        self._is_closed = False
        self._steps: Iterator[ScanStep] | None = None
        self._caller: Caller | None = None

    async def next(self) -> ScanStep | None:
        """`step` in the scan's thread."""
        return await asyncio.get_running_loop().run_in_executor(self.thread, self.step)

    async def end(self) -> None:
        """`close` without holding up the loop."""
        await asyncio.shield(asyncio.to_thread(self.close))

    def step(self) -> ScanStep | None:
        """The next batch; None at the end, or when it is closed. Raises `KafkaError`."""
        with self._lock:
            if self._is_closed:
                self._end()
                return None
            if self._steps is None:
                self._steps = self._each()
            return next(self._steps, None)

    def close(self) -> None:
        """Give the connections back, after the step that runs."""
        self._is_closed = True
        with self._lock:
            self._end()
        self.thread.shutdown(wait=False)

    def _end(self) -> None:
        if self._caller is not None:
            self._caller.close()
            self._caller = None

    def _each(self) -> Iterator[ScanStep]:
        self._caller = Caller(
            self._brokers, client_id="moldau-console-search", timeout_ms=TIMEOUT_MS, fetch_bytes_max=FETCH_BYTES
        )
        arena, scanned = Arena(), 0
        first = max(self._wanted.limit, 1) if self._wanted.looks_for_all else None
        order = {"newest_first": self._wanted.newest_first}
        for each in rounds(self._ranges, **order) if first is None else rounds(self._ranges, **order, first=first):
            for window in each.windows:
                yield from self._window(self._caller, window, arena, scanned)
                scanned += window.end - window.start
            pa.default_memory_pool().release_unused()
            yield ScanStep([], scanned, each.left)

    def _window(self, caller: Caller, window: SearchWindow, arena: Arena, before: int) -> Iterator[ScanStep]:
        tp = TopicPartition(self._topic, window.partition)
        isolation = READ_COMMITTED if self._wanted.committed else READ_UNCOMMITTED
        batches = read_range(
            caller, tp, window.start, window.end, isolation, FETCH_BYTES, arena, COLUMNS, INFLATED_BYTES, INFLATED_MAX
        )
        for batch in _readable_ones(batches, tp):
            columns = readable(batch, self._mask, self._decode)
            hits = [*found(batch, columns, self._matcher.hits(*columns), self._preview)]
            passed = batch.column("offset")[-1].as_py() + 1 - window.start if len(batch) else 0
            yield ScanStep(hits, before + passed)


def _readable_ones(batches: Iterator[pa.RecordBatch], tp: TopicPartition) -> Iterator[pa.RecordBatch]:
    """The batches up to one that is damaged, or too large; then raises `KafkaError` that says how to search on."""
    try:
        yield from batches
    except KafkaError as failure:
        if failure.code is not ErrorCode.CORRUPT_MESSAGE:
            raise
        advice = "leave this partition out, or start at a later offset or time"
        raise KafkaError(
            failure.code, f"partition {tp.partition} cannot be read on: {failure.message}; {advice}"
        ) from None
