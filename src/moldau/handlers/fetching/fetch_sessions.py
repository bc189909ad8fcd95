"""Fetch sessions (KIP-227): what a reader asked for is remembered, so that it names only what changed, and is told only
what changed. Pure: time and new ids are handed in.

A full request may begin a session (epoch 0) or end one (epoch -1); the requests that follow count its epoch up and say
which partitions are new, read elsewhere or no longer wanted. A partition is told of if it has records or an error, or
if its high watermark or log start is not what its reader was told last; those that had records go behind the others, so
that each gets its turn. How many sessions there are is bounded: a new one takes the place of one that nobody used for
two minutes, or of a smaller one that is older than that, or is not begun. So is what all of them hold together: a new
one takes the place of the largest if it holds no more than its equal share, or is not begun. A reader without a session
sends full requests. A session is of one principal: another one does not find it, cannot end it, and is not told its
topics, which Kafka would name.
Source: KIP-227, KIP-516; what Kafka 4.3 answers.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from moldau.errors import ErrorCode
from moldau.protocol.fetch_request import Fetch, FetchPartition, FetchTopic
from moldau.protocol.hot_fetch import FetchResult
from moldau.protocol.hot_topics import NAME_LENGTH_MAX
from moldau.turns import Steps

NO_SESSION: Final = 0
FINAL_EPOCH, INITIAL_EPOCH = -1, 0
EPOCH_MAX: Final = 2**31 - 1
EVICTION_MS: Final = 120_000
HELD_MAX: Final = 100_000
"""Partitions in all sessions together, each about 400 bytes, and up to 1 KB more for the name of its topic: a bound on
their memory, which Kafka does not have. No session holds a name that no topic can have."""
NOTHING: Final = -1

Key: TypeAlias = tuple[str | None, bytes | None, int]
"""A topic by its name or (from version 13 on) its id, and a partition's number."""


class Held:
    """A partition in a session, and what its reader was told of it last."""

    __slots__ = ("high_watermark", "log_start_offset", "part")

    def __init__(self, part: FetchPartition):
        self.part = part
        self.high_watermark = NOTHING
        self.log_start_offset = NOTHING

    def is_news(self, result: FetchResult) -> bool:
        """Whether the reader needs an answer for this partition. If so, the session counts it as answered."""
        told = self.high_watermark, self.log_start_offset
        self.high_watermark = NOTHING if result.error else result.high_watermark
        self.log_start_offset = result.log_start_offset
        return bool(
            result.error
            or result.records is not None
            or result.preferred >= 0
            or told != (result.high_watermark, result.log_start_offset)
        )


class FetchSession:
    """`epoch` is the one that its next request must have. `held` is in the order in which partitions have their
    turn."""

    __slots__ = ("begun_ms", "by_id", "epoch", "held", "id", "owner", "used_ms")

    def __init__(self, session_id: int, by_id: bool, now_ms: int, owner: str):
        self.id = session_id
        self.by_id = by_id
        self.owner = owner
        self.epoch = INITIAL_EPOCH + 1
        self.held: dict[Key, Held] = {}
        self.begun_ms = self.used_ms = now_ms

    def topics(self) -> Steps[list[FetchTopic]]:
        """All that is read in this session, as a full request would name it."""
        topics: list[FetchTopic] = []
        for (name, topic_id, _), held in list(self.held.items()):
            if not topics or (topics[-1][0], topics[-1][1]) != (name, topic_id):
                topics.append((name, topic_id, []))
            topics[-1][2].append(held.part)
            yield
        return topics

    def news(
        self, topics: Sequence[FetchTopic], results: Sequence[FetchResult]
    ) -> Steps[tuple[list[FetchTopic], list[FetchResult]]]:
        """What of the results of `topics` the reader is told."""
        told_topics: list[FetchTopic] = []
        told: list[FetchResult] = []
        for (name, topic_id, part), result in zip(_each(topics), results, strict=True):
            yield
            key = name, topic_id, part[0]
            held = self.held.get(key)
            if held is None or not held.is_news(result):
                continue
            if result.records is not None:
                self.held[key] = self.held.pop(key)
            if not told_topics or (told_topics[-1][0], told_topics[-1][1]) != (name, topic_id):
                told_topics.append((name, topic_id, []))
            told_topics[-1][2].append(part)
            told.append(result)
        return told_topics, told


def _is_too_long(name: str | None) -> bool:
    """Whether no topic can have that name."""
    return name is not None and len(name) > NAME_LENGTH_MAX


def _each(topics: Sequence[FetchTopic]) -> Iterator[tuple[str | None, bytes | None, FetchPartition]]:
    for name, topic_id, parts in topics:
        for part in parts:
            yield name, topic_id, part


class FetchSessions:
    """All sessions of a broker; `slots` is `max.incremental.fetch.session.cache.slots`, `new_id` gives numbers from 1
    to 2**31 - 1."""

    def __init__(self, slots: int, new_id: Callable[[], int]):
        self._slots = slots
        self._new_id = new_id
        self._sessions: dict[int, FetchSession] = {}
        self._held = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def go_on(
        self, request: Fetch, by_id: bool, now_ms: int, owner: str = ""
    ) -> Steps[FetchSession | ErrorCode | None]:
        """The session of an incremental request, with the changes that it asks for; None for a full request, which ends
        the session it names, and for one after which its session holds nothing, which ends it too."""
        session = self._sessions.get(request.session_id)
        if session is not None and session.owner != owner:
            session = None
        if request.session_epoch in (FINAL_EPOCH, INITIAL_EPOCH):
            if session is not None:
                self._end(session)
            return None
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != request.session_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.by_id != by_id:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        session.epoch = session.epoch + 1 if session.epoch < EPOCH_MAX else INITIAL_EPOCH + 1
        yield from self._change(session, request)
        if self._sessions.get(session.id) is not session:  # it made room for another meanwhile
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if not session.held:
            self._end(session)
            return None
        if self._held > HELD_MAX:
            self._end(session)
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        session.used_ms = now_ms
        self._sessions[session.id] = self._sessions.pop(session.id)
        return session

    def _change(self, session: FetchSession, request: Fetch) -> Steps[None]:
        """The count is updated at every step, because the session may end between two steps."""
        for name, topic_id, part in _each(request.topics):
            yield
            if self._sessions.get(session.id) is not session:
                return
            held = session.held.get((name, topic_id, part[0]))
            if held is None:
                if _is_too_long(name):
                    self._end(session)
                    return
                session.held[name, topic_id, part[0]] = Held(part)
                self._held += 1
            else:
                held.part = part
        for name, topic_id, indexes in request.forgotten:
            for index in indexes:
                yield
                if self._sessions.get(session.id) is not session:
                    return
                if session.held.pop((name, topic_id, index), None) is not None:
                    self._held -= 1

    def begin(
        self,
        topics: Sequence[FetchTopic],
        results: Sequence[FetchResult],
        by_id: bool,
        now_ms: int,
        owner: str = "",
    ) -> Steps[int]:
        """The id of a new session in which these results have been told, or `NO_SESSION`."""
        size = sum(len(parts) for _, _, parts in topics)
        if not self._may_have_room(size):
            return NO_SESSION
        told: dict[Key, Held] = {}
        for (name, topic_id, part), result in zip(_each(topics), results, strict=True):
            if _is_too_long(name):
                return NO_SESSION
            held = told[name, topic_id, part[0]] = Held(part)
            held.is_news(result)
            yield
        if not self._make_room(size, now_ms):
            return NO_SESSION
        session_id = self._new_id()
        while session_id in self._sessions:
            session_id = self._new_id()
        session = self._sessions[session_id] = FetchSession(session_id, by_id, now_ms, owner)
        session.held = told
        self._held += len(told)
        return session_id

    def _may_have_room(self, size: int) -> bool:
        """Whether this many partitions are a fair share of the partitions of all sessions."""
        return self._slots > 0 and (self._held + size <= HELD_MAX or size <= HELD_MAX // (len(self._sessions) + 1))

    def _make_room(self, size: int, now_ms: int) -> bool:
        """Whether a session of this many partitions may begin."""
        if not self._may_have_room(size):
            return False
        while self._held + size > HELD_MAX:
            self._end(max(self._sessions.values(), key=lambda session: len(session.held)))
        if len(self._sessions) < self._slots:
            return True
        idle = next(iter(self._sessions.values()))
        if now_ms - idle.used_ms > EVICTION_MS:
            self._end(idle)
            return True
        old = [session for session in self._sessions.values() if now_ms - session.begun_ms > EVICTION_MS]
        smallest = min(old, key=lambda session: len(session.held), default=None)
        if smallest is None or len(smallest.held) >= size:
            return False
        self._end(smallest)
        return True

    def _end(self, session: FetchSession) -> None:
        del self._sessions[session.id]
        self._held -= len(session.held)
