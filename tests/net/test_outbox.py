"""The outbox that goes through a transport: order, back-pressure, and files that cannot be read to their end."""

import errno
from typing import Any

import pytest

from moldau.net.outbox import COPY_BYTES, TransportOutbox
from moldau.runtime import FileSlice


class Held:
    """A file in memory, and a transport that keeps what it was given; it is full after `room` bytes."""

    def __init__(self, data: bytes, room: int = 1 << 30):
        self.data, self.room = data, room
        self.written = b""
        self.events: list[str] = []
        self.error: OSError | None = None
        self.outbox = TransportOutbox(
            self,  # type: ignore[arg-type]
            lambda: self.events.append("room"),
            lambda: self.events.append("lost"),
        )

    def read(self, length: int, at: int) -> bytes:
        if self.error:
            raise self.error
        return self.data[at : at + length]

    def write(self, data: bytes) -> None:
        self.written += data
        if len(self.written) >= self.room:
            self.outbox.full()

    def slice(self, length: int) -> Any:
        return FileSlice(self, 0, length, lambda: self.events.append("left"))  # type: ignore[arg-type]


def test_pieces_leave_in_order_and_whoever_waits_for_a_file_is_told():
    held = Held(bytes(COPY_BYTES) + b"end")
    assert held.outbox.send([b"before", held.slice(COPY_BYTES + 3), b"after"])
    assert held.written == b"before" + held.data + b"after"
    assert held.events == ["left"]


def test_a_full_transport_is_given_no_more_until_it_has_room():
    held = Held(bytes(3 * COPY_BYTES), room=COPY_BYTES)
    assert not held.outbox.send([held.slice(3 * COPY_BYTES)])
    assert len(held.written) == COPY_BYTES
    held.room = 1 << 30
    held.outbox.room()
    assert (held.written, held.events) == (held.data, ["left", "room"])


@pytest.mark.parametrize("error", [None, OSError(errno.EIO, "a read failed")])
def test_a_file_that_ends_early_or_fails_loses_the_connection(error: OSError | None):
    held = Held(b"short")
    held.error = error
    assert held.outbox.send([b"size", held.slice(100), b"after"])
    assert b"after" not in held.written
    assert held.events == ["lost"]
