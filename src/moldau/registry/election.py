"""Which of several instances is the writer: the member of a consumer group that has the partition of the topic.

The group only says which instance should write, and the client id of a member says where it is reached. Two that both
believe they should write do no harm: the broker fences one of them (`topic.SchemasTopic.take_over`).
"""

import asyncio
import contextlib
import logging

from moldau.client.administration.admin import AsyncAdmin
from moldau.client.consuming.async_consumer import AsyncConsumer
from moldau.client.security.brokers import Brokers, settings_in
from moldau.errors import GroupIdNotFound, KafkaError, MoldauError
from moldau.monotonic import monotonic_s
from moldau.names import TopicPartition
from moldau.notices import Notices
from moldau.tasks import ended

logger = logging.getLogger(__name__)
notices = Notices(logger)

SESSION_MS, HEARTBEAT_MS = 6_000, 1_500
POLL_MS = 1_000
KNOWN_S = 1.0
"""How long an answer about the group counts."""
RETRY_S = 2.0
_CLIENT = "moldau-registry "


class WriterElection:
    """One instance's part in the group; `url` is where other instances reach it."""

    def __init__(self, brokers: str, topic: str, url: str):
        self._topic = topic
        self._group = f"moldau-registry-{topic}"
        self._url = url
        given = {name: value for name, value in settings_in(brokers).items() if name not in ("client.id", "group.id")}
        self._brokers = Brokers(str(brokers), {**given, "client.id": f"{_CLIENT}{url}"})
        self._consumer: AsyncConsumer | None = None
        self._admin: AsyncAdmin | None = None
        self._staying: asyncio.Task[None] | None = None
        self._is_elected = False
        self._known = ""
        self._known_until_s = 0.0

    async def start(self) -> None:
        """Join the group; that goes on while the instance serves already."""
        self._admin = AsyncAdmin(self._brokers)
        await self._admin.start()
        self._consumer = AsyncConsumer(
            self._brokers,
            group_id=self._group,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            enable_auto_commit=False,
        )
        await self._consumer.start()
        self._consumer.subscribe([self._topic], on_assigned=self._assigned, on_revoked=self._revoked)
        self._staying = asyncio.ensure_future(self._stay(self._consumer))

    async def stop(self) -> None:
        """Leave the group, which elects another instance at once."""
        await ended(self._staying)
        for client in (self._consumer, self._admin):
            if client is not None:
                with contextlib.suppress(MoldauError):
                    await client.close()

    async def writer(self) -> str:
        """The address of the instance that should write; empty if it is this one, or if the group has not decided."""
        if self._is_elected:
            return ""
        if monotonic_s() >= self._known_until_s:
            self._known = await self._asked()
            self._known_until_s = monotonic_s() + KNOWN_S
        return "" if self._known == self._url else self._known

    def doubt(self) -> None:
        """Ask the group again: the writer did not answer."""
        self._known_until_s = 0.0

    async def _asked(self) -> str:
        assert self._admin is not None
        try:
            group = await self._admin.describe_group(self._group)
        except GroupIdNotFound:
            return ""  # nobody has joined yet
        except KafkaError as failure:
            notices.warning("", "the group %s cannot be described: %s", self._group, failure)
            return ""
        wanted = TopicPartition(self._topic, 0)
        found = (one.client_id for one in group.members if wanted in one.partitions)
        return next((one.removeprefix(_CLIENT) for one in found if one.startswith(f"{_CLIENT}http")), "")

    async def _stay(self, consumer: AsyncConsumer) -> None:
        while True:
            try:
                await consumer.poll(POLL_MS)
            except MoldauError as failure:
                self._is_elected = False
                notices.warning("", "this instance is not in the group %s: %s", self._group, failure)
                await asyncio.sleep(RETRY_S)

    def _assigned(self, partitions: list[TopicPartition]) -> None:
        if not partitions:
            return
        assert self._consumer is not None
        self._consumer.pause(partitions)  # the records are read elsewhere
        self._is_elected = True
        logger.info("this instance is the writer of %s", self._topic)

    def _revoked(self, partitions: list[TopicPartition]) -> None:
        self._is_elected = False
        self.doubt()
