"""Both outboxes: order, back-pressure, and files that cannot be read to their end."""

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moldau.net.outbox import COPY_BYTES, SECURE_BURST_BYTES_MAX, SecureOutbox, SocketOutbox, TransportOutbox
from moldau.replies import FileSlice
from moldau.runtime import RealDisk


class Held:
    """A file in memory, and a transport that keeps what it was given; it is full after `room` bytes."""

    def __init__(self, data: bytes, room: int = 1 << 30):
        self.data, self.room = data, room
        self.written = b""
        self.events: list[str] = []
        self.error: OSError | None = None
        self.failures: list[OSError] = []
        self.sizes: list[int] = []
        """Of the writes."""
        self.outbox = self._outbox(lambda: self.events.append("room"), lambda why: self.events.append(f"lost: {why}"))

    def _outbox(self, on_room: Callable[[], None], on_lost: Callable[[str], None]) -> TransportOutbox:
        return TransportOutbox(self, on_room, on_lost)  # type: ignore[arg-type]

    def read(self, length: int, at: int) -> bytes:
        if self.error:
            raise self.error
        return self.data[at : at + length]

    def write(self, data: bytes) -> None:
        self.written += data
        self.sizes.append(len(data))
        if len(self.written) >= self.room:
            self.outbox.full()

    def slice(self, length: int) -> Any:
        def left() -> None:
            self.events.append("left")

        return FileSlice(self, 0, length, left, self.failures.append)  # type: ignore[arg-type]


class Sealed(Held):
    """The same over TLS."""

    def _outbox(self, on_room: Callable[[], None], on_lost: Callable[[str], None]) -> TransportOutbox:
        return SecureOutbox(self, on_room, on_lost, asyncio.get_running_loop())  # type: ignore[arg-type]


def test_over_tls_pieces_leave_in_few_writes_of_a_limited_size() -> None:
    async def scenario() -> None:
        small, data = Sealed(b"a record"), os.urandom(COPY_BYTES)
        assert small.outbox.send([b"before", small.slice(8), b"", memoryview(b"after")])
        assert (small.sizes, small.written, small.events) == ([19], b"beforea recordafter", ["left"])
        large = Sealed(data * 3)
        assert large.outbox.send([data * 2, b"x", large.slice(2 * COPY_BYTES + 5)])
        assert large.written == data * 2 + b"x" + large.data[: 2 * COPY_BYTES + 5]
        assert max(large.sizes) == COPY_BYTES and len(large.sizes) == 5

    asyncio.run(scenario())


def test_over_tls_a_turn_of_the_loop_encrypts_a_limited_number_of_bytes() -> None:
    async def scenario() -> None:
        size = 2 * SECURE_BURST_BYTES_MAX + 7
        held = Sealed(os.urandom(size))
        assert not held.outbox.send([held.slice(size)])
        assert not held.outbox.send([b"behind it"])
        assert len(held.written) == SECURE_BURST_BYTES_MAX and not held.outbox.is_empty()
        turns = 0
        while not held.outbox.is_empty():
            await asyncio.sleep(0)
            turns += 1
        assert (turns, held.written, held.events) == (2, held.data + b"behind it", ["left", "room"])
        assert not held.outbox.send([held.slice(size)])
        held.outbox.close()
        await asyncio.sleep(0)
        assert len(held.written) == size + len(b"behind it") + SECURE_BURST_BYTES_MAX

    asyncio.run(scenario())


def test_over_tls_a_full_transport_ends_the_turn_and_an_unreadable_file_the_connection() -> None:
    async def scenario() -> None:
        held = Sealed(bytes(4 * COPY_BYTES), room=COPY_BYTES)
        assert not held.outbox.send([held.slice(4 * COPY_BYTES)])
        assert held.sizes == [COPY_BYTES]
        held.room = 1 << 30
        held.outbox.room()
        assert (len(held.written), held.events) == (4 * COPY_BYTES, ["left", "room"])
        held.error = OSError(errno.EIO, "gone")
        assert held.outbox.send([b"head", held.slice(5)])
        assert held.events[2:] == ["lost: a file cannot be read: [Errno 5] gone"] and len(held.failures) == 1

    asyncio.run(scenario())


def test_pieces_leave_in_order_and_whoever_waits_for_a_file_is_told():
    held = Held(bytes(COPY_BYTES) + b"end")
    assert held.outbox.send([b"before", held.slice(COPY_BYTES + 3), b"after"])
    assert held.written == b"before" + held.data + b"after"
    assert held.events == ["left"]


def test_several_replies_with_files_leave_in_order_and_so_do_those_behind_them(tmp_path: Path):
    data = b"a record"
    held = Held(data)
    assert held.outbox.send([b"1", held.slice(8), b"2", held.slice(8), b"3", b"4"])
    assert held.written == b"1" + data + b"2" + data + b"34"

    def scenario(opened: Opened) -> None:
        file = FileSlice(opened.file, 0, 1000, None, opened.failures.append)
        assert opened.outbox.send([b"1", file, b"2", file, b"3", b"4"])
        opened.ours.shutdown(socket.SHUT_WR)
        with opened.theirs.makefile("rb") as received:
            assert received.read() == b"1" + bytes(1000) + b"2" + bytes(1000) + b"34"
        assert not opened.lost

    with_socket(tmp_path / "log", scenario)


def test_a_full_transport_is_given_no_more_until_it_has_room():
    held = Held(bytes(3 * COPY_BYTES), room=COPY_BYTES)
    assert not held.outbox.send([held.slice(3 * COPY_BYTES)])
    assert len(held.written) == COPY_BYTES
    held.room = 1 << 30
    held.outbox.room()
    assert (held.written, held.events) == (held.data, ["left", "room"])


def test_a_file_that_ends_early_loses_the_connection_and_says_why():
    held = Held(b"short")
    assert held.outbox.send([b"size", held.slice(100), b"after"])
    assert b"after" not in held.written
    (lost,) = held.events
    assert lost.endswith("it ends before byte 100, which a reply needs: another program has truncated it")
    assert [error.errno for error in held.failures] == [None]


def test_a_file_that_cannot_be_read_loses_the_connection_and_its_owner_hears_of_it():
    held = Held(b"short")
    held.error = OSError(errno.EIO, "a read failed")
    assert held.outbox.send([b"size", held.slice(100), b"after"])
    assert b"after" not in held.written
    assert held.events == ["lost: a file cannot be read: [Errno 5] a read failed"]
    assert held.failures == [held.error]


class Opened:
    """A file, and the outbox of a socket whose other end a test has."""

    def __init__(self, path: Path, loop: asyncio.AbstractEventLoop):
        path.write_bytes(bytes(1000))
        self.file = RealDisk().open(path)
        self.ours, self.theirs = socket.socketpair()
        self.lost: list[str] = []
        self.failures: list[OSError] = []
        self.outbox = SocketOutbox(self.ours.fileno(), loop, lambda: None, self.lost.append)

    def send(self, length: int = 1000) -> bool:
        return self.outbox.send([FileSlice(self.file, 0, length, None, self.failures.append)])


def with_socket(path: Path, scenario: Any) -> None:
    async def live() -> None:
        opened = Opened(path, asyncio.get_running_loop())
        try:
            scenario(opened)
        finally:
            opened.outbox.close()
            opened.ours.close()
            opened.theirs.close()

    asyncio.run(live())


def test_a_disk_that_fails_under_sendfile_is_told_to_the_files_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: int) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def scenario(opened: Opened) -> None:
        monkeypatch.setattr(os, "sendfile", broken)
        assert opened.send()
        assert [error.errno for error in opened.failures] == [errno.EIO]
        assert opened.lost == ["a file cannot be read: [Errno 5] Input/output error"]

    with_socket(tmp_path / "log", scenario)


def test_a_peer_that_is_gone_is_no_failure_of_the_file(tmp_path: Path):
    def scenario(opened: Opened) -> None:
        opened.theirs.close()
        assert opened.send()
        assert (opened.failures, opened.lost) == ([], [""])

    with_socket(tmp_path / "log", scenario)


def test_a_file_that_something_else_has_cut_is_not_sent_on(tmp_path: Path):
    def scenario(opened: Opened) -> None:
        assert opened.send(5000)
        (why,) = opened.lost
        assert "another program has truncated it" in why and [error.errno for error in opened.failures] == [None]

    with_socket(tmp_path / "log", scenario)
