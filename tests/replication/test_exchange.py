"""What leaders propose to the controller, and what followers ask their leaders, with both played by the test."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.logs import append
from moldau.cluster.state.isr_changes import ProposedIsr
from moldau.config import broker_config
from moldau.errors import ErrorCode, KafkaError
from moldau.metadata_store.store import StoreConflict
from moldau.names import BrokerId, LeaderEpoch, Offset
from moldau.protocol.messages.fetch import EpochEndOffset, FetchResponse
from moldau.replication import exchange, shortage
from moldau.replication.catching_up import Rest
from moldau.replication.follower import LeaderFollower
from moldau.replication.leader_session import FollowedReplica, follower_settings
from moldau.replication.leadership import PAUSE_MS, Leadership, PartitionRoles
from moldau.replication.pauses import Key
from moldau.replication.replica import Replica
from moldau.replication.replicas import elapsed_ms
from tests.replication.followed import ME, OTHER, SETTINGS, UP, Stage, followed, play


def test_a_follower_that_may_join_is_proposed_with_both_brokers_epochs(tmp_path: Path) -> None:
    async def scenario(stage: Stage) -> None:
        stage.roles(ME, ME)
        stage.follower_asks()
        proposal = await stage.proposed(1)
        assert proposal == (stage.replica.topic_id, 0, 0, 0, ((ME, -1), (OTHER, UP[OTHER])))

    play(tmp_path, scenario)


@pytest.mark.parametrize(
    "unknown", [ErrorCode.NOT_CONTROLLER, KafkaError(ErrorCode.NETWORK_EXCEPTION, "gone"), RuntimeError("a fault")]
)
def test_a_proposal_whose_outcome_nobody_knows_counts_on_and_is_sent_again(
    tmp_path: Path, unknown: ErrorCode | Exception
) -> None:
    async def scenario(stage: Stage) -> None:
        stage.roles(ME, ME)
        stage.follower_asks()
        stage.answers.put_nowait(unknown)
        assert await stage.proposed(2) == stage.proposals[0]
        assert stage.replica.leadership.proposal is not None

    play(tmp_path, scenario)


def test_an_accepted_proposal_counts_until_the_cluster_shows_it(tmp_path: Path) -> None:
    async def scenario(stage: Stage) -> None:
        stage.roles(ME, ME)
        stage.follower_asks()
        stage.answers.put_nowait(ErrorCode.NONE)
        await stage.proposed(1)
        await asyncio.sleep(0.05)
        assert stage.replica.leadership.proposal is not None and len(stage.proposals) == 1
        stage.roles(ME, ME, OTHER)
        assert stage.replica.leadership.proposal is None

    play(tmp_path, scenario)


def test_a_refused_proposal_is_made_again_after_a_pause(tmp_path: Path) -> None:
    async def scenario(stage: Stage) -> None:
        stage.roles(ME, ME)
        stage.follower_asks()
        stage.answers.put_nowait(ErrorCode.INELIGIBLE_REPLICA)
        begun_s = asyncio.get_running_loop().time()
        await stage.proposed(2)
        assert asyncio.get_running_loop().time() - begun_s >= PAUSE_MS / 1000

    play(tmp_path, scenario)


def test_followers_are_looked_at_again_after_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(stage: Stage) -> None:
        faults, looked = [RuntimeError("a fault")], asyncio.Event()

        def look(leadership: Leadership, alive: Mapping[int, int], now_ms: int) -> None:
            if faults:
                raise faults.pop()
            looked.set()

        monkeypatch.setattr(Leadership, "look", look)
        stage.roles(ME, ME)
        await looked.wait()

    play(tmp_path, scenario)
    assert "internal error: the followers of this broker are looked at again" in caplog.text


def test_a_partition_that_had_too_few_in_sync_replicas_for_long_is_named_with_the_brokers_that_lack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(shortage, "LONG_MS", 1)
    monkeypatch.setattr(exchange, "LOOK_MS", 1)

    async def scenario(stage: Stage) -> None:
        stage.replica.leadership.require(2)
        stage.roles(ME, ME)
        while not caplog.messages:
            await asyncio.sleep(0.001)

    play(tmp_path, scenario)
    (line,) = caplog.messages
    assert line.startswith("1 partition led by this broker had fewer in-sync replicas than min.insync.replicas")
    assert f"One is t-0: the replicas on brokers {OTHER} are not in sync" in line


def test_followers_ask_three_times_within_half_of_a_short_session() -> None:
    short, usual = ({"node.id": "1", "zookeeper.session.timeout.ms": text} for text in ("1000", "18000"))
    assert follower_settings(broker_config(short)[0]).wait_ms == 166
    assert follower_settings(broker_config(usual)[0]).wait_ms == 500


def test_a_follower_names_what_changed_and_nothing_else(tmp_path: Path) -> None:
    async def scenario(stage: Stage) -> None:
        stage.roles(OTHER, OTHER, ME)
        first = await stage.asked(1)
        assert (first.session_id, first.session_epoch, first.replica_state.replica_epoch) == (0, 0, UP[ME])
        (part,) = first.topics[0].partitions
        assert (part.fetch_offset, part.last_fetched_epoch, part.current_leader_epoch) == (0, -1, 0)
        stage.replies.put_nowait(stage.reply())
        second = await stage.asked(2)
        assert (second.session_id, second.session_epoch, second.topics) == (7, 1, [])
        stage.roles(OTHER, OTHER, ME, epoch=1)
        stage.replies.put_nowait(stage.reply())
        third = await stage.asked(3)
        assert third.topics[0].partitions[0].current_leader_epoch == 1

    play(tmp_path, scenario)


def test_a_partition_with_an_error_leaves_the_session_for_a_pause(tmp_path: Path) -> None:
    async def scenario(stage: Stage) -> None:
        stage.roles(OTHER, OTHER, ME)
        stage.replies.put_nowait(stage.reply(error_code=ErrorCode.UNKNOWN_LEADER_EPOCH))
        await stage.asked(2)
        assert [topic.topic_id for topic in stage.requests[1].topics] == [stage.replica.topic_id]

    play(tmp_path, scenario)


@pytest.mark.parametrize("failure", [FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND), None])
def test_a_lost_session_begins_again_with_everything(tmp_path: Path, failure: FetchResponse | None) -> None:
    async def scenario(stage: Stage) -> None:
        stage.roles(OTHER, OTHER, ME)
        stage.replies.put_nowait(stage.reply())
        stage.replies.put_nowait(failure or KafkaError(ErrorCode.NETWORK_EXCEPTION, "gone"))
        third = await stage.asked(3)
        assert (third.session_id, third.session_epoch, len(third.topics)) == (0, 0, 1)

    play(tmp_path, scenario)


def test_a_log_that_differs_is_cut_before_it_is_asked_for_again(tmp_path: Path) -> None:
    async def scenario(stage: Stage) -> None:
        log = stage.replica.log
        append(log, 3, leader_epoch=0)
        stage.roles(OTHER, OTHER, ME, epoch=1)
        stage.replies.put_nowait(stage.reply(diverging_epoch=EpochEndOffset(epoch=-1, end_offset=0), high_watermark=3))
        second = await stage.asked(2)
        assert second.topics[0].partitions[0].fetch_offset == 0
        assert (log.log_end_offset, stage.replica.high_watermark, log.cleaning) == (0, 0, False)

    play(tmp_path, scenario)


def test_the_cleaner_is_kept_away_as_soon_as_it_is_decided_that_a_log_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut, was_kept_away = LeaderFollower._cut, list[bool]()

    async def noted(self: LeaderFollower, key: Key, followed: FollowedReplica, rest: Rest) -> None:
        was_kept_away.append(followed.replica.log.cleaning)  # the cleaner may have its turn before this task
        await cut(self, key, followed, rest)

    async def scenario(stage: Stage) -> None:
        append(stage.replica.log, 3, leader_epoch=0)
        stage.roles(OTHER, OTHER, ME, epoch=1)
        stage.replies.put_nowait(stage.reply(diverging_epoch=EpochEndOffset(epoch=-1, end_offset=0)))
        await stage.asked(2)
        assert was_kept_away == [True] and not stage.replica.log.cleaning

    monkeypatch.setattr(LeaderFollower, "_cut", noted)
    play(tmp_path, scenario)


def test_what_is_led_here_again_is_not_asked_for(tmp_path: Path) -> None:
    async def scenario(stage: Stage) -> None:
        stage.roles(OTHER, OTHER, ME)
        await stage.asked(1)
        stage.roles(ME, ME, OTHER, epoch=1)
        stage.replies.put_nowait(stage.reply(high_watermark=5))
        second = await stage.asked(2)
        assert (second.topics, len(second.forgotten_topics_data)) == ([], 1)
        stage.replies.put_nowait(stage.reply())
        await asyncio.sleep(0.05)
        assert len(stage.requests) == 2

    play(tmp_path, scenario)


def test_a_change_of_leader_does_not_wait_for_the_request_that_waits_at_the_leader(tmp_path: Path) -> None:
    async def scenario(stage: Stage) -> None:
        stage.roles(OTHER, OTHER, ME)
        assert (await stage.asked(1)).max_wait_ms == 0
        stage.replies.put_nowait(stage.reply())
        assert (await stage.asked(2)).max_wait_ms == SETTINGS.wait_ms
        stage.roles(OTHER, OTHER, ME, epoch=1)
        third = await stage.asked(3)
        assert (third.session_id, third.session_epoch) == (7, 2)
        assert third.topics[0].partitions[0].current_leader_epoch == 1
        for _ in range(2):
            stage.replies.put_nowait(FetchResponse(session_id=7))
        assert (await stage.asked(4)).session_epoch == 3

    play(tmp_path, scenario)


def test_a_second_request_that_begins_during_the_stop_ends_with_it(tmp_path: Path) -> None:
    async def scenario(stage: Stage) -> None:
        stage.roles(OTHER, OTHER, ME)
        stage.replies.put_nowait(stage.reply())
        await stage.asked(2)
        stage.roles(OTHER, OTHER, ME, epoch=1)
        await stage.exchange._leaders[OTHER].stop()
        left = [task for task in asyncio.all_tasks() if "ask" in repr(task.get_coro())]
        assert not left

    play(tmp_path, scenario)


def test_an_answer_of_before_a_partition_was_named_again_is_dropped(tmp_path: Path) -> None:
    async def scenario(stage: Stage) -> None:
        append(stage.replica.log, 3, leader_epoch=0)
        stage.roles(OTHER, OTHER, ME)
        stage.replies.put_nowait(stage.reply())
        await stage.asked(2)
        stage.roles(OTHER, OTHER, ME, epoch=1)
        await stage.asked(3)
        stage.replies.put_nowait(stage.reply(diverging_epoch=EpochEndOffset(epoch=-1, end_offset=0)))
        await asyncio.sleep(0.05)
        assert len(stage.requests) == 3, "the answer to the third will say it anew"
        stage.replies.put_nowait(stage.reply(high_watermark=2))
        assert (await stage.asked(4)).topics == []
        assert (stage.replica.log.log_end_offset, stage.replica.high_watermark) == (3, 2)

    play(tmp_path, scenario)


def test_a_change_that_leaves_a_followers_position_asks_for_nothing(tmp_path: Path) -> None:
    async def scenario(stage: Stage) -> None:
        stage.roles(OTHER, OTHER, ME)
        stage.replies.put_nowait(stage.reply())
        await stage.asked(2)
        stage.roles(OTHER, OTHER)
        await asyncio.sleep(0.05)
        assert len(stage.requests) == 2

    play(tmp_path, scenario)


def test_a_pause_does_not_last_until_the_next_answer(tmp_path: Path) -> None:
    async def scenario(stage: Stage) -> None:
        stage.roles(OTHER, OTHER, ME)
        stage.replies.put_nowait(FetchResponse(session_id=7))
        await stage.asked(2)
        stage.roles(OTHER, OTHER, ME, epoch=1)
        await stage.asked(3)
        stage.replies.put_nowait(FetchResponse(session_id=7))
        stage.replies.put_nowait(stage.reply(error_code=ErrorCode.UNKNOWN_LEADER_EPOCH))
        fourth = await stage.asked(4)
        assert [topic.topic_id for topic in fourth.topics] == [stage.replica.topic_id]

    play(tmp_path, scenario)


def test_followers_hear_of_a_proposal_that_may_let_them_join(tmp_path: Path) -> None:
    class Watch:
        broker, leader_epoch, asked_ms, proposals = OTHER, 0, 0, 0

        def grew(self) -> None: ...

        def moved(self) -> None: ...

        def proposed(self) -> None:
            self.proposals += 1

    async def scenario(stage: Stage) -> None:
        stage.roles(ME, ME)
        watch = Watch()
        stage.replica.waiters.followers[watch] = None
        stage.follower_asks()
        await stage.proposed(1)
        assert watch.proposals == 1

    play(tmp_path, scenario)


def test_a_leader_proposes_on_after_a_conflict(tmp_path: Path) -> None:
    async def scenario(stage: Stage) -> None:
        stage.roles(ME, ME)
        stage.follower_asks()
        alter, asked = stage.exchange._alter_isr, []

        async def conflict(proposals: Sequence[ProposedIsr]) -> Sequence[ErrorCode]:
            asked.append(1)
            if len(asked) == 1:  # this broker is the controller: see `ChangeQueue.run`
                raise StoreConflict("/brokers/topics/t/partitions/0/state")
            return await alter(proposals)

        stage.exchange._alter_isr = conflict
        await stage.proposed(1)

    play(tmp_path, scenario)


def test_a_follower_does_not_leave_the_isr_because_its_leader_stood_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the leader does first: here it answers another replica."""
    third, stood_still_ms = BrokerId(3), 0
    monkeypatch.setattr(exchange, "elapsed_ms", lambda: elapsed_ms() + stood_still_ms)
    looks: list[int] = []

    async def scenario(stage: Stage) -> None:
        nonlocal stood_still_ms
        replica = stage.replica
        roles = PartitionRoles(ME, LeaderEpoch(0), (ME, OTHER), (ME, OTHER, third), 1)
        replica.take_roles(roles, elapsed_ms())
        stage.exchange.changed(replica)
        look = Replica.look
        monkeypatch.setattr(Replica, "look", lambda self, *args: (looks.append(1), look(self, *args)))
        append(replica.log)
        while not looks:
            await asyncio.sleep(0.001)
        stood_still_ms = 60_000
        assert replica.follower_asked(third, Offset(0), 30, False, elapsed_ms() + stood_still_ms)
        stage.exchange.consider(replica)
        count = len(looks)
        while len(looks) == count:
            await asyncio.sleep(0.001)
        assert not stage.proposals and replica.leadership.proposal is None

    play(tmp_path, scenario)


def test_a_leader_hears_that_its_last_partition_is_not_followed_any_more(tmp_path: Path) -> None:
    """Until then the replica may count as about to join, and hold back the high watermark."""

    async def scenario(stage: Stage) -> None:
        stage.roles(OTHER, OTHER)
        stage.replies.put_nowait(FetchResponse(session_id=7))
        await stage.asked(2)
        stage.exchange.left(stage.replica)
        stage.replies.put_nowait(FetchResponse(session_id=7))
        third = await stage.asked(3)
        assert [one.topic_id for one in third.forgotten_topics_data] == [stage.replica.topic_id]
        assert third.max_wait_ms == 0, "a leader that is about to stop would wait for its end"

    play(tmp_path, scenario)


def test_one_line_tells_of_all_partitions_that_cannot_follow_because_a_disk_fails(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(stage: Stage) -> None:
        other = followed(tmp_path, 7)
        stage.roles(OTHER, OTHER, ME)
        stage.exchange.changed(other)
        reply = stage.reply(error_code=ErrorCode.KAFKA_STORAGE_ERROR)
        reply.responses.append(replace(reply.responses[0], topic_id=other.topic_id))
        stage.replies.put_nowait(reply)
        await stage.asked(2)
        assert len([line for line in caplog.messages if "cannot follow broker 2" in line]) == 1

    play(tmp_path, scenario)


def test_a_leader_hears_that_an_idle_partition_is_in_a_log_folder_that_failed(tmp_path: Path) -> None:
    """No record comes that could show it: the replica counted as following as long as others were fetched."""

    async def scenario(stage: Stage) -> None:
        idle, busy = stage.replica, followed(tmp_path, 7)
        stage.roles(OTHER, OTHER, ME)
        stage.exchange.changed(busy)
        stage.replies.put_nowait(FetchResponse(session_id=7))
        assert (await stage.asked(2)).topics == []
        idle.log.abandon()
        stage.exchange.folder_failed()
        third = await stage.asked(3)
        assert [one.topic_id for one in third.forgotten_topics_data] == [idle.topic_id]
        stage.replies.put_nowait(FetchResponse(session_id=7))
        stage.replies.put_nowait(FetchResponse(session_id=7))
        await asyncio.sleep(5 * SETTINGS.pause_s)
        assert not [one for request in stage.requests[2:] for one in request.topics], "it stays away"

    play(tmp_path, scenario)
