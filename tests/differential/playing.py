"""Plays the script to one broker over plain sockets and keeps what came back: a reply, a closed connection, silence."""

import contextlib
import dataclasses
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.listening import Broker
from harness.patience import Deadline, stretched
from moldau.errors import ErrorCode, ProtocolViolation
from moldau.protocol.apis import API_VERSIONS, Api
from moldau.protocol.codec import read_reply, write_request
from moldau.protocol.schema import specs
from tests.differential.batches import read_batches
from tests.differential.script import Step, Tree, Variables, build, find

PATIENCE_S = 30.0
TURNS = "turns"
TURN_S_MAX = 60.0
AFTER_TURN_S = 0.1
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
    """One socket and the correlation ids that are waited for."""

    def __init__(self, broker: Broker):
        self.socket = socket.create_connection((broker.host, broker.port), 5)
        self.waiting: list[int] = []
        self.received = bytearray()

    def send(self, frame: bytes, correlation_id: int) -> None:
        self.waiting.append(correlation_id)
        self.socket.settimeout(stretched(10))
        self.socket.sendall(frame)

    def receive(self, wait_s: float) -> bytes:
        """The next frame without its size. Raises `ConnectionError` when the peer closes, `Silence` when it is late."""
        deadline = Deadline(wait_s)
        while True:
            size = struct.unpack_from(">i", self.received)[0] if len(self.received) >= 4 else None
            if size is not None and len(self.received) >= 4 + size:
                frame = bytes(self.received[4 : 4 + size])
                del self.received[: 4 + size]
                return frame
            self.socket.settimeout(max(0.001, deadline.left_s))
            try:
                data = self.socket.recv(1 << 18)
            except TimeoutError:
                raise Silence from None
            if not data:
                raise ConnectionResetError
            self.received += data

    def close(self) -> None:
        self.socket.close()


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

    def __init__(self, broker: Broker):
        self.broker = broker
        self.variables: dict[str, Any] = {}
        self.connections: dict[str, Connection] = {}
        self.correlation_id = 1000

    def play(self, steps: Sequence[Step]) -> list[Outcome]:
        try:
            return [self.play_one(one) for one in steps]
        finally:
            for connection in self.connections.values():
                connection.close()

    def play_one(self, one: Step) -> Outcome:
        """Send, receive, and again while the step says so or the coordinator is still starting."""
        deadline = Deadline(PATIENCE_S)
        while True:
            outcome = self._try(one)
            if outcome.kind != "reply" or deadline.passed:
                break
            starting = one.patient and any(code in STARTING for code in error_codes(outcome.tree))
            if not starting and (one.until is None or one.until(outcome.tree)):
                break
            time.sleep(0.05)
        try:
            for name, path in one.save.items() if outcome.tree is not None else ():
                self.variables[name] = find(outcome.tree, path)
        except (LookupError, TypeError):
            return dataclasses.replace(outcome, kind=f"reply that lacks what is to be saved ({dict(one.save)})")
        return dataclasses.replace(outcome, variables=dict(self.variables))

    def _try(self, one: Step) -> Outcome:
        try:
            connection = self._connection(one.connection)
            if not one.collects:
                self.correlation_id += 1
                connection.send(self._frame(one), self.correlation_id)
            if one.later:
                self._turn()
                return Outcome("sent")
            if not connection.waiting:
                return Outcome("nothing was asked over this connection")
            frame = self._receive(connection, one.wait_s)
        except KeyError as missing:
            return Outcome(f"not sent, since there is no variable {missing}")
        except Silence:
            self._drop(one.connection, one.wait_s < 1)
            return Outcome("silence")
        except OSError:
            self._drop(one.connection)
            return Outcome("closed")
        return self._read(one, connection, frame)

    def _receive(self, connection: Connection, wait_s: float) -> bytes:
        """Silence is only that of a broker that has had its turn."""
        try:
            return connection.receive(wait_s)
        except Silence:
            self._turn()
            return connection.receive(AFTER_TURN_S)

    def _turn(self) -> None:
        """Wait until the broker has taken what was sent so far."""
        connection = self._connection(TURNS)
        try:
            connection.send(write_request(API_VERSIONS, 0, 0, TURNS, API_VERSIONS.request()), 0)
            connection.receive(TURN_S_MAX)
            connection.waiting.clear()
        except (OSError, Silence):
            self._drop(TURNS)
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

    def _frame(self, one: Step) -> bytes:
        if one.frame is not None:
            frame = one.frame(self.variables) if callable(one.frame) else one.frame
            return struct.pack(">i", len(frame)) + frame if one.sized else frame
        message = build(one.api.request, one.fields, self.variables)
        return write_request(one.api, one.version, self.correlation_id, one.client_id, message)

    def _connection(self, name: str) -> Connection:
        if name not in self.connections:
            self.connections[name] = Connection(self.broker)
        return self.connections[name]

    def _drop(self, name: str, keep: bool = False) -> None:
        """Forget a connection, unless silence on it was what is usual."""
        if keep:
            self.connections[name].waiting.pop()
        elif name in self.connections:
            with contextlib.suppress(OSError):
                self.connections.pop(name).close()


def body(api: Api, version: int, message: Any) -> bytes:
    """The bytes of a request without its size: what `raw` steps cut and bend."""
    return write_request(api, version, 7, "raw", message)[4:]
