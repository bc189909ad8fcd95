"""Plays the script to one broker over connections of asyncio and keeps what came back: a reply, a closed connection,
silence.

On a loop of real time the limits stretch with the load of the machine; on a loop of virtual time they are exact.
"""

import asyncio
import contextlib
import dataclasses
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from harness.listening import Broker
from harness.patience import stretched
from moldau.errors import ErrorCode, ProtocolViolation
from moldau.protocol.apis import API_VERSIONS, Api
from moldau.protocol.codec import read_reply, write_request
from moldau.protocol.schema import specs
from tests.differential.batches import read_batches
from tests.differential.script import Step, Tree, Variables, build, find

PATIENCE_S = 30.0
TURNS = "turns"
TURN_S_MAX = 60.0
DIAL_S_MAX = 5.0
AFTER_TURN_S = 0.1
AGAIN_S = 0.05
STARTING = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


@dataclass(frozen=True)
class Outcome:
    """What one step came to. `kind` is reply, closed, silence, or a sentence about what went wrong on our side."""

    kind: str
    tree: Tree = None
    variables: Variables = dataclasses.field(default_factory=dict)


class Silence(Exception):
    """No whole reply within the time."""


class Connection:
    """One connection and the correlation ids that are waited for."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self.waiting: list[int] = []
        self._reader, self._writer = reader, writer
        self._received = bytearray()

    def send(self, frame: bytes, correlation_id: int) -> None:
        self.waiting.append(correlation_id)
        self._writer.write(frame)

    async def receive(self, seconds: float) -> bytes:
        """The next frame without its size. Raises `ConnectionError` when the peer closes, `Silence` when it is late."""
        try:
            async with asyncio.timeout(seconds):
                while not (frame := self._next()):
                    data = await self._reader.read(1 << 18)
                    if not data:
                        raise ConnectionResetError
                    self._received += data
                return frame
        except TimeoutError:
            raise Silence from None

    def _next(self) -> bytes:
        """The first frame, taken out; b"" if it is not complete."""
        received = self._received
        size = struct.unpack_from(">i", received)[0] if len(received) >= 4 else 0
        if not size or len(received) < 4 + size:
            return b""
        frame = bytes(received[4 : 4 + size])
        del received[: 4 + size]
        return frame

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


def as_tree(message: Any, version: int) -> Tree:
    """A message as dicts of the fields that the version has; records are decoded."""
    if isinstance(message, list):
        return [as_tree(item, version) for item in message]
    if not dataclasses.is_dataclass(message):
        return message
    tree = {}
    for name, spec, _ in specs(type(message)):
        if spec.since <= version <= spec.until:
            value = getattr(message, name)
            tree[name] = read_records(value) if spec.kind == "records" else as_tree(value, version)
    return tree


def read_records(value: Any) -> Any:
    data = None if value is None else bytes(value)
    try:
        return read_batches(data)
    except Exception as error:
        return [f"records that cannot be read: {error!r}", data]


def error_codes(tree: Tree) -> list[int]:
    """Every error code of a reply."""
    if isinstance(tree, dict):
        own = [value for name, value in tree.items() if name in ("error_code", "partition_error_code")]
        return own + [code for value in tree.values() for code in error_codes(value)]
    if isinstance(tree, list):
        return [code for item in tree for code in error_codes(item)]
    return []


class Player:
    """One broker's side of a run: its connections and its values of the variables.

    A broker may take what comes over two connections in any order. So once a request is left waiting, or nothing has
    come back, the broker has to answer a question over a connection kept for that before anything else is said: it has
    taken what was sent before by then, if it takes one request at a time.
    """

    def __init__(self, broker: Broker, stretch: Callable[[float], float] = stretched):
        self.broker = broker
        self.variables: dict[str, Any] = {}
        self.connections: dict[str, Connection] = {}
        self.correlation_id = 1000
        self._stretch = stretch

    async def play(self, steps: Sequence[Step]) -> list[Outcome]:
        try:
            return [await self.play_one(one) for one in steps]
        finally:
            await self.close()

    async def close(self) -> None:
        for connection in self.connections.values():
            await connection.close()

    async def play_one(self, one: Step) -> Outcome:
        """Send, receive, and again while the step says so or the coordinator is still starting."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        while True:
            outcome = await self._try(one)
            if outcome.kind != "reply" or loop.time() - began_s > self._stretch(PATIENCE_S):
                break
            starting = one.patient and any(code in STARTING for code in error_codes(outcome.tree))
            if not starting and (one.until is None or one.until(outcome.tree)):
                break
            await asyncio.sleep(AGAIN_S)
        try:
            for name, path in one.save.items() if outcome.tree is not None else ():
                self.variables[name] = find(outcome.tree, path)
        except (LookupError, TypeError):
            return dataclasses.replace(outcome, kind=f"reply that lacks what is to be saved ({dict(one.save)})")
        return dataclasses.replace(outcome, variables=dict(self.variables))

    async def _try(self, one: Step) -> Outcome:
        try:
            connection = await self._connection(one.connection)
            if not one.collects:
                self.correlation_id += 1
                connection.send(frame_of(one, self.correlation_id, self.variables), self.correlation_id)
            if one.later:
                await self._turn()
                return Outcome("sent")
            if not connection.waiting:
                return Outcome("nothing was asked over this connection")
            frame = await self._receive(connection, one.wait_s)
        except KeyError as missing:
            return Outcome(f"not sent, since there is no variable {missing}")
        except Silence:
            await self._drop(one.connection, one.wait_s < 1)
            return Outcome("silence")
        except OSError:
            await self._drop(one.connection)
            return Outcome("closed")
        return self._read(one, connection, frame)

    async def _receive(self, connection: Connection, wait_s: float) -> bytes:
        """Silence is only that of a broker that has had its turn."""
        try:
            return await connection.receive(self._stretch(wait_s))
        except Silence:
            await self._turn()
            return await connection.receive(self._stretch(AFTER_TURN_S))

    async def _turn(self) -> None:
        """Wait until the broker has taken what was sent so far."""
        connection = await self._connection(TURNS)
        try:
            connection.send(write_request(API_VERSIONS, 0, 0, TURNS, API_VERSIONS.request()), 0)
            await connection.receive(self._stretch(TURN_S_MAX))
            connection.waiting.clear()
        except (OSError, Silence):
            await self._drop(TURNS)
            raise

    def _read(self, one: Step, connection: Connection, frame: bytes) -> Outcome:
        expected = connection.waiting.pop(0)
        (correlation_id,) = struct.unpack_from(">i", frame)
        if one.frame is None and correlation_id != expected:
            return Outcome("reply with another correlation id")
        version = one.version if one.read_as is None else one.read_as
        try:
            return Outcome("reply", as_tree(read_reply(one.api, version, frame), version))
        except ProtocolViolation as violation:
            return Outcome(f"reply that cannot be read: {violation}", frame.hex())

    async def _connection(self, name: str) -> Connection:
        if name not in self.connections:
            async with asyncio.timeout(self._stretch(DIAL_S_MAX)):
                streams = await asyncio.open_connection(self.broker.host, self.broker.port)
            self.connections[name] = Connection(*streams)
        return self.connections[name]

    async def _drop(self, name: str, keep: bool = False) -> None:
        """Forget a connection, unless silence on it was what is usual."""
        if keep:
            self.connections[name].waiting.pop()
        elif name in self.connections:
            await self.connections.pop(name).close()


def frame_of(one: Step, correlation_id: int, variables: Variables) -> bytes:
    """What a step sends."""
    if one.frame is not None:
        frame = one.frame(variables) if callable(one.frame) else one.frame
        return struct.pack(">i", len(frame)) + frame if one.sized else frame
    message = build(one.api.request, one.fields, variables)
    return write_request(one.api, one.version, correlation_id, one.client_id, message)


def play(broker: Broker, steps: Sequence[Step]) -> list[Outcome]:
    """Play these steps to a broker in a process of its own."""
    return asyncio.run(Player(broker).play(steps))


def body(api: Api, version: int, message: Any) -> bytes:
    """The bytes of a request without its size: what `raw` steps cut and bend."""
    return write_request(api, version, 7, "raw", message)[4:]
