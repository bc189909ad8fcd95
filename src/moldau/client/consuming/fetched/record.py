"""Records as consumers hand them out: `Record` of `Consumer`, `AsyncRecord` of `AsyncConsumer`.

A record is a tuple: the six fields that the columns extension cuts out of a batch, then its `RecordOrigin`, which all
records of one partition share. Making one costs a single call, and no attribute is computed before it is read.
"""

import datetime
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, NamedTuple

from moldau.client.consuming.fetched.epochs import RecordEpochs
from moldau.names import OffsetAndMetadata, TopicPartition

CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1
"""Timestamp types: the producer's time, and the broker's."""
SHOWN_BYTES: Final = 60
"""The most bytes of a key or value in a record's `repr`."""

EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class RecordOrigin:
    """The partition of records, their leader epochs, and the consumer's function that commits one of them."""

    __slots__ = ("commit", "epochs", "tp")

    def __init__(
        self, tp: TopicPartition, commit: "Callable[[Record], Any] | None" = None, epochs: RecordEpochs | None = None
    ):
        self.tp = tp
        self.commit = commit
        self.epochs = RecordEpochs() if epochs is None else epochs

    def with_epochs(self, epochs: RecordEpochs) -> "RecordOrigin":
        """The same place in a log that is read anew: records that were read before keep their epochs."""
        return RecordOrigin(self.tp, self.commit, epochs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RecordOrigin) and self.tp == other.tp

    def __hash__(self) -> int:
        return hash(self.tp)


class _Fields(NamedTuple):
    offset: int
    timestamp_ms: int
    timestamp_type: int
    key: Any
    value: Any
    headers: list[tuple[str, bytes | None]]
    place: RecordOrigin


class Record(_Fields):
    """A record that was read.

    `key` and `value` are bytes or None, or what the consumer's deserializers made of them. `timestamp_ms` counts from
    1970, -1 if the record has none; `timestamp_type` is 0 for the producer's time, 1 for the broker's. `headers` are
    pairs of a name and bytes or None. Records are compared by content and place.
    """

    __slots__ = ()

    def __new__(
        cls,
        topic: str,
        partition: int = 0,
        offset: int = 0,
        *,
        value: Any = None,
        key: Any = None,
        headers: Iterable[tuple[str, bytes | None]] = (),
        timestamp_ms: int = -1,
        timestamp_type: int = CREATE_TIME,
    ) -> "Record":
        """A record of one's own, for tests of code that handles records."""
        place = RecordOrigin(TopicPartition(topic, partition))
        return tuple.__new__(cls, (offset, timestamp_ms, timestamp_type, key, value, list(headers), place))

    @property
    def topic(self) -> str:
        return self.place.tp.topic

    @property
    def partition(self) -> int:
        return self.place.tp.partition

    @property
    def topic_partition(self) -> TopicPartition:
        return self.place.tp

    @property
    def timestamp(self) -> datetime.datetime | None:
        """The timestamp as an aware datetime in UTC; None if the record has none."""
        if self.timestamp_ms < 0:
            return None
        return EPOCH + datetime.timedelta(milliseconds=self.timestamp_ms)

    @property
    def leader_epoch(self) -> int | None:
        """The epoch of the leader that wrote the record (KIP-320); None if it is unknown."""
        return self.place.epochs.of(self.offset)

    @property
    def position(self) -> OffsetAndMetadata:
        """The position behind this record, to be committed once it is processed."""
        return OffsetAndMetadata(self.offset + 1, leader_epoch=self.leader_epoch)

    def header(self, name: str) -> bytes | None:
        """The value of the last header with this name; None if there is none."""
        return next((value for header, value in reversed(self.headers) if header == name), None)

    def commit(self) -> Any:
        """Commit this record for the consumer's group: a restart continues after it. To be awaited where the consumer
        is one for asyncio. Raises `KafkaError`."""
        if self.place.commit is None:
            raise TypeError("this record was not read by a consumer, so it cannot be committed")
        return self.place.commit(self)

    def __repr__(self) -> str:
        parts = [f"{self.place.tp}@{self.offset}"]
        parts += [f"{name}={_shown(content)}" for name, content in (("key", self.key), ("value", self.value))]
        if self.headers:
            parts.append(f"headers={self.headers!r}")
        try:
            when = self.timestamp
            parts += [f"timestamp={when.isoformat(timespec='milliseconds')}"] if when is not None else []
        except OverflowError:
            parts.append(f"timestamp_ms={self.timestamp_ms}")
        return f"<Record {' '.join(parts)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (type(self), tuple(self)[:-1], self.place.tp, self.leader_epoch)


make_record: Callable[[tuple[Any, ...]], Record] = partial(tuple.__new__, Record)
"""Makes a record of the tuple of its fields, its place the last of them."""


def _unpickled(cls: type[Record], fields: tuple[Any, ...], tp: TopicPartition, epoch: int | None) -> Record:
    return tuple.__new__(cls, (*fields, RecordOrigin(tp, epochs=RecordEpochs.before(fields[0] + 1, epoch))))


def _shown(content: Any) -> str:
    if isinstance(content, bytes) and len(content) > SHOWN_BYTES:
        return f"{content[:SHOWN_BYTES]!r}... ({len(content)} bytes)"
    return repr(content)
