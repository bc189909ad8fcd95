"""`read_table`: a topic, or a part of it, as one pyarrow table, without a consumer group."""

import asyncio
import datetime
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from moldau.client.blocking import Caller
from moldau.client.consuming.tables.table_polling import COLUMNS
from moldau.client.fetching import (
    EARLIEST,
    FETCH_MAX_BYTES,
    LATEST,
    isolation_number,
    list_offsets,
    read_range,
    topic_partitions,
)
from moldau.client.producing.outgoing import no_such_partition
from moldau.client.pyarrow_needed import need_pyarrow
from moldau.client.settings import BOOTSTRAP_DEFAULT, BOOTSTRAP_VARIABLE
from moldau.client.time_outs import time_out_s
from moldau.monotonic import monotonic_s
from moldau.names import TopicPartition
from moldau.records.arena import Arena

if TYPE_CHECKING:
    import pyarrow

Bound = datetime.datetime | datetime.timedelta | int | Mapping[int, int] | None
"""A moment, a time back from now, a time in ms since 1970, or offsets by partition."""
SHOW_AFTER_S = 1.0


def read_table(
    topic: str,
    bootstrap_servers: str | Iterable[str] | None = None,
    *,
    since: Bound = None,
    until: Bound = None,
    partitions: Iterable[int] | None = None,
    isolation_level: str = "read_committed",
    progress: bool | None = None,
    fetch_max_bytes: int = FETCH_MAX_BYTES,
    timeout_ms: int | None = None,
    timeout: float | None = None,
    client_id: str = "moldau",
) -> "pyarrow.Table":
    """The records of a topic as a pyarrow table: topic, partition, offset, timestamp (UTC), key, value (both binary)
    and headers; partition by partition, in offset order.

        table = moldau.read_table("events", since=datetime.timedelta(hours=1))

    `since` and `until` are a datetime (a naive one in local time), a timedelta back from now, whole ms since 1970, or a
    mapping of offsets by partition. A range begins at the first record at or after `since` and ends before the first at
    or after `until`; without them it is all that is in the log when the call begins. With read_committed, records of
    aborted transactions are left out, and the range ends at the last stable offset. `progress` shows a bar; by default
    in terminals and notebooks, if the call takes longer than a second. Without `bootstrap_servers` the environment
    variable `MOLDAU_BOOTSTRAP_SERVER` counts, else localhost:9092.

    Raises `KafkaError` (an unknown topic, a broker that stays away for `timeout_ms`, or `timeout` in seconds, by
    default 30), `ConfigError` for an unknown isolation level or without pyarrow, `TypeError` for other edges.
    """
    need_pyarrow("read_table")
    import pyarrow as pa

    from moldau.records.arrow import SCHEMA

    servers = bootstrap_servers or os.environ.get(BOOTSTRAP_VARIABLE) or BOOTSTRAP_DEFAULT
    wait_s = time_out_s("read_table", timeout_ms, timeout, usual_s=30.0) or 0.0
    caller = {"timeout_ms": int(wait_s * 1000), "client_id": client_id}
    tps = _partitions(topic, partitions, topic_partitions(servers, [topic], **caller)[topic])  # type: ignore[arg-type]

    def offsets(at: int) -> dict[TopicPartition, int]:
        return list_offsets(servers, dict.fromkeys(tps, at), isolation_level=isolation_level, **caller)  # type: ignore[arg-type]

    first, last = offsets(EARLIEST), offsets(LATEST)
    begin = _at(since, "since", first, last, offsets)
    end = last if until is None else _at(until, "until", last, last, offsets)
    batches, arena, isolation = [], Arena(), isolation_number(isolation_level)
    total = sum(max(end[tp] - begin[tp], 0) for tp in tps)
    with _bar(topic, total, progress) as advance, Caller(servers, fetch_bytes_max=fetch_max_bytes, **caller) as link:  # type: ignore[arg-type]
        for tp in tps:
            position = start = max(begin[tp], first[tp])
            for batch in read_range(link, tp, start, min(end[tp], last[tp]), isolation, fetch_max_bytes, arena):
                batches.append(batch.select(COLUMNS))
                after = batch.column("offset")[-1].as_py() + 1
                advance(after - position)
                position = after
    return pa.Table.from_batches(batches, pa.schema([SCHEMA.field(name) for name in COLUMNS]))


async def read_table_async(
    topic: str,
    bootstrap_servers: str | Iterable[str] | None = None,
    *,
    since: Bound = None,
    until: Bound = None,
    partitions: Iterable[int] | None = None,
    isolation_level: str = "read_committed",
    progress: bool | None = None,
    fetch_max_bytes: int = FETCH_MAX_BYTES,
    timeout_ms: int | None = None,
    timeout: float | None = None,
    client_id: str = "moldau",
) -> "pyarrow.Table":
    """`read_table` in a thread of its own, so that the loop goes on meanwhile. If the caller is cancelled, that thread
    still reads to its end."""
    return await asyncio.to_thread(
        read_table,
        topic,
        bootstrap_servers,
        since=since,
        until=until,
        partitions=partitions,
        isolation_level=isolation_level,
        progress=progress,
        fetch_max_bytes=fetch_max_bytes,
        timeout_ms=timeout_ms,
        timeout=timeout,
        client_id=client_id,
    )


def _partitions(topic: str, wanted: Iterable[int] | None, there: list[int]) -> list[TopicPartition]:
    """The wanted partitions, or all. Raises `NoSuchPartition`."""
    chosen = sorted(set(there if wanted is None else wanted))
    for partition in chosen:
        if partition not in there:
            raise no_such_partition(topic, partition, len(there))
    return [TopicPartition(topic, partition) for partition in chosen]


def _at(
    edge: Bound,
    name: str,
    otherwise: dict[TopicPartition, int],
    last: dict[TopicPartition, int],
    offsets: Callable[[int], dict[TopicPartition, int]],
) -> dict[TopicPartition, int]:
    """The offset of each partition at this edge."""
    if edge is None:
        return otherwise
    if isinstance(edge, Mapping):
        return {tp: edge.get(tp.partition, offset) for tp, offset in otherwise.items()}
    if isinstance(edge, datetime.timedelta):
        at_ms = int((time.time() - edge.total_seconds()) * 1000)
    elif isinstance(edge, datetime.datetime):
        at_ms = int(edge.timestamp() * 1000)
    elif type(edge) is int:
        at_ms = edge
    else:
        raise TypeError(f"{name}={edge!r} is not a datetime, a timedelta, whole ms since 1970 or offsets by partition")
    return {tp: offset if offset >= 0 else last[tp] for tp, offset in offsets(max(at_ms, 0)).items()}


@contextmanager
def _bar(topic: str, total: int, wanted: bool | None) -> Iterator[Callable[[int], None]]:
    """A progress bar over offsets; it appears after a second unless it is wanted at once."""
    shown = wanted if wanted is not None else sys.stderr.isatty() or "ipykernel" in sys.modules
    if not shown:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=wanted is None)
    task = bar.add_task(topic, total=total)
    show_at_s = monotonic_s() + (0.0 if wanted else SHOW_AFTER_S)
    started = False

    def advance(offsets: int) -> None:
        nonlocal started
        if not started and monotonic_s() >= show_at_s:
            started = True
            bar.start()
        bar.advance(task, offsets)

    try:
        yield advance
    finally:
        if started:
            bar.stop()
