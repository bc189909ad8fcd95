"""Requests to the right broker, on asyncio: connections by broker, what each speaks, who leads and who coordinates.

A `Link` is a negotiated connection. `Router` keeps one for each broker and purpose (a long poll must not delay a
heartbeat, so coordinators are talked to on links of their own), dials on first use, and forgets a link that broke. It
knows the cluster by `ClusterView` and asks again when told that the view is stale. `retrying` is the one place where a
failed attempt is tried again: with backoff, until it succeeds, fails for good, or its time is over.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from moldau.client.cluster_view import Address, ClusterView, bootstrap_addresses
from moldau.client.failures import STALE_METADATA, Backoff, ClientClosed, RetryLog, check
from moldau.client.negotiation import Versions, hello, understand
from moldau.errors import ErrorCode, KafkaError, ProtocolViolation
from moldau.names import TopicPartition
from moldau.net.connection import MAX_REPLY_BYTES, Connection, dial
from moldau.protocol.apis import API_VERSIONS, FIND_COORDINATOR, METADATA, Api
from moldau.protocol.codec import read_reply, write_request
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from moldau.runtime import Buffer, Runtime

logger = logging.getLogger(__name__)

REQUEST_TIMEOUT_MS = 30_000
API_TIMEOUT_MS = 60_000
METADATA_MAX_AGE_MS = 300_000
GROUP_KEY, TRANSACTION_KEY = 0, 1
"""Whose coordinator is asked for."""
T = TypeVar("T")


class Link:
    """A negotiated connection to one broker."""

    def __init__(self, connection: Connection, versions: Versions, client_id: str):
        self.connection = connection
        self.versions = versions
        self._client_id = client_id

    @property
    def closed(self) -> bool:
        return self.connection.closed

    def post(self, api: Api, request: Any, timeout_ms: int = REQUEST_TIMEOUT_MS) -> asyncio.Future[memoryview]:
        """Write a request now; the future has the frame of its reply (`codec.read_reply` in `versions.of(api)`)."""
        correlation_id = self.connection.next_correlation_id()
        frame: Buffer = write_request(api, self.versions.of(api), correlation_id, self._client_id, request)
        return self.connection.send(correlation_id, [frame], timeout_ms)

    def post_unanswered(self, api: Api, request: Any) -> None:
        """Write a request that gets no reply."""
        correlation_id = self.connection.next_correlation_id()
        self.connection.send_unanswered(
            [write_request(api, self.versions.of(api), correlation_id, self._client_id, request)]
        )

    async def call(self, api: Api, request: Any, timeout_ms: int = REQUEST_TIMEOUT_MS) -> Any:
        """One request, one reply. Raises `KafkaError(NETWORK_EXCEPTION | REQUEST_TIMED_OUT)`."""
        frame = await self.post(api, request, timeout_ms)
        try:
            return read_reply(api, self.versions.of(api), frame)
        except ProtocolViolation as violation:
            self.connection.close()
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"a broker sent what is no {api.name}: {violation}") from None


async def connect(address: Address, client_id: str, timeout_ms: int, max_reply_bytes: int = MAX_REPLY_BYTES) -> Link:
    """Dial and agree on versions. Raises `KafkaError`."""
    connection = await dial(address.host, address.port, timeout_ms=timeout_ms, max_reply_bytes=max_reply_bytes)
    try:
        version = API_VERSIONS.high
        while True:
            correlation_id = connection.next_correlation_id()
            frame = await connection.send(correlation_id, [hello(version, correlation_id, client_id)], timeout_ms)
            versions = understand(version, frame)
            if isinstance(versions, Versions):
                return Link(connection, versions, client_id)
            version = versions
    except ProtocolViolation as violation:
        connection.close()
        raise KafkaError(
            ErrorCode.NETWORK_EXCEPTION, f"{address} does not speak Kafka's protocol: {violation}"
        ) from None
    except BaseException:
        connection.close()
        raise


class Router:
    """The connections of one client. Use it in `async with`, on one loop."""

    def __init__(
        self,
        bootstrap: str | Iterable[str],
        client_id: str = "moldau",
        *,
        request_timeout_ms: int = REQUEST_TIMEOUT_MS,
        api_timeout_ms: int = API_TIMEOUT_MS,
        connect_timeout_ms: int = 10_000,
        max_reply_bytes: int = MAX_REPLY_BYTES,
        runtime: Runtime | None = None,
    ):
        self._bootstrap = bootstrap_addresses(bootstrap)
        self.client_id = client_id
        self.request_timeout_ms = request_timeout_ms
        self.api_timeout_ms = api_timeout_ms
        self.runtime = runtime or Runtime()
        self.view = ClusterView()
        self.retries = RetryLog(client_id, lambda: asyncio.get_running_loop().time())
        self._connect_timeout_ms = connect_timeout_ms
        self._max_reply_bytes = max_reply_bytes
        self._links: dict[tuple[Address, str], asyncio.Task[Link]] = {}
        self._closed = False

    async def __aenter__(self) -> "Router":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection; what awaits a reply fails."""
        self._closed = True
        links, self._links = self._links, {}
        for dialling in links.values():
            dialling.cancel()
        for result in await asyncio.gather(*links.values(), return_exceptions=True):
            if isinstance(result, Link):
                result.connection.close()

    async def link(self, address: Address, purpose: str = "") -> Link:
        """The connection to a broker for a purpose; whoever asks while it is dialled waits for the same one."""
        if self._closed:
            raise ClientClosed("this client is closed")
        key = (address, purpose)
        dialling = self._links.get(key)
        if dialling is None or (
            dialling.done() and (dialling.cancelled() or dialling.exception() or dialling.result().closed)
        ):
            connecting = connect(address, self.client_id, self._connect_timeout_ms, self._max_reply_bytes)
            dialling = self._links[key] = asyncio.get_running_loop().create_task(connecting)
        return await asyncio.shield(dialling)

    async def broker(self, broker_id: int, purpose: str = "") -> Link:
        """The connection to a broker by its id. Raises `KafkaError` for one that the cluster does not name."""
        address = self.view.brokers.get(broker_id)
        if address is None:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"broker {broker_id} is not there")
        return await self.link(address, purpose)

    async def any(self) -> Link:
        """A connection to any broker that answers. Raises `KafkaError(NETWORK_EXCEPTION)` if none does."""
        for dialling in self._links.values():
            if (
                dialling.done()
                and not dialling.cancelled()
                and not dialling.exception()
                and not dialling.result().closed
            ):
                return dialling.result()
        failure: KafkaError | None = None
        for address in dict.fromkeys([*self.view.brokers.values(), *self._bootstrap]):
            if failure is not None:
                logger.debug("%s: %s (next: %s)", self.client_id, failure, address)
            try:
                return await self.link(address)
            except KafkaError as refused:
                failure = refused
        assert failure is not None
        raise failure

    async def refresh(self, topics: Iterable[str] | None, *, create: bool = False) -> None:
        """Ask any broker about some topics, or all of them; `create` lets it make those that are missing, if it does
        that."""
        link = await self.any()
        asked = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=asked, allow_auto_topic_creation=create)
        reply = await link.call(METADATA, request, self.request_timeout_ms)
        check(reply.error_code, "metadata")
        self.view.apply(reply, everything=asked is None)

    async def leader(self, tp: TopicPartition, *, create: bool = False) -> int:
        """The broker that leads the partition, asked for if not known. Raises `KafkaError`, retriable while there is
        none."""
        leader = self.view.leader(tp)
        if isinstance(leader, ErrorCode):
            await self.refresh([tp.topic], create=create)
            leader = self.view.leader(tp)
        if isinstance(leader, ErrorCode):
            check(leader, f"partition {tp.partition} of topic {tp.topic}")
        return leader

    def stale(self, topic: str) -> None:
        """Whoever needs a leader of this topic next asks the cluster first."""
        self.view.topics.pop(topic, None)

    async def coordinator(self, key: str, key_type: int = GROUP_KEY) -> int:
        """The broker that coordinates a group, or a transactional id. Raises `KafkaError`, retriable while there is
        none."""
        request = FindCoordinatorRequest(key=key, key_type=key_type, coordinator_keys=[key])
        link = await self.any()
        reply = await link.call(FIND_COORDINATOR, request, self.request_timeout_ms)
        found = reply.coordinators[0] if reply.coordinators else reply
        whose = "group" if key_type == GROUP_KEY else "transactional id"
        check(found.error_code, f"the coordinator of {whose} {key}", found.error_message)
        self.view.brokers[found.node_id] = Address(found.host, found.port)
        return int(found.node_id)

    def backoff(self, about: str = "", first_ms: int = 50, last_ms: int = 1_000) -> Backoff:
        """The waits between the attempts at something; `about` is its name in the log."""
        return Backoff(self.runtime.random, self.retries, about, first_ms, last_ms)

    async def retrying(self, attempt: Callable[[], Awaitable[T]], *, timeout_ms: int | None = None) -> T:
        """Try until it succeeds, fails for good, or `timeout_ms` is over; then the last failure is raised."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (self.api_timeout_ms if timeout_ms is None else timeout_ms) / 1000
        backoff = self.backoff()
        while True:
            try:
                return await attempt()
            except KafkaError as failure:
                if not failure.retriable:
                    raise
                if failure.code in STALE_METADATA:
                    self.view.topics.clear()
                wait_ms = backoff.next_ms()
                if loop.time() + wait_ms / 1000 > deadline:
                    raise
                backoff.say(failure, wait_ms)
            await asyncio.sleep(wait_ms / 1000)
