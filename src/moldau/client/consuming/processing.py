"""A loop that handles records one by one: failed ones are retried, then sent to a dead-letter topic, then committed.

The dead letter has the record's own key, value and headers, and headers that say where it comes from and why it failed,
named as those of Kafka Streams (KIP-1034) with our prefix.
"""

import asyncio
import dataclasses
import inspect
import logging
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from moldau.client.consuming.consumer_settings import ConsumerSettings
from moldau.client.consuming.fetched.record import Record
from moldau.client.time_outs import milliseconds
from moldau.errors import ConfigError
from moldau.names import TopicPartition

if TYPE_CHECKING:
    from moldau.client.producing.async_producer import AsyncProducer

logger = logging.getLogger(__name__)

HEADER_PREFIX = "__moldau.errors."
STACKTRACE_BYTES_MAX = 16 * 1024
WAIT_MS = 200
"""The longest wait between two looks at whether to stop."""


@dataclasses.dataclass(frozen=True)
class Handling:
    """What happens to a record that its handler does not take: `retries` more attempts, with waits that double from
    `backoff_ms` to `backoff_max_ms`, then the topic `dead_letter`, or None to raise."""

    retries: int
    backoff_ms: int
    backoff_max_ms: int
    dead_letter: str | None

    def __post_init__(self) -> None:
        for name in ("retries", "backoff_ms", "backoff_max_ms"):
            number = getattr(self, name)
            if type(number) is not int or number < 0:
                raise ConfigError(f"{name}={number!r} is not a whole number from 0")

    def wait_ms(self, attempt: int) -> int:
        """The wait after the `attempt`th failure in a row, from 1."""
        return int(min(self.backoff_ms * 2 ** min(attempt - 1, 32), self.backoff_max_ms))


Failure: TypeAlias = tuple[Record, Exception]
Attempt: TypeAlias = Callable[[Iterator[Record]], Awaitable[Failure | None]]


class RecordSource(Protocol):
    """What processing needs of the consumer; `AsyncConsumer` documents the methods."""

    settings: ConsumerSettings

    def walk(self) -> Iterator[Record] | None: ...
    async def ready(self, deadline_s: float) -> bool: ...
    def deserialized(self, record: Record) -> Record: ...
    def acknowledge(self, offsets: Mapping[TopicPartition, int]) -> None: ...
    async def commit_processed(self) -> None: ...
    def sign_of_life(self) -> None: ...


class Processing:
    """One call of `process`. Records come undeserialized from the consumer, so that a dead letter has their bytes.

    `attempt` hands records to the handler, in the caller's thread or on its loop, until one fails or `until()` is true.
    """

    def __init__(
        self,
        consumer: RecordSource,
        handler: Callable[[Record], object],
        handling: Handling,
        until: Callable[[], bool] | None,
    ):
        self._consumer = consumer
        self._handler = handler
        self._handling = handling
        self._until = until
        self._producer: AsyncProducer | None = None
        self._done: dict[TopicPartition, int] = {}
        self.attempt: Attempt = self._attempt
        self.count = 0

    def attempt_in_caller(self, records: Iterator[Record]) -> Failure | None:
        """`attempt` for a handler that is a plain function."""
        for record in records:
            try:
                self._handler(self._consumer.deserialized(record))
            except Exception as failure:
                return record, failure
            if self._noted(record):
                break
        return None

    async def _attempt(self, records: Iterator[Record]) -> Failure | None:
        for record in records:
            try:
                outcome = self._handler(self._consumer.deserialized(record))
                if inspect.isawaitable(outcome):
                    await outcome
            except Exception as failure:
                return record, failure
            if self._noted(record):
                break
        return None

    def _noted(self, record: Record) -> bool:
        self.count += 1
        self._done[record.place.tp] = record.offset + 1
        return self._until is not None and self._until()

    async def run(self, idle_ms: int | None) -> int:
        """Handle records until `until()` is true or no record came for `idle_ms`; their number."""
        consumer, loop = self._consumer, asyncio.get_running_loop()
        idle_s = None if idle_ms is None else milliseconds("process", idle_ms, "idle_ms")
        last_s = loop.time()
        try:
            while not (self._until is not None and self._until()):
                records = consumer.walk()
                if records is not None:
                    try:
                        await self._handle(records)
                    finally:
                        self._acknowledge()
                        await consumer.commit_processed()
                    last_s = loop.time()
                elif idle_s is not None and loop.time() - last_s >= idle_s:
                    break
                else:
                    await consumer.ready(loop.time() + WAIT_MS / 1000)
        finally:
            if self._producer is not None:
                await self._producer.close()
        return self.count

    async def _handle(self, records: Iterator[Record]) -> None:
        failed = await self.attempt(records)
        while failed is not None:
            record = failed[0]
            for number in range(1, self._handling.retries + 1):
                await self._wait(self._handling.wait_ms(number))
                failed = await self.attempt(iter([record]))
                if failed is None:
                    break
            if failed is not None:
                await self._bury(*failed)
            failed = await self.attempt(records) if not (self._until is not None and self._until()) else None

    async def _wait(self, wait_ms: int) -> None:
        """Wait, and show that the application is alive meanwhile: `max_poll_interval_ms` counts from the last sign."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + wait_ms / 1000
        while (left_s := until_s - loop.time()) > 0:
            self._consumer.sign_of_life()
            await asyncio.sleep(min(left_s, WAIT_MS / 1000))

    async def _bury(self, record: Record, failure: Exception) -> None:
        topic = self._handling.dead_letter
        if topic is None:
            raise failure
        if self._producer is None:
            from moldau.client.producing.async_producer import AsyncProducer  # few consumers need a producer
            from moldau.client.producing.producer_settings import ProducerSettings

            settings = self._consumer.settings
            reaching = {**settings.reaching_brokers(), "client_id": f"{settings.client_id}-dead-letter"}
            self._producer = AsyncProducer(ProducerSettings(**reaching))
            await self._producer.start()
        await (await self._producer.send(topic, **letter(record, failure)))
        logger.warning(
            "%s@%d went to %s after %d attempts: %r",
            record.place.tp,
            record.offset,
            topic,
            self._handling.retries + 1,
            failure,
        )
        self._noted(record)

    def _acknowledge(self) -> None:
        done, self._done = self._done, {}
        self._consumer.acknowledge(done)


def error_headers(record: Record, failure: BaseException) -> list[tuple[str, bytes | None]]:
    """The headers of a record's dead letter."""
    stack = "".join(traceback.format_exception(failure)).encode(errors="replace")
    about: dict[str, str] = {
        "exception": f"{type(failure).__module__}.{type(failure).__qualname__}",
        "message": str(failure),
        "topic": record.topic,
        "partition": str(record.partition),
        "offset": str(record.offset),
    }
    headers: list[tuple[str, bytes | None]] = list(record.headers)
    headers += [(HEADER_PREFIX + name, text.encode(errors="replace")) for name, text in about.items()]
    return [*headers, (f"{HEADER_PREFIX}stacktrace", stack[-STACKTRACE_BYTES_MAX:])]


def letter(record: Record, failure: BaseException) -> dict[str, Any]:
    """The arguments of `send` for a record's dead letter; key and value must be the record's bytes."""
    timestamp_ms = record.timestamp_ms if record.timestamp_ms >= 0 else None
    headers = error_headers(record, failure)
    return {"value": record.value, "key": record.key, "timestamp_ms": timestamp_ms, "headers": headers}
