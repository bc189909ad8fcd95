"""Connections that each send most of a frame and never the rest, as broken or hostile clients do."""

import contextlib
import selectors
import socket
import struct
from types import TracebackType


class HalfSent:
    """`count` connections to a broker at `address` (`host:port`); each sends `sent` bytes of a frame of `frame` bytes,
    as far as the broker takes them. `closed` counts the connections that the broker has closed."""

    def __init__(self, address: str, count: int, frame: int, sent: int):
        self.closed = 0
        self._stack = contextlib.ExitStack()
        self._selector = self._stack.enter_context(selectors.DefaultSelector())
        self._left: dict[socket.socket, memoryview] = {}
        host, _, port = address.rpartition(":")
        data = memoryview(struct.pack(">i", frame) + bytes(sent))
        with contextlib.ExitStack() as undo:
            undo.push(self._stack)
            for _ in range(count):
                peer = self._stack.enter_context(socket.create_connection((host, int(port)), 60))
                peer.setblocking(False)
                self._left[peer] = data
                self._selector.register(peer, selectors.EVENT_READ | selectors.EVENT_WRITE)
            undo.pop_all()

    def __enter__(self) -> "HalfSent":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def step(self, wait_s: float) -> bool:
        """Send what the broker takes, waiting at most `wait_s` seconds for the first byte. Returns False if nothing
        moved."""
        ready = self._selector.select(wait_s)
        for key, events in ready:
            assert isinstance(key.fileobj, socket.socket)
            self._move(key.fileobj, events)
        return bool(ready)

    def _move(self, peer: socket.socket, events: int) -> None:
        try:
            if events & selectors.EVENT_READ and not peer.recv(1):
                raise ConnectionResetError
            if events & selectors.EVENT_WRITE:
                self._left[peer] = self._left[peer][peer.send(self._left[peer]) :]
            if not self._left[peer]:
                self._selector.modify(peer, selectors.EVENT_READ)
        except OSError:
            self.closed += 1
            self._selector.unregister(peer)
