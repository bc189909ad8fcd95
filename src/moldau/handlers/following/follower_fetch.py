"""Fetch of a follower (KIP-227, 320, 595, 903): what `fetch` does for consumers, for another broker of the cluster.

It reads up to the end of the log instead of the high watermark. Its request tells how far it is, which may move the
high watermark and bring it into the ISR; where its log differs, the answer says so and nothing else (DivergingEpoch).
A request that has nothing to fetch waits for up to `max_wait_ms`. Another high watermark ends the wait only if this
broker's followers serve readers (`replica.selector.class`): these would see records that much later.
The next request of the same session, behind it on its connection, ends it: the follower has something else to ask for.
A log start that is ahead of the follower's does: a DeleteRecords may wait until the follower has moved its own.
While the leader's throttle is exceeded, the partitions it covers are answered without records, unless the follower is
in sync. A request that finds nothing else waits as if they had no records, until the throttle allows more.
Only the broker that has introduced itself on the connection may ask as a replica. A request of an earlier life of it is
refused; one of a life that the image does not show yet is answered, and its position does not count.
"""

import asyncio
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from types import GeneratorType
from typing import Any, Final, NamedTuple, TypeAlias

from moldau.cluster.state.image import Image
from moldau.errors import ErrorCode
from moldau.handlers.following.follower_sessions import FollowedPart, FollowerSession, FollowerSessions, Told
from moldau.handlers.following.parked_fetch import ParkedFetch
from moldau.names import BrokerId
from moldau.protocol.fetch_request import Fetch, FetchTopic
from moldau.protocol.hot_fetch import FetchReply, FetchResult, fetch_response
from moldau.protocol.messages.fetch import EpochEndOffset, FetchResponse
from moldau.randomness import Random
from moldau.replication.for_followers import Asker, FollowerRead, read_for
from moldau.replication.replica import Replica
from moldau.replication.replicas import Replicas
from moldau.replication.throttling import Throttle
from moldau.requests.gate import Pending
from moldau.requests.session import Call
from moldau.turns import Steps, turn

SESSION_ID_MAX = 2**31 - 1
_new: Final = tuple.__new__  # what a NamedTuple's constructor does, at a third of its cost

FetchAnswer: TypeAlias = FetchReply | FetchResponse


class PartitionAnswer(NamedTuple):
    """A partition and what its follower is told of it. `throttled_bytes`: those that count for the throttle."""

    part: FollowedPart
    read: FollowerRead
    throttled_bytes: int

    @property
    def must_be_told(self) -> bool:
        """Whether its follower must hear of it without any records."""
        read, start = self.read, self.part.position.log_start_offset
        return bool(
            read.error or read.diverging or 0 <= start < read.log_start_offset or self.part.misses(read.high_watermark)
        )


class FollowerRequest(NamedTuple):
    """A request in its session, the broker epoch of the follower, and until when it may wait, by the loop's clock."""

    request: Fetch
    session: FollowerSession
    broker_epoch: int
    loop: asyncio.AbstractEventLoop
    deadline: float

    @property
    def now_ms(self) -> int:
        return int(self.loop.time() * 1000)

    def seconds_until(self, ms: int) -> float:
        """Seconds until `now_ms` is at least `ms`. A millisecond is added because `now_ms` is rounded down."""
        return (ms + 1) / 1000 - self.loop.time()


class FollowerFetch:
    """`asked` is called with every replica whose follower has asked for records. `tells_watermarks`: followers hear of
    a high watermark that moved at once."""

    def __init__(
        self,
        replicas: Replicas,
        image: Callable[[], Image],
        bytes_max: int,
        random: Random,
        asked: Callable[[Replica], None],
        throttle: Throttle,
        *,
        tells_watermarks: bool = False,
    ):
        self._replicas = replicas
        self._image = image
        self._bytes_max = bytes_max
        self._asked = asked
        self._throttle = throttle
        throttle.on_change(self._throttle_changed)
        self._sessions = FollowerSessions(lambda: 1 + random.below(SESSION_ID_MAX), tells_watermarks)

    def __call__(self, request: Fetch, call: Call) -> FetchAnswer | Pending:
        positions, known = request.follower, call.session.introduction
        assert positions is not None
        # Anybody else could move the high watermark with offsets that no replica has.
        if known is None or known.broker_id != request.replica_id:
            return FetchReply(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, 0, (), ())
        brokers = self._image().brokers
        shown = brokers.get(known.broker_id)
        # An earlier life of the broker may have had records that its present life lost (KIP-903).
        if shown is not None and positions.broker_epoch < shown.epoch:
            return FetchReply(ErrorCode.STALE_BROKER_EPOCH, 0, (), ())
        is_shown = shown is not None and positions.broker_epoch == shown.epoch
        session = self._sessions.of(BrokerId(known.broker_id), request, brokers, is_shown)
        if isinstance(session, ErrorCode):
            return FetchReply(session, 0, (), ())
        session.asked()
        loop = asyncio.get_running_loop()
        asked = FollowerRequest(
            request, session, positions.broker_epoch, loop, loop.time() + request.max_wait_ms / 1000
        )
        news: Any = self._look(asked, None)
        # Mostly everything is read within one turn: then the answer goes out without a task.
        if news is not None and type(news) is not GeneratorType:
            answer: FetchAnswer = news
            return answer
        return Pending(
            request,
            ParkedFetch(
                session, news, partial(self._look, asked), partial(self._wait_s, asked), partial(_reply, session, [])
            ),
        )

    def _look(self, asked: FollowerRequest, reading: Steps[list[PartitionAnswer]] | None) -> Any:
        """Read for one turn, or go on with the `reading` of an earlier one: the answer, what is left to read, or None
        if the request has to wait."""
        read = turn(self._read(asked) if reading is None else reading)
        return self._answer(asked, read) if isinstance(read, list) else read

    def _wait_s(self, asked: FollowerRequest) -> float:
        """For how long a request may wait: until its deadline, or until withheld partitions may be answered."""
        seconds = asked.deadline - asked.loop.time()
        # What was withheld may be sent when the throttle allows it, which wakes nobody by itself.
        if asked.session.withheld:
            seconds = min(seconds, asked.seconds_until(self._throttle.quota.free_ms(asked.now_ms)))
        return max(seconds, 0)

    def _throttle_changed(self) -> None:
        """Look at the withheld partitions again."""
        for session in self._sessions:
            if session.withheld:
                session.release()
                session.wake()

    def _read(self, asked: FollowerRequest) -> Steps[list[PartitionAnswer]]:
        """The answers for the partitions that are due, within the limits of bytes and of held files. Partitions that
        find no room stay due, and so do all if the reading is given up (`close`)."""
        request, session, epoch, _, _ = asked
        broker = self._image().brokers.get(session.broker)
        counts = broker is not None and broker.epoch == epoch
        asker = Asker(session.broker, epoch, counts, counts and broker is not None and not broker.leaving)
        bytes_max = min(request.max_bytes, self._bytes_max)
        session.looked()
        throttled_bytes = 0 if self._throttle.is_on else None
        # The throttle allows what it withheld: nothing else would make these partitions due.
        if session.withheld and not self._throttle.quota.is_exceeded(asked.now_ms):
            session.release()
        answered: list[PartitionAnswer] = []
        due = list(session.due)
        hold = None if len(due) == 1 else self._replicas.files.hold()  # each connection may hold one file
        files, is_first, slices = 1 if hold is None else hold.count, True, 0
        try:
            for key in due:
                yield
                part = session.parts.get(key)
                # The follower has dropped it, perhaps in a request that came between two turns of this reading.
                if part is None:
                    session.due.pop(key, None)
                    continue
                # What is left stays due, and is the first to be answered next time: no partition starves.
                if bytes_max <= 0 or slices == files:
                    break
                session.due.pop(key, None)
                room = min(part.max_bytes, bytes_max)
                read, counted = self._one(part, asker, room, is_first, throttled_bytes, asked.now_ms), 0
                if read.records is not None:
                    is_first = False
                    slices += 1
                    bytes_max -= read.records.length
                    if throttled_bytes is not None and self._counts(part):
                        counted = read.records.length
                        throttled_bytes += counted
                # What is left of the answer is too small for its first batch.
                elif not is_first and _has_more(part, read):
                    session.due[key] = None
                # In a session, an answer names a partition only if it has news for the follower (KIP-227).
                if (
                    read.error
                    or read.diverging
                    or read.records
                    or part.told != (read.high_watermark, read.log_start_offset)
                ):
                    answered.append(_new(PartitionAnswer, (part, read, counted)))
        except GeneratorExit:
            # The answer is not sent, so what was read for it is due again.
            for one in answered:
                one.part.grew()
            raise
        if slices and hold is not None:
            hold.shrink(slices)
            _keep(hold, answered)
        return answered

    def _one(
        self, part: FollowedPart, asker: Asker, max_bytes: int, min_one: bool, throttled_bytes: int | None, now_ms: int
    ) -> FollowerRead:
        """Read one partition. `throttled_bytes`: those in the answer so far that count for the throttle; None while it
        is off."""
        topic_id, index = part.key
        replica = self._replicas.find(None, topic_id, index)
        part.watch(replica)
        # Not hosted, or not yet: the error tells the follower whether to wait or to ask elsewhere.
        if replica is None:
            return FollowerRead(self._replicas.absence(None, topic_id, index), -1, -1)
        if throttled_bytes is not None and self._withholds(part, replica, throttled_bytes, now_ms):
            max_bytes, min_one = 0, False
            # The high watermark would wait for a follower that is about to join and is sent nothing.
            asker = asker._replace(may_join=False)
        read = read_for(replica, asker, part.position, max_bytes, min_one, now_ms)
        self._asked(replica)
        return read

    def _counts(self, part: FollowedPart) -> bool:
        """Whether what was read of a partition counts for the throttle."""
        return part.replica is not None and self._throttle.covers(part.replica, part.broker)

    def _withholds(self, part: FollowedPart, replica: Replica, throttled_bytes: int, now_ms: int) -> bool:
        """Whether a partition has records that must not be sent now; the session remembers it."""
        is_withheld = (
            part.position.offset < replica.log.log_end_offset
            and not replica.leadership.is_member(part.broker)
            and self._throttle.quota.is_exceeded(now_ms, throttled_bytes)
            and self._throttle.covers(replica, part.broker)
        )
        part.withhold(is_withheld)
        return is_withheld

    def _answer(self, asked: FollowerRequest, answered: list[PartitionAnswer]) -> FetchAnswer | None:
        """The answer from what was read; None if the request has to wait: then `answered` is emptied, and holds no
        file."""
        session = asked.session
        # A later request began another session while this one waited or was read.
        if session.ended:
            return FetchReply(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0, (), ())
        is_over = asked.loop.time() >= asked.deadline
        size = sum(one.read.records.length for one in answered if one.read.records is not None)
        # Where records are withheld, `min_bytes` may not come for long: what there is goes out.
        is_enough = size >= max(asked.request.min_bytes, 1) or (size > 0 and session.withheld)
        if is_over or is_enough or any(one.must_be_told for one in answered):
            now_ms = asked.now_ms
            session.replied(now_ms)
            # Only what is sent counts: a request that waits is read again later.
            if self._throttle.is_on:
                self._throttle.quota.record(sum(one.throttled_bytes for one in answered), now_ms)
            return _reply(session, answered)
        session.due.update(dict.fromkeys(one.part.key for one in answered))
        answered.clear()
        return None


def _keep(hold: object, answered: list[PartitionAnswer]) -> None:
    """Let the last slice keep the hold: it is the last to leave, so that files count as held until the reply is
    gone."""
    last = max(at for at, one in enumerate(answered) if one.read.records is not None)
    read = answered[last].read
    assert read.records is not None
    answered[last] = answered[last]._replace(read=read._replace(records=read.records._replace(hold=hold)))


def _has_more(part: FollowedPart, read: FollowerRead) -> bool:
    """Whether a partition that was read without records has some, which the throttle does not withhold."""
    # With an error or a divergence the follower must do something else first.
    if part.replica is None or read.error or read.diverging or part.is_withheld:
        return False
    return part.position.offset < part.replica.log.log_end_offset


def _reply(session: FollowerSession, answered: list[PartitionAnswer]) -> FetchAnswer:
    topics: list[FetchTopic] = []
    results: list[FetchResult] = []
    for part, read, _ in answered:
        topic_id, index = part.key
        if not topics or topics[-1][1] != topic_id:
            topics.append((None, topic_id, []))
        topics[-1][2].append((index, *part.position[:3]))
        part.told = Told(-1, -1) if read.error else Told(read.high_watermark, read.log_start_offset)
        part.watermark = part.told.high_watermark
        if read.records is not None and part.replica is not None:
            part.replica.traffic.replicated_out += read.records.length
        results.append(
            FetchResult(index, read.error, read.high_watermark, -1, read.log_start_offset, None, read.records)
        )
    reply = FetchReply(ErrorCode.NONE, session.id, topics, results)
    # Packed by hand unless it has a DivergingEpoch, which `hot_fetch` does not know.
    if not any(read.diverging for _, read, _ in answered):
        return reply
    response = fetch_response(reply)
    following: Iterator[PartitionAnswer] = iter(answered)
    for topic in response.responses:
        assert isinstance(topic.topic_id, uuid.UUID)
        for partition in topic.partitions:
            diverging = next(following).read.diverging
            if diverging is not None:
                partition.diverging_epoch = EpochEndOffset(epoch=diverging.epoch, end_offset=diverging.end_offset)
    return response
