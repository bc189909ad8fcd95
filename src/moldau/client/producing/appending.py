"""From the arguments of `send` to a record in a batch: serializers, checks, the choice of the partition.

Nothing here waits, and any thread may call it: what cannot go on raises (`BufferFull`) and leaves the waiting to the
producers. A record of bytes or text whose batch is open goes shorter, through `OpenBatches.put` of its `TopicAppender`.
"""

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from moldau.client.producing.audit_headers import with_audit_headers
from moldau.client.producing.batch import Batch
from moldau.client.producing.batching import Accumulator, BufferFull, Headers
from moldau.client.producing.delivery import Delivery, OnDelivery
from moldau.client.producing.outgoing import GivenHeaders, check_timestamp, checked_headers, content, no_such_partition
from moldau.client.producing.partitioning import Sticky, positive_hash
from moldau.client.producing.producer_settings import AS_JAVA, Partitioner, ProducerSettings
from moldau.client.producing.serializers import Serializer, for_topic
from moldau.client.pyarrow_needed import need_pyarrow
from moldau.names import TopicPartition
from moldau.records import columns
from moldau.records.columns import RECORD_SIZE_MAX
from moldau.records.compression import CODECS
from moldau.runtime import Runtime

if TYPE_CHECKING:
    from moldau.client.producing.columnar import EncodedBatch, RecordColumns


class TopicAppender(columns.OpenBatches):
    """The partitions and serializers of one topic, as `send` uses them until `until_s`; each batch that it opens
    looks."""

    __slots__ = ("count", "key_serializer", "partitions", "turns", "until_s", "value_serializer")

    def __init__(self, topic: str, count: int, until_s: float, serializers: "TopicSerializers", **ways: Any):
        super().__init__(count, make=Delivery, **ways)
        self.count = count
        self.partitions = [TopicPartition(topic, number) for number in range(count)]
        self.turns = itertools.count()
        self.until_s = until_s
        self.key_serializer, self.value_serializer = serializers


class TopicSerializers(NamedTuple):
    """The serializers of one topic."""

    key: Serializer | None
    value: Serializer | None


class Appender:
    """Puts records and encoded batches into an accumulator. `wake` is called when a batch was opened."""

    def __init__(self, settings: ProducerSettings, accumulator: Accumulator, wake: Callable[[], object]):
        self.accumulator = accumulator
        self.wake = wake
        self.check_open: Callable[[], None] | None = None
        """Called under the lock before a record joins a batch. Raises if the producer is closed, or if it is
        transactional and no transaction is open."""
        self._settings = settings
        self._runtime = settings.runtime or Runtime()
        self._now_ms = self._runtime.clock.now_ms
        self._serializers = TopicSerializers(settings.key_serializer, settings.value_serializer)
        self._bound: dict[str, TopicSerializers] = {}
        self.binds = any(hasattr(one, "for_topic") for one in self._serializers)
        """Whether the serializers of a topic are found by `for_topic`, which may block."""
        self._ignores_keys = settings.partitioner_ignore_keys
        self._choose = chooser(settings.partitioner)
        self._sticky: dict[str, Sticky] = {}

    def route(self, topic: str, count: int, until_s: float, intercepted: bool) -> TopicAppender:
        """A route to a topic with this number of partitions; `intercepted`: interceptors must see every record."""
        by_itself = self._settings.transactional_id is None and not intercepted and self._choose is None
        return TopicAppender(
            topic,
            count,
            until_s,
            self.serializers(topic),
            sticky=self.sticky(topic),
            now_ms=self._now_ms,
            plain=columns.COMPILED and by_itself and self._serializers == (None, None),
            hashes=not self._ignores_keys,
        )

    def serializers(self, topic: str) -> TopicSerializers:
        """The serializers of a topic; may block the first time if it `binds`."""
        if not self.binds:
            return self._serializers
        bound = self._bound.get(topic)
        if bound is None:
            key, value = self._serializers
            bound = TopicSerializers(for_topic(key, topic, "key"), for_topic(value, topic, "value"))
            self._bound[topic] = bound
        return bound

    def place(
        self,
        route: TopicAppender,
        now_s: float,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp_ms: int | None,
        headers: GivenHeaders,
        on_delivery: OnDelivery | None,
    ) -> Delivery:
        """Check a record and put it into its batch. Raises `TypeError` and `ValueError` for a wrong record, and
        `BufferFull`, whose `record` is for `append`."""
        if route.value_serializer is not None or (type(value) is not bytes and value is not None):
            value = content(value, "value", route.value_serializer)
        if route.key_serializer is not None or (type(key) is not bytes and key is not None):
            key = content(key, "key", route.key_serializer)
        if timestamp_ms is None:
            timestamp_ms = self._now_ms()
        else:
            check_timestamp(timestamp_ms)
        pairs: Headers = checked_headers(headers) if headers else ()
        if partition is None:
            if self._choose is not None:
                partition = self._choose(route, key)
            elif key is not None and not self._ignores_keys:
                partition = positive_hash(key) % route.count
            else:
                partition = self.sticky(route.partitions[0].topic).partition(
                    route.count, RECORD_SIZE_MAX + len(value or b"")
                )
        elif partition >= route.count:
            raise no_such_partition(route.partitions[0].topic, partition, route.count)
        return self.append(route, partition, key, value, timestamp_ms, pairs, now_s, on_delivery)

    def append(
        self,
        route: TopicAppender,
        partition: int,
        key: bytes | None,
        value: bytes | None,
        timestamp_ms: int,
        headers: Headers,
        now_s: float,
        on_delivery: OnDelivery | None,
    ) -> Delivery:
        """Put a checked record into its batch. Raises `BufferFull`."""
        tp = route.partitions[partition]
        try:
            with self.accumulator.lock:
                if self.check_open is not None:
                    self.check_open()
                batch, index, opens = self.accumulator.append(tp, key, value, timestamp_ms, headers, now_s, on_delivery)
                route.open[partition] = batch
        except BufferFull as full:
            full.record = route, partition, key, value, timestamp_ms, headers, now_s, on_delivery
            raise
        if opens:
            self.wake()
        return Delivery(batch, index, timestamp_ms)

    def table_columns(
        self, topic: str, table: Any, key: Any, value: Any, partition: Any, timestamp: Any, headers: Any
    ) -> "RecordColumns":
        """The columns of a table's records, checked. Raises `TypeError` and `ValueError`."""
        need_pyarrow("send_table")
        from moldau.client.producing.outgoing_tables import columns_of_table

        return self._headed(
            columns_of_table(
                table, key, value, partition, timestamp, headers, *self.serializers(topic), now_ms=self._now_ms()
            )
        )

    def list_columns(self, topic: str, values: Any, keys: Any) -> "RecordColumns":
        """The columns of records with these values and keys, checked. Raises `TypeError` and `ValueError`."""
        need_pyarrow("send_many")
        from moldau.client.producing.outgoing_tables import columns_of_lists

        return self._headed(columns_of_lists(values, keys, *self.serializers(topic), now_ms=self._now_ms()))

    def _headed(self, columns: "RecordColumns") -> "RecordColumns":
        return with_audit_headers(columns) if self._settings.audit_headers else columns

    def encode(self, route: TopicAppender, columns: "RecordColumns") -> "Iterator[EncodedBatch]":
        """Encode these columns into batches, one by one, in the calling thread. Raises `NoSuchPartition`."""
        from moldau.client.producing.columnar import encoded_batches

        highest = columns.highest_partition
        if highest is not None and highest >= route.count:
            raise no_such_partition(route.partitions[0].topic, highest, route.count)
        if self._choose is not None:
            choose = self._choose
            columns = columns.with_chosen(lambda key: choose(route, key))
        settings, count, sticky = self._settings, route.count, route.sticky
        return encoded_batches(
            columns,
            count,
            lambda size: sticky.partition(count, size),
            batch_bytes=settings.column_batch_size,
            codec=CODECS[settings.compression_type],
            by_key=not self._ignores_keys,
            spare=self.accumulator.spare,
        )

    def append_encoded(self, tp: TopicPartition, batch: "EncodedBatch", now_s: float) -> Batch:
        """Queue an encoded batch, from any thread. Raises `BufferFull`."""
        with self.accumulator.lock:
            if self.check_open is not None:
                self.check_open()
            return self.accumulator.append_encoded(tp, batch.data, batch.rows, now_s)

    def sticky(self, topic: str) -> Sticky:
        """The sticky partitioner of a topic."""
        sticky = self._sticky.get(topic)
        if sticky is None:
            adaptive = self._settings.partitioner_adaptive_partitioning_enable
            waiting = partial(self.accumulator.waiting, topic) if adaptive else None
            sticky = self._sticky[topic] = Sticky(self._runtime.random, self._settings.batch_size, waiting)
        return sticky


def chooser(partitioner: str | Partitioner | None) -> Callable[[TopicAppender, bytes | None], int] | None:
    """What chooses the partition of every record, with a key or without; None for hash of the key, else sticky."""
    if partitioner is None or partitioner == AS_JAVA:
        return None
    if not callable(partitioner):
        return lambda route, _: next(route.turns) % route.count
    own = partitioner

    def choose(route: TopicAppender, key: bytes | None) -> int:
        topic = route.partitions[0].topic
        chosen = own(topic, key, route.count)
        if type(chosen) is not int or not 0 <= chosen < route.count:
            raise ValueError(
                f"the partitioner returned {chosen!r} for topic {topic}, which has {route.count} partitions"
            )
        return chosen

    return choose
