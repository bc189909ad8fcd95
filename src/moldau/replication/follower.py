"""A follower of one leading broker: fetches what that broker leads and this one has replicas of, and applies it.

One task for each leading broker, one Fetch after the other, in a session (`leader_session`). `catching_up` applies each
partition of an answer. A partition whose answer was an error leaves the session for a pause; if the whole request
fails, all of them pause and a new session begins. While the follower's throttle is exceeded, the partitions it covers
pause as well, except those in sync.

A follower that is far behind asks for the next records before it writes those that came, as long as all of them are
below the leader's high watermark (see `position_behind`): one broker reads while the other writes.

A change of leader or epoch reaches the follower as `follow` or `forget`. If a request waits at the leader then, another
one behind it on the connection names what has changed, and the leader ends the wait of the first. What an answer says
of a partition that a later request has named is dropped: the answer to that request says it anew.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from moldau.error_codes import error_of
from moldau.errors import ErrorCode, KafkaError
from moldau.log import truncation
from moldau.names import BrokerId
from moldau.notices import Notices
from moldau.peers.unreachable import NOT_REACHED, tell_unreachable
from moldau.protocol.messages.fetch import FetchRequest, FetchResponse
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
from moldau.replication.leader_session import FollowedReplica, FollowerSettings, LeaderSession, key_of
from moldau.replication.pauses import Key, Pauses
from moldau.replication.replica import Replica
from moldau.replication.replicas import elapsed_ms
from moldau.replication.throttling import Throttle
from moldau.runtime import Runtime
from moldau.tasks import ended

SOON_S: Final = 0.05
"""After an error that only says that the two brokers have not seen the same change of leaders yet."""
UNSETTLED: Final = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)  # fmt: skip
LOST_SESSION: Final = (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)

logger = logging.getLogger(__name__)
notices = Notices(logger)

AskLeader: TypeAlias = Callable[[FetchRequest, int], Awaitable[FetchResponse]]
"""Sends a request to the leading broker, behind those before it, with a time-out in milliseconds. Raises
`KafkaError`."""


class FetchedPartition(NamedTuple):
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
        self._session = LeaderSession(settings)
        self._followed = self._session.followed
        self._due = self._session.due
        self._pauses = Pauses(self._ask_again)
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
            self._session.forget(key)
            self._pauses.drop(key)

    def folder_failed(self) -> None:
        """Replicas are offline now: the leader must hear that they do not follow, also where no records come."""
        offline = [key for key, followed in self._followed.items() if followed.replica.log.offline]
        self._due.update({key: None for key in offline if key not in self._pauses})
        if self._due:
            self._stir()

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
        return (me := self._identity()[0]) not in replica.leadership.isr and self._throttle.covers(replica, me)

    async def stop(self) -> None:
        """Returns when nothing is on its way any more."""
        await ended(self._task)
        self._pauses.stop()
        under_way = [task for followed in self._followed.values() for task in followed.replica.under_way]
        await asyncio.gather(*under_way, return_exceptions=True)

    async def _run(self) -> None:
        try:
            while True:
                await self._go_on()
        finally:
            await self._drop_second()

    async def _go_on(self) -> None:
        """Take the next answer, or wait until there is something to ask for."""
        self._stirred.clear()
        if len(self._pauses) == len(self._followed) and self._second is None and not self._session.must_tell:
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
            self._session.answered += 1

    def _stir(self) -> None:
        """There is something to ask for."""
        self._stirred.set()
        if self._is_asking and not self._is_second_due:
            self._is_second_due = True
            asyncio.get_running_loop().call_soon(self._ask_too)

    def _ask_too(self) -> None:
        """Ask for what is due, although a request waits at the leader: it waits no longer then."""
        self._is_second_due = False
        if self._is_asking and self._due and self._second is None and not self._session.is_new:
            self._send_second()

    def _send_second(self) -> None:
        self._second = asyncio.ensure_future(self._ask(self._request(), self._settings.timeout_ms))

    def _ask_again(self, keys: Sequence[Key]) -> None:
        """These have paused long enough."""
        self._due.update(dict.fromkeys(keys))
        self._stir()

    async def _begin_again(self, error: KafkaError | None) -> None:
        """The session is lost, or the leader cannot be reached."""
        self._session.lost(self._pauses)
        await self._drop_second()
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
        await ended(second)
        self._session.answered = self._session.sent

    def _request(self) -> FetchRequest:
        """The next request. What must not be named in it pauses from now on."""
        if self._throttle.is_on:
            self._hold_back()
        for key in list(self._due):
            followed = self._followed[key]
            replica = followed.replica
            is_changing = replica.log.offline or bool(replica.under_way)
            if is_changing or replica.is_flush_due:  # the leader must not hear of an end that is not flushed
                if not is_changing:
                    replica.begin_flush()
                self._pause(key, followed, self._settings.pause_s)
        return self._session.request(*self._identity())

    def _hold_back(self) -> None:
        """If the throttle is exceeded, pause what it covers and is not in sync. A partition that is not due must leave
        the session too, since the leader may have records for which its last answer had no room; but not while an
        answer to it may be on its way."""
        now_ms = elapsed_ms()
        if not self._throttle.quota.is_exceeded(now_ms):
            return
        free_ms = self._throttle.quota.free_ms(now_ms)
        is_known = now_ms < self._throttled_until_ms or self._session.sent > self._session.answered
        if not is_known:
            self._throttled_until_ms = free_ms
        for key in list(self._due if is_known else self._followed):
            followed = self._followed[key]
            if key not in self._pauses and self._is_held_back(followed.replica):
                self._pause(key, followed, (free_ms - now_ms) / 1000, is_throttled=True)

    async def _take(self, answer: FetchResponse) -> None:
        self._session.opened(answer.session_id)
        answers: list[FetchedPartition] = []
        for topic in answer.responses:
            for part in topic.partitions:
                key = topic.topic_id.bytes, part.partition_index
                followed = self._followed.get(key)
                if followed is None:
                    continue
                if self._throttle.is_on and self._throttle.covers(followed.replica, self._identity()[0]):
                    self._throttle.quota.record(len(part.records or b""), elapsed_ms())
                asked = self._session.answered_from(followed)
                if asked is not None:
                    answers.append(FetchedPartition(key, followed, asked, answer_in(part)))
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

    async def _ask_ahead(self, answers: Sequence[FetchedPartition]) -> None:
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
            end = int(replica.log.log_end_offset)
            if rest.error.code is ErrorCode.CORRUPT_MESSAGE and followed.damaged_at != end:
                # A leader that has just become a follower cuts its file: `sendfile` may send zeros for what is cut.
                followed.damaged_at = end
                logger.info("%s asks broker %d again: %s", replica.tp, self._leader, rest.error)
            elif not is_unsettled:
                # A disk that fails, or files that cannot be opened, concern many partitions at once.
                place = "" if rest.error.code is ErrorCode.KAFKA_STORAGE_ERROR else str(replica.tp)
                notices.error(place, "%s cannot follow broker %d: %s", replica.tp, self._leader, rest.error)
            self._pause(key, followed, SOON_S if is_unsettled else self._settings.pause_s)
        elif rest.act is Act.FLUSH:
            return asyncio.shield(replica.begin_flush())
        elif rest.act in (Act.TRUNCATE, Act.BEGIN_ANEW):
            if replica.log.cleaning:  # the cleaner will be done with it
                self._pause(key, followed, self._settings.pause_s)
                return None
            if rest.why:
                notices.error(str(replica.tp), "%s: %s", replica.tp, rest.why)
            self._session.leave(key)
            self._due[key] = None
            replica.log.cleaning = True  # now: the cleaner may have its turn before the task
            replica.cutting = asyncio.ensure_future(self._cut(key, followed, rest))
            return asyncio.shield(replica.cutting)
        return None

    def _pause(self, key: Key, followed: FollowedReplica, seconds: float, is_throttled: bool = False) -> None:
        self._session.leave(key)
        followed.is_throttled = is_throttled
        self._due.pop(key, None)
        self._pauses.begin(key, seconds)

    async def _cut(self, key: Key, followed: FollowedReplica, rest: Rest) -> None:
        """Truncate a log, or begin it anew. `Log.cleaning` keeps the cleaner away from it until then."""
        replica, log, now_ms = followed.replica, followed.replica.log, self._runtime.clock.now_ms()
        try:
            try:
                if rest.act is Act.TRUNCATE:
                    cut = partial(truncation.truncate_to, log, rest.offset, replica.high_watermark, now_ms)
                    await self._runtime.run(cut)
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
