"""A small client on blocking sockets, for processes without an event loop: Spark's driver and its tasks.

It uses one connection for each broker and does nothing in the background. `Caller` finds leaders and retries retriable
errors with backoff until `timeout_ms` is over. It opens a `BlockingLink` for each broker, which receives all replies
into one buffer: the frame that `BlockingLink.receive` returns is valid until the next `receive`.
"""

import socket
import struct
import sys
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from moldau.client.cluster_view import NEWEST_WITH_NAMES, ClusterView
from moldau.client.failures import STALE_METADATA, Backoff, RetryLog, check, tried
from moldau.client.security.brokers import settings_in
from moldau.errors import AuthenticationFailed, ErrorCode, KafkaError, ProtocolViolation, RebootstrapRequired
from moldau.monotonic import monotonic_s
from moldau.names import TopicPartition
from moldau.peers.address import Address, bootstrap_addresses
from moldau.peers.negotiation import IntendedBroker, Versions, read_versions, versions_request
from moldau.protocol.apis import API_VERSIONS, METADATA, Api
from moldau.protocol.codec import read_reply, write_request
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from moldau.randomness import RealRandom

if TYPE_CHECKING:
    from ssl import SSLError

    from moldau.client.security.protection import Protection
    from moldau.peers.sessions import ClientLogin

MAX_REPLY_BYTES = 51 * 1024 * 1024
"""What a consumer fetches at most by default, and 1 MiB: a fetch of more says so."""
BESIDE_RECORDS = 1024 * 1024
LOGIN_REPLY_BYTES_MAX = 1024 * 1024
"""Of a broker that has not authenticated this client, and has proved nothing itself."""
AGAIN_AT = 0.85
"""The part of a login's time after which the user logs in again."""
_SIZE = struct.Struct(">i")
T = TypeVar("T")


class BlockingLink:
    """A negotiated connection to one broker. Raises `RebootstrapRequired` if the address is that of another broker than
    the `intended` one."""

    def __init__(
        self,
        address: Address,
        client_id: str,
        timeout_ms: int,
        intended: IntendedBroker | None = None,
        protection: "Protection | None" = None,
        reply_bytes_max: int = MAX_REPLY_BYTES,
    ):
        self._address = address
        self._client_id = client_id
        self._correlation_id = 0
        self._buffer = bytearray(256 * 1024)
        try:
            self._socket = socket.create_connection(address, timeout_ms / 1000)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if protection is not None and protection.tls is not None:
                self._socket = protection.tls.wrapped(self._socket, address.host)
        except OSError as refused:
            if _is_of_tls(refused):
                raise _failed(address, refused, in_handshake=True) from None
            why = refused.strerror or str(refused)
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, f"cannot connect to {address}: {why}") from None
        self._reply_bytes_max = self._later_bytes_max = reply_bytes_max
        self._unanswered = 0
        self._again_s: float | None = None
        self._login = None if protection is None else protection.login
        try:
            if self._login is not None:
                self._reply_bytes_max = LOGIN_REPLY_BYTES_MAX
            self.versions = self._negotiate(intended)
            if self._login is not None:
                self._log_in(self._login)
        except BaseException:
            self.close()
            raise

    def _negotiate(self, intended: IntendedBroker | None) -> Versions:
        version = API_VERSIONS.high
        while True:
            self._correlation_id += 1
            self._unanswered += 1
            self._write(versions_request(version, self._correlation_id, self._client_id, intended))
            versions = read_versions(version, self.receive(), NEWEST_WITH_NAMES)
            if isinstance(versions, Versions):
                return versions
            version = versions

    def close(self) -> None:
        self._socket.close()

    def send(self, api: Api, request: Any) -> int:
        """Send a request and return its version. Replies come in the order of the requests. The user logs in again
        before, if it is time and no reply is awaited; a broker that ends the login before that breaks the
        connection, and its owner dials again."""
        again_s = self._again_s
        if again_s is not None and self._login is not None and not self._unanswered and monotonic_s() >= again_s:
            self._log_in(self._login)
        self._unanswered += 1
        version = self.versions.of(api)
        self._correlation_id += 1
        self._write(write_request(api, version, self._correlation_id, self._client_id, request))
        return version

    def call(self, api: Api, request: Any) -> Any:
        """Send a request and return its reply."""
        version = self.send(api, request)
        return read_reply(api, version, self.receive())

    def receive(self) -> memoryview:
        """The frame of the next reply, starting at the correlation id; valid until the next `receive`."""
        self._fill(memoryview(self._buffer)[:4])
        size = _SIZE.unpack_from(self._buffer)[0]
        if not 4 <= size <= self._reply_bytes_max:
            raise ProtocolViolation(
                f"{self._address} sent a reply of {size} bytes, and this client takes {self._reply_bytes_max};"
                " fetch.max.bytes raises that"
            )
        if size > len(self._buffer):
            self._buffer = bytearray(size + size // 8)
        frame = memoryview(self._buffer)[:size]
        self._fill(frame)
        self._unanswered -= 1
        return frame

    def _log_in(self, login: "ClientLogin") -> None:
        """Log in, with no reply awaited. Raises `KafkaError`."""
        from moldau.peers.login import login_steps, next_step

        self._again_s = None
        steps = login_steps(login.mechanism, login.exchange())
        step: tuple[Api, Any] | int = next(steps)
        while not isinstance(step, int):
            step = next_step(steps, self.call(*step))
        self._reply_bytes_max = self._later_bytes_max
        if step:
            self._again_s = monotonic_s() + step * AGAIN_AT / 1000

    def _fill(self, target: memoryview) -> None:
        filled = 0
        while filled < len(target):
            try:
                received = self._socket.recv_into(target[filled:])
            except OSError as broken:
                raise self._lost(broken) from None
            if not received:
                raise KafkaError(ErrorCode.NETWORK_EXCEPTION, f"{self._address} closed the connection")
            filled += received

    def _write(self, frame: bytes) -> None:
        try:
            self._socket.sendall(frame)
        except OSError as broken:
            raise self._lost(broken) from None

    def _lost(self, broken: OSError) -> KafkaError:
        if _is_of_tls(broken):
            return _failed(self._address, broken, in_handshake=False)
        if isinstance(broken, TimeoutError):
            return KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"{self._address} did not answer in time")
        return KafkaError(ErrorCode.NETWORK_EXCEPTION, f"the connection to {self._address} broke: {broken.strerror}")


def _is_of_tls(error: OSError) -> "TypeGuard[SSLError]":
    """Without an import of `ssl`, which a process needs only for TLS."""
    tls = sys.modules.get("ssl")
    return tls is not None and isinstance(error, tls.SSLError)


def _failed(address: Address, error: "SSLError", *, in_handshake: bool) -> KafkaError:
    from moldau.transport.tls_failures import tls_failure

    return tls_failure(str(address), error, in_handshake=in_handshake)


def _protection_in(bootstrap: object) -> "Protection | None":
    """How the connections to these brokers are protected. Processes that protect none import none of it."""
    if not settings_in(bootstrap):
        return None
    from moldau.client.security.protection import protection_of
    from moldau.client.settings import ClientSettings, read_settings

    return protection_of(read_settings(ClientSettings, "The client", (bootstrap,), {}))


class Caller:
    """Sends requests to the brokers responsible for them and retries until `timeout_ms` is over. Use it in a
    with-statement. Connections are protected as `protection` says, or the settings that `bootstrap` carries.
    `fetch_bytes_max` is the most that a fetch asks for."""

    def __init__(
        self,
        bootstrap: str | Iterable[str],
        *,
        client_id: str = "moldau",
        timeout_ms: int = 30_000,
        protection: "Protection | None" = None,
        fetch_bytes_max: int = 0,
    ):
        self._bootstrap = bootstrap_addresses(bootstrap)
        self._client_id = client_id
        self._protection = protection or _protection_in(bootstrap)
        self._reply_bytes_max = max(fetch_bytes_max + BESIDE_RECORDS, MAX_REPLY_BYTES)
        self.timeout_ms = timeout_ms
        self._links: dict[Address, BlockingLink] = {}
        self.view = ClusterView()
        self._retries = RetryLog(client_id, monotonic_s)

    def __enter__(self) -> "Caller":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        while self._links:
            self._links.popitem()[1].close()

    def retrying(self, attempt: Callable[[], T]) -> T:
        """Call `attempt` until it succeeds, fails with an error that is not retriable, or `timeout_ms` is over. Broken
        connections are dialled again in between."""
        began_s = monotonic_s()
        deadline = began_s + self.timeout_ms / 1000
        backoff = Backoff(RealRandom(), self._retries)
        while True:
            try:
                return attempt()
            except KafkaError as failure:
                if failure.code in STALE_METADATA:
                    self.close()
                    self.view.topics.clear()
                elif not failure.retriable:
                    raise
                wait_ms = backoff.next_ms()
                if monotonic_s() + wait_ms / 1000 > deadline:
                    raise tried(failure, monotonic_s() - began_s) from None
                backoff.say(failure, wait_ms)
                time.sleep(wait_ms / 1000)

    def link(self, address: Address, broker_id: int | None = None) -> BlockingLink:
        """The connection to a broker, dialled on first use; `broker_id` if the metadata says which one has the address.
        If another one has it, the client starts again from the bootstrap servers."""
        link = self._links.get(address)
        if link is None:
            intended = self.view.intended(broker_id)
            try:
                link = self._links[address] = BlockingLink(
                    address, self._client_id, self.timeout_ms, intended, self._protection, self._reply_bytes_max
                )
            except RebootstrapRequired as misrouted:
                raise self._begun_again(f"{address} is not {intended}: {misrouted}") from None
            self._retries.reached = True
        return link

    def _begun_again(self, why: str) -> KafkaError:
        """Forget the cluster and close the connections to it; the error says why, and is retriable."""
        self.close()
        self.view.forget()
        return KafkaError(ErrorCode.NETWORK_EXCEPTION, why)

    def any(self) -> BlockingLink:
        """A connection to any broker that answers. Raises `KafkaError(NETWORK_EXCEPTION)` if none does."""
        if self._links:
            return next(iter(self._links.values()))
        ids = {address: number for number, address in self.view.brokers.items()}
        cluster_id = self.view.cluster_id
        failure: KafkaError | None = None
        for address in dict.fromkeys([*self._bootstrap, *ids]):
            try:
                return self.link(address, ids.get(address))
            except KafkaError as refused:
                if isinstance(refused, AuthenticationFailed):
                    raise
                if self.view.cluster_id != cluster_id:  # it has begun again: these addresses are forgotten
                    raise
                failure = failure or refused
        assert failure is not None
        raise failure

    def refresh(self, topics: Iterable[str] | None) -> None:
        """Request metadata of these topics, or of all (None), from any broker. Missing topics are not created."""
        asked = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        link = self.any()
        request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
        if asked is None and link.versions.of(METADATA) == 0:
            request.topics = []
        reply = link.call(METADATA, request)
        if reply.error_code == ErrorCode.REBOOTSTRAP_REQUIRED:
            raise self._begun_again("a broker says that its clients must start again")
        check(reply.error_code, "metadata")
        self.view.apply(reply, everything=asked is None)

    def leader(self, tp: TopicPartition) -> BlockingLink:
        """The connection to the partition's leader. Raises `KafkaError` if it has none."""
        leader = self.view.leader(tp)
        if isinstance(leader, ErrorCode):
            self.refresh([tp.topic])
            leader = self.view.leader(tp)
        if isinstance(leader, ErrorCode):
            check(leader, f"partition {tp.partition} of topic {tp.topic}")
        return self.link(self.view.brokers[leader], leader)
