"""Which accepted connections are served now, which wait, and which are closed: limits on their number and rate.

The rules are those of Apache Kafka's `ConnectionQuotas`. While the broker or a listener has its maximum of connections,
or more of them come in a second than allowed, the next ones of that listener wait in order of arrival, as in the
backlog of a socket; nothing of them is answered. Connections of the listener for brokers never wait for the broker's
maximum: the least recently used one of another listener is closed instead. An address with too many connections is
closed at once, one with too many new ones after the time that it is throttled for.

A server without such limits has no `Admission`.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Protocol, cast

from moldau.net.limits import Limits
from moldau.net.peer import Peer
from moldau.rates import SampledRate

WAITING_MAX = 512
"""The most connections that wait or are held, as many as a listener's backlog has; further ones are closed."""
ADDRESSES_MAX = 10_000
"""Addresses whose rates are remembered; those without a new connection for longest are forgotten first."""
KEPT_BYTES = 4096
"""How much a waiting connection may have sent that is kept; the rest waits in the socket."""
FOR_BROKER = ""
"""The rate of all listeners but the protected one."""


class Entering(Protocol):
    """An accepted connection that is not served yet."""

    listener: str
    active_at: float
    peer: Peer

    def begin(self, sent: bytes = b"") -> None:
        """Serve it; `sent` was read from it already."""

    def turn_away(self, why: str) -> None:
        """Close it before it is served."""

    def lose(self, why: str) -> None:
        """Close it while it is served."""


class Entrance(Protocol):
    """The server, as its admission knows it: `ip_rate` returns how many connections a second may come from a host, None
    for no limit."""

    limits: Limits
    ip_rate: Callable[[str], float | None] | None

    @property
    def served(self) -> "list[Entering]": ...
    def enter(self, connection: Entering) -> bool:
        """Count a connection; False if its address has too many, and then it was turned away."""


class KeptWaiting(asyncio.BufferedProtocol):
    """A connection that waits, in place of its own protocol: at most one read is taken from it meanwhile."""

    def __init__(self, connection: Entering, transport: asyncio.Transport):
        self.connection = connection
        self.is_gone = False
        self._transport = transport
        self._buffer = bytearray(KEPT_BYTES)
        self._sent = 0
        transport.set_protocol(self)
        transport.pause_reading()

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self._buffer)[self._sent :]

    def buffer_updated(self, nbytes: int) -> None:
        """uvloop reads once before it pauses."""
        self._sent += nbytes
        self._transport.pause_reading()

    def connection_lost(self, error: Exception | None) -> None:
        self.is_gone = True

    def begin(self) -> None:
        """Its turn has come. What it has sent may mute the connection, so reading is resumed before that."""
        self._transport.set_protocol(cast(asyncio.BaseProtocol, self.connection))
        if not self._transport.is_closing():
            self._transport.resume_reading()
        self.connection.begin(bytes(self._buffer[: self._sent]))

    def turn_away(self, why: str) -> None:
        if not self.is_gone:
            self.is_gone = True
            self.connection.turn_away(why)


class Admission:
    """Belongs to the loop it is made on."""

    def __init__(self, server: Entrance):
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._queues: dict[str, deque[KeptWaiting]] = {}
        self._ready_at: dict[str, float] = {}
        """When the rates allow the first connection of a queue."""
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._held: dict[KeptWaiting, asyncio.TimerHandle] = {}
        """Connections of throttled addresses, and what closes them."""
        self._per_listener = Counter(connection.listener for connection in server.served)
        self._rates: dict[str, SampledRate] = {}
        self._of_hosts: OrderedDict[str, SampledRate] = OrderedDict()
        self._is_called = False

    @property
    def waiting(self) -> int:
        """How many connections are accepted and not served."""
        return len(self._held) + sum(map(len, self._queues.values()))

    def makes_wait(self, listener: str) -> bool:
        """Whether a connection of that listener waits."""
        return bool(self._queues.get(listener))

    def arrived(self, connection: Entering, transport: asyncio.Transport) -> bool:
        """Whether a new connection is served now; otherwise it waits or is turned away."""
        listener = connection.listener
        queue = self._queues.setdefault(listener, deque())
        if not queue:
            self._ready_at[listener] = self._charged(listener)
            if self._ready_at[listener] <= self._loop.time() and self._has_slot(listener):
                return self._enters(connection, transport)
        if self.waiting >= WAITING_MAX:
            connection.turn_away("too many connections wait to be served")
            return False
        queue.append(KeptWaiting(connection, transport))
        if len(queue) == 1:
            self._proceed(listener)
        return False

    def left(self, connection: Entering) -> None:
        """A connection that was served has ended."""
        self._per_listener[connection.listener] -= 1
        if not self._is_called and any(self._queues.values()):
            self._is_called = True
            self._loop.call_soon(self._proceed_all)

    def follow(self) -> None:
        """The limits have changed."""
        self._close_excess()
        self._proceed_all()

    def stop(self) -> None:
        """No connection that waits is served any more."""
        for timer in [*self._timers.values(), *self._held.values()]:
            timer.cancel()
        for one in [*self._held, *(one for queue in self._queues.values() for one in queue)]:
            one.turn_away("the broker stops")
        self._queues.clear()
        self._held.clear()

    def _proceed_all(self) -> None:
        self._is_called = False
        for listener in list(self._queues):
            self._proceed(listener)

    def _proceed(self, listener: str) -> None:
        """Serve the first connections that wait there, as many as may be."""
        queue = self._queues[listener]
        if (timer := self._timers.pop(listener, None)) is not None:
            timer.cancel()
        while queue:
            if self._ready_at[listener] > self._loop.time():
                self._timers[listener] = self._loop.call_at(self._ready_at[listener], self._proceed, listener)
                return
            if not self._has_slot(listener):
                return
            first = queue.popleft()
            if queue:
                self._ready_at[listener] = self._charged(listener)
            if not first.is_gone and self._enters(first.connection, None):
                first.begin()

    def _enters(self, connection: Entering, transport: asyncio.Transport | None) -> bool:
        """Whether the limits of its address allow it; it is counted then. `transport` is None for one that waited."""
        throttle_ms = self._host_throttle_ms(connection.peer.host)
        if throttle_ms:
            self._hold(connection, transport, throttle_ms)
            return False
        if not self._server.enter(connection):
            return False
        self._per_listener[connection.listener] += 1
        if self._is_protected(connection.listener):
            self._close_excess()
        return True

    def _hold(self, connection: Entering, transport: asyncio.Transport | None, throttle_ms: int) -> None:
        why = "too many new connections from its address"
        if transport is None or self.waiting >= WAITING_MAX:
            connection.turn_away(why)
            return
        held = KeptWaiting(connection, transport)

        def release() -> None:
            del self._held[held]
            held.turn_away(why)

        self._held[held] = self._loop.call_later(throttle_ms / 1000, release)

    def _is_protected(self, listener: str) -> bool:
        return listener == self._server.limits.protected_listener

    def _has_slot(self, listener: str) -> bool:
        limits = self._server.limits
        if self._per_listener[listener] >= limits.of(listener).max_connections:
            return False
        return self._is_protected(listener) or self._per_listener.total() < limits.max_connections

    def _close_excess(self) -> None:
        """Close the least recently used connections of the other listeners while the broker has too many."""
        excess = self._per_listener.total() - self._server.limits.max_connections
        if excess > 0:
            others = [one for one in self._server.served if not self._is_protected(one.listener)]
            for connection in sorted(others, key=lambda one: one.active_at)[:excess]:
                connection.lose("too many connections, and it was used least recently")

    def _charged(self, listener: str) -> float:
        """Count a new connection in the rates of its listener and of the broker; returns when it may be served."""
        limits, now_ms, throttle_ms = self._server.limits, self._now_ms(), 0
        rates = [(listener, limits.of(listener).creation_rate)]
        if not self._is_protected(listener):
            rates.append((FOR_BROKER, limits.connection_rate))
        for name, limit in rates:
            rate = self._rates.get(name)
            if rate is None:
                rate = self._rates[name] = SampledRate(limits.window)
            rate.record(1, now_ms)
            throttle_ms = max(throttle_ms, rate.throttle_ms(limit, now_ms))
        return self._loop.time() + min(throttle_ms, limits.window.sample_ms) / 1000

    def _host_throttle_ms(self, host: str) -> int:
        """For how long a new connection of that address is throttled; then it does not count."""
        ip_rate, window = self._server.ip_rate, self._server.limits.window
        limit = ip_rate(host) if ip_rate is not None else None
        if limit is None:
            return 0
        rate = self._of_hosts.pop(host, None) or SampledRate(window)
        self._of_hosts[host] = rate
        if len(self._of_hosts) > ADDRESSES_MAX:
            self._of_hosts.popitem(last=False)
        now_ms = self._now_ms()
        rate.record(1, now_ms)
        throttle_ms = min(rate.throttle_ms(limit, now_ms), window.sample_ms)
        if throttle_ms:
            rate.record(-1, now_ms)
        return throttle_ms

    def _now_ms(self) -> int:
        return int(self._loop.time() * 1000)
