"""One bound for all that connections have sent and nobody could serve yet: who waits when it is reached, who is closed,
and that nobody is before."""

import logging
import struct

import pytest

from moldau.net.inbox import Inbox
from moldau.net.pool import FREE_BYTES, FRESH_BYTES, FRESH_MAX, GIANTS_PART, SMALL_BYTES, Pool

MIB = 1 << 20
READ = 128 << 10
SHARED = memoryview(bytearray(READ))


class Peer:
    """A connection that sends one frame; `arrived` bytes of it are here, the four of the size among them."""

    def __init__(self, pool: Pool, frame_bytes: int, host: str = "hostile"):
        self.arrived = 0
        self.is_closed = False
        self.resumed = 0
        self._header = struct.pack(">i", frame_bytes)
        self._host = host
        self.sent_more = False
        self.inbox = Inbox(2048 * MIB - 5, pool, self)

    def begin(self, frame_bytes: int) -> None:
        """Another frame, after the first is finished."""
        self.arrived, self._header = 0, struct.pack(">i", frame_bytes)

    def resume(self) -> None:
        self.resumed += 1
        self.may_send()

    def has_sent_more(self) -> bool:
        return self.sent_more

    def give_up(self) -> str:
        self.is_closed = True
        self.inbox.close()
        return self._host

    def may_send(self) -> bool:
        return not self.is_closed and self.inbox.buffer(SHARED) is not None

    def send(self, count: int) -> bool:
        """Send this many bytes; False if not all of them were read."""
        while count:
            room = None if self.is_closed else self.inbox.buffer(SHARED)
            if room is None:
                return False
            taken = min(count, len(room))
            if self.arrived < 4:
                taken = 4
                room[:4] = self._header
            for _ in self.inbox.frames(SHARED, taken):
                self.arrived = -taken
            if self.inbox.unparked:
                self.inbox.park()
            self.arrived += taken
            count -= min(count, taken)
        return True


def half_sent(pool: Pool, peers: int, count: int, frame_bytes: int = MIB) -> list[Peer]:
    found = [Peer(pool, frame_bytes) for _ in range(peers)]
    for peer in found:
        peer.send(count)
    return found


def test_whatever_the_size_of_the_frames_the_bound_holds_and_what_is_beyond_waits():
    for frame_bytes in (100_000, MIB, 50 * MIB):
        pool = Pool(40 * MIB)
        peers = half_sent(pool, 2000, min(frame_bytes - 100, 2 * MIB), frame_bytes)
        assert pool.taken <= 40 * MIB + len(peers) * SMALL_BYTES
        assert not any(peer.is_closed for peer in peers)
        assert not peers[-1].may_send()


def test_those_that_stand_still_make_room_for_others_at_once(caplog: pytest.LogCaptureFixture):
    pool = Pool(40 * MIB)
    stalled = half_sent(pool, 30, MIB - 100)
    pool.look()
    pool.look()
    assert not any(peer.is_closed for peer in stalled), "nobody needs what they have"
    good = half_sent(pool, 30, MIB - 100)
    assert not any(peer.is_closed for peer in good)
    assert all(peer.may_send() for peer in good)
    assert sum(peer.is_closed for peer in stalled) < len(stalled)
    with caplog.at_level(logging.WARNING):
        pool.look()
        pool.look()
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 1 and "queued.max.request.bytes" in lines[0] and "hostile (" in lines[0]


def test_the_slowest_are_closed_if_others_wait_from_one_look_to_the_next():
    pool = Pool(40 * MIB)
    slow, quick = half_sent(pool, 20, 500_000), half_sent(pool, 19, 500_000)

    def all_bring_some() -> None:
        assert all(peer.send(10) for peer in slow)
        assert all(peer.send(100) for peer in quick)

    pool.look()
    all_bring_some()
    new = half_sent(pool, 3, MIB - 100)
    assert not any(peer.may_send() for peer in new)
    pool.look()
    assert not any(peer.is_closed for peer in (*slow, *quick, *new)), "nobody has waited since the look before"
    all_bring_some()
    pool.look()
    assert 1 <= sum(peer.is_closed for peer in slow) <= 2 * len(new), "which is enough"
    assert not any(peer.is_closed for peer in (*quick, *new))
    assert all(peer.may_send() for peer in new)


def test_what_we_have_not_read_yet_is_not_held_against_those_that_sent_it():
    pool = Pool(40 * MIB)
    stalled, unread = half_sent(pool, 18, MIB - 100), half_sent(pool, 18, MIB - 100)
    for peer in unread:
        peer.sent_more = True
    pool.look()
    pool.look()
    assert all(peer.may_send() for peer in half_sent(pool, 15, MIB - 100))
    assert any(peer.is_closed for peer in stalled)
    assert not any(peer.is_closed for peer in unread)


def test_of_those_that_wait_the_ones_that_never_finished_a_frame_are_closed_first():
    pool = Pool(40 * MIB)
    producers = [Peer(pool, 100) for _ in range(20)]
    assert all(peer.send(104) for peer in producers)
    others = half_sent(pool, 200, 200_000)
    for peer in producers:
        peer.begin(MIB)
        assert not peer.send(200_000)
    for _ in range(3):
        pool.look()
    assert any(peer.is_closed for peer in others)
    assert not any(peer.is_closed for peer in producers)


def test_slow_producers_are_left_alone_while_memory_is_not_short():
    pool = Pool(256 * MIB)
    producers = half_sent(pool, 200, 1000)
    for _ in range(100):
        for producer in producers[::2]:
            producer.send(1)
        pool.look()
    assert not any(producer.is_closed for producer in producers)
    for producer in producers:
        assert producer.send(MIB - 2000)


def test_giants_have_a_part_of_the_bound_and_the_first_may_always_finish():
    pool = Pool(40 * MIB)
    first = Peer(pool, 50 * MIB)
    assert first.send(3 * MIB)
    others = half_sent(pool, 20, 2 * MIB, 50 * MIB)
    assert not any(other.may_send() for other in others)
    assert pool.taken <= 40 * MIB // GIANTS_PART * 4 + 20 * FREE_BYTES
    assert all(peer.send(MIB - 100) for peer in half_sent(pool, 20, 100)), "the rest is for others"
    assert first.send(45 * MIB)
    first.inbox.close()
    assert others[0].resumed and others[0].may_send()


def test_what_waits_for_us_is_closed_last():
    pool = Pool(40 * MIB)
    muted, slow = half_sent(pool, 20, 500_000), half_sent(pool, 19, 500_000)
    for peer in muted:
        peer.inbox.muted = True
    pool.look()
    half_sent(pool, 3, MIB - 100)
    for _ in range(2):
        assert all(peer.send(100) for peer in slow)
        pool.look()
    assert any(peer.is_closed for peer in slow)
    assert not any(peer.is_closed for peer in muted)
    for peer in muted:
        peer.inbox.unmute()
    newer = half_sent(pool, 10, MIB - 100)
    assert not any(peer.is_closed for peer in muted), "they had no time to send anything yet"
    assert newer


def test_a_connection_is_read_from_in_small_pieces_while_memory_is_short():
    pool = Pool(40 * MIB)
    half_sent(pool, 200, 500_000)
    fresh = Peer(pool, 1000)
    assert len(fresh.inbox.buffer(SHARED) or b"") == READ or pool.short
    while not pool.short:
        fresh = Peer(pool, READ)
        fresh.send(READ - 1000)
    assert len(Peer(pool, 1000).inbox.buffer(SHARED) or b"") == SMALL_BYTES
    assert Peer(pool, SMALL_BYTES).send(SMALL_BYTES), "and small requests are served"


def test_what_is_closed_is_given_back():
    pool = Pool(40 * MIB)
    peers = half_sent(pool, 100, MIB - 100) + half_sent(pool, 10, 3 * MIB, 50 * MIB)
    for peer in peers:
        peer.inbox.close()
    assert pool.taken == 0
    assert not pool.short
    assert Peer(pool, 39 * MIB).send(39 * MIB - 100)


def test_small_beginnings_are_counted_before_they_are_many_and_before_a_larger_one_is_let_in():
    pool = Pool(40 * MIB)
    peers = half_sent(pool, FRESH_MAX, 1000, 20_000)
    assert len(pool.fresh) == FRESH_MAX
    peers += half_sent(pool, 1, 1000, 20_000)
    assert not pool.fresh
    peers += half_sent(pool, 3, 1000, 20_000) + half_sent(pool, 1, 500_000)
    assert not pool.fresh
    assert pool.taken >= len(peers) * 1000 + 500_000
    for peer in peers:
        peer.inbox.close()
    assert pool.taken == 0


def test_pipelined_requests_that_arrive_in_halves_cost_the_pool_nothing(monkeypatch: pytest.MonkeyPatch):
    pool = Pool(40 * MIB)
    peer = Peer(pool, FRESH_BYTES - 4)
    for name in ("hold", "grow", "give_back", "count_fresh"):
        monkeypatch.setattr(pool, name, None)
    for _ in range(20):
        peer.begin(FRESH_BYTES - 4)
        assert peer.send(FRESH_BYTES // 2)
        assert list(pool.fresh) == [peer.inbox]
        assert peer.send(FRESH_BYTES // 2)
        assert not pool.fresh
