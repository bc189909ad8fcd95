"""The leader's throttle (KIP-73): what a follower that is not in sync has to wait for, and what goes on meanwhile."""

import asyncio
from pathlib import Path

from harness.patience import stretched
from moldau.names import Offset
from moldau.protocol.messages.fetch import FetchResponse
from moldau.replication.replicas import elapsed_ms
from tests.handlers.following.followers import HOUR_MS, Asking, offsets, parts, play, write
from tests.handlers.in_sync import FOLLOWER, in_sync
from tests.handlers.living import Living


def told(reply: FetchResponse) -> list[tuple[int, list[int]]]:
    """The partitions with records, and the offsets of these."""
    return [(part.partition_index, offsets(part)) for part in parts(reply) if part.records]


def test_a_throttled_partition_is_left_out_while_the_rate_is_exceeded_and_others_are_not(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        await write(alive)
        assert told(await follower.ask((topic, 0, 0, -1), (topic, 1, 0, -1))) == [(0, [0])]
        await write(alive)
        await write(alive, 1)
        assert told(await follower.ask((topic, 0, 1, 0), wait_ms=HOUR_MS)) == [(1, [0])]
        assert told(await follower.ask((topic, 1, 1, 0), wait_ms=1)) == []

    play(tmp_path, scenario, "0:1")


def test_a_request_for_throttled_partitions_only_waits_until_the_rate_allows_without_looking_on(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        follower.quota._sample_ms, follower.quota._window_ms = 100, 200
        follower.throttle.quota.limit = 1
        await write(alive)
        await follower.ask((topic, 0, 0, -1), (topic, 1, 0, -1))
        await write(alive)
        follower.asked.clear()
        assert told(await follower.ask((topic, 0, 1, 0), wait_ms=HOUR_MS)) == [(0, [1])]
        assert len(follower.asked) <= 5

    play(tmp_path, scenario, "*")


def test_a_request_that_waits_for_the_throttle_is_answered_when_its_rate_is_taken_back(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        await write(alive)
        await follower.ask((topic, 0, 0, -1), (topic, 1, 0, -1))
        await write(alive)
        await write(alive, 1)
        waiting = asyncio.ensure_future(follower.ask((topic, 0, 1, 0), wait_ms=HOUR_MS))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        follower.throttle.quota.limit = None
        follower.throttle.announce()
        async with asyncio.timeout(stretched()):
            assert sorted(told(await waiting)) == [(0, [1]), (1, [0])]

    play(tmp_path, scenario, "*")


def test_what_was_left_out_comes_first_when_the_rate_allows_one_partition_only(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        follower.quota._sample_ms, follower.quota._window_ms = 50, 100
        follower.throttle.quota.limit = 1
        for number in (0, 1, 0, 1):
            await write(alive, number)
        seen = [told(await follower.ask((topic, 0, 0, -1), (topic, 1, 0, -1), wait_ms=HOUR_MS))]
        seen.append(told(await follower.ask((topic, 0, 1, 0), wait_ms=HOUR_MS)))
        assert [[partition for partition, _ in one] for one in seen] == [[0], [1]]

    play(tmp_path, scenario, "*")


def test_an_in_sync_follower_is_never_throttled_but_what_it_fetches_counts(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        in_sync(alive.replica("a"), 1, FOLLOWER)
        for number in range(3):
            await write(alive)
            assert told(await follower.ask((topic, 0, number, 0 if number else -1))) == [(0, [number])]
        assert follower.throttle.quota.is_exceeded(elapsed_ms())
        await write(alive, 1)
        assert told(await follower.ask((topic, 0, 3, 0), (topic, 1, 0, -1), wait_ms=1)) == []

    play(tmp_path, scenario, "*")


def test_a_withheld_partition_still_counts_what_its_follower_has(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        follower.quota.record(1000, elapsed_ms())
        await write(alive)
        await write(alive)
        assert told(await follower.ask((topic, 0, 1, 0))) == []
        assert alive.replica("a").leadership._followers[FOLLOWER].end == 1

    play(tmp_path, scenario, "*")


def test_a_follower_that_is_proposed_to_join_is_not_withheld_any_more(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        follower.quota.record(1 << 20, elapsed_ms())
        await write(alive)
        await write(alive)
        waiting = asyncio.ensure_future(follower.ask((topic, 0, 1, 0), wait_ms=HOUR_MS))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        replica = alive.replica("a")
        replica.look(follower.up, elapsed_ms())
        assert replica.leadership.propose(Offset(1), elapsed_ms()) is not None
        replica.waiters.proposed()
        async with asyncio.timeout(stretched()):
            assert told(await waiting) == [(0, [1])]

    play(tmp_path, scenario, "*")


def test_a_write_does_not_wait_for_a_follower_that_ceases_to_ask(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        await follower.ask((topic, 0, 0, -1))
        await write(alive)
        replica = alive.replica("a")
        assert replica.high_watermark == 0, "it is about to join"
        await follower.ask(forgotten=(topic, 0))
        assert replica.high_watermark == 1

    play(tmp_path, scenario)


def test_without_a_rate_nothing_is_measured(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        follower.throttle.quota.limit = None
        await write(alive)
        await follower.ask((topic, 0, 0, -1))
        follower.throttle.quota.limit = 1
        assert not follower.throttle.quota.is_exceeded(elapsed_ms())

    play(tmp_path, scenario, "*")


def test_the_high_watermark_does_not_wait_for_a_follower_that_is_withheld_or_does_not_ask(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        replica = alive.replica("a")
        await follower.ask((topic, 0, 0, -1))
        await write(alive)
        assert replica.high_watermark == 0, "it is about to join"
        follower.quota.record(1000, elapsed_ms())
        assert told(await follower.ask()) == []
        await write(alive)
        assert replica.high_watermark == 2

        await follower.ask((topic, 0, 2, 0))  # nothing is withheld at the log's end
        await write(alive)
        assert replica.high_watermark == 2, "it is about to join again"
        await follower.ask(forgotten=(topic, 0))
        await write(alive)
        assert replica.high_watermark == 4

    play(tmp_path, scenario, "0:1")
