"""A producer's part of the audit: counts and hashes what brokers have acknowledged, and sends monitoring events.

`delivered` is called for each acknowledged batch, on the sender's loop. Counts are kept by topic and window until the
next event; a transaction's counts wait for its commit. Events go out by a producer of their own, which is idempotent
and has no audit. An event that was not acknowledged is sent again with the same number, so that it counts once.
"""

import asyncio
import contextlib
import dataclasses
import logging
import socket
from collections import deque
from typing import Any, Protocol

from moldau.client.monitoring import MonitoringEvent, to_json
from moldau.client.producing.batch import Ack, Batch
from moldau.client.producing.producer_settings import ProducerSettings
from moldau.errors import MoldauError
from moldau.names import TopicPartition
from moldau.records.batch import read_header
from moldau.records.columns import Binary, Source, decode, digest
from moldau.records.digests import Digest, Rows, add_rows, digest_of
from moldau.records.sections import section_of
from moldau.runtime import Runtime
from moldau.tasks import ended

logger = logging.getLogger(__name__)

WINDOWS_MAX = 20_000
"""With this many windows counted, an event of each is sent at once."""
UNSENT_MAX = 200_000


class Delivers(Protocol):
    """The part of `AsyncProducer` that this module uses."""

    async def start(self) -> None: ...
    async def send(self, topic: str, value: Any = None, key: Any = None) -> Any: ...
    async def close(self, timeout_s: float | None = None) -> None: ...


def settings_of_events(settings: ProducerSettings) -> ProducerSettings:
    """The settings of the producer of monitoring events: the same brokers and access, nothing of the user's own."""
    return dataclasses.replace(
        settings, client_id=f"{settings.client_id}-audit", audit_topic=None, audit_headers=False, interceptors=None,
        transactional_id=None, partitioner=None, key_serializer=None, value_serializer=None, acks="all",
        enable_idempotence=True, max_in_flight_requests_per_connection=5, compression_type="none",
        buffer_memory=16 << 20,
    )  # fmt: skip


class ProducerAudit:
    """Counts one producer's acknowledged records by topic and window. Call everything on the producer's loop."""

    def __init__(self, settings: ProducerSettings, events: Delivers):
        assert settings.audit_topic is not None
        self._topic = settings.audit_topic
        self._settings = settings
        self._events = events
        runtime = settings.runtime or Runtime()
        self._now_ms = runtime.clock.now_ms
        self._instance = runtime.random.uuid().hex
        self._started_ms = self._now_ms()
        self._server = socket.gethostname()
        self._window_ms = settings.audit_window_ms
        self._counted: dict[str, Rows] = {}
        self._in_transaction: dict[str, Rows] | None = {} if settings.transactional_id is not None else None
        self._unsent: deque[MonitoringEvent] = deque()
        self._sequence = 0
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self._events.start()
        self._task = asyncio.get_running_loop().create_task(self._run())

    def delivered(self, tp: TopicPartition, batch: Batch, ack: Ack) -> None:
        """Count an acknowledged batch, whose bytes are still there. A fault is logged and fails no record."""
        counted = self._counted if self._in_transaction is None else self._in_transaction
        try:
            self._count(batch.encoded or b"", ack, counted.setdefault(tp.topic, {}))
        except Exception:
            logger.exception("%s: a batch of %s could not be counted for the audit", self._settings.client_id, tp)
        if self._in_transaction is None and len(counted[tp.topic]) > WINDOWS_MAX:
            self._wake.set()

    def _count(self, data: bytes | bytearray, ack: Ack, rows: Rows) -> None:
        section = section_of(memoryview(data), 0, read_header(data))
        if ack.append_time_ms >= 0:
            section = section._replace(append_timestamp=ack.append_time_ms)
        columns = decode([section])
        times = memoryview(columns.timestamps).cast("B").cast("q")[: columns.rows]
        digest(_source(columns.keys), _source(columns.values), times, 1, self._window_ms, self._now_ms(), rows)  # type: ignore[arg-type]

    def transaction_ended(self, committed: bool) -> None:
        """Count what the transaction has sent, or forget it."""
        assert self._in_transaction is not None
        if committed:
            for topic, rows in self._in_transaction.items():
                add_rows(self._counted.setdefault(topic, {}), rows)
        self._in_transaction.clear()

    async def close(self, timeout_s: float | None) -> None:
        """Send what was counted and the last event, for at most `timeout_s`."""
        if self._task is None:
            return
        await ended(self._task)
        try:
            async with asyncio.timeout(timeout_s):
                self._add_events()
                self._unsent.append(self._event("", 0, Digest(), closed=True))
                await self._send()
        except TimeoutError:
            pass
        if self._unsent:
            logger.warning("%s: %d monitoring events were not delivered", self._settings.client_id, len(self._unsent))
        await self._events.close(0.0)

    async def _run(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._settings.audit_interval_ms / 1000):
                    await self._wake.wait()
            self._wake.clear()
            self._add_events()
            await self._send()

    def _add_events(self) -> None:
        """Turn what was counted into events."""
        for topic, rows in self._counted.items():
            for start, row in sorted(rows.items()):
                self._unsent.append(self._event(topic, start, digest_of(row)))
        self._counted = {}
        if len(self._unsent) > UNSENT_MAX:
            line = "%s: %d monitoring events could not be sent and are dropped: the audit will miss them"
            logger.error(line, self._settings.client_id, len(self._unsent) - UNSENT_MAX)
            while len(self._unsent) > UNSENT_MAX:
                self._unsent.popleft()

    def _event(self, topic: str, start_ms: int, counted: Digest, closed: bool = False) -> MonitoringEvent:
        self._sequence += 1
        return MonitoringEvent(
            instance=self._instance, sequence=self._sequence - 1, server=self._server,
            producer=self._settings.client_id, topic=topic, window_start_ms=start_ms, window_ms=self._window_ms,
            digest=counted, sent_ms=self._now_ms(), closed=closed, started_ms=self._started_ms,
        )  # fmt: skip

    async def _send(self) -> None:
        """Send all events that wait; those that were not acknowledged go on waiting."""
        try:
            sent = [await self._events.send(self._topic, to_json(event), self._instance) for event in self._unsent]
            for delivery in sent:
                await delivery
                self._unsent.popleft()
        except MoldauError as failure:
            logger.warning("%s: monitoring events cannot be sent yet: %s", self._settings.client_id, failure)


def _source(column: Binary) -> Source:
    validity = None if column.validity is None else memoryview(column.validity)
    return Source(memoryview(column.offsets).cast("B").cast("i"), memoryview(column.data).cast("B"), validity)
