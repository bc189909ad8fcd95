"""Traffic between the replicas here and other brokers: followers fetch from their leaders, and leaders propose changes
of their ISRs to the controller. A broker alone has none of it.

`changed` and `left` tell it of every replica whose roles are new. Proposals of many partitions go out together. If
nobody knows what became of a proposal, it is sent again, as it is: the controller takes it at most once, by its
partition epoch.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from math import inf
from typing import Final

from moldau.cluster.state.isr_changes import ProposedIsr
from moldau.errors import ErrorCode, KafkaError, MoldauError
from moldau.names import BrokerId, TopicPartition, counted
from moldau.notices import Notices
from moldau.peers.unreachable import NO_CONTROLLER
from moldau.protocol.messages.fetch import FetchRequest, FetchResponse
from moldau.replication.follower import LeaderFollower
from moldau.replication.in_sync import Standstill
from moldau.replication.leader_session import FollowerSettings
from moldau.replication.leadership import NOBODY
from moldau.replication.replica import Replica
from moldau.replication.replicas import elapsed_ms
from moldau.replication.shortage import Shortage
from moldau.replication.throttling import Throttle
from moldau.runtime import Runtime
from moldau.tasks import ended

LOOK_MS: Final = 500
"""How often leaders look who lags. Kafka: half of `replica.lag.time.max.ms`."""
RETRY_S: Final = 0.1
AFTER_FAULT_S: Final = 1.0
"""The pause after a fault of ours."""
DECIDED_LATER: Final = (
    ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)  # fmt: skip
"""The proposal is accepted, or the controller has another state than it was made for: the cluster will show it."""

logger = logging.getLogger(__name__)
notices = Notices(logger)


class ReplicaExchange:
    """`fetch` sends a request to that broker; `alter_isr` sends proposals to the controller, and returns a code for
    each; both raise `KafkaError`. `identity` returns the id and epoch of this broker, `alive` the epochs of the brokers
    that are up, by id. `may_lead` says whether this broker may serve clients as the leader of others, if one that can
    be elected has not asked for records for this many seconds (see `cluster.state.lease`). `coordinators_moved` is
    called when leaders of internal topics here are cut off, or not any more. `throttle` is that of followers."""

    def __init__(
        self,
        fetch: Callable[[BrokerId, FetchRequest, int], Awaitable[FetchResponse]],
        alter_isr: Callable[[Sequence[ProposedIsr]], Awaitable[Sequence[ErrorCode]]],
        identity: Callable[[], tuple[BrokerId, int]],
        alive: Callable[[], Mapping[int, int]],
        may_lead: Callable[[float], bool],
        coordinators_moved: Callable[[], None],
        settings: FollowerSettings,
        runtime: Runtime,
        throttle: Throttle,
    ):
        self._fetch = fetch
        self._alter_isr = alter_isr
        self._identity = identity
        self._alive = alive
        self._may_lead = may_lead
        self._coordinators_moved = coordinators_moved
        self._settings = settings
        self._runtime = runtime
        self._throttle = throttle
        throttle.on_change(self._throttle_changed)
        self._leaders: dict[BrokerId, LeaderFollower] = {}
        self._led: dict[TopicPartition, Replica] = {}
        """The replicas that lead others."""
        self._proposing: dict[TopicPartition, Replica] = {}
        self._standstill = Standstill(LOOK_MS)
        self._shortage = Shortage()
        self._stirred = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._is_stopped = False

    def start(self) -> None:
        self._tasks = [asyncio.ensure_future(one) for one in (self._look(), self._propose())]

    async def stop(self) -> None:
        """Returns when nothing is fetched or proposed any more."""
        self._is_stopped = True
        await ended(*self._tasks)
        await asyncio.gather(*(follower.stop() for follower in self._leaders.values()))
        self._leaders.clear()

    def changed(self, replica: Replica) -> None:
        """The roles of this replica are new."""
        leadership = replica.leadership
        for leader, follower in self._leaders.items():
            if leader != leadership.leader:
                follower.forget(replica)
        self._led.pop(replica.tp, None)
        if leadership.leads:
            if len(leadership.replicas) > 1:
                self._led[replica.tp] = replica
        elif leadership.leader != NOBODY and not self._is_stopped:
            self._follower_of(leadership.leader).follow(replica)

    def left(self, replica: Replica) -> None:
        """This broker no longer hosts the replica."""
        for follower in self._leaders.values():
            follower.forget(replica)
        if self._led.get(replica.tp) is replica:
            del self._led[replica.tp]

    def folder_failed(self) -> None:
        """A log folder of this broker is offline."""
        for follower in self._leaders.values():
            follower.folder_failed()

    def _follower_of(self, leader: BrokerId) -> LeaderFollower:
        follower = self._leaders.get(leader)
        if follower is None:

            async def ask(request: FetchRequest, timeout_ms: int) -> FetchResponse:
                return await self._fetch(leader, request, timeout_ms)

            follower = self._leaders[leader] = LeaderFollower(
                leader, ask, self._identity, self._settings, self._runtime, self._throttle
            )
        return follower

    def _throttle_changed(self) -> None:
        for follower in self._leaders.values():
            follower.throttle_changed()

    def consider(self, replica: Replica) -> None:
        """A follower has asked this replica for records: perhaps it may join."""
        leadership = replica.leadership
        if len(leadership.isr) < len(leadership.replicas) and leadership.proposal is None:
            now_ms = elapsed_ms()
            if not self._standstill.is_noticed(now_ms):  # else no follower's clock is right before the next look
                self._consider(replica, now_ms)

    def _consider(self, replica: Replica, now_ms: int) -> None:
        if replica.leadership.propose(replica.high_watermark, now_ms) is not None:
            self._proposing[replica.tp] = replica
            self._stirred.set()
            replica.waiters.proposed()

    def leads(self, replica: Replica) -> bool:
        """Whether this broker may serve clients as the leader of this replica at this moment: `Replica.cut_off` knows
        it half a second later, and later still if the process stood still."""
        return replica.tp not in self._led or self._may_lead(inf) or self._is_followed(replica, elapsed_ms())

    def _is_followed(self, replica: Replica, now_ms: int) -> bool:
        return self._may_lead(replica.followers_silent_ms(now_ms) / 1000)

    async def _look(self) -> None:
        """Look at all replicas, as time passes. After a fault of ours too: nobody else would do it."""
        while True:
            await asyncio.sleep(LOOK_MS / 1000)
            try:
                self._look_at_all(elapsed_ms())
            except Exception:
                logger.exception("internal error: the followers of this broker are looked at again")
                await asyncio.sleep(AFTER_FAULT_S)

    def _look_at_all(self, now_ms: int) -> None:
        """Look who lags, and whether this broker still leads."""
        alive, stood_still = self._alive(), self._standstill.is_over(now_ms)
        has_lease, cut_off, has_moved = self._may_lead(inf), 0, False
        for replica in list(self._led.values()):
            if stood_still:
                replica.leadership.restart_clocks(now_ms)
            replica.look(alive, now_ms)
            leads = has_lease or self._is_followed(replica, now_ms)
            has_moved |= replica.cut_off(not leads) and replica.internal
            cut_off += not leads
            self._consider(replica, now_ms)
        if has_moved:
            self._coordinators_moved()
        self._tell_shortage(now_ms)
        if cut_off:
            notices.error(
                "",
                "clients of %s are refused: another broker may lead by now, since neither the cluster nor all "
                "in-sync followers have been heard from lately",
                counted(cut_off, "partition"),
            )

    def _tell_shortage(self, now_ms: int) -> None:
        short = (tp for tp, replica in self._led.items() if replica.leadership.has_too_few_in_sync)
        if long := self._shortage.long_short(short, now_ms):
            leadership = self._led[long[0]].leadership
            away = [one for one in leadership.replicas if one not in leadership.isr]
            notices.error(
                "",
                "%s led by this broker had fewer in-sync replicas than min.insync.replicas for more than 30 s, so "
                "writes with acks=all are refused. One is %s: the replicas on brokers %s are not in sync. Start these "
                "brokers, or look in their logs why they do not follow",
                counted(len(long), "partition"),
                long[0],
                ", ".join(map(str, away)),
            )

    async def _propose(self) -> None:
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            waiting = {
                tp: replica for tp, replica in self._proposing.items() if replica.leadership.proposal is not None
            }
            self._proposing = {}
            proposals = [_proposed(replica) for replica in waiting.values()]
            if not proposals:
                continue
            sent = [replica.leadership.proposal for replica in waiting.values()]
            codes = await self._answers_to(proposals)
            again = False
            for replica, proposal, code in zip(waiting.values(), sent, codes, strict=True):
                if code is ErrorCode.NOT_CONTROLLER:
                    if replica.leadership.proposal is proposal:
                        self._proposing.setdefault(replica.tp, replica)
                        again = True
                elif code not in DECIDED_LATER and proposal is not None:
                    replica.isr_refused(proposal, elapsed_ms())
            if again:
                await asyncio.sleep(RETRY_S)
                self._stirred.set()

    async def _answers_to(self, proposals: Sequence[ProposedIsr]) -> Sequence[ErrorCode]:
        """The controller's answers; NOT_CONTROLLER for all of them if nobody knows what became of them."""
        try:
            return await self._alter_isr(proposals)
        except MoldauError as unknown:
            if not (isinstance(unknown, KafkaError) and unknown.code in NO_CONTROLLER):
                notices.error("", "the controller cannot be asked to change in-sync replicas: %s", unknown)
        except Exception:
            logger.exception("internal error: changes of in-sync replicas are proposed again")
            await asyncio.sleep(AFTER_FAULT_S)
        return [ErrorCode.NOT_CONTROLLER] * len(proposals)


def _proposed(replica: Replica) -> ProposedIsr:
    proposal = replica.leadership.proposal
    assert proposal is not None
    members = tuple(zip(proposal.isr, proposal.broker_epochs, strict=True))
    return ProposedIsr(replica.topic_id, replica.tp.partition, proposal.leader_epoch, proposal.partition_epoch, members)
