"""What followers leave out of their requests while their throttle is exceeded (KIP-73)."""

import asyncio
from pathlib import Path

import pytest

from harness.patience import stretched
from moldau.names import BrokerId
from moldau.protocol.messages.fetch import FetchResponse
from moldau.replication.replicas import elapsed_ms
from tests.replication.followed import ME, OTHER, Stage, play


def test_a_throttled_replica_is_not_asked_for_while_its_rate_is_exceeded(tmp_path: Path) -> None:
    async def scenario(stage: Stage) -> None:
        stage.throttled("0:1")
        stage.roles(OTHER, OTHER)
        stage.replies.put_nowait(stage.reply(records=stage.records()))
        second = await stage.asked(2)
        assert stage.replica.log.log_end_offset == 1
        assert second.topics == []
        assert [(one.topic_id, one.partitions) for one in second.forgotten_topics_data] == [
            (stage.replica.topic_id, [0])
        ]
        stage.replies.put_nowait(FetchResponse(session_id=7))
        await asyncio.sleep(0.05)
        assert len(stage.requests) == 2, "there is nothing to ask for"
        stage.throttle.quota.limit = None
        stage.throttle.announce()
        async with asyncio.timeout(stretched()):
            third = await stage.asked(3)
        assert [part.fetch_offset for topic in third.topics for part in topic.partitions] == [1]

    play(tmp_path, scenario)


def test_a_throttled_replica_is_asked_for_again_when_its_topic_no_longer_lists_it(tmp_path: Path) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.held_back()
        stage.throttle.announce()
        await asyncio.sleep(0.05)
        assert len(stage.requests) == 1, "nothing has changed"
        stage.throttled("1:1")
        stage.throttle.announce()
        async with asyncio.timeout(stretched()):
            assert len((await stage.asked(2)).topics) == 1

    play(tmp_path, scenario)


def test_a_throttled_replica_pauses_less_under_a_higher_rate(tmp_path: Path) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.held_back()
        stage.quota._sample_ms = 10
        stage.throttle.quota.limit = 10 << 20
        assert stage.throttle.quota.is_exceeded(elapsed_ms())
        stage.throttle.announce()
        async with asyncio.timeout(stretched()):
            assert len((await stage.asked(2)).topics) == 1

    play(tmp_path, scenario)


def test_a_throttled_replica_is_asked_for_again_when_the_rate_allows(tmp_path: Path) -> None:
    async def scenario(stage: Stage) -> None:
        stage.quota._sample_ms, stage.quota._window_ms = 50, 100
        stage.throttled("*")
        stage.roles(OTHER, OTHER)
        for _ in range(2):
            stage.replies.put_nowait(stage.reply(records=stage.records()))
            stage.replies.put_nowait(FetchResponse(session_id=7))
        await stage.asked(5)
        assert [len(request.topics) for request in stage.requests] == [1, 0, 1, 0, 1]
        assert stage.replica.log.log_end_offset == 2

    play(tmp_path, scenario)


@pytest.mark.parametrize(("isr", "listed"), [((OTHER, ME), "*"), ((OTHER,), "0:2"), ((OTHER,), "1:1")])
def test_a_replica_that_is_in_sync_or_not_listed_is_never_throttled(
    tmp_path: Path, isr: tuple[BrokerId, ...], listed: str
) -> None:
    async def scenario(stage: Stage) -> None:
        stage.throttled(listed)
        stage.roles(OTHER, *isr)
        for _ in range(3):
            stage.replies.put_nowait(stage.reply(records=stage.records()))
        await stage.asked(4)
        assert [len(request.topics) for request in stage.requests] == [1] * 4
        assert stage.quota.is_exceeded(elapsed_ms()) == (listed == "*"), "what an in-sync replica fetches counts"

    play(tmp_path, scenario)


def test_a_replica_in_sync_leaves_nothing_to_one_that_is_not(tmp_path: Path) -> None:
    async def scenario(stage: Stage) -> None:
        stage.throttled("*")
        stage.quota.record(1000, elapsed_ms())
        stage.roles(OTHER, OTHER)
        first = await stage.asked(1)
        assert first.topics == []
        stage.replies.put_nowait(FetchResponse(session_id=7))
        stage.roles(OTHER, OTHER, ME)
        second = await stage.asked(2)
        assert [topic.topic_id for topic in second.topics] == [stage.replica.topic_id]

    play(tmp_path, scenario)


def test_without_a_rate_nothing_is_measured(tmp_path: Path) -> None:
    async def scenario(stage: Stage) -> None:
        stage.throttled("*")
        stage.throttle.quota.limit = None
        stage.roles(OTHER, OTHER)
        stage.replies.put_nowait(stage.reply(records=stage.records()))
        await stage.asked(2)
        stage.throttle.quota.limit = 1
        assert not stage.throttle.quota.is_exceeded(elapsed_ms())

    play(tmp_path, scenario)
