"""The producer on asyncio, `AsyncProducer`; `producer` has its synchronous form.

`send` puts a record into a batch and returns a `Delivery` at once; a sender sends the batches (`sending`). Producers
are idempotent by default: retries until the delivery time-out never duplicate or reorder records. A producer buffers at
most `buffer_memory`; when the buffer is full, `send` waits.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any, TypeVar

from moldau.client import unclosed
from moldau.client.failures import ClientClosed
from moldau.client.own_loop import NOT_STARTED, of_one_loop
from moldau.client.producing.appending import Appender
from moldau.client.producing.auditing import ProducerAudit, settings_of_events
from moldau.client.producing.batch import Parts
from moldau.client.producing.batching import Accumulator, BufferFull
from moldau.client.producing.delivery import Delivery, OnDelivery, Unseen, check_callback, followed
from moldau.client.producing.interceptors import interceptors_of
from moldau.client.producing.outgoing import BY_NAME, GivenHeaders, OutgoingRecord, check_topic
from moldau.client.producing.producer_metrics import Counters, ProducerMetrics
from moldau.client.producing.producer_settings import ProducerSettings
from moldau.client.producing.routes import TopicRoutes
from moldau.client.producing.sending import Sender
from moldau.client.producing.table_delivery import TableDelivery
from moldau.client.producing.transacting import GroupOffsets, ProducerTransactions
from moldau.client.producing.transaction import AsyncTransaction
from moldau.client.routing import router_of
from moldau.client.settings import configured
from moldau.client.shown import shown
from moldau.client.time_outs import time_out_s
from moldau.errors import ConfigError, ErrorCode, KafkaError
from moldau.monotonic import monotonic_s
from moldau.names import GroupMetadata, counted

if TYPE_CHECKING:
    from moldau.client.producing.columnar import RecordColumns

logger = logging.getLogger(__name__)
T = TypeVar("T")
CLOSED = "this producer is closed"
CANCELLED = "this producer is stopped: the task that sends its records was cancelled"
NOT_CHECKED = object()


@of_one_loop(by_itself="send")
class AsyncProducer:
    """A producer on the running loop. Use it in `async with`, which delivers all records before it exits and raises
    `NotDelivered` if some failed and the program has not asked for their results."""

    @configured(ProducerSettings)
    def __init__(self, settings: ProducerSettings):
        self.settings = settings
        self._router = router_of(settings)
        self.own_loop = self._router.own_loop
        self.accumulator = Accumulator(
            batch_bytes=settings.batch_size,
            linger_ms=settings.linger_ms,
            buffer_bytes=settings.buffer_memory,
            delivery_timeout_ms=settings.delivery_timeout_ms,
            in_flight_max=settings.max_in_flight_requests_per_connection,
            may_renew=settings.transactional_id is None,
        )
        self.appender = Appender(settings, self.accumulator, self._batch_opened)
        self._transactions: ProducerTransactions | None = None
        if settings.transactional_id is not None:
            self._transactions = ProducerTransactions(
                settings.transactional_id, settings.transaction_timeout_ms, self._router, self.accumulator
            )
            self.appender.check_open = self._transactions.check_open
        self.interceptors = interceptors_of(settings)
        self._audit: ProducerAudit | None = None
        self.topics = TopicRoutes(
            self._router, self.appender, settings.max_block_ms, self._check_usable, self.interceptors is not None
        )
        self.routes = self.topics.known
        self.unseen = Unseen()
        self._space = asyncio.Event()
        self.accumulator.on_space = self._space.set
        self._sender: Sender | None = None
        self._thread = 0
        self.now_s = monotonic_s
        self._yield = False
        self._unusable = f"this producer {NOT_STARTED}"
        self._ended = asyncio.Event()
        self.checked_code: object = NOT_CHECKED

    def __repr__(self) -> str:
        return self.shown("aio.Producer")

    def shown(self, kind: str) -> str:
        """The client as text."""
        transactional = self.settings.transactional_id
        transactions = f"transactional id {transactional!r}" if transactional else ""
        state, _, _ = self._unusable.removeprefix("this producer is ").removeprefix("this producer was ").partition(":")
        waiting = f"{counted(self.accumulator.records, 'record')} waiting"
        return shown(kind, self.settings, transactions, state or waiting)

    async def __aenter__(self) -> "AsyncProducer":
        await self.start()
        return self

    async def __aexit__(self, failed: type[BaseException] | None, *_: object) -> None:
        await self.close(unclosed.EXIT_S if failed else None)
        failure = self.unseen.failure()
        if failure is not None and failed is None:
            raise failure

    async def start(self) -> None:
        """Start the sender on the running loop; it dials no broker before the first record."""
        self._thread = self.accumulator.loop_thread = get_ident()
        self.now_s = asyncio.get_running_loop().time
        if self.settings.audit_topic is not None:
            self._audit = ProducerAudit(self.settings, AsyncProducer(settings_of_events(self.settings)))
            await self._audit.start()
        self._sender = Sender(
            self._router, self.accumulator, self.settings, self.unseen, self._transactions, self._audit
        )
        self._sender.on_end = partial(self.refuse, CANCELLED)
        self._sender.start()
        self._unusable = ""

    async def send(
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
        """Put a record into a batch; waits while the buffer is full. Await the `Delivery` to wait for the broker.

        Without a serializer, values and keys are bytes, text (sent as UTF-8) or None. The time is in ms since 1970, by
        default now. Headers are a mapping, or pairs of a name and bytes, text or None. `on_delivery(error, delivered)`
        is called on this loop, with None for one of both.

        Raises `TypeError` or `ValueError` for a wrong record, and `KafkaError` if the topic can be neither found nor
        created, has no such partition, if the record is too large, or if the buffer stayed full for `max_block_ms`.
        """
        if get_ident() != self._thread:  # to ask for the running loop takes a system call
            self.own_loop.check()
        if self._yield:  # a batch was opened: the sender has its turn, however tight the caller's loop is
            self._yield = False
            await asyncio.sleep(0)
        if on_delivery is not None and getattr(on_delivery, "__code__", None) is not self.checked_code:
            self.check_callback(on_delivery)
        try:
            route = self.routes.get(topic)
        except TypeError:  # a list, or a dict
            check_topic(topic)
            raise
        if route is not None:
            delivery: Delivery | None = route.put(value, key, partition, timestamp_ms, headers, on_delivery)
            if delivery is not None:
                return delivery
        self.own_loop.check()
        if self.interceptors is not None:
            record = OutgoingRecord(topic, value, key, partition, timestamp_ms, headers)
            record, on_delivery = self.interceptors.sending(record, on_delivery)
            topic, value, key, partition, timestamp_ms, headers = record
            route = self.routes.get(topic)
        if route is None or partition is not None or route.until_s < self.now_s():
            route = self.topics.route(topic, partition, self.now_s()) or await self.topics.find(topic, partition)
        try:
            return self.appender.place(route, self.now_s(), value, key, partition, timestamp_ms, headers, on_delivery)
        except BufferFull as full:
            return await self._when_there_is_room(partial(self.appender.append, *full.record))

    async def send_table(
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
        anything with `__arrow_c_stream__`. Await the `TableDelivery` to wait for the broker.

        Each argument is the name of a column or an array of as many rows; `partition` may be one number for all rows.
        Without an argument, the column of its name is used if the table has it; None stands for no column. Keys and
        values are binary or text, unless there is a serializer. Timestamps are Arrow's or whole ms since 1970, by
        default now. A null partition is chosen as by `send`, for rows without keys from batch to batch. Headers are
        `list<struct<key, value>>` or maps. Interceptors are not called.

        Waits while the buffer is full or 16 MiB in it are not acknowledged. Raises `TypeError` or `ValueError` for a
        wrong table before it sends any row, `KafkaError` as `send` does, and `ConfigError` without pyarrow.
        """
        await self.topics.bind(topic)
        return await self._send_rows(
            topic, self.appender.table_columns(topic, table, key, value, partition, timestamp, headers)
        )

    async def send_many(self, topic: str, values: Any, keys: Any = None) -> TableDelivery:
        """Send a list or array of values, each with the key at its place in `keys`, faster than one by one. Returns and
        raises what `send_table` does."""
        await self.topics.bind(topic)
        return await self._send_rows(topic, self.appender.list_columns(topic, values, keys))

    async def _send_rows(self, topic: str, columns: "RecordColumns") -> TableDelivery:
        highest = columns.highest_partition
        route = self.topics.route(topic, highest, self.now_s()) or await self.topics.find(topic, highest)
        batches, unseen = [], 0
        for batch in self.appender.encode(route, columns):
            tp = route.partitions[batch.partition]
            append = partial(self.appender.append_encoded, tp, batch, self.now_s())
            batches.append((tp, await self._when_there_is_room(append)))
            unseen += len(batch.data)
            if unseen >= self.settings.max_request_size:
                self.wake()
                unseen = 0
            await asyncio.sleep(0)
        self.wake()
        return TableDelivery(batches)

    async def flush(
        self, timeout_s: float | None = None, *, timeout: float | None = None, timeout_ms: int | None = None
    ) -> None:
        """Send the waiting batches, and wait until each record sent so far is delivered or has failed. Raises
        `TimeoutError` after `timeout_s` or `timeout`, in seconds, or `timeout_ms`; the records stay on their way."""
        timeout_s = time_out_s("flush", timeout_ms, timeout, timeout_s=timeout_s)
        self.accumulator.hurry += 1
        try:
            async with asyncio.timeout(timeout_s):
                self.wake()
                outstanding = self.accumulator.outstanding()
                while outstanding:
                    await asyncio.wait([followed(batch.outcome) for batch in outstanding])
                    sent = [batch.outcome.result() for batch in outstanding if not batch.outcome.exception()]
                    outstanding = [part for outcome in sent if isinstance(outcome, Parts) for part in outcome]
        except TimeoutError:
            left = self.accumulator.records
            raise TimeoutError(f"after {timeout_s:g} s {left} records were not acknowledged yet") from None
        finally:
            self.accumulator.hurry -= 1

    def transaction(self) -> AsyncTransaction:
        """A transaction for `async with`: it is committed at the end of the block, and aborted by an exception. Needs
        the setting `transactional_id`."""
        return AsyncTransaction(self)

    async def init_transactions(self) -> None:
        """Get a producer id, fence earlier producers with this transactional id, and end what they left open. The first
        `begin_transaction` does this otherwise. Raises `KafkaError`."""
        await self._transactional().initialize()

    async def begin_transaction(self) -> None:
        """Begin a transaction; a transactional producer sends in transactions only. Raises `KafkaError`."""
        await self._transactional().begin()

    async def commit_transaction(self) -> None:
        """Deliver all records, and commit the transaction. Raises `TransactionAbortable` if a record failed (abort
        then), `ProducerFenced` if a newer producer has taken over (close then). After a retriable `KafkaError` the
        outcome is unknown: commit once more."""
        try:
            await self._transactional().commit(self.flush)
            if self._audit is not None:
                self._audit.transaction_ended(committed=True)
        finally:
            self.unseen.clear()

    async def abort_transaction(self) -> None:
        """Drop records that were not sent yet, and abort the transaction. Raises `KafkaError`."""
        sender = self._sender
        assert sender is not None
        try:
            await self._transactional().abort(self.flush, sender.give_up)
            if self._audit is not None:
                self._audit.transaction_ended(committed=False)
        finally:
            self.unseen.clear()

    async def send_offsets_to_transaction(self, offsets: GroupOffsets, group: str | GroupMetadata) -> None:
        """Commit these offsets of a group (the next record to read of each partition) if the transaction is committed.
        Raises `KafkaError`, `CommitFailed` if the consumer has left its group (abort then)."""
        of_group = GroupMetadata(group) if isinstance(group, str) else group
        await self._transactional().send_offsets(offsets, of_group)

    def _transactional(self) -> ProducerTransactions:
        if self._transactions is None:
            raise ConfigError("transactions need the setting transactional_id")
        self._check_usable()
        return self._transactions

    async def close(
        self, timeout_s: float | None = None, *, timeout: float | None = None, timeout_ms: int | None = None
    ) -> None:
        """Deliver the waiting records for at most `timeout_s` or `timeout`, in seconds, or `timeout_ms` (by default the
        delivery time-out), then stop. Records that are not delivered by then fail; failures that the program has not
        asked for are logged. An open transaction is aborted. A `send` that waits for room in the buffer raises
        `ClientClosed`. A second `close` waits until the first one is done, or for its own time-out."""
        wait_s = time_out_s("close", timeout_ms, timeout, timeout_s=timeout_s)
        if self.closed:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._ended.wait()
            return
        until_s = None if wait_s is None else self.now_s() + wait_s

        def left_s() -> float | None:
            return None if until_s is None else max(until_s - self.now_s(), 0.0)

        try:
            async with asyncio.timeout(left_s()):
                if self._transactions is not None and self._transactions.open and not self._unusable:
                    await self.abort_transaction()
        except (TimeoutError, KafkaError) as open_still:
            logger.warning("%s: an open transaction was not aborted: %s", self.settings.client_id, open_still)
        self.refuse(CLOSED)
        self.accumulator.wake_all()
        try:
            await self.flush(left_s())
        except TimeoutError:
            pass
        finally:
            self.topics.stop()
            try:
                if self._audit is not None:
                    await self._audit.close(left_s())
                if self._sender is not None:
                    await self._sender.close()
            finally:
                await self._router.close()
                self._ended.set()
            failure = self.unseen.failure()
            if failure is not None:
                logger.warning("%s: %s", self.settings.client_id, failure)

    def metrics(self) -> ProducerMetrics:
        """The producer's counters since it was started."""
        counters = self._sender.counters if self._sender is not None else Counters()
        buffer = self.accumulator
        return counters.snapshot(
            records_waiting=buffer.records, used_bytes=buffer.held_bytes, total_bytes=buffer.buffer_bytes
        )

    @property
    def closed(self) -> bool:
        return self._unusable == CLOSED

    def refuse(self, why: str) -> None:
        """From now on `send` raises `ClientClosed` with this sentence. Takes no lock: a forked child calls it too."""
        self._unusable = why
        self.routes.clear()
        self.appender.check_open = self._check_usable

    def _check_usable(self) -> None:
        if self._unusable:
            raise ClientClosed(self._unusable)

    def check_callback(self, callback: OnDelivery) -> None:
        """Raise `TypeError` for what cannot be a callback. The code of one that can is noted: mostly, all records have
        the same one, and to check it for each of them would be a twentieth of `send`."""
        check_callback(callback)
        self.checked_code = getattr(callback, "__code__", NOT_CHECKED)

    def wake(self) -> None:
        """Wake the sender. Call on the loop only."""
        if self._sender is not None:
            self._sender.wake()

    def full(self) -> KafkaError:
        """The failure of a caller who has waited for room in the buffer for too long."""
        latest = self._router.retries.latest
        limit_ms = self.settings.max_block_ms
        return KafkaError(
            ErrorCode.REQUEST_TIMED_OUT,
            f"the producer's buffer was full for {limit_ms} ms (max.block.ms): "
            + (latest or "the broker does not acknowledge records fast enough"),
        )

    async def _when_there_is_room(self, append: Callable[[], T]) -> T:
        try:
            async with asyncio.timeout(self.settings.max_block_ms / 1000):
                while True:
                    self._space.clear()
                    try:
                        return append()
                    except BufferFull:
                        with self.accumulator.waiting_for_room():
                            self.wake()
                            await self._space.wait()
        except TimeoutError:
            raise self.full() from None

    def _batch_opened(self) -> None:
        self._yield = True
        self.wake()
