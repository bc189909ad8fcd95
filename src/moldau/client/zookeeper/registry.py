"""The registry of brokers and topics in ZooKeeper, as a client follows it.

`addresses` returns the brokers that are registered. From then on a task keeps a watch on `/brokers/ids`, and on
`/brokers/topics/TOPIC` of each topic that is followed, so that a client knows of a broker or partition as soon as the
registry does. ZooKeeper may be away later: what is known stays known, and a new session looks at everything again.

Source: the producer of Kafka 0.7, which also watched `/brokers/topics`. A producer here learns a new topic with its
first record.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from moldau.client.zookeeper.registered_brokers import BROKERS, address_in
from moldau.client.zookeeper.registered_topics import TOPICS, first_replicas
from moldau.client.zookeeper.sessions import Sessions, sessions_of
from moldau.client.zookeeper.zookeeper_settings import ZooKeeperSettings
from moldau.errors import ConfigError, ErrorCode, KafkaError, StorageError
from moldau.metadata_store.store import MetadataStore, Reading, children_of, node_at, nodes_at
from moldau.notices import Notices
from moldau.peers.address import Address
from moldau.tasks import ended

AGAIN_S = 1.0
"""The pause before another session is opened."""

logger = logging.getLogger(__name__)
notices = Notices(logger)


class Registry:
    """The registry as one client knows it. `protocol` is the security protocol that it speaks with brokers."""

    def __init__(self, sessions: Sessions, protocol: str):
        self.sessions = sessions
        self._protocol = protocol
        self._known: list[Address] = []
        self._counts: dict[str, int] = {}
        self._followed: dict[str, Callable[[], object]] = {}
        self._stale: dict[str | None, None] = {}
        """The topics to look at again, None for the brokers."""
        self._changed = asyncio.Event()
        self._following: asyncio.Task[None] | None = None

    async def addresses(self) -> list[Address]:
        """The addresses of the brokers that are registered. Raises `ConfigError`, and `KafkaError` (retriable) if
        nothing is known yet and ZooKeeper does not answer, or has none."""
        if not self._known:
            session = await self.sessions.current()
            try:
                await self._look_at_brokers(session)
            except StorageError as failure:
                self.sessions.drop(session)
                raise KafkaError(ErrorCode.NETWORK_EXCEPTION, str(failure)) from None
        if self._following is None:
            self._following = asyncio.ensure_future(self._follow())
        if not self._known:
            raise KafkaError(
                ErrorCode.NETWORK_EXCEPTION,
                f"no broker with a listener for {self._protocol} is registered in ZooKeeper at"
                f" {self.sessions.connect} ({BROKERS})",
            )
        return self._known

    def follow(self, topic: str, count: int, changed: Callable[[], object]) -> None:
        """Call `changed` from now on when this topic has another number of partitions than before; at first `count`."""
        if topic not in self._followed:
            self._stale[topic], self._counts[topic] = None, count
        self._followed[topic] = changed
        self._changed.set()

    def partitions(self, topic: str) -> int:
        """How many partitions a followed topic has."""
        return self._counts[topic]

    async def close(self) -> None:
        await ended(self._following)
        await self.sessions.close()

    async def _follow(self) -> None:
        while True:
            try:
                session = await self.sessions.current()
                await self._follow_in(session)
            except StorageError as failure:
                logger.debug("the registry in ZooKeeper is looked at again: %s", failure)
                self.sessions.drop(session)
            except KafkaError as failure:
                logger.debug("the registry in ZooKeeper is looked at again: %s", failure)
            except ConfigError as failure:  # a file that a session needs, such as a certificate, is of no use now
                notices.warning("", "no session in ZooKeeper can be opened, and that is tried again: %s", failure)
            await asyncio.sleep(AGAIN_S)

    async def _follow_in(self, session: MetadataStore) -> None:
        """Keep the watches in a session until it is over. Raises `StorageError`."""
        watched: dict[str | None, None] = {}
        self._stale |= dict.fromkeys([None, *self._followed])
        while True:
            while self._stale:
                topic = next(iter(self._stale))
                del self._stale[topic]
                if topic not in watched:
                    watched[topic] = None
                    path = BROKERS if topic is None else f"{TOPICS}/{topic}"
                    await session.watch(path, partial(self._fired, topic))
                if topic is None:
                    await self._look_at_brokers(session)
                else:
                    await self._look_at(session, topic)
            self._changed.clear()
            await self._changed.wait()

    def _fired(self, topic: str | None) -> None:
        self._stale[topic] = None
        self._changed.set()

    async def _look_at_brokers(self, session: MetadataStore) -> None:
        """While no broker is registered, those that were known before are kept: one of them may be back first."""
        self._known = await session.read(_read_addresses(self._protocol)) or self._known

    async def _look_at(self, session: MetadataStore, topic: str) -> None:
        node = await session.read(node_at(f"{TOPICS}/{topic}"))
        count = len((None if node is None else first_replicas(node.data)) or ())
        if count != self._counts[topic]:
            self._counts[topic] = count
            self._followed[topic]()


def _read_addresses(protocol: str) -> Reading[list[Address]]:
    names = yield from children_of(BROKERS)
    nodes = yield from nodes_at([f"{BROKERS}/{name}" for name in names])
    found = [None if node is None else address_in(node.data, protocol) for node in nodes]
    return [address for address in found if address is not None]


def registry_of(settings: ZooKeeperSettings) -> Registry:
    """The registry for a client with these settings, in which `zookeeper_connect` is set."""
    return Registry(sessions_of(settings), settings.security_protocol)
