"""A follower of one leading broker: fetches what that broker leads and this one has replicas of, and applies it.

One task for each leading broker, one Fetch after the other, in a session (KIP-227): a request names only the partitions
whose position changed. `catching_up` applies each partition of an answer. A partition whose answer was an
error leaves the session for a pause; if the whole request fails, all of them pause and a new session begins. While
the follower's throttle is exceeded, the partitions it covers pause as well, except those in sync.

A follower that is far behind asks for the next records before it writes those that came, as long as all of them are
below the leader's high watermark (see `position_behind`): one broker reads while the other writes.

A change of leader or epoch reaches the follower as `follow` or `forget`. If a request waits at the leader then, another
one behind it on the connection names what has changed, and the leader ends the wait of the first. What an answer says
of a partition that a later request has named is dropped: the answer to that request says it anew.
"""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from moldau.config import BrokerConfig
from moldau.error_codes import error_of
from moldau.errors import ErrorCode, KafkaError
from moldau.log import truncation
from moldau.names import BrokerId
from moldau.notices import Notices
from moldau.peers.unreachable import NOT_REACHED, tell_unreachable
from moldau.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from moldau.replication.catching_up import (
    Act,
    LeaderAnswer,
    Rest,
    answer_in,
    apply_answer,
    position_behind,
    position_of,
    take_answer,
)
from moldau.replication.for_followers import FollowerPosition
from moldau.replication.pauses import Key, Pauses
from moldau.replication.replica import Replica
from moldau.replication.replicas import elapsed_ms
from moldau.replication.throttling import Throttle
from moldau.runtime import Runtime

ANSWER_MS: Final = 10_000
"""An answer that is later than its request may wait by more than this means that the connection is dead."""
SOON_S: Final = 0.05
"""After an error that only says that the two brokers have not seen the same change of leaders yet."""
NEW_SESSION: Final = (0, 0)
UNSETTLED: Final = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)  # fmt: skip
LOST_SESSION: Final = (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)

notices = Notices(logging.getLogger(__name__))

AskLeader: TypeAlias = Callable[[FetchRequest, int], Awaitable[FetchResponse]]
"""Sends a request to the leading broker, behind those before it, with a time-out in milliseconds. Raises
`KafkaError`."""


class FollowerSettings(NamedTuple):
    """The `replica.fetch` settings. `timeout_ms`: after which the connection of an unanswered request is dead."""

    wait_ms: int
    timeout_ms: int
    bytes_min: int
    part_bytes_max: int
    answer_bytes_max: int
    pause_s: float


def follower_settings(config: BrokerConfig) -> FollowerSettings:
    """A leader that the store does not answer counts on followers that have asked within half of the session's time-out
    (`cluster.state.lease`), and knows of a request only that it was sent after the last answer but one. So those of
    idle partitions ask three times in that time."""
    wait_ms = min(config.replica_fetch_wait_max_ms, config.zookeeper_session_timeout_ms // 6)
    return FollowerSettings(
        wait_ms=wait_ms,
        timeout_ms=min(config.replica_socket_timeout_ms, wait_ms + ANSWER_MS),
        bytes_min=config.replica_fetch_min_bytes,
        part_bytes_max=config.replica_fetch_max_bytes,
        answer_bytes_max=config.replica_fetch_response_max_bytes,
        pause_s=config.replica_fetch_backoff_ms / 1000,
    )


class FollowedReplica:
    """`asked`: the position that the session has for it, since the request with the number `asked_in`; None if it is
    not in the session. `is_throttled`: it pauses, or paused last, because of the throttle."""

    __slots__ = ("asked", "asked_in", "is_throttled", "replica")

    def __init__(self, replica: Replica):
        self.replica = replica
        self.asked: FollowerPosition | None = None
        self.asked_in = 0
        self.is_throttled = False


class Answered(NamedTuple):
    """A leader's answer for one partition, and the position from which the follower `asked`."""

    key: Key
    followed: FollowedReplica
    asked: FollowerPosition
    answer: LeaderAnswer


class LeaderFollower:
    """`identity` returns the id and epoch of this broker. Runs from `follow` to `stop`."""

    def __init__(
        self,
        leader: BrokerId,
        ask: AskLeader,
        identity: Callable[[], tuple[BrokerId, int]],
        settings: FollowerSettings,
        runtime: Runtime,
        throttle: Throttle,
    ):
        self._leader = leader
        self._ask = ask
        self._identity = identity
        self._settings = settings
        self._runtime = runtime
        self._throttle = throttle
        self._throttled_until_ms = 0
        """Every replica that the throttle holds back and that was followed before pauses until then."""
        self._followed: dict[Key, FollowedReplica] = {}
        self._due: dict[Key, FollowerPosition | None] = {}
        """Partitions that the next request must name, because the session has another position of them; with the
        position to name, or None for the end of the log at that time."""
        self._pauses = Pauses(self._ask_again)
        self._forgotten: dict[Key, None] = {}
        """Partitions that the session has and must drop."""
        self._session = NEW_SESSION
        """Its id, and the epoch of its next request."""
        self._sent = self._answered = 0
        """The number of the last request, and of the last one that was answered or has failed."""
        self._is_asking = False
        """A request is on its way or waits at the leader."""
        self._second: asyncio.Task[FetchResponse] | None = None
        """A request that was sent behind that one, or before the answer to that one was applied."""
        self._is_second_due = False
        self._failures = 0
        """Of requests, since the last answer."""
        self._stirred = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._followed)

    def follow(self, replica: Replica) -> None:
        """Fetch for this replica from now on, in its present leader epoch."""
        key = key_of(replica)
        followed = self._followed.get(key)
        if followed is None or followed.replica is not replica:
            followed = self._followed[key] = FollowedReplica(replica)
        self._pauses.drop(key)
        if followed.asked != position_of(replica):
            self._due[key] = None
            self._stir()
        if self._task is None:
            self._task = asyncio.ensure_future(self._run())

    def forget(self, replica: Replica) -> None:
        key = key_of(replica)
        known = self._followed.get(key)
        if known is not None and known.replica is replica:
            self._leave_session(key, known)
            self._due.pop(key, None)
            self._pauses.drop(key)
            del self._followed[key]

    def throttle_changed(self) -> None:
        """The settings of the throttle have changed. A partition that it has paused is asked for at once if it may be
        now; otherwise its pause is as long as the new settings say."""
        now_ms = elapsed_ms()
        free_ms = self._throttle.quota.free_ms(now_ms)
        self._throttled_until_ms = 0
        for key in [key for key in self._pauses if self._followed[key].is_throttled]:
            followed = self._followed[key]
            if free_ms > now_ms and self._is_held_back(followed.replica):
                self._pause(key, followed, (free_ms - now_ms) / 1000, is_throttled=True)
            else:
                self._pauses.drop(key)
                self._due[key] = None
        if self._due:
            self._stir()

    def _is_held_back(self, replica: Replica) -> bool:
        """Whether the replica pauses while the throttle is exceeded."""
        return self._identity()[0] not in replica.leadership.isr and self._throttle.covers(replica)

    async def stop(self) -> None:
        """Returns when nothing is on its way any more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._pauses.stop()
        under_way = [task for followed in self._followed.values() for task in followed.replica.under_way]
        await asyncio.gather(*under_way, return_exceptions=True)

    def _leave_session(self, key: Key, followed: FollowedReplica) -> None:
        if followed.asked is not None:
            followed.asked = None
            self._forgotten[key] = None

    async def _run(self) -> None:
        try:
            while True:
                await self._go_on()
        finally:
            await self._drop_second()

    async def _go_on(self) -> None:
        """Take the next answer, or wait until there is something to ask for."""
        self._stirred.clear()
        must_tell = not self._followed and self._forgotten and self._session != NEW_SESSION
        if len(self._pauses) == len(self._followed) and self._second is None and not must_tell:
            await self._stirred.wait()
            return
        try:
            answer = await self._answer()
            if answer.error_code:
                raise KafkaError(error_of(answer.error_code))
            self._failures = 0
            await self._take(answer)
        except KafkaError as error:
            await self._begin_again(error)
        except Exception:
            logging.getLogger(__name__).exception("fetching from broker %d failed", self._leader)
            await self._begin_again(None)

    async def _answer(self) -> FetchResponse:
        """The answer to the next request, or to the second one, which is on its way already."""
        second, self._second = self._second, None
        self._is_asking = True
        try:
            if second is None:
                return await self._ask(self._request(), self._settings.timeout_ms)
            if self._due:
                self._stir()
            return await second
        finally:
            self._is_asking = False
            self._answered += 1

    def _stir(self) -> None:
        """There is something to ask for."""
        self._stirred.set()
        if self._is_asking and not self._is_second_due:
            self._is_second_due = True
            asyncio.get_running_loop().call_soon(self._ask_too)

    def _ask_too(self) -> None:
        """Ask for what is due, although a request waits at the leader: it waits no longer then."""
        self._is_second_due = False
        if self._is_asking and self._due and self._second is None and self._session != NEW_SESSION:
            self._send_second()

    def _send_second(self) -> None:
        self._second = asyncio.ensure_future(self._ask(self._request(), self._settings.timeout_ms))

    def _ask_again(self, keys: Sequence[Key]) -> None:
        """These have paused long enough."""
        self._due.update(dict.fromkeys(keys))
        self._stir()

    async def _begin_again(self, error: KafkaError | None) -> None:
        """The session is lost, or the leader cannot be reached."""
        self._session = NEW_SESSION
        self._forgotten.clear()
        await self._drop_second()
        for key, followed in self._followed.items():
            followed.asked = None
            if key not in self._pauses:
                self._due[key] = None
        if error is not None and error.code in LOST_SESSION:
            return
        self._failures += 1
        if self._failures == 1:  # perhaps only an idle connection to its earlier life
            await asyncio.sleep(SOON_S)
            return
        if error is not None and error.code in NOT_REACHED:
            tell_unreachable(self._leader, error)
        elif error is not None:
            notices.error(str(self._leader), "broker %d cannot be followed: %s", self._leader, error)
        await asyncio.sleep(self._settings.pause_s)

    async def _drop_second(self) -> None:
        second, self._second = self._second, None
        if second is not None:
            second.cancel()
            await asyncio.gather(second, return_exceptions=True)
        self._answered = self._sent

    def _request(self) -> FetchRequest:
        """Names the partitions whose position is not what the session has, and those that it must drop. The first one
        of a session does not wait at the leader, since it could not be ended, nor does one that only tells it that
        nothing is followed any more."""
        if self._throttle.is_on:
            self._hold_back()
        self._sent += 1
        topics: dict[bytes, FetchTopic] = {}
        for key in list(self._due):
            followed = self._followed[key]
            replica = followed.replica
            is_changing = replica.log.offline or bool(replica.under_way)
            if is_changing or replica.is_flush_due:  # the leader must not hear of an end that is not flushed
                if not is_changing:
                    replica.begin_flush()
                self._pause(key, followed, self._settings.pause_s)
                continue
            position = followed.asked = self._due.pop(key) or position_of(replica)
            self._forgotten.pop(key, None)
            topic_id, index = key
            followed.asked_in = self._sent
            topic = topics.setdefault(topic_id, FetchTopic(topic_id=replica.topic_id, partitions=[]))
            topic.partitions.append(
                FetchPartition(
                    partition=index,
                    current_leader_epoch=position.leader_epoch,
                    fetch_offset=position.offset,
                    last_fetched_epoch=position.last_fetched_epoch,
                    log_start_offset=position.log_start_offset,
                    partition_max_bytes=self._settings.part_bytes_max,
                )
            )
        broker_id, broker_epoch = self._identity()
        session_id, session_epoch = self._session
        request = FetchRequest(
            replica_state=ReplicaState(replica_id=broker_id, replica_epoch=broker_epoch),
            max_wait_ms=self._settings.wait_ms if session_id and self._followed else 0,
            min_bytes=self._settings.bytes_min,
            max_bytes=self._settings.answer_bytes_max,
            session_id=session_id,
            session_epoch=session_epoch,
            topics=list(topics.values()),
            forgotten_topics_data=self._forgotten_topics(),
        )
        if session_id:
            self._session = session_id, session_epoch + 1 if session_epoch < 2**31 - 1 else 1
        return request

    def _hold_back(self) -> None:
        """If the throttle is exceeded, pause what it covers and is not in sync. A partition that is not due must leave
        the session too, since the leader may have records for which its last answer had no room; but not while an
        answer to it may be on its way."""
        now_ms = elapsed_ms()
        if not self._throttle.quota.is_exceeded(now_ms):
            return
        free_ms = self._throttle.quota.free_ms(now_ms)
        is_known = now_ms < self._throttled_until_ms or self._sent > self._answered
        if not is_known:
            self._throttled_until_ms = free_ms
        for key in list(self._due if is_known else self._followed):
            followed = self._followed[key]
            if key not in self._pauses and self._is_held_back(followed.replica):
                self._pause(key, followed, (free_ms - now_ms) / 1000, is_throttled=True)

    def _forgotten_topics(self) -> list[ForgottenTopic]:
        topics: dict[bytes, ForgottenTopic] = {}
        if self._session != NEW_SESSION:
            for topic_id, index in self._forgotten:
                topic = topics.setdefault(topic_id, ForgottenTopic(topic_id=uuid.UUID(bytes=topic_id), partitions=[]))
                topic.partitions.append(index)
        self._forgotten.clear()
        return list(topics.values())

    async def _take(self, answer: FetchResponse) -> None:
        if self._session == NEW_SESSION:
            self._session = answer.session_id, 1
        answers: list[Answered] = []
        for topic in answer.responses:
            for part in topic.partitions:
                key = topic.topic_id.bytes, part.partition_index
                followed = self._followed.get(key)
                if followed is None:
                    continue
                if self._throttle.is_on and self._throttle.covers(followed.replica):
                    self._throttle.quota.record(len(part.records or b""), elapsed_ms())
                if followed.asked is not None and followed.asked_in <= self._answered:
                    answers.append(Answered(key, followed, followed.asked, answer_in(part)))
        if not self._throttle.is_on:
            await self._ask_ahead(answers)
        waiting: list[Awaitable[None]] = []
        now_ms = self._runtime.clock.now_ms()
        for key, followed, asked, of_leader in answers:
            if self._followed.get(key) is not followed:
                continue
            rest = take_answer(followed.replica, self._leader, asked, of_leader, now_ms)
            if followed.asked != position_of(followed.replica):
                self._due[key] = None
            task = self._finish(key, followed, rest)
            if task is not None:
                waiting.append(task)
        for blocked in waiting:
            await blocked

    async def _ask_ahead(self, answers: Sequence[Answered]) -> None:
        """Ask for the records behind those of these answers before the answers are applied, if all of them are
        committed: the leader sends them meanwhile. If a partition has no more committed records, ask for none at all:
        the leader's session still has the old position of that partition, so it would send the same records again."""
        if self._second is not None:
            return
        ahead: dict[Key, FollowerPosition] = {}
        for one in answers:
            if len(one.answer.records):
                position = position_behind(one.asked, one.answer)
                if position is None:
                    return
                ahead[one.key] = position
        if ahead:
            self._due.update(ahead)
            self._send_second()
            await asyncio.sleep(0)  # it is sent now

    def _finish(self, key: Key, followed: FollowedReplica, rest: Rest) -> Awaitable[None] | None:
        """Do what is left to do after an answer; what blocks is begun, and returned."""
        replica = followed.replica
        if rest.act is Act.PAUSE:
            assert rest.error is not None
            is_unsettled = rest.error.code in UNSETTLED
            if not is_unsettled:
                notices.error(str(replica.tp), "%s cannot follow broker %d: %s", replica.tp, self._leader, rest.error)
            self._pause(key, followed, SOON_S if is_unsettled else self._settings.pause_s)
        elif rest.act is Act.FLUSH:
            return asyncio.shield(replica.begin_flush())
        elif rest.act in (Act.TRUNCATE, Act.BEGIN_ANEW):
            if replica.log.cleaning:  # the cleaner will be done with it
                self._pause(key, followed, self._settings.pause_s)
                return None
            if rest.why:
                notices.error(str(replica.tp), "%s: %s", replica.tp, rest.why)
            self._leave_session(key, followed)
            self._due[key] = None
            replica.cutting = asyncio.ensure_future(self._cut(key, followed, rest))
            return asyncio.shield(replica.cutting)
        return None

    def _pause(self, key: Key, followed: FollowedReplica, seconds: float, is_throttled: bool = False) -> None:
        self._leave_session(key, followed)
        followed.is_throttled = is_throttled
        self._due.pop(key, None)
        self._pauses.begin(key, seconds)

    async def _cut(self, key: Key, followed: FollowedReplica, rest: Rest) -> None:
        """Truncate a log, or begin it anew, with the cleaner away from it."""
        replica, log, now_ms = followed.replica, followed.replica.log, self._runtime.clock.now_ms()
        log.cleaning = True
        try:
            try:
                if rest.act is Act.TRUNCATE:
                    await self._runtime.run(
                        partial(truncation.truncate_to, log, rest.offset, replica.high_watermark, now_ms)
                    )
                else:
                    await self._runtime.run(partial(truncation.begin_at, log, rest.offset, now_ms))
            finally:
                replica.truncated()  # what failed in the end may have cut the log
            if rest.answer is not None:
                rest = apply_answer(replica, rest.answer, now_ms)
                if rest.error is not None:
                    raise rest.error
                if rest.act is Act.FLUSH:
                    await replica.begin_flush()
        except KafkaError as failed:
            notices.error(str(replica.tp), "%s cannot be truncated: %s", replica.tp, failed)
            if self._followed.get(key) is followed:
                self._pause(key, followed, self._settings.pause_s)
        finally:
            log.cleaning = False
            replica.cutting = None


def key_of(replica: Replica) -> Key:
    return replica.topic_id.bytes, replica.tp.partition
