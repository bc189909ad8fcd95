"""What leaders propose to the controller, and what followers ask their leaders, with both played by the test."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path

import pytest

from harness.logs import append
from moldau.cluster.state.isr_changes import ProposedIsr
from moldau.config import broker_config
from moldau.errors import ErrorCode, KafkaError
from moldau.names import BrokerId, LeaderEpoch, Offset
from moldau.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from moldau.replication.exchange import ReplicaExchange
from moldau.replication.follower import follower_settings
from moldau.replication.leadership import PAUSE_MS, PartitionRoles
from moldau.replication.quota import ReplicationQuota
from moldau.replication.replica import Replica
from moldau.replication.replicas import elapsed_ms
from moldau.replication.throttling import Throttle
from moldau.runtime import Runtime
from tests.replication.transcripts import Room

ME, OTHER = BrokerId(1), BrokerId(2)
SETTINGS = follower_settings(
    broker_config(
        {
            "replica.fetch.wait.max.ms": "400",
            "replica.fetch.min.bytes": "7",
            "replica.fetch.max.bytes": "1000",
            "replica.fetch.response.max.bytes": "2000",
            "replica.fetch.backoff.ms": "10",
            "replica.socket.timeout.ms": "900",
            "node.id": "1",
        }
    )[0]
)
UP = {ME: 10, OTHER: 20}


class Stage:
    """`answers` are what the controller says to one proposal after the other, `replies` what the leader says to one
    Fetch after the other; both wait when there is none. `refused` are the session epochs of requests that are answered
    at once, as those are that overtake the request before them."""

    def __init__(self, folder: Path):
        room = Room(folder)
        self.replica: Replica = room.replicas["A"]
        self.leading: Replica = room.replicas["B"]
        self.quota = ReplicationQuota(11, 1000)
        self.throttle = Throttle(ME, attrgetter("follower_replication_throttled_replicas"), self.quota)
        self.answers: asyncio.Queue[ErrorCode | KafkaError] = asyncio.Queue()
        self.replies: asyncio.Queue[FetchResponse | KafkaError] = asyncio.Queue()
        self.proposals: list[ProposedIsr] = []
        self.requests: list[FetchRequest] = []
        self.refused: dict[int, FetchResponse | KafkaError] = {}
        self.exchange = ReplicaExchange(
            self._fetch,
            self._alter,
            lambda: (ME, UP[ME]),
            lambda: UP,
            lambda _: True,
            lambda: None,
            SETTINGS,
            Runtime(),
            self.throttle,
        )

    async def _alter(self, proposals: Sequence[ProposedIsr]) -> list[ErrorCode]:
        self.proposals += proposals
        answer = await self.answers.get()
        if isinstance(answer, KafkaError):
            raise answer
        return [answer] * len(proposals)

    async def _fetch(self, leader: BrokerId, request: FetchRequest, timeout_ms: int) -> FetchResponse:
        assert (leader, timeout_ms) == (OTHER, 900)
        assert (request.min_bytes, request.max_bytes) == (7, 2000)
        assert all(part.partition_max_bytes == 1000 for topic in request.topics for part in topic.partitions)
        self.requests.append(request)
        reply = self.refused.get(request.session_epoch) or await self.replies.get()
        if isinstance(reply, KafkaError):
            raise reply
        return reply

    def roles(self, leader: BrokerId, *isr: BrokerId, epoch: int = 0) -> None:
        leadership = self.replica.leadership
        both = (ME, OTHER)
        roles = PartitionRoles(leader, LeaderEpoch(epoch), isr, both, leadership.partition_epoch + 1)
        self.replica.take_roles(roles, elapsed_ms())
        self.exchange.changed(self.replica)

    def follower_asks(self) -> None:
        assert self.replica.follower_asked(OTHER, Offset(0), UP[OTHER], True, elapsed_ms())
        self.exchange.consider(self.replica)

    async def asked(self, count: int) -> FetchRequest:
        while len(self.requests) < count:
            await asyncio.sleep(0.001)
        return self.requests[count - 1]

    async def proposed(self, count: int) -> ProposedIsr:
        while len(self.proposals) < count:
            await asyncio.sleep(0.001)
        return self.proposals[count - 1]

    def throttled(self, *listed: str) -> None:
        """The topic lists these replicas, and the rate is one byte a second."""
        self.replica.configure(replace(self.replica.config, follower_replication_throttled_replicas=listed))
        self.throttle.quota.limit = 1

    async def held_back(self) -> None:
        """The throttle is exceeded when the replica begins to follow: the first request does not name it."""
        self.throttled("*")
        self.quota.record(1 << 20, elapsed_ms())
        self.roles(OTHER, OTHER)
        self.replies.put_nowait(FetchResponse(session_id=7))
        assert (await self.asked(1)).topics == []

    def records(self) -> bytes:
        """The leader's next record."""
        end = append(self.leading.log, 1, leader_epoch=0).base_offset
        return self.leading.log.read_batches(end, 1 << 20)

    def reply(self, **fields: object) -> FetchResponse:
        """An answer for the replica's partition."""
        part = PartitionData(partition_index=0, log_start_offset=0, high_watermark=0, records=b"")
        for name, value in fields.items():
            setattr(part, name, value)
        topic = FetchableTopicResponse(topic_id=self.replica.topic_id, partitions=[part])
        return FetchResponse(session_id=7, responses=[topic])


def play(folder: Path, scenario: Callable[[Stage], Awaitable[None]]) -> None:
    async def live() -> None:
        stage = Stage(folder)
        stage.exchange.start()
        try:
            async with asyncio.timeout(30):
                await scenario(stage)
        finally:
            await stage.exchange.stop()

    asyncio.run(live())


def test_a_follower_that_may_join_is_proposed_with_both_brokers_epochs(tmp_path: Path) -> None:
    async def scenario(stage: Stage) -> None:
        stage.roles(ME, ME)
        stage.follower_asks()
        proposal = await stage.proposed(1)
        assert proposal == (stage.replica.topic_id, 0, 0, 0, ((ME, -1), (OTHER, UP[OTHER])))

    play(tmp_path, scenario)


@pytest.mark.parametrize("unknown", [ErrorCode.NOT_CONTROLLER, KafkaError(ErrorCode.NETWORK_EXCEPTION, "gone")])
def test_a_proposal_whose_outcome_nobody_knows_counts_on_and_is_sent_again(
    tmp_path: Path, unknown: ErrorCode | KafkaError
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


def test_followers_ask_twice_within_half_of_a_short_session() -> None:
    short, usual = ({"node.id": "1", "zookeeper.session.timeout.ms": text} for text in ("1000", "18000"))
    assert follower_settings(broker_config(short)[0]).wait_ms == 250
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


def test_what_is_led_here_again_is_not_asked_for(tmp_path: Path) -> None:
    async def scenario(stage: Stage) -> None:
        stage.roles(OTHER, OTHER, ME)
        await stage.asked(1)
        stage.roles(ME, ME, OTHER, epoch=1)
        stage.replies.put_nowait(stage.reply(high_watermark=5))
        await asyncio.sleep(0.05)
        assert len(stage.requests) == 1

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


@pytest.mark.parametrize(
    "refusal",
    [
        FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        KafkaError(ErrorCode.NETWORK_EXCEPTION, "cannot connect"),
    ],
    ids=["overtaking", "not sent"],
)
def test_a_request_that_would_end_a_wait_and_fails_begins_a_new_session_at_once(
    tmp_path: Path, refusal: FetchResponse | KafkaError
) -> None:
    async def scenario(stage: Stage) -> None:
        stage.refused = {2: refusal}
        stage.roles(OTHER, OTHER, ME)
        stage.replies.put_nowait(stage.reply())
        await stage.asked(2)
        stage.roles(OTHER, OTHER, ME, epoch=1)
        assert (await stage.asked(3)).session_epoch == 2
        fourth = await stage.asked(4)
        assert (fourth.session_id, fourth.session_epoch, len(fourth.topics)) == (0, 0, 1)
        stage.replies.put_nowait(stage.reply(high_watermark=0))
        assert (await stage.asked(5)).topics == []

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
        async with asyncio.timeout(5):
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
        async with asyncio.timeout(5):
            assert len((await stage.asked(2)).topics) == 1

    play(tmp_path, scenario)


def test_a_throttled_replica_pauses_less_under_a_higher_rate(tmp_path: Path) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.held_back()
        stage.quota._sample_ms = 10
        stage.throttle.quota.limit = 10 << 20
        assert stage.throttle.quota.is_exceeded(elapsed_ms())
        stage.throttle.announce()
        async with asyncio.timeout(5):
            assert len((await stage.asked(2)).topics) == 1

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
