"""The synchronous producer, `Producer`: an `AsyncProducer` on a loop in a thread of its own.

`send` runs in the caller's thread up to the batch; the loop sends the batches. Methods made with `blocking` have the
parameters and docstrings of the asyncio ones.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from moldau.client import unclosed
from moldau.client.background import LoopThread
from moldau.client.faces import blocking
from moldau.client.producing.async_producer import AsyncProducer as AsyncProducer
from moldau.client.producing.batching import BufferFull
from moldau.client.producing.delivery import Delivery, OnDelivery
from moldau.client.producing.outgoing import BY_NAME, GivenHeaders, OutgoingRecord, check_topic
from moldau.client.producing.producer_metrics import ProducerMetrics
from moldau.client.producing.producer_settings import ProducerSettings
from moldau.client.producing.table_delivery import TableDelivery
from moldau.client.producing.transaction import Transaction
from moldau.client.settings import configured
from moldau.client.time_outs import time_out_s
from moldau.monotonic import monotonic_s

if TYPE_CHECKING:
    from moldau.client.producing.columnar import RecordColumns

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Producer:
    """A producer. Use it in a with-statement, which delivers all records before it exits, and raises `NotDelivered` if
    some failed and the program has not asked for their results.

        with Producer("localhost:9092", compression_type="zstd") as producer:
            producer.send("orders", value="5 apples", key="ann")

    Threads may share a producer. A forked process must create its own."""

    @configured(ProducerSettings)
    def __init__(self, settings: ProducerSettings):
        self._core = core = AsyncProducer(settings)
        self._thread = thread = LoopThread("moldau-producer")
        core.appender.wake = partial(thread.soon, core.wake)
        thread.start()
        thread.run(core.start)
        unclosed.watch(thread, partial(_finish, core, thread), partial(core.refuse, unclosed.FORKED))
        unclosed.close_when_dropped(self, thread, partial(core.shown, "Producer"), core.close)

    @property
    def settings(self) -> ProducerSettings:
        """The settings of this producer."""
        return self._core.settings

    def __repr__(self) -> str:
        return self._core.shown("Producer")

    def __enter__(self) -> "Producer":
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        self.close(unclosed.EXIT_S if failed else None)
        failure = self._core.unseen.failure()
        if failure is not None and failed is None:
            raise failure

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: GivenHeaders = (),
        on_delivery: OnDelivery | None = None,
    ) -> Delivery:
        """Put a record into a batch, which the producer's thread sends. Waits only for the metadata of a new topic and
        while the buffer is full. Call `result` of the `Delivery` to wait for the broker.

        Without a serializer, values and keys are bytes, text (sent as UTF-8) or None. The time is in ms since 1970, by
        default now. Headers are a mapping, or pairs of a name and bytes, text or None. `on_delivery(error, delivered)`
        is called in the producer's thread, with None for one of both. Nothing may wait there, so a `send` in it to a
        new topic, or while the buffer is full, raises.

        Raises `TypeError` or `ValueError` for a wrong record, and `KafkaError` if the topic can be neither found nor
        created, if it has no such partition, if the record is too large, or if the buffer stayed full for
        `max_block_ms`."""
        core = self._core
        if on_delivery is not None and getattr(on_delivery, "__code__", None) is not core.checked_code:
            core.check_callback(on_delivery)
        try:
            route = core.routes.get(topic)
        except TypeError:  # a list, or a dict
            check_topic(topic)
            raise
        if route is not None:
            delivery: Delivery | None = route.put(value, key, partition, timestamp_ms, headers, on_delivery)
            if delivery is not None:
                return delivery
        if core.interceptors is not None:
            record = OutgoingRecord(topic, value, key, partition, timestamp_ms, headers)
            record, on_delivery = core.interceptors.sending(record, on_delivery)
            topic, value, key, partition, timestamp_ms, headers = record
        route, now_s = core.routes.get(topic), core.now_s()
        if route is None or partition is not None or route.until_s < now_s:
            route = core.topics.route(topic, partition, now_s) or self._thread.run(core.topics.find, topic, partition)
        try:
            return core.appender.place(route, now_s, value, key, partition, timestamp_ms, headers, on_delivery)
        except BufferFull as full:
            return self._when_there_is_room(partial(core.appender.append, *full.record))

    def send_table(
        self,
        topic: str,
        table: Any,
        *,
        key: Any = BY_NAME,
        value: Any = BY_NAME,
        partition: Any = BY_NAME,
        timestamp: Any = BY_NAME,
        headers: Any = BY_NAME,
    ) -> TableDelivery:
        """Send a table, one record per row, in order within each partition: a pyarrow, pandas or Polars table, or
        anything with `__arrow_c_stream__`. Columns are encoded in the caller's thread. Call `result` of the
        `TableDelivery` to wait for the broker.

        Each argument is the name of a column or an array of as many rows; `partition` may be one number for all rows.
        Without an argument, the column of its name is used if the table has it; None stands for no column. Keys and
        values are binary or text, unless there is a serializer. Timestamps are Arrow's or whole ms since 1970, by
        default now. A null partition is chosen as by `send`. Headers are `list<struct<key, value>>` or maps.
        Interceptors are not called.

        Waits while the buffer is full or 16 MiB in it are not acknowledged. Raises `TypeError` or `ValueError` for a
        wrong table before it sends any row, `KafkaError` as `send` does, and `ConfigError` without pyarrow."""
        return self._send_rows(
            topic, self._core.appender.table_columns(topic, table, key, value, partition, timestamp, headers)
        )

    def send_many(self, topic: str, values: Any, keys: Any = None) -> TableDelivery:
        """Send a list or array of values, each with the key at its place in `keys`, faster than one by one. Returns and
        raises what `send_table` does."""
        return self._send_rows(topic, self._core.appender.list_columns(topic, values, keys))

    def _send_rows(self, topic: str, columns: "RecordColumns") -> TableDelivery:
        core, highest = self._core, columns.highest_partition
        route = core.topics.route(topic, highest, core.now_s()) or self._thread.run(core.topics.find, topic, highest)
        batches, unseen = [], 0
        for batch in core.appender.encode(route, columns):
            tp = route.partitions[batch.partition]
            append = partial(core.appender.append_encoded, tp, batch, core.now_s())
            batches.append((tp, self._when_there_is_room(append)))
            unseen += len(batch.data)
            if unseen >= core.settings.max_request_size:
                self._thread.soon(core.wake)
                unseen = 0
        self._thread.soon(core.wake)
        return TableDelivery(batches)

    def _when_there_is_room(self, place: Callable[[], T]) -> T:
        accumulator = self._core.accumulator
        deadline = monotonic_s() + self._core.settings.max_block_ms / 1000
        while True:
            try:
                return place()
            except BufferFull:
                if monotonic_s() > deadline or self._thread.is_current:
                    raise self._core.full() from None
            with accumulator.waiting_for_room():
                self._thread.soon(self._core.wake)
                with accumulator.space:
                    accumulator.space.wait(0.1)

    flush = blocking(AsyncProducer.flush)

    def transaction(self) -> Transaction:
        """A transaction for a with-statement: it is committed at the end of the block, and aborted by an exception.
        Needs the setting `transactional_id`."""
        return Transaction(self)

    init_transactions = blocking(AsyncProducer.init_transactions)
    begin_transaction = blocking(AsyncProducer.begin_transaction)
    commit_transaction = blocking(AsyncProducer.commit_transaction)
    abort_transaction = blocking(AsyncProducer.abort_transaction)
    send_offsets_to_transaction = blocking(AsyncProducer.send_offsets_to_transaction)

    def metrics(self) -> ProducerMetrics:
        """The producer's counters since it was created."""
        return self._core.metrics()

    def close(
        self, timeout_s: float | None = None, *, timeout: float | None = None, timeout_ms: int | None = None
    ) -> None:
        """Deliver the waiting records for at most `timeout_s` or `timeout`, in seconds, or `timeout_ms` (by default the
        delivery time-out), then stop. Records that are not delivered by then fail; failures that the program has not
        asked for are logged. A call in which another thread still waits raises `ClientClosed`."""
        wait_s = time_out_s("close", timeout_ms, timeout, timeout_s=timeout_s)
        try:
            self._thread.close(partial(self._core.close, wait_s))
        finally:
            if not self._thread.running:
                unclosed.forget(self._thread)


def _finish(core: AsyncProducer, thread: LoopThread, timeout_s: float) -> None:
    """Deliver what a producer still holds that nobody closed before the interpreter exits."""
    waiting, name = core.accumulator.records, core.settings.client_id
    if waiting and (thread.leaving or not thread.closing):  # a signal may have ended its close: its caller knows
        logger.warning(
            "%s: the program ends with %d records that are not delivered yet, and waits for them for up to %.0f s:"
            " close the producer, or use it in a with-statement",
            name,
            waiting,
            timeout_s,
        )
        try:
            if thread.leaving:
                thread.wait_for_end(timeout_s)
            else:
                thread.run(core.flush, timeout_s)
        except TimeoutError:
            pass
        if core.accumulator.records:
            logger.error("%s: %d records were lost: they were not acknowledged in time", name, core.accumulator.records)
    failure = core.unseen.failure()
    if failure is not None:
        core.unseen.clear()
        logger.error("%s: %s", name, failure)
