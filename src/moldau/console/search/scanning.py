"""`TopicScan`: reads ranges of offsets, window by window, as Arrow batches, and takes out the hits.

It blocks, on sockets of its own, and is advanced in a thread of its own (`thread`: memory of many threads would not be
used again by others): `step` reads one batch. It holds one reply and one batch
at a time, whatever the size of the topic. A batch that cannot be read is told with its offsets, and the scan goes on
behind it. `close` may be called at any time, from another thread; a step that runs then
is the last one.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pyarrow as pa

from moldau.client.blocking import Caller
from moldau.client.fetching import EARLIEST, READ_COMMITTED, READ_UNCOMMITTED, offsets_of, read_range
from moldau.client.security.brokers import Brokers
from moldau.console.search.masking import TopicMask
from moldau.console.search.matching import SearchMatcher
from moldau.console.search.records import Decode, ShownRecord, found, readable
from moldau.console.search.rounds import Ranges, SearchWindow, rounds
from moldau.console.search.wanted import SearchWanted
from moldau.errors import (
    CorruptMessage,
    DamagedBatch,
    ErrorCode,
    KafkaError,
    MoldauError,
    OffsetOutOfRange,
    ProtocolViolation,
)
from moldau.names import TopicPartition
from moldau.records.arena import Arena

FETCH_BYTES, INFLATED_BYTES = 256 << 10, 2 << 20
INFLATED_MAX = 40 << 20
"""The most bytes that one batch may inflate to here: searches and live tails share the console's memory."""
TIMEOUT_MS = 10_000
ROWS_AT_ONCE = 5_000
"""A batch may have millions of records, which are objects as soon as they are hits, JSON or decoded."""
UNREADABLE_MAX = 3
"""So many times a broker may fail to hand out a partition's records; it was asked for `TIMEOUT_MS` each time."""
COLUMNS = ("key", "value", "partition", "offset", "timestamp", "headers")


class DamagedRange(NamedTuple):
    """Offsets from `first` to `last` that a search could not look at, and why."""

    partition: int
    first: int
    last: int
    why: str

    def __str__(self) -> str:
        offsets = f"offset {self.first}" if self.first == self.last else f"offsets {self.first} to {self.last}"
        return f"{offsets} of partition {self.partition} cannot be read: {self.why}"


class ScanStep(NamedTuple):
    """Hits of a part of one batch and the offsets passed so far. `left` is what is left of each partition at the end of
    a round, else None. `damaged` is what was passed without being read."""

    hits: list[ShownRecord]
    scanned: int
    left: Ranges | None = None
    damaged: DamagedRange | None = None


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
        self._steps: Generator[ScanStep, None, None] | None = None
        self._caller: Caller | None = None
        self._unreadable = Counter[int]()

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
                self._disconnect()
                return None
            if self._steps is None:
                self._steps = self._each()
            return next(self._steps, None)

    def close(self) -> None:
        """Give the connections back, after the step that runs."""
        self._is_closed = True
        with self._lock:
            self._disconnect()
            if self._steps is not None:
                self._steps.close()  # with the memory of the batch that it is in
                self._steps = None
        self.thread.shutdown(wait=False)

    def _disconnect(self) -> None:
        if self._caller is not None:
            self._caller.close()
            self._caller = None

    def _connect(self) -> Caller:
        """A caller of its own for each range that is read: one that ended early may still have a reply under way."""
        self._disconnect()
        self._caller = Caller(
            self._brokers, client_id="moldau-console-search", timeout_ms=TIMEOUT_MS, fetch_bytes_max=FETCH_BYTES
        )
        return self._caller

    def _each(self) -> Generator[ScanStep, None, None]:
        self._connect()
        arena, scanned = Arena(), 0
        first = max(self._wanted.limit, 1) if self._wanted.looks_for_all else None
        order = {"newest_first": self._wanted.newest_first}
        for each in rounds(self._ranges, **order) if first is None else rounds(self._ranges, **order, first=first):
            for window in each.windows:
                yield from self._window(window, arena, scanned)
                scanned += window.end - window.start
            pa.default_memory_pool().release_unused()
            yield ScanStep([], scanned, each.left)

    def _window(self, window: SearchWindow, arena: Arena, before: int) -> Iterator[ScanStep]:
        at = window.start
        while at < window.end:
            try:
                for step in self._range(window._replace(start=at), arena, before + at - window.start):
                    at = window.start + step.scanned - before
                    yield step
                return
            except OffsetOutOfRange:  # deleted since the search began
                at = self._start_after(window, at)
                continue
            except (KafkaError, ProtocolViolation) as failure:
                damaged = self._damaged(failure, window._replace(start=at))
            self._connect()
            at = damaged.last + 1
            yield ScanStep([], before + at - window.start, damaged=damaged)

    def _range(self, window: SearchWindow, arena: Arena, before: int) -> Iterator[ScanStep]:
        assert self._caller is not None
        tp = TopicPartition(self._topic, window.partition)
        isolation = READ_COMMITTED if self._wanted.committed else READ_UNCOMMITTED
        for batch in read_range(
            self._caller, tp, window.start, window.end, isolation, FETCH_BYTES, arena, COLUMNS, INFLATED_BYTES,
            INFLATED_MAX,
        ):  # fmt: skip
            for row in range(0, len(batch), ROWS_AT_ONCE):
                part = batch.slice(row, ROWS_AT_ONCE)
                columns = readable(part, self._mask, self._decode)
                hits = [*found(part, columns, self._matcher.hits(*columns), self._preview)]
                yield ScanStep(hits, before + part.column("offset")[-1].as_py() + 1 - window.start)

    def _start_after(self, window: SearchWindow, at: int) -> int:
        """Where the partition begins now, if that is after this offset. Raises `KafkaError`, also if it is not."""
        caller, tp = self._connect(), TopicPartition(self._topic, window.partition)
        start = caller.retrying(lambda: offsets_of(caller.leader(tp), {tp: EARLIEST}))[tp]
        if start <= at:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{tp} ends before offset {at}: was the topic made anew?")
        return start

    def _damaged(self, failure: MoldauError, rest: SearchWindow) -> DamagedRange:
        """What to leave out of the rest of a window after this failure: one batch, or all of it if the broker itself
        cannot read on. Raises every other failure, and this one if it has happened too often."""
        if isinstance(failure, DamagedBatch):
            first, last = max(failure.first, rest.start), min(failure.last, rest.end - 1)
            if first <= last:
                return DamagedRange(rest.partition, first, last, str(failure))
        self._unreadable[rest.partition] += 1
        is_damage = isinstance(failure, CorruptMessage | ProtocolViolation)
        if not is_damage or self._unreadable[rest.partition] > UNREADABLE_MAX:
            raise failure
        return DamagedRange(rest.partition, rest.start, rest.end - 1, str(failure))
