"""Whatever the pieces in which bytes arrive, the same frames come out; and memory follows what arrived, not what was
declared."""

import struct
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.errors import ProtocolViolation
from moldau.net.inbox import Inbox
from moldau.net.pool import Pool

SHARED = 1 << 12


class Nobody:
    """The owner of an inbox that never has to wait."""

    def resume(self) -> None: ...
    def give_up(self) -> str:
        raise AssertionError("memory is not short")

    def has_sent_more(self) -> bool:
        return False


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def feed(inbox: Inbox, shared: memoryview, data: bytes) -> tuple[int, Iterator[memoryview]]:
    """Let `data` arrive as one read does: into the buffer the inbox offers. Returns how much of it fitted, and the
    frames."""
    target = inbox.buffer(shared)
    assert target is not None
    count = min(len(data), len(target))
    target[:count] = data[:count]
    return count, iter(inbox.frames(shared, count))


@given(st.lists(st.binary(max_size=6000), max_size=8), st.lists(st.integers(1, 5000), min_size=1), st.booleans())
def test_frames_come_out_whole_and_in_order_however_they_arrive(bodies: list[bytes], cuts: list[int], one_by_one: bool):
    inbox = Inbox(1 << 20, Pool(1 << 22), Nobody())
    shared = memoryview(bytearray(SHARED))
    stream, found, turn = b"".join(map(framed, bodies)), [], 0
    while stream:
        count, frames = feed(inbox, shared, stream[: cuts[turn % len(cuts)]])
        stream = stream[count:]
        turn += 1
        while (frame := next(frames, None)) is not None:
            found.append(bytes(frame))
            if one_by_one:  # as after a request that is still being answered
                if inbox.unparked:
                    inbox.park()
                shared[:] = b"\xee" * SHARED
                frames = iter(inbox.frames(shared, 0))
        if inbox.unparked:
            inbox.park()
    assert found == bodies


def test_a_limit_that_a_frame_raises_counts_for_the_frame_behind_it():
    """As a login does: until then the frames of its connection are limited more."""
    inbox = Inbox(5, Pool(1 << 22), Nobody())
    shared = memoryview(bytearray(SHARED))
    _, frames = feed(inbox, shared, framed(b"login") + framed(b"a request"))
    assert bytes(next(frames)) == b"login"
    inbox.size_max = 100
    assert list(map(bytes, frames)) == [b"a request"]


def test_after_one_frame_in_one_read_nothing_is_left_to_park():
    inbox = Inbox(1000, Pool(1 << 22), Nobody())
    shared = memoryview(bytearray(SHARED))

    for body in (b"one", b""):
        _, frames = feed(inbox, shared, framed(body))
        assert not inbox.unparked
        assert list(map(bytes, frames)) == [body]
    for other in (framed(b"one") + b"\0", framed(b"one") * 2, framed(b"one")[:-1]):
        inbox = Inbox(1000, Pool(1 << 22), Nobody())
        _, frames = feed(inbox, shared, other)
        assert inbox.unparked
        found = list(map(bytes, frames))
        assert found == [b"one"] * (len(other) // len(framed(b"one")))
        inbox.park()
    feed(inbox, shared, framed(b""))
    assert inbox.unparked, "what is parked comes first"


@pytest.mark.parametrize("size", [-1, -(2**31), (1 << 20) + 1, 2**31 - 1])
def test_a_size_out_of_range_is_refused_before_anything_is_allocated(size: int):
    inbox = Inbox(1 << 20, Pool(1 << 22), Nobody())
    shared = memoryview(bytearray(SHARED))
    _, frames = feed(inbox, shared, struct.pack(">i", size))
    with pytest.raises(ProtocolViolation):
        next(frames)


def test_a_declared_giant_costs_what_arrived():
    inbox = Inbox(100 << 20, Pool(64 << 20), Nobody())
    shared = memoryview(bytearray(SHARED))
    _, frames = feed(inbox, shared, struct.pack(">i", 50 << 20) + b"x" * 100)
    assert not list(frames)
    inbox.park()
    own = inbox.buffer(shared)
    assert own is not None
    assert len(own) < 64 << 10
