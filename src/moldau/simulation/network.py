"""Connections between simulated hosts, with delays and losses drawn from the seed.

A connection is a pair of `Pipe`s. Bytes arrive in order, each write after a drawn delay. A lost packet shows as a
longer delay, as with TCP's retransmission. Between partitioned hosts, bytes wait until the partition heals, and
dialling fails after `DIAL_TIMEOUT_S`. `reset` ends connections as a crash of a host does.
"""

import asyncio
import contextvars
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

RETRANSMIT_S = 0.2
DIAL_TIMEOUT_S = 5.0
HIGH_WATER_BYTES = 64 << 10


current_host: contextvars.ContextVar[str] = contextvars.ContextVar("current_host", default="client")
"""The host for which the running code dials, listens and creates tasks."""


@dataclass
class Weather:
    """Conditions of the network: uniform delays up to `delay_ms_max`, and the share of packets that are sent again."""

    delay_ms_max: float = 5.0
    loss: float = 0.0


class Network:
    def __init__(self, seed: random.Random, weather: Weather | None = None):
        self.weather = weather or Weather()
        self.delivered = 0
        self.on_deliver: Callable[[str, str, bytes], None] = lambda *_: None
        self._seed = seed
        self._loop: asyncio.AbstractEventLoop
        self._listening: dict[tuple[str, int], Listening] = {}
        self._ports = iter(range(10_000, 60_000))
        self._cut: dict[tuple[str, str], None] = {}
        self._pipes: dict[Pipe, None] = {}

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def listen(self, host: str, port: int, factory: Callable[[], Any]) -> "Listening":
        port = port or next(self._ports)
        if (host, port) in self._listening:
            raise OSError(98, f"{host}:{port} is taken")
        listening = self._listening[host, port] = Listening(self, host, port, factory)
        return listening

    def forget(self, listening: "Listening") -> None:
        self._listening.pop((listening.host, listening.port), None)

    async def dial(self, source: str, host: str, port: int, factory: Callable[[], Any]) -> tuple["Pipe", Any]:
        """Raises `ConnectionRefusedError`, or `TimeoutError` into a partition."""
        await asyncio.sleep(self.delay())
        if self.is_cut(source, host) or self.is_cut(host, source):
            await asyncio.sleep(DIAL_TIMEOUT_S)
            raise TimeoutError(f"{host}:{port} does not answer")
        listening = self._listening.get((host, port))
        if listening is None or not listening.serving:
            raise ConnectionRefusedError(111, f"no host listens on {host}:{port}")
        ours, theirs = factory(), listening.factory()
        near = Pipe(self, source, host, (host, port), contextvars.copy_context())
        far = Pipe(self, host, source, (source, next(self._ports)), listening.context.copy())
        near.connect(far, ours)
        far.connect(near, theirs)
        self._pipes[near] = self._pipes[far] = None
        far.context.run(theirs.connection_made, far)
        ours.connection_made(near)
        return near, ours

    def delay(self) -> float:
        seconds = self._seed.random() * self.weather.delay_ms_max / 1000
        while self._seed.random() < self.weather.loss:
            seconds += RETRANSMIT_S
        return seconds

    def partition(self, one: str, other: str, both_ways: bool = True) -> None:
        """From now on hold back all bytes from `one` to `other`, and with `both_ways` also the reverse direction."""
        self._cut[one, other] = None
        if both_ways:
            self._cut[other, one] = None

    def heal(self, host: str | None = None) -> None:
        """End the partitions of one host, or all (None), and deliver the bytes that were held back."""
        for pair in [pair for pair in self._cut if host is None or host in pair]:
            del self._cut[pair]
        for pipe in list(self._pipes):
            pipe.deliver()

    def is_cut(self, source: str, target: str) -> bool:
        return (source, target) in self._cut

    def reset(self, host: str) -> None:
        """Break all connections of a crashed host and remove its listeners."""
        for key in [key for key in self._listening if key[0] == host]:
            del self._listening[key]
        for pipe in [pipe for pipe in self._pipes if host in (pipe.source, pipe.target)]:
            pipe.break_off(ConnectionResetError(104, f"{host} is gone"), silent=pipe.source == host)

    def break_connections(self, host: str) -> None:
        """Reset all connections of a host that keeps running."""
        for pipe in [pipe for pipe in self._pipes if pipe.source == host]:
            pipe.break_off(ConnectionResetError(104, "reset by peer"), silent=False)

    def forget_pipe(self, pipe: "Pipe") -> None:
        self._pipes.pop(pipe, None)


class Listening:
    """The result of `create_server`: a replacement for `asyncio.Server` with one socket."""

    def __init__(self, network: Network, host: str, port: int, factory: Callable[[], Any]):
        self.host, self.port, self.factory = host, port, factory
        self.serving = False
        self.sockets = [self]
        self._network = network
        self.context = contextvars.copy_context()
        """The context of the listening host, in which its connections' callbacks run."""

    def getsockname(self) -> tuple[str, int]:
        return self.host, self.port

    async def start_serving(self) -> None:
        self.serving = True

    def close(self) -> None:
        self._network.forget(self)


class Pipe(asyncio.Transport):
    """The transport of one end of a connection. It holds bytes that this end wrote and the other has not received
    yet."""

    def __init__(
        self, network: Network, source: str, target: str, peername: tuple[str, int], context: contextvars.Context
    ):
        super().__init__({"peername": peername})
        self.context = context
        self.source, self.target = source, target
        self._network = network
        self._loop = network._loop
        self._other: Pipe
        self._protocol: asyncio.BaseProtocol
        self._sent: list[tuple[float, bytes]] = []
        self._waiting: list[bytes] = []
        self._unread = 0
        self._reading = True
        self._full = False
        self._closing = False
        self._last_arrival = 0.0

    def connect(self, other: "Pipe", protocol: asyncio.BaseProtocol) -> None:
        self._other, self._protocol = other, protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def write(self, data: Any) -> None:
        if not self._closing and len(data):
            self._post(bytes(data))

    def _post(self, data: bytes) -> None:
        arrival = max(self._last_arrival, self._loop.time() + self._network.delay())
        self._last_arrival = arrival
        self._sent.append((arrival, data))
        self._unread += len(data)
        self._loop.call_at(arrival, self.deliver)
        if self._unread > HIGH_WATER_BYTES and not self._full:
            self._full = True
            self._protocol.pause_writing()

    def deliver(self) -> None:
        """Deliver the bytes that are due, unless the hosts are partitioned."""
        now = self._loop.time()
        while self._sent and self._sent[0][0] <= now and not self._network.is_cut(self.source, self.target):
            _, data = self._sent.pop(0)
            self._other.arrive(data)
        if self._closing and not self._sent:
            self._network.forget_pipe(self)

    def arrive(self, data: bytes) -> None:
        self._waiting.append(data)
        self._read()

    def _read(self) -> None:
        while self._waiting and self._reading:
            data = self._waiting.pop(0)
            self._other.left(len(data))
            if self._closing:
                continue  # a closed end reads no more
            if not data:
                self._lost(None)
                return
            self._network.delivered += 1
            self._network.on_deliver(self.target, self.source, data)
            self.context.run(self._receive, data)

    def _receive(self, data: bytes) -> None:
        protocol = self._protocol
        if not isinstance(protocol, asyncio.BufferedProtocol):
            cast(asyncio.Protocol, protocol).data_received(data)
            return
        while data:
            buffer = memoryview(protocol.get_buffer(len(data)))
            count = min(len(buffer), len(data))
            buffer[:count] = data[:count]
            protocol.buffer_updated(count)
            data = data[count:]
            if data and not self._reading:
                self._waiting.insert(0, data)
                self._other._unread += len(data)
                return

    def left(self, size: int) -> None:
        self._unread -= size
        if self._full and self._unread <= HIGH_WATER_BYTES // 4:
            self._full = False
            if not self._closing:
                self.context.run(self._protocol.resume_writing)

    def get_write_buffer_size(self) -> int:
        return self._unread

    def is_closing(self) -> bool:
        return self._closing

    def is_reading(self) -> bool:
        return self._reading

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        if not self._reading:
            self._reading = True
            self._loop.call_soon(self._read)

    def close(self) -> None:
        if not self._closing:
            self._post(b"")  # end of stream: arrives after all written bytes
            self._lost(None)

    def abort(self) -> None:
        self.break_off(None, silent=False)

    def break_off(self, error: Exception | None, silent: bool) -> None:
        """End both directions at once, as a reset does. `silent`: this end is dead, so its protocol is not notified."""
        other = self._other
        if not other._closing:
            self._loop.call_later(self._network.delay(), other._lost, ConnectionResetError(104, "reset by peer"))
        if silent:
            self._closing = True
            self._sent.clear()
            self._network.forget_pipe(self)
        else:
            self._lost(error)

    def _lost(self, error: Exception | None) -> None:
        if not self._closing:
            self._closing = True
            self._reading = True
            if not self._sent:
                self._network.forget_pipe(self)
            self._loop.call_soon(self._protocol.connection_lost, error, context=self.context)
