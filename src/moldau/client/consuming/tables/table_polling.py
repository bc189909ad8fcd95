"""A consumer's records as tables: `poll_table` and `tables`, beside `poll` and iteration.

Both ways of reading share positions, automatic commits and isolation level, and may take turns. Batches go from the
reply to Arrow's memory in one compiled pass, in the caller's thread; no record becomes an object.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from moldau.client.consuming.consumer_metrics import ConsumerCounters
from moldau.client.consuming.fetched.assigned import Assigned
from moldau.client.consuming.fetched.handout import Handout
from moldau.client.consuming.polling import Poller
from moldau.client.pyarrow_needed import need_pyarrow
from moldau.client.time_outs import milliseconds, time_out_s
from moldau.errors import KafkaError
from moldau.records.sections import FETCHED_INFLATED_MAX

if TYPE_CHECKING:
    import pyarrow

COLUMNS = ["topic", "partition", "offset", "timestamp", "key", "value", "headers"]
"""The columns of a table of records."""
WAIT_S = 1.0
"""How long a call waits for records by default."""
TABLE_BYTES_MAX, PIECE_BYTES = 256 << 20, 64 << 20
"""A table ends behind the piece with which it has this size: a few MB that were fetched may inflate to gigabytes."""
ROWS_MAX = 1 << 20


class TablePolling:
    """The part of `AsyncConsumer` that returns tables."""

    soon: Callable[..., object]
    may_take: Callable[[], bool]
    ready: Callable[[float], Coroutine[Any, Any, bool]]
    _counters: ConsumerCounters
    _handout: Handout
    _loop: asyncio.AbstractEventLoop
    _poller: Poller
    _started: bool
    _inflated_max = FETCHED_INFLATED_MAX
    """The most bytes that one batch may inflate to."""
    _table_bytes_max = TABLE_BYTES_MAX
    _table_rows_max = ROWS_MAX
    """A batch of more records is decoded in pieces, each of which may end a table."""
    _table_bytes = 0
    """The size of the table that is being made."""

    async def poll_table(self, timeout_ms: int | None = None, *, timeout: float | None = None) -> "pyarrow.Table":
        """All fetched records, or the first 256 MiB of them, as a pyarrow table: topic, partition, offset, timestamp
        (UTC), key, value (both binary) and headers. Waits up to `timeout_ms`, or `timeout` in seconds (by default one),
        if none are fetched yet, then returns an empty table.

        Records of earlier calls count as processed now. Deserializers and interceptors do not see tables. Raises as
        `poll` does, and `ConfigError` without pyarrow.
        """
        need_pyarrow("poll_table")
        wait_s = time_out_s("poll_table", timeout_ms, timeout, usual_s=WAIT_S) or 0.0
        deadline_s = self._loop.time() + wait_s if self._started else 0.0
        while True:
            table = self.take_table()
            if len(table) or not await self.ready(deadline_s):
                return table

    async def tables(self, idle_ms: int | None = None) -> "AsyncIterator[pyarrow.Table]":
        """Tables as `poll_table` returns them, without end, or until no record came for `idle_ms`. The records of a
        table count as processed when the next table is asked for."""
        idle_s = WAIT_S if idle_ms is None else milliseconds("tables", idle_ms, "idle_ms")
        while True:
            table = await self.poll_table(timeout=idle_s)
            if len(table):
                yield table
            elif idle_ms is not None:
                return

    def take_table(self) -> "pyarrow.Table":
        """The fetched records, without waiting; the caller has processed what it got before. Runs in the caller's
        thread."""
        import pyarrow as pa

        from moldau.records.arrow import SCHEMA

        self._table_bytes = 0
        taken = self._poller.take_all(self._read, self._hand_out) if self.may_take() else []
        schema = pa.schema([SCHEMA.field(name) for name in COLUMNS])
        if not taken:
            return pa.Table.from_batches([], schema)
        self.soon(self._poller.fetch)
        table = pa.Table.from_batches([batch.select(COLUMNS) for _, batches in taken for batch in batches], schema)
        self._counters.consumed(len(table))
        return table

    def _hand_out(self, taken: list[tuple[Assigned, list[Any]]]) -> None:
        if taken:
            self._handout.polled({state.tp: batches[0].column("offset")[0].as_py() for state, batches in taken})

    def _read(self, state: Assigned) -> list[Any]:
        """The fetched records of a partition as Arrow batches, up to what a table may have."""
        from moldau.records.arrow import to_record_batches

        arena = self._poller.arena
        record_batches: list[Any] = []
        while (chunk := state.chunk) is not None and self._table_bytes < self._table_bytes_max:
            assert state.position is not None
            batches = to_record_batches(
                chunk.records, *state.tp, state.position, aborted=chunk.aborted, arena=arena, names=COLUMNS,
                bytes_max=min(PIECE_BYTES, self._table_bytes_max), inflated_max=self._inflated_max,
                rows_max=self._table_rows_max,
            )  # fmt: skip
            try:
                for batch in batches:
                    record_batches.append(batch)
                    state.position = batch.column("offset")[-1].as_py() + 1
                    self._table_bytes += batch.nbytes
                    if self._table_bytes >= self._table_bytes_max:
                        state.go_back(state.position)  # the next table begins there
                        return record_batches
            except KafkaError:
                if not record_batches:
                    raise
                state.go_back(state.position)  # what is before the damaged batch is handed out first
                break
            state.pass_chunk()
        return record_batches
