"""A connection that produces the same frame again and again."""

import socket
import struct


class Producing:
    """One connection of a load, which sends the same frame again and again."""

    def __init__(self, port: int, frame: bytes, reply_bytes: int, error_at: int, in_flight: int):
        self._frame, self._reply_bytes, self._error_at = frame, reply_bytes, error_at
        self._burst = memoryview(frame * in_flight)
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray(64 * reply_bytes)
        self._view = memoryview(self._buffer)
        self._filled = 0
        self.unanswered = 0

    def send(self, count: int) -> None:
        self.socket.sendall(self._burst[: count * len(self._frame)])
        self.unanswered += count

    def take(self) -> int:
        """Wait for answers; how many whole ones came."""
        size, buffer = self._reply_bytes, self._buffer
        got = self.socket.recv_into(self._view[self._filled :])
        assert got, "the broker closed the connection"
        filled = self._filled + got
        count, rest = divmod(filled, size)
        whole = count * size
        errors = buffer[self._error_at : whole : size], buffer[self._error_at + 1 : whole : size]
        assert not any(map(any, errors)), "a Produce was refused"
        buffer[:rest] = buffer[whole:filled]
        self._filled = rest
        self.unanswered -= count
        return count

    def is_taken(self) -> bool:
        """Send one request, and wait for its answer: whether the records were taken, or their leader is not known."""
        self.socket.sendall(self._frame)
        got = 0
        while got < self._reply_bytes:
            got += self.socket.recv_into(self._view[got : self._reply_bytes])
        error = struct.unpack_from(">h", self._buffer, self._error_at)[0]
        assert error in (0, 3, 6), f"error {error}"
        return not error
