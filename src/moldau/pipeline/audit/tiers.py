"""The tiers of an audit: what each holds of a topic, as digests by window.

A tier is anything with a name and `digests(topic, length_ms)`. Records are read in columns, batch by batch, and counted
and hashed in one compiled pass; memory is bounded by a batch and one digest for each window.

A tier that also has `places` can be asked for the places of the records in some windows, so that the audit names those
that are missing or doubled.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

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


PLACES = pyarrow.schema(
    [("window", pyarrow.int64()), ("partition", pyarrow.int32()), ("offset", pyarrow.int64()),
     ("time", pyarrow.int64()), ("hash", pyarrow.uint64())]
)  # fmt: skip
"""The columns of `places`: the start of a record's window in ms, its partition and offset, its event time in us, and
the hash of key and value."""


@runtime_checkable
class HasPlaces(Protocol):
    """A tier that knows where each record is. With `of_origin`, partitions and offsets are those of the origin."""

    name: str
    of_origin: bool

    def places(self, topic: str, length_ms: int, windows: Collection[int]) -> Iterator[Any]:
        """The topic's records in the windows that start then, as batches with the columns `PLACES`. Raises
        `MoldauError`."""
        ...


class ClusterTier:
    """The log of a cluster: the origin, or a mirror of it. Only committed records count. `of_origin`: the records of a
    mirror are at the origin's offsets."""

    def __init__(self, name: str, bootstrap: str, *, of_origin: bool = False):
        self.name = name
        self.of_origin = of_origin
        self._bootstrap = bootstrap

    def digests(self, topic: str, length_ms: int) -> tuple[Digests, list[str]]:
        rows: Rows = {}
        notes = []
        for tp, first, last, written in self._ranges(topic):
            if first > 0:
                notes.append(f"{self.name}: {tp} begins at offset {first}; the records before it have expired.")
            if written > last:
                notes.append(
                    f"{self.name}: a transaction is open in {tp}; records from offset {last} to {written - 1} cannot "
                    "be read before it ends, and count as missing."
                )
            for batch in self._batches(tp, first, last):
                add_columns(rows, batch.column("key"), batch.column("value"), _event_times(batch), length_ms)
        return {start: digest_of(row) for start, row in rows.items()}, notes

    def places(self, topic: str, length_ms: int, windows: Collection[int]) -> Iterator[Any]:
        for tp, first, last, _ in self._ranges(topic):
            for batch in self._batches(tp, first, last):
                names = ("key", "value", "partition", "offset")
                yield places_of(batch, names, _event_times(batch), length_ms, windows)

    def _ranges(self, topic: str) -> list[tuple[TopicPartition, int, int, int]]:
        """Each partition with its first offset, its last stable offset, and the high watermark of a moment before,
        which is greater only if a transaction was open then."""
        partitions = [TopicPartition(topic, p) for p in topic_partitions(self._bootstrap, [topic])[topic]]
        first = list_offsets(self._bootstrap, dict.fromkeys(partitions, EARLIEST))
        written = list_offsets(self._bootstrap, dict.fromkeys(partitions, LATEST))
        last = list_offsets(self._bootstrap, dict.fromkeys(partitions, LATEST), isolation_level="read_committed")
        return [(tp, first[tp], last[tp], written[tp]) for tp in partitions]

    def _batches(self, tp: TopicPartition, start: int, end: int) -> Iterator[Any]:
        return read_columns(self._bootstrap, *tp, start, end) if end > start else iter(())


def _event_times(batch: Any) -> Any:
    return times_of(batch.column("timestampType"), batch.column("timestamp"), batch.column("headers"))


def times_of(kinds: Any, times: Any, headers: Any) -> Any:
    """The event times of records with these types and values of timestamps. Where the broker wrote the timestamp, it is
    in the audit's headers; a record without them counts at the broker's time."""
    by_broker = compute.equal(kinds, LOG_APPEND_TIME)
    if not compute.any(by_broker).as_py():
        return times
    return compute.if_else(by_broker, event_times(headers, times).cast(times.type), times)


def places_of(batch: Any, names: Sequence[str], times: Any, length_ms: int, windows: Collection[int]) -> Any:
    """The rows of a batch whose event time is in one of the windows, as a batch with the columns `PLACES`. `names` are
    those of its columns of keys, values, partitions and offsets."""
    at = times.cast(pyarrow.int64())
    starts = compute.multiply(_floored(_floored(at, MICROSECONDS), length_ms), length_ms)
    inside = compute.is_in(starts, value_set=pyarrow.array(windows, pyarrow.int64()))
    keys, values, partitions, offsets = (batch.column(name).filter(inside) for name in names)
    hashes = columns.hashes(source_of(keys), source_of(values), len(keys))
    hashed = pyarrow.Array.from_buffers(pyarrow.uint64(), len(keys), [None, pyarrow.py_buffer(hashes)])
    arrays = [starts.filter(inside), partitions, offsets, at.filter(inside), hashed]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=PLACES)


def _floored(numbers: Any, by: int) -> Any:
    """The quotients, rounded down: Arrow rounds them towards zero."""
    quotients = compute.divide(numbers, by)
    return compute.subtract(quotients, compute.less(numbers, compute.multiply(quotients, by)).cast(pyarrow.int64()))


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
    milliseconds = compute.filter(texts.cast(pyarrow.string()), whole).cast(pyarrow.int64())
    places = compute.filter(compute.filter(parents, ours), whole).to_pylist()
    new = at.to_pylist()
    for place, ms in zip(places, milliseconds.to_pylist(), strict=True):
        new[place] = ms * MICROSECONDS
    return pyarrow.array(new, pyarrow.int64())
