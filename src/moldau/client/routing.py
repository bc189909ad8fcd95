"""The connections of one client, on asyncio: links to brokers, and look-up of leaders and coordinators.

`Router` keeps one `Link` for each broker and purpose; requests to coordinators have their own links, because a long
poll must not delay a heartbeat. It dials on first use and forgets a broken link. Its `ClusterView` knows the brokers'
addresses and the leaders, and is refreshed when it turns out to be stale. `retrying` is the only place where an attempt
is repeated: with backoff, until it succeeds, fails with an error that is not retriable, or its time is over. If a
broker neither answers nor refuses a connection, the next one is dialled beside it.

A link to a broker of the metadata names that broker and its cluster to whoever answers (KIP-1242). If that is another
one, or a broker says in reply to Metadata that its clients must start again (KIP-1102), the router does: it forgets the
cluster, closes its links and asks the bootstrap servers, as it does when no known broker answers.
"""

import asyncio
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from moldau.client.cluster_view import NEWEST_WITH_NAMES, ClusterView, TopicView
from moldau.client.failures import STALE_METADATA, Backoff, ClientClosed, RetryLog, check, tried
from moldau.client.own_loop import OwnLoop
from moldau.client.settings import ClientSettings
from moldau.errors import AuthenticationFailed, ErrorCode, KafkaError, RebootstrapRequired, SslHandshakeFailed
from moldau.names import TopicPartition
from moldau.net.connection import MAX_REPLY_BYTES
from moldau.peers.address import Address, bootstrap_addresses
from moldau.peers.link import REQUEST_TIMEOUT_MS, Link, connect
from moldau.peers.negotiation import NO_LIMITS, IntendedBroker
from moldau.protocol.apis import ADD_PARTITIONS_TO_TXN, FIND_COORDINATOR, METADATA
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from moldau.runtime import Runtime
from moldau.tasks import ended

if TYPE_CHECKING:
    from moldau.client.security.protection import Protection
    from moldau.client.zookeeper.registry import Registry

logger = logging.getLogger(__name__)

API_TIMEOUT_MS = 60_000
METADATA_MAX_AGE_MS = 300_000
NEWEST_OF_CLIENTS = 3
"""The newest version of AddPartitionsToTxn that clients send; newer ones are for brokers."""
REBOOTSTRAP = "rebootstrap"
"""The value of `metadata.recovery.strategy` with which clients return to the bootstrap servers."""
SLOW_DIAL_S = 1.0
"""A broker that has neither answered nor refused a connection for so long may be gone: another one is asked, too."""
LAG_S = 0.25
"""Brokers are asked again after this long for partitions that ZooKeeper has already."""
GROUP_KEY, TRANSACTION_KEY = 0, 1
"""Key types of FindCoordinator: group and transactional id."""
T = TypeVar("T")


def router_of(
    settings: ClientSettings, max_reply_bytes: int = MAX_REPLY_BYTES, highest: Mapping[int, int] = NO_LIMITS
) -> "Router":
    """The connections of a client with these settings; `highest` as for `Router`. Raises `ConfigError`."""
    assert isinstance(settings.bootstrap_servers, str)
    registry = protection = None
    if getattr(settings, "zookeeper_connect", None) is not None:  # few clients need these imports, or those below
        from moldau.client.zookeeper.registry import registry_of
        from moldau.client.zookeeper.zookeeper_settings import ZooKeeperSettings

        assert isinstance(settings, ZooKeeperSettings)
        registry = registry_of(settings)
    if settings.is_protected:
        from moldau.client.security.protection import protection_of

        protection = protection_of(settings)
    return Router(
        settings.bootstrap_servers,
        settings.client_id,
        request_timeout_ms=settings.request_timeout_ms,
        api_timeout_ms=settings.default_api_timeout_ms,
        connect_timeout_ms=settings.socket_connection_setup_timeout_ms,
        metadata_max_age_ms=settings.metadata_max_age_ms,
        backoff_ms=(settings.retry_backoff_ms, settings.retry_backoff_max_ms),
        runtime=settings.runtime,
        recovers=settings.metadata_recovery_strategy == REBOOTSTRAP,
        checks_brokers=settings.metadata_cluster_check_enable,
        protection=protection,
        max_reply_bytes=max_reply_bytes,
        registry=registry,
        highest=highest,
    )


class Router:
    """The connections of one client; `highest` limits the versions of some APIs (key -> version). `recovers`: whether
    it returns to the bootstrap servers once it knows the cluster. `checks_brokers`: whether links name the broker that
    they are meant for; not without `recovers`. `protection` is
    that of all links. A `registry` names the brokers to ask first, in place of `bootstrap`. Use it in `async with`, on
    one loop."""

    def __init__(
        self,
        bootstrap: str | Iterable[str],
        client_id: str = "moldau",
        *,
        request_timeout_ms: int = REQUEST_TIMEOUT_MS,
        api_timeout_ms: int = API_TIMEOUT_MS,
        connect_timeout_ms: int = 10_000,
        metadata_max_age_ms: int = METADATA_MAX_AGE_MS,
        backoff_ms: tuple[int, int] = (50, 1_000),
        max_reply_bytes: int = MAX_REPLY_BYTES,
        highest: Mapping[int, int] = NO_LIMITS,
        runtime: Runtime | None = None,
        recovers: bool = True,
        checks_brokers: bool = True,
        protection: "Protection | None" = None,
        registry: "Registry | None" = None,
    ):
        self.registry = registry
        self._bootstrap = bootstrap_addresses(bootstrap)
        self.client_id = client_id
        self.request_timeout_ms = request_timeout_ms
        self.api_timeout_ms = api_timeout_ms
        self.runtime = runtime or Runtime()
        self.own_loop = OwnLoop(f"the client {client_id!r}")
        self.view = ClusterView()
        self.retries = RetryLog(client_id, lambda: asyncio.get_running_loop().time())
        self._connect_timeout_ms = connect_timeout_ms
        self._metadata_max_age_s = metadata_max_age_ms / 1000
        self._refreshed_s = -math.inf
        last_ms = max(backoff_ms[1], 1)
        self._backoff_ms = min(max(backoff_ms[0], 1), last_ms), last_ms
        self._max_reply_bytes = max_reply_bytes
        self._highest = {**NEWEST_WITH_NAMES, ADD_PARTITIONS_TO_TXN.key: NEWEST_OF_CLIENTS, **highest}
        self._recovers = recovers
        self._checks_brokers = recovers and checks_brokers
        self._protection = protection
        self._links: dict[tuple[Address, str], asyncio.Task[Link]] = {}
        self._closed = False
        self._outdated: dict[str, TopicView] = {}
        """The views of topics that turned out to be outdated, until the next metadata."""
        self._counted: dict[str, tuple[int, Callable[[], object]]] = {}
        """The numbers of partitions that producers have looked up, and what is called when metadata have another."""
        self._doubted: Address | None = None
        """The broker whose metadata repeated such a view: it may be cut off from the cluster."""

    async def __aenter__(self) -> "Router":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def closed(self) -> bool:
        return self._closed

    async def close(self) -> None:
        """Close every connection; calls that await a reply fail."""
        self._closed = True
        links, self._links = self._links, {}
        for dialling in links.values():
            if _is_open(dialling):
                dialling.result().connection.close()
            dialling.cancel()
        await asyncio.gather(*links.values(), return_exceptions=True)
        if self.registry is not None:
            await self.registry.close()

    def abandon(self) -> None:
        """Break the connections of a client that nobody closed before its event loop ended."""
        self._closed = True
        for dialling in self._links.values():
            if _is_open(dialling):
                dialling.result().connection.close()

    async def link(self, address: Address, purpose: str = "", broker_id: int | None = None) -> Link:
        """The link to a broker for a purpose; `broker_id` if the metadata says which one has the address. Concurrent
        callers share one attempt to dial."""
        if self._closed:
            raise ClientClosed("this client is closed")
        key = (address, purpose)
        dialling = self._links.get(key)
        if dialling is None or _has_ended(dialling):
            self._forget_ended()
            connecting = self._connect(address, broker_id)
            dialling = self._links[key] = asyncio.get_running_loop().create_task(connecting)
        return await asyncio.shield(dialling)

    def _forget_ended(self) -> None:
        """A broker may have another address each time that it starts: links that have ended, with their buffers, do
        not stay."""
        for key in [key for key, dialling in self._links.items() if _has_ended(dialling)]:
            del self._links[key]

    async def _connect(self, address: Address, broker_id: int | None) -> Link:
        intended = self.view.intended(broker_id) if self._checks_brokers else None
        slow = asyncio.get_running_loop().call_later(self.retries.UNREACHABLE_S, self.retries.no_answer, address)
        try:
            link = await self._dialled(address, intended)
            self.retries.reached = True
            return link
        except RebootstrapRequired as misrouted:
            what = f"{address} is not {intended}: {misrouted}"
            # Others may have dialled by the same metadata, and the client may have begun again since.
            if self.view.intended(broker_id) == intended and self.view.brokers.get(broker_id or 0) == address:
                self._begin_again(what)
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, what) from None
        finally:
            slow.cancel()

    async def _dialled(self, address: Address, intended: IntendedBroker | None) -> Link:
        """A new link, protected and logged in."""
        protection, timeout_ms = self._protection, self._connect_timeout_ms
        login = None if protection is None else protection.login
        if login is not None:
            from moldau.peers.sessions import REPLY_BYTES_MAX, LinkSession
        link = await connect(
            address,
            self.client_id,
            timeout_ms,
            self._max_reply_bytes if login is None else REPLY_BYTES_MAX,
            self._highest,
            intended,
            None if protection is None else protection.context(),
        )
        if login is not None:
            try:
                await LinkSession(link, login, self.runtime.random, timeout_ms).begin()
            except BaseException as failure:
                link.connection.close(failure if isinstance(failure, KafkaError) else None)
                raise
            link.connection.limit_replies(self._max_reply_bytes)
        return link

    def _begin_again(self, why: str) -> None:
        """Forget the cluster and close the links to it."""
        logger.info("%s: %s; asking the bootstrap servers again", self.client_id, why)
        self.view.forget()
        self._outdated.clear()
        self._doubted = None
        for dialling in self._links.values():
            if _is_open(dialling):
                dialling.result().connection.close()

    async def broker(self, broker_id: int, purpose: str = "") -> Link:
        """The link to a broker by its id. Raises `KafkaError` for an id that Metadata does not list."""
        address = self.view.brokers.get(broker_id)
        if address is None:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"broker {broker_id} is not in the cluster's metadata")
        return await self.link(address, purpose, broker_id)

    async def any(self) -> Link:
        """A connection to any broker that answers: the open one with the fewest unanswered requests, as a broker that
        hangs has some. One whose metadata was outdated is the last choice. Raises `KafkaError(NETWORK_EXCEPTION)` if
        none answers."""
        return (await self._any())[1]

    async def _any(self) -> tuple[Address, Link]:
        opened = [(address, dialling.result()) for (address, _), dialling in self._links.items() if _is_open(dialling)]
        trusted = [one for one in opened if one[0] != self._doubted]
        if trusted:
            return min(trusted, key=lambda one: one[1].connection.in_flight)
        addresses: dict[Address, int | None] = {address: number for number, address in self.view.brokers.items()}
        if self._recovers or not addresses:
            first = self._bootstrap if self.registry is None else await self.registry.addresses()
            addresses |= {address: None for address in first if address not in addresses}
        order = sorted(addresses, key=lambda address: address == self._doubted)
        return await self._first_that_answers({one: addresses[one] for one in order}, opened[0] if opened else None)

    async def _first_that_answers(
        self, addresses: Mapping[Address, int | None], doubtful: tuple[Address, Link] | None
    ) -> tuple[Address, Link]:
        """Dial these brokers (address -> id, if it is known) in turn. One that neither answers nor refuses within
        `SLOW_DIAL_S` is waited for beside the next one. A `doubtful` link is taken if the first attempt fails or is
        slow."""
        failure: KafkaError | None = None
        cluster_id = self.view.cluster_id
        attempts: dict[asyncio.Task[Link], Address] = {}
        left = deque(addresses)
        try:
            while left or attempts:
                if left:
                    link = self.link(left[0], broker_id=addresses[left[0]])
                    attempts[asyncio.get_running_loop().create_task(link)] = left.popleft()
                slow_s = SLOW_DIAL_S if left or doubtful else None
                done, _ = await asyncio.wait(attempts, timeout=slow_s, return_when=asyncio.FIRST_COMPLETED)
                for attempt in [one for one in attempts if one in done]:
                    try:
                        return attempts.pop(attempt), attempt.result()
                    except KafkaError as refused:
                        if self.view.cluster_id != cluster_id:  # the client has begun again: these are forgotten
                            raise
                        if isinstance(refused, AuthenticationFailed) and not isinstance(refused, SslHandshakeFailed):
                            raise  # the other brokers have the same users
                        logger.debug("%s: %s", self.client_id, refused)
                        failure, self._doubted = refused, None  # rather a doubtful broker than none
                if doubtful and (failure or not done):
                    self._doubted = None
                    return doubtful
        finally:
            await ended(*attempts)  # what they dial goes on
        assert failure is not None
        raise failure

    async def refresh(self, topics: Iterable[str] | None, *, create: bool = False) -> None:
        """Request metadata of these topics, or of all (None), from any broker. With `create`, the broker may create
        missing topics if `auto.create.topics.enable` is on."""
        address, link = await self._any()
        asked = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=asked, allow_auto_topic_creation=create)
        reply = await link.call(METADATA, request, self.request_timeout_ms)
        if reply.error_code == ErrorCode.REBOOTSTRAP_REQUIRED and self._recovers:
            self._begin_again(f"{address} says that its clients must start again")
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, f"{address} says that its clients must start again")
        check(reply.error_code, "metadata")
        self.view.apply(reply, everything=asked is None)
        self._refreshed_s = asyncio.get_running_loop().time()
        for topic in reply.topics:
            counted = self._counted.get(topic.name or "")
            if counted is not None and topic.partitions and len(topic.partitions) != counted[0]:
                del self._counted[topic.name]
                counted[1]()
        for name in [name for name in self._outdated if name in self.view.topics]:
            if self._outdated.pop(name) == self.view.topics[name]:
                self._doubted = address

    async def leader(self, tp: TopicPartition, *, create: bool = False) -> int:
        """The id of the partition's leader; refreshes the view if it does not know the leader. Raises `KafkaError`,
        retriable while the partition has no leader."""
        leader = self.view.leader(tp)
        if isinstance(leader, ErrorCode):
            await self.refresh([tp.topic], create=create)
            leader = self.view.leader(tp)
        if isinstance(leader, ErrorCode):
            check(leader, f"partition {tp.partition} of topic {tp.topic}")
        return leader

    def stale(self, topic: str) -> None:
        """Forget the leaders of this topic: the next look-up refreshes the view."""
        if known := self.view.topics.pop(topic, None):
            self._outdated[topic] = known

    async def coordinator(self, key: str, key_type: int = GROUP_KEY) -> int:
        """The id of the broker that coordinates a group or a transactional id. Raises `KafkaError`, retriable while the
        coordinator is not available."""
        request = FIND_COORDINATOR.request(key=key, key_type=key_type, coordinator_keys=[key])
        link = await self.any()
        reply = await link.call(FIND_COORDINATOR, request, self.request_timeout_ms)
        coordinator = reply.coordinators[0] if reply.coordinators else reply
        owner = "group" if key_type == GROUP_KEY else "transactional id"
        check(coordinator.error_code, f"the coordinator of {owner} {key}", coordinator.error_message)
        self.view.brokers[coordinator.node_id] = Address(coordinator.host, coordinator.port)
        return int(coordinator.node_id)

    @property
    def is_outdated(self) -> bool:
        """Whether the latest metadata is as old as `metadata.max.age.ms`."""
        return asyncio.get_running_loop().time() - self._refreshed_s >= self._metadata_max_age_s

    def known_until_s(self, topic: str, count: int, changed: Callable[[], object]) -> float:
        """The time of the loop until which metadata of a topic with `count` partitions are new enough. `changed` is
        called if metadata have another number before that, as of a topic that was deleted and created again, or if
        ZooKeeper says so; a broker may hear of it a moment later."""
        self._counted[topic] = count, changed
        now_s = asyncio.get_running_loop().time()
        if self.registry is not None:
            self.registry.follow(topic, count, changed)
            if count < self.registry.partitions(topic):
                return now_s + LAG_S
        return now_s + self._metadata_max_age_s

    def backoff(self, about: str = "") -> Backoff:
        """The waits between attempts; `about` names the attempted action in the log."""
        return Backoff(self.runtime.random, self.retries, about, *self._backoff_ms)

    async def retrying(self, attempt: Callable[[], Awaitable[T]], *, timeout_ms: int | None = None) -> T:
        """Repeat the attempt until it succeeds or fails with an error that is not retriable. Once `timeout_ms` is over
        the last failure is raised."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        deadline = began_s + (self.api_timeout_ms if timeout_ms is None else timeout_ms) / 1000
        backoff = self.backoff()
        while True:
            try:
                return await attempt()
            except KafkaError as failure:
                if not failure.retriable:
                    raise
                if failure.code in STALE_METADATA:
                    for topic in list(self.view.topics):
                        self.stale(topic)
                wait_ms = backoff.next_ms()
                if loop.time() + wait_ms / 1000 > deadline:
                    raise tried(failure, loop.time() - began_s) from None
                backoff.say(failure, wait_ms)
            await asyncio.sleep(wait_ms / 1000)


def _has_ended(dialling: asyncio.Task[Link]) -> bool:
    return dialling.done() and not _is_open(dialling)


def _is_open(dialling: asyncio.Task[Link]) -> bool:
    if not dialling.done() or dialling.cancelled() or dialling.exception():
        return False
    return not dialling.result().closed
