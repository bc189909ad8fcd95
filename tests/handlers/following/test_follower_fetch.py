"""Fetch of a follower: what it is told, when, and what its request tells the leader."""

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from moldau import turns
from moldau.errors import ErrorCode
from moldau.handlers.following.follower_fetch import FetchAnswer, FollowerFetch, FollowerRequest, PartitionAnswer
from moldau.names import BrokerId, Offset
from moldau.replication.replicas import elapsed_ms
from tests.handlers.following.followers import EPOCH, HOUR_MS, Asking, offsets, parts, play, write
from tests.handlers.in_sync import FOLLOWER, in_sync
from tests.handlers.living import Living, batch


def test_a_leader_waits_until_it_has_as_many_bytes_as_its_follower_asks_for(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        in_sync(alive.replica("a"), 1, FOLLOWER)
        await write(alive)
        size = len(batch(b"x"))
        asking = asyncio.ensure_future(follower.ask((topic, 0, 0, -1), wait_ms=HOUR_MS, min_bytes=size + 1))
        await asyncio.sleep(0)
        assert not asking.done()
        await write(alive)
        (part,) = parts(await asking)
        assert offsets(part) == [0, 1]
        await write(alive)
        (part,) = parts(await follower.ask((topic, 0, 2, 0), wait_ms=1, min_bytes=size + 1))
        assert offsets(part) == [2]

    play(tmp_path, scenario)


def test_a_follower_gets_what_is_not_committed_and_its_next_request_commits_it(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        in_sync(alive.replica("a"), 1, FOLLOWER)
        await write(alive)
        (part,) = parts(await follower.ask((topic, 0, 0, -1)))
        assert (offsets(part), part.high_watermark, part.error_code) == ([0], 0, 0)
        (part,) = parts(await follower.ask((topic, 0, 1, 0)))
        assert (offsets(part), part.high_watermark) == ([], 1)
        assert alive.replica("a").high_watermark == 1
        assert follower.asked == [alive.replica("a")] * 2

    play(tmp_path, scenario)


def test_a_broker_that_registered_again_is_known_by_its_new_epoch_in_partitions_without_records(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        await write(alive)
        await follower.ask((topic, 0, 0, -1), (topic, 1, 0, -1))
        await follower.ask((topic, 0, 1, 0))
        follower.epoch = EPOCH + 1  # its session in the store ended, and its process went on
        follower.up = {FOLLOWER: EPOCH + 1}
        assert parts(await follower.ask(wait_ms=1)) == []
        for index, end in ((0, 1), (1, 0)):
            known = alive.replica("a", index).leadership._followers[BrokerId(FOLLOWER)]
            assert (known.broker_epoch, known.may_join, known.end) == (EPOCH + 1, True, end)

    play(tmp_path, scenario)


def test_a_registration_that_the_leader_does_not_know_yet_is_sent_records_and_counts_when_it_does(
    tmp_path: Path,
) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        await write(alive)
        follower.epoch = EPOCH + 1
        first = parts(await follower.ask((topic, 0, 0, -1), (topic, 1, 0, -1)))
        assert [(part.partition_index, offsets(part)) for part in first if part.records] == [(0, [0])]
        await follower.ask((topic, 0, 1, 0))
        leaderships = [alive.replica("a", index).leadership for index in (0, 1)]
        assert [leadership._followers.get(BrokerId(FOLLOWER)) for leadership in leaderships] == [None, None]
        follower.up = {FOLLOWER: EPOCH + 1}
        await follower.ask(wait_ms=1)
        assert [leadership._followers[BrokerId(FOLLOWER)].end for leadership in leaderships] == [1, 0]

    play(tmp_path, scenario)


@pytest.mark.parametrize("shown", [{}, {FOLLOWER: EPOCH}, {FOLLOWER: EPOCH + 2}])
def test_an_epoch_that_is_not_the_followers_commits_nothing_and_shuts_nobody_out(
    tmp_path: Path, shown: dict[int, int]
) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        replica = alive.replica("a")
        in_sync(replica, 1, FOLLOWER)
        await write(alive)
        follower.up, follower.epoch = shown, EPOCH + 1
        reply = await follower.ask((topic, 0, 1, 0))
        is_earlier = shown.get(FOLLOWER, 0) > EPOCH + 1
        assert reply.error_code == (ErrorCode.STALE_BROKER_EPOCH if is_earlier else ErrorCode.NONE)
        assert replica.high_watermark == 0
        follower.session, follower.epoch, follower.up = (0, 0), EPOCH, {FOLLOWER: EPOCH}
        assert not [part.error_code for part in parts(await follower.ask((topic, 0, 1, 0))) if part.error_code]
        assert replica.high_watermark == 1

    play(tmp_path, scenario)


def test_a_leader_that_is_late_to_wait_answers_with_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = FollowerFetch._answer

    def slow(self: FollowerFetch, asked: FollowerRequest, answered: list[PartitionAnswer]) -> FetchAnswer | None:
        found = answer(self, asked, answered)
        time.sleep(0.002)
        return found

    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        in_sync(alive.replica("a"), 1, FOLLOWER)
        await write(alive)
        monkeypatch.setattr("moldau.handlers.following.follower_fetch.FollowerFetch._answer", slow)
        (part,) = parts(await follower.ask((topic, 0, 0, -1), wait_ms=1, min_bytes=1 << 20))
        assert offsets(part) == [0]

    play(tmp_path, scenario)


def test_the_next_request_of_a_session_ends_the_wait_of_the_one_before(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        await follower.ask((topic, 0, 0, -1))
        first = asyncio.ensure_future(follower.ask(wait_ms=HOUR_MS))
        await asyncio.sleep(0.01)
        session_id, epoch = follower.session
        follower.session = session_id, epoch + 1
        second = asyncio.ensure_future(follower.ask((topic, 1, 0, -1), wait_ms=HOUR_MS))
        assert parts(await first) == []
        await asyncio.sleep(0.01)
        assert not second.done()
        await write(alive, 1)
        (part,) = parts(await second)
        assert (part.partition_index, offsets(part)) == (1, [0])

    play(tmp_path, scenario)


def test_what_a_request_had_read_when_the_next_one_came_is_in_a_later_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "ELEMENTS", 1)

    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        await follower.ask((topic, 0, 0, -1), (topic, 1, 0, -1))
        await write(alive)
        await write(alive, 1)
        first = asyncio.ensure_future(follower.ask(wait_ms=HOUR_MS))
        await asyncio.sleep(0)
        session_id, epoch = follower.session
        follower.session = session_id, epoch + 1
        second = asyncio.ensure_future(follower.ask((topic, 1, 0, -1), wait_ms=HOUR_MS))
        assert parts(await first) == []
        told = parts(await second)
        follower.session = session_id, epoch + 2
        told += parts(await follower.ask(wait_ms=1))
        assert sorted((part.partition_index, *offsets(part)) for part in told) == [(0, 0), (1, 0)]

    play(tmp_path, scenario)


def test_a_request_waits_for_records_and_not_for_the_high_watermark(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        await follower.ask((topic, 0, 0, -1), (topic, 1, 0, -1))
        waiting = asyncio.ensure_future(follower.ask(wait_ms=HOUR_MS))
        while not alive.replica("a", 1).waiters.followers:
            await asyncio.sleep(0)
        alive.replica("a")._committed(alive.replica("a").log.log_end_offset, None)
        await asyncio.sleep(0.01)
        assert not waiting.done()
        await write(alive, 1)
        (part,) = parts(await waiting)
        assert (part.partition_index, offsets(part)) == (1, [0])

    play(tmp_path, scenario)


def test_a_high_watermark_that_moved_is_told_at_once_and_once_if_followers_serve_readers(tmp_path: Path) -> None:
    async def scenario(alive: Living, _: Asking, topic: bytes) -> None:
        follower, replica = Asking(alive, tells_watermarks=True), alive.replica("a")
        await follower.ask((topic, 0, 0, -1))
        waiting = asyncio.ensure_future(follower.ask(wait_ms=HOUR_MS))
        await asyncio.sleep(0.01)
        await write(alive)
        (part,) = parts(await waiting)
        assert (offsets(part), part.high_watermark) == ([0], 0)
        (part,) = parts(await follower.ask((topic, 0, 1, 0), wait_ms=HOUR_MS))
        assert (offsets(part), part.high_watermark) == ([], 1)
        waiting = asyncio.ensure_future(follower.ask((topic, 0, 1, 0), wait_ms=HOUR_MS))
        await asyncio.sleep(0.01)
        assert not waiting.done(), "it knows the high watermark"
        await write(alive)
        (part,) = parts(await waiting)
        assert (offsets(part), part.high_watermark) == ([1], 1)
        (part,) = parts(await follower.ask((topic, 0, 2, 0), wait_ms=HOUR_MS))
        assert (offsets(part), part.high_watermark) == ([], 2)
        waiting = asyncio.ensure_future(follower.ask(wait_ms=HOUR_MS))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        replica._committed(Offset(3), None)
        (part,) = parts(await waiting)
        assert (offsets(part), part.high_watermark) == ([], 3)

    play(tmp_path, scenario)


def test_a_partition_that_has_not_changed_is_not_looked_at(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        await follower.ask((topic, 0, 0, -1), (topic, 1, 0, -1))
        follower.asked.clear()
        assert parts(await follower.ask()) == []
        assert follower.asked == []
        await write(alive, 1)
        assert [part.partition_index for part in parts(await follower.ask())] == [1]
        assert follower.asked == [alive.replica("a", 1)]

    play(tmp_path, scenario)


def test_where_the_follower_differs_the_answer_says_only_that(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        in_sync(alive.replica("a"), 1, FOLLOWER)
        await write(alive)
        (part,) = parts(await follower.ask((topic, 0, 3, 0)))
        assert (part.diverging_epoch.epoch, part.diverging_epoch.end_offset) == (0, 1)
        assert (offsets(part), alive.replica("a").high_watermark) == ([], 0)
        (part,) = parts(await follower.ask((topic, 0, 3, -1)))
        assert (part.diverging_epoch.epoch, part.diverging_epoch.end_offset) == (-1, 1)

    play(tmp_path, scenario)


def test_a_follower_that_differs_no_longer_holds_back_what_it_was_about_to_join(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        await follower.ask((topic, 0, 0, -1))
        await write(alive)
        assert alive.replica("a").high_watermark == 0, "the follower is about to join"
        await follower.ask((topic, 0, 3, 0))
        assert alive.replica("a").high_watermark == 1

    play(tmp_path, scenario)


def test_a_follower_below_the_logs_start_hears_where_that_is(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        await write(alive)
        alive.replica("a").delete_records_before(1)
        (part,) = parts(await follower.ask((topic, 0, 0, -1)))
        assert (part.error_code, part.log_start_offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, 1)

    play(tmp_path, scenario)


def test_a_log_start_ahead_of_the_followers_ends_its_wait_once(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        replica = alive.replica("a")
        await write(alive)
        await follower.ask((topic, 0, 1, 0))
        waiting = asyncio.ensure_future(follower.ask(wait_ms=HOUR_MS))
        while not replica.waiters.followers:
            await asyncio.sleep(0)
        replica.delete_records_before(1)
        (part,) = parts(await waiting)
        assert (part.partition_index, part.log_start_offset) == (0, 1)
        assert replica.leadership.low_watermark(Offset(1), {FOLLOWER: EPOCH}) == 0
        waiting = asyncio.ensure_future(follower.ask((topic, 0, 1, 0), start=1, wait_ms=HOUR_MS))
        while replica.leadership.low_watermark(Offset(1), {FOLLOWER: EPOCH}) != 1:
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        assert not waiting.done()
        waiting.cancel()

    play(tmp_path, scenario)


def test_what_finds_no_room_comes_next_time(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        for number in range(2):
            await write(alive, number)
        first = parts(await follower.ask((topic, 0, 0, -1), (topic, 1, 0, -1), max_bytes=1))
        assert [(part.partition_index, offsets(part)) for part in first] == [(0, [0])]
        second = parts(await follower.ask((topic, 0, 1, 0), max_bytes=1))
        assert [(part.partition_index, offsets(part)) for part in second] == [(1, [0])]

    play(tmp_path, scenario)


def test_forgotten_partitions_are_not_told_of_and_not_watched(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        await follower.ask((topic, 0, 0, -1), (topic, 1, 0, -1))
        await follower.ask(forgotten=(topic, 0))
        assert not alive.replica("a").waiters.followers
        await write(alive)
        assert parts(await follower.ask()) == []

    play(tmp_path, scenario)


def test_a_deleted_topic_is_told_to_who_waits(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        await follower.ask((topic, 0, 0, -1))
        waiting = asyncio.ensure_future(follower.ask(wait_ms=HOUR_MS))
        await asyncio.sleep(0)
        await alive.broker.cluster.topics.delete([("a", None)])
        (part,) = parts(await waiting)
        assert part.error_code == ErrorCode.UNKNOWN_TOPIC_ID

    play(tmp_path, scenario)


def test_sessions_count_and_a_new_one_ends_the_one_before(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        await follower.ask((topic, 0, 0, -1))
        first = follower.session
        follower.session = first[0], first[1] + 1
        assert (await follower.ask()).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        follower.session = (0, 0)
        await follower.ask((topic, 1, 0, -1))
        assert not alive.replica("a").waiters.followers
        follower.session = first
        assert (await follower.ask()).error_code in (
            ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
            ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        )

    play(tmp_path, scenario)


def test_only_the_broker_that_introduced_itself_asks_for_itself(tmp_path: Path) -> None:
    async def scenario(alive: Living, _: Asking, topic: bytes) -> None:
        reply = await Asking(alive, introduced=3).ask((topic, 0, 0, -1))
        assert reply.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    play(tmp_path, scenario)


def test_a_follower_of_an_earlier_life_does_not_count(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        replica = alive.replica("a")
        in_sync(replica, 1, FOLLOWER)
        assert replica.follower_asked(FOLLOWER, replica.log.log_end_offset, EPOCH + 1, True, 0)
        (part,) = parts(await follower.ask((topic, 0, 0, -1)))
        assert part.error_code == ErrorCode.STALE_BROKER_EPOCH

    play(tmp_path, scenario)


def test_a_batch_that_finds_too_little_room_comes_next_time(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        for number in range(2):
            await write(alive, number)
        size = len(batch(b"x"))
        first = parts(await follower.ask((topic, 0, 0, -1), (topic, 1, 0, -1), max_bytes=size + 10))
        assert [(part.partition_index, offsets(part)) for part in first if part.records] == [(0, [0])]
        second = parts(await follower.ask((topic, 0, 1, 0), max_bytes=size + 10, wait_ms=200))
        third = parts(await follower.ask(max_bytes=size + 10, wait_ms=200))
        told = [(part.partition_index, offsets(part)) for part in (*second, *third) if part.records]
        assert told == [(1, [0])]

    play(tmp_path, scenario)


def test_a_second_request_that_lay_in_the_socket_of_a_leader_that_stood_still_is_an_old_one(tmp_path: Path) -> None:
    """The second request is sent while the first waits; after the standstill the first one's wait is over, and only
    then is the second one read."""

    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        replica = alive.replica("a")
        in_sync(replica, 1, FOLLOWER)
        await follower.ask((topic, 0, 0, -1))
        first = asyncio.ensure_future(follower.ask(wait_ms=100))
        await asyncio.sleep(0.01)
        sent_ms = elapsed_ms()
        time.sleep(0.5)
        await first
        await follower.ask()
        now_ms = elapsed_ms()
        assert replica.followers_silent_ms(now_ms) >= now_ms - sent_ms

    play(tmp_path, scenario)


def test_when_the_throttle_is_free_a_request_that_waited_for_that_sees_it() -> None:
    """1.001 s is 1000 whole milliseconds, as far as a computer can tell."""
    clock = SimpleNamespace(now_s=0.25)
    clock.time = lambda: clock.now_s
    for ms in range(251, 5000):
        clock.now_s = 0.25
        asked: Any = FollowerRequest._make((None, None, 1, clock, 100.0))
        clock.now_s += asked.seconds_until(ms)
        assert ms <= asked.now_ms <= ms + 1


def test_a_partition_that_is_no_longer_followed_is_not_due_for_ever(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        await follower.ask((topic, 0, 0, -1), (topic, 1, 0, -1))
        (session,) = follower.sessions
        gone = session.parts[topic, 1]
        await follower.ask(forgotten=(topic, 1))
        gone.grew()  # as a reading does that was given up
        await follower.ask()
        assert not session.due

    play(tmp_path, scenario)
