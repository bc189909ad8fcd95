"""The tiers of an audit: what each holds of a topic, as digests by window.

A tier is anything with a name and `digests(topic, length_ms)`. Records are read in columns, batch by batch, and counted
and hashed in one compiled pass; memory is bounded by a batch and one digest for each window.
"""

from collections.abc import Iterator
from typing import Any, Protocol

import pyarrow
import pyarrow.compute as compute

from moldau.client.fetching import EARLIEST, LATEST, list_offsets, read_columns, topic_partitions
from moldau.client.producing.audit_headers import TIMESTAMP
from moldau.names import TopicPartition
from moldau.pipeline.audit.windows import Digests
from moldau.records import columns
from moldau.records.arrow import source_of
from moldau.records.digests import Rows, digest_of

MICROSECONDS = 1_000
LOG_APPEND_TIME = 1


class Tier(Protocol):
    """One place that should hold every record."""

    name: str

    def digests(self, topic: str, length_ms: int) -> tuple[Digests, list[str]]:
        """The digests of the topic's records by window, and notes for the reader of the report. Raises
        `MoldauError`."""
        ...


class ClusterTier:
    """The log of a cluster: the origin, or a mirror of it. Only committed records count."""

    def __init__(self, name: str, bootstrap: str):
        self.name = name
        self._bootstrap = bootstrap

    def digests(self, topic: str, length_ms: int) -> tuple[Digests, list[str]]:
        partitions = [TopicPartition(topic, p) for p in topic_partitions(self._bootstrap, [topic])[topic]]
        first = list_offsets(self._bootstrap, dict.fromkeys(partitions, EARLIEST))
        last = list_offsets(self._bootstrap, dict.fromkeys(partitions, LATEST), isolation_level="read_committed")
        rows: Rows = {}
        notes = []
        for tp in partitions:
            if first[tp] > 0:
                notes.append(f"{self.name}: {tp} begins at offset {first[tp]}; the records before it have expired.")
            for batch in self._batches(tp, first[tp], last[tp]):
                add_batch(rows, batch, length_ms)
        return {start: digest_of(row) for start, row in rows.items()}, notes

    def _batches(self, tp: TopicPartition, start: int, end: int) -> Iterator[Any]:
        return read_columns(self._bootstrap, *tp, start, end) if end > start else iter(())


def add_batch(rows: Rows, batch: Any, length_ms: int) -> None:
    """Add a batch in the columns of `records.arrow`. Where the broker wrote the timestamps, the event time is in the
    audit's headers; a record without them counts at the broker's time."""
    kinds = batch.column("timestampType")
    if len(kinds) and kinds[0].as_py() == LOG_APPEND_TIME:
        times = event_times(batch.column("headers"), batch.column("timestamp"))
    else:
        times = batch.column("timestamp")
    add_columns(rows, batch.column("key"), batch.column("value"), times, length_ms)


def add_columns(
    rows: Rows, keys: Any, values: Any, times: Any, length_ms: int, arrival_ms: int = columns.NO_ARRIVAL
) -> None:
    """Add columns of binary keys and values and of timestamps in us; records arrived at `arrival_ms`, if known."""
    numbers = times.cast(pyarrow.int64())
    count = len(numbers)
    view = memoryview(numbers.buffers()[1] or b"").cast("B").cast("q")[numbers.offset : numbers.offset + count]
    columns.digest(source_of(keys), source_of(values), view, MICROSECONDS, length_ms, arrival_ms, rows)  # type: ignore[arg-type]


def event_times(headers: Any, times: Any) -> Any:
    """The event times in the audit's headers; the given times where there is none."""
    at = times.cast(pyarrow.int64())
    if headers.null_count == len(headers):
        return times
    pairs = compute.list_flatten(headers)
    parents = compute.list_parent_indices(headers)
    ours = compute.equal(pairs.field("key"), TIMESTAMP)
    texts = compute.filter(pairs.field("value"), ours)
    whole = compute.match_substring_regex(texts.cast(pyarrow.string()), r"^-?[0-9]{1,15}$")
    found = compute.filter(texts.cast(pyarrow.string()), whole).cast(pyarrow.int64())
    places = compute.filter(compute.filter(parents, ours), whole).to_pylist()
    new = at.to_pylist()
    for place, ms in zip(places, found.to_pylist(), strict=True):
        new[place] = ms * MICROSECONDS
    return pyarrow.array(new, pyarrow.int64())
