"""The topic `_schemas`: read from its beginning to its end, and written by the one instance that is the writer.

A change is one transaction of a transactional producer: the broker fences a writer that was replaced, and readers see
all records of a change or none. A change is answered when it has come back from the topic. A record that no registry
can have written is reported and skipped.
"""

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moldau.client.administration.admin import AsyncAdmin
from moldau.client.administration.topics import NewTopic
from moldau.client.consuming.async_consumer import AsyncConsumer
from moldau.client.consuming.fetched.record import Record
from moldau.client.security.brokers import Brokers, settings_in
from moldau.errors import (
    ConfigError,
    ErrorCode,
    InvalidProducerEpoch,
    InvalidRequest,
    KafkaError,
    MessageTooLarge,
    MoldauError,
    ProducerFenced,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)
from moldau.names import TopicPartition
from moldau.registry.decisions import Writes
from moldau.registry.refusals import Refused, not_permitted, store_failed, timed_out, too_large
from moldau.registry.state import RegistryState
from moldau.registry.topic_records import (
    NOOP,
    RecordKey,
    UnreadableRecord,
    packed_key,
    packed_value,
    read_key,
    read_value,
)
from moldau.tasks import ended

if TYPE_CHECKING:
    from moldau.client.producing.async_producer import AsyncProducer
    from moldau.client.producing.delivery import Delivery

logger = logging.getLogger(__name__)

DEFAULT_TOPIC = "_schemas"
POLL_MS = 1_000
RETRY_S = 1.0
CATCH_UP_S, LOOK_S = 1.0, 0.005
REPORTED_MAX = 100
"""So many unreadable records are logged one by one."""


class WriterReplaced(Refused):
    """The broker has fenced this instance: nothing of the change was written."""


@dataclass(frozen=True)
class SchemasTopicSettings:
    """Where the schemas are kept. `replication_factor` is for a new topic, -1 the broker's default; `timeout_ms` bounds
    a change until it is answered."""

    name: str = DEFAULT_TOPIC
    replication_factor: int = -1
    timeout_ms: int = 10_000


class SchemasTopic:
    """The state's records on their way to the topic and back. Start it on the loop that uses it."""

    def __init__(
        self, state: RegistryState, brokers: str, settings: SchemasTopicSettings, client_id: str = "moldau-registry"
    ):
        self._state = state
        self._settings = settings
        given = dict(settings_in(brokers))
        given.pop("client.id", None)
        self._brokers = Brokers(str(brokers), {**given, "client.id": client_id})
        self._partition = TopicPartition(settings.name, 0)
        self._consumer: AsyncConsumer | None = None
        self._reader: asyncio.Task[None] | None = None
        self._producer: AsyncProducer | None = None
        self._writing = asyncio.Lock()
        self._catching_up: asyncio.Task[None] | None = None
        self._moved = asyncio.Event()
        self._next_offset = 0
        self._topic_id: uuid.UUID | None = None
        """Of the topic that is read; None if that is not known."""
        self.skipped = 0
        """The number of records that could not be read."""

    async def start(self) -> None:
        """Create the topic if it does not exist, and read it to its end. Raises `ConfigError` and `KafkaError`."""
        self._topic_id = await self._prepared()
        self._consumer = AsyncConsumer(
            self._brokers, auto_offset_reset="none", isolation_level="read_committed", enable_auto_commit=False
        )
        await self._consumer.start()
        self._consumer.assign([self._partition])
        await self._consumer.seek_to_beginning(self._partition)
        end = await self._end(self._consumer)
        while await self._consumer.position(self._partition) < end:
            await self._take_in(self._consumer)
        self._reader = asyncio.ensure_future(self._read())

    async def close(self) -> None:
        """Stop reading and writing."""
        await ended(self._reader)
        await self.resign()
        if self._consumer is not None:
            await self._consumer.close()

    async def _prepared(self, known: uuid.UUID | None = None) -> uuid.UUID | None:
        """Create the topic if it does not exist, and check it. Returns its id, None if it was created. `known`: the id
        before; another topic is one that a producer has made in its place, with settings that nobody chose. Raises
        `ConfigError` and `KafkaError`."""
        name = self._settings.name
        async with AsyncAdmin(self._brokers) as admin:
            try:
                view = (await admin.describe_topics([name]))[name]
            except UnknownTopicOrPartition:
                factor = self._settings.replication_factor
                new = NewTopic(name, 1, factor, {"cleanup.policy": "compact"})
                for failure in (await admin.create_topics([new])).values():
                    if isinstance(failure, KafkaError) and not isinstance(failure, TopicAlreadyExists):
                        raise failure from None
                return None
            if len(view.partitions) != 1:
                raise ConfigError(
                    f"the topic {name} has {len(view.partitions)} partitions: a registry needs 1, so that "
                    "its records have one order"
                )
            policy = next(one.value for one in await admin.topic_configs(name) if one.name == "cleanup.policy")
            if policy != "compact" and known not in (None, view.topic_id):
                await admin.alter_topic_configs(name, {"cleanup.policy": "compact"})
                logger.warning("the topic %s was deleted and made anew: it has cleanup.policy=compact now", name)
                policy = "compact"
            if policy != "compact":
                raise ConfigError(
                    f"the topic {name} has cleanup.policy={policy}, which would delete schemas: set it to "
                    "compact, or choose another topic with --topic"
                )
            return view.topic_id

    async def _read(self) -> None:
        assert self._consumer is not None
        while True:
            try:
                await self._take_in(self._consumer)
            except UnknownTopicOrPartition as failure:
                logger.error("the topic %s is gone: %s", self._settings.name, failure)
                async with self._writing:
                    await self.resign()  # the next writer makes the topic anew, before a producer does
                await asyncio.sleep(RETRY_S)
            except MoldauError as failure:
                if isinstance(failure, KafkaError) and failure.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                    logger.error("the topic %s has lost records: %s; it is read again", self._settings.name, failure)
                    with contextlib.suppress(MoldauError):
                        await self._begin_anew(self._consumer)
                        continue
                else:
                    logger.warning("the topic %s cannot be read now: %s", self._settings.name, failure)
                await asyncio.sleep(RETRY_S)

    async def _begin_anew(self, consumer: AsyncConsumer) -> None:
        """Forget all, and read the topic from its beginning, since it is another one. Raises `KafkaError`."""
        await consumer.seek_to_beginning(self._partition)
        self._state.forget()
        self._next_offset = 0

    async def catch_up(self) -> bool:
        """Read what is committed in the topic now. Returns whether that was anything new; False also if the broker does
        not answer in time."""
        under_way, before = self._catching_up, self._next_offset
        if under_way is not None and not under_way.done():  # it may have asked for the end too early for this caller
            await asyncio.wait([under_way])
        if self._catching_up is under_way:
            self._catching_up = asyncio.ensure_future(self._to_end())
        assert self._catching_up is not None
        await asyncio.shield(self._catching_up)
        return self._next_offset != before

    async def _to_end(self) -> None:
        consumer = self._consumer
        if consumer is None:
            return
        try:
            async with asyncio.timeout(CATCH_UP_S):
                end = await self._end(consumer)
                while await consumer.position(self._partition) < end:
                    await asyncio.sleep(LOOK_S)
        except (MoldauError, TimeoutError):
            pass

    async def _end(self, consumer: AsyncConsumer) -> int:
        """Behind what is committed: a dead writer may have left a transaction open."""
        return (await consumer.end_offsets([self._partition]))[self._partition]

    async def _take_in(self, consumer: AsyncConsumer) -> None:
        records = await consumer.poll(POLL_MS)
        for record in records:
            try:
                self._apply(record)
            except Exception as wrong:  # whoever writes to the topic must not be able to stop the registry
                self.skipped += 1
                if self.skipped <= REPORTED_MAX:
                    why = str(wrong) if isinstance(wrong, UnreadableRecord) else repr(wrong)[:200]
                    logger.warning(
                        "the record at offset %d of %s is skipped: %s", record.offset, self._settings.name, why
                    )
        if records:
            self._next_offset = records[-1].offset + 1
            moved, self._moved = self._moved, asyncio.Event()
            moved.set()

    def _apply(self, record: Record) -> None:
        key = read_key(record.key)
        self._state.apply(key, read_value(key, record.value, record.timestamp_ms), record.key)

    async def _read_back(self, offset: int) -> None:
        while self._next_offset <= offset:
            await self._moved.wait()

    # Writing.

    async def write(self, decide: Callable[[], Writes]) -> Writes:
        """Decide on a state that has all that was written, write the records, and return when they have been read.
        Raises `Refused`."""
        async with self._writing:
            try:
                async with asyncio.timeout(self._settings.timeout_ms / 1000):
                    if self._producer is None:
                        await self.take_over()
                    writes = decide()
                    if writes.records:
                        await self._send(writes)
                    return writes
            except TimeoutError:
                await self.resign()
                raise timed_out(
                    f"The change was not written within {self._settings.timeout_ms} ms; it may still take effect"
                ) from None
            except MessageTooLarge as failure:
                await self.resign()
                raise too_large(f"The schema is too large for the topic: {failure}") from None
            except Refused:
                raise
            except InvalidRequest as mirrored:
                await self.resign()
                raise not_permitted(f"The registry is in read-only mode: {mirrored}") from None
            except (ProducerFenced, InvalidProducerEpoch):
                await self.resign()
                raise WriterReplaced(500, 50001, "Another instance has become the writer; ask again") from None
            except MoldauError as failure:
                await self.resign()
                raise store_failed(f"The change could not be written: {failure}") from None

    async def take_over(self) -> None:
        """Become the writer: fence the one before, whose open transaction is aborted, and read all that it wrote.
        Raises `ConfigError` and `KafkaError`."""
        from moldau.client.producing.async_producer import AsyncProducer  # an instance that only reads needs none

        await self.resign()
        known, topic_id = self._topic_id, await self._prepared(self._topic_id)
        if known not in (None, topic_id) and self._consumer is not None:
            await self._begin_anew(self._consumer)
        self._topic_id = topic_id
        producer = AsyncProducer(
            self._brokers,
            transactional_id=f"moldau-registry-{self._settings.name}",
            transaction_timeout_ms=max(self._settings.timeout_ms, 1_000),
            linger_ms=0,
            request_timeout_ms=self._settings.timeout_ms,
            delivery_timeout_ms=self._settings.timeout_ms,
        )
        await producer.start()
        self._producer = producer
        await producer.init_transactions()
        await self._send(Writes(None, [(RecordKey(NOOP), None)]))

    async def resign(self) -> None:
        """Write no more. The broker aborts a transaction that is open when the next writer takes over."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with contextlib.suppress(MoldauError):
                await producer.close(0)

    async def _send(self, writes: Writes) -> None:
        producer = self._producer
        assert producer is not None
        sent: list[tuple[bytes, bytes | None]] = []
        for key, value in writes.records:
            forms, packed = self._state.forms_of(key), packed_value(value)
            own = forms[-1] if forms else packed_key(key)
            sent += [(form, packed) for form in ([own] if packed is not None else {*forms, own, packed_key(key)})]
        deliveries: list[Delivery] = []
        before = self._next_offset
        # Not `async with producer.transaction()`: it would wait for an abort, which the next writer does anyway.
        await producer.begin_transaction()
        for form, packed in sent:
            deliveries.append(await producer.send(self._settings.name, packed, form, partition=0))
        offset = [(await delivery).offset for delivery in deliveries][-1]
        await producer.commit_transaction()
        if offset < before:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"{self._settings.name} was deleted and made anew meanwhile")
        await self._read_back(offset)
