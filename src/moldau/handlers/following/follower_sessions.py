"""The sessions of followers: what each fetches from this broker, and what of it has changed since it was answered.

A session costs what changed, not what it holds: a partition puts itself on its sessions' lists when something is
appended. Sessions of followers take no slot of the consumers' and are never evicted: there is one for each broker of
the cluster, which ends when that broker begins another. The rules of ids and epochs are those of KIP-227.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple, Protocol, TypeAlias

from moldau.errors import ErrorCode
from moldau.names import BrokerId
from moldau.protocol.fetch_request import Fetch
from moldau.replication.for_followers import FollowerPosition
from moldau.replication.in_sync import NEVER_MS
from moldau.replication.replica import Replica

NOTHING: Final = -1
FULL, FINAL = 0, -1
"""Session epochs of a request that names everything, and of one that begins no session."""

_new: Final = tuple.__new__  # what a NamedTuple's constructor does, at a third of its cost

FollowedKey: TypeAlias = tuple[bytes, int]
"""A topic's id and a partition's number."""


class Told(NamedTuple):
    high_watermark: int
    log_start_offset: int


UNTOLD: Final = Told(NOTHING, NOTHING)


class Waits(Protocol):
    """A request that waits for its session's partitions."""

    def wake(self) -> None: ...


class FollowedPart:
    """One partition in a follower's session: where the follower is, and what it was told since it named that position.
    `watermark`: the high watermark that it was told last, wherever it was."""

    __slots__ = ("_session", "key", "max_bytes", "position", "replica", "told", "watermark")

    def __init__(self, session: "FollowerSession", key: FollowedKey):
        self.key = key
        self.position = FollowerPosition(NOTHING, 0, NOTHING)
        self.max_bytes = 0
        self.told = UNTOLD
        self.watermark = NOTHING
        self.replica: Replica | None = None
        self._session = session

    @property
    def broker(self) -> BrokerId:
        return self._session.broker

    @property
    def leader_epoch(self) -> int:
        return self.position.leader_epoch

    @property
    def asked_ms(self) -> int:
        return self._session.asked_ms

    def grew(self) -> None:
        self._session.due[self.key] = None
        self._session.wake()

    def moved(self) -> None:
        self._session.due[self.key] = None
        if self._session.tells_watermarks:
            self._session.wake()

    def misses(self, high_watermark: int) -> bool:
        """Whether the follower must hear of this high watermark without any records."""
        return self._session.tells_watermarks and self.watermark != high_watermark

    def proposed(self) -> None:
        if self.key in self._session.withheld:
            self.grew()

    @property
    def is_withheld(self) -> bool:
        return self.key in self._session.withheld

    def withhold(self, is_withheld: bool) -> None:
        """Whether its records are left out of answers until the session's `release`."""
        if is_withheld:
            self._session.withheld[self.key] = None
        else:
            self._session.withheld.pop(self.key, None)

    def watch(self, replica: Replica | None) -> None:
        """Be called by this replica from now on."""
        if replica is not self.replica:
            if self.replica is not None:
                self.replica.waiters.followers.pop(self, None)
            if replica is not None:
                replica.waiters.followers[self] = None
            self.replica = replica


class FollowerSession:
    """`due`: the partitions that have to be looked at, in the order of their turns; `withheld`: those whose records the
    leader's throttle leaves out of answers. `epoch` is the one that the next request must have. `tells_watermarks`: a
    high watermark that moved ends the wait of a request."""

    def __init__(self, broker: BrokerId, session_id: int, tells_watermarks: bool = False):
        self.tells_watermarks = tells_watermarks
        self.asked_ms = self._replied_ms = self._replied_before_ms = NEVER_MS
        """The latest request was sent at `asked_ms` or later, by the loop's clock."""
        self.broker = broker
        self.broker_epoch = -1
        """The latest one of requests that the image shows. It counts for all partitions, also those that requests leave
        out."""
        self.id = session_id
        self.epoch = FULL + 1
        self.parts: dict[FollowedKey, FollowedPart] = {}
        self.due: dict[FollowedKey, None] = {}
        self.withheld: dict[FollowedKey, None] = {}
        self.ended = False
        self.is_stirred = False
        """It was woken since it was `looked` at."""
        self.waits: Waits | None = None
        """Its request that waits."""

    def asked(self) -> None:
        """A request has come. It was sent after the last answer but one, since a follower has at most two requests on
        their way. Nobody knows how long this one was: it may have lain in the socket of a process that stood still."""
        self.asked_ms = self._replied_before_ms

    def replied(self, now_ms: int) -> None:
        """A request is answered, and not because the next one has come."""
        self._replied_before_ms, self._replied_ms = self._replied_ms, now_ms

    def change(self, request: Fetch, is_shown: bool) -> None:
        """Take over what the request of a follower says of partitions: they are where it says, or are fetched no
        more. `is_shown`: the image shows the broker with the epoch that it names."""
        assert request.follower is not None
        parts, due = self.parts, self.due
        if is_shown and request.follower.broker_epoch != self.broker_epoch:
            # The same process has registered again, or this broker hears of it only now. Each leadership must know the
            # new epoch, or the follower could not join the ISR of a partition that nothing is written to.
            self.broker_epoch = request.follower.broker_epoch
            due.update(dict.fromkeys(parts))
        for topic_id, asked in request.follower.topics:
            for index, leader_epoch, offset, fetched_epoch, log_start, max_bytes in asked:
                key = topic_id, index
                part = parts.get(key)
                if part is None:
                    part = parts[key] = FollowedPart(self, key)
                part.position = _new(FollowerPosition, (leader_epoch, offset, fetched_epoch, log_start))
                part.max_bytes = max_bytes
                part.told = UNTOLD
                due.pop(key, None)
                self.withheld.pop(key, None)
                due[key] = None
        for _, forgotten_id, indexes in request.forgotten:
            for index in indexes:
                self._forget((forgotten_id or b"", index))

    def _forget(self, key: FollowedKey) -> None:
        part = self.parts.pop(key, None)
        self.due.pop(key, None)
        self.withheld.pop(key, None)
        if part is not None:
            if part.replica is not None:
                part.replica.asks_no_more(self.broker)
            part.watch(None)

    def end(self) -> None:
        self.ended = True
        for key in list(self.parts):
            self._forget(key)
        self.wake()

    def release(self) -> None:
        """Look at the withheld partitions again, before the others."""
        self.due = self.withheld | self.due
        self.withheld = {}

    def looked(self) -> None:
        """All that is due is looked at from now on; what comes later ends the next wait."""
        self.is_stirred = False

    def wake(self) -> None:
        """A partition has something to fetch, or the next request is here."""
        self.is_stirred = True
        if self.waits is not None:
            self.waits.wake()


class FollowerSessions:
    """By broker. `new_id` returns numbers from 1 to 2**31 - 1."""

    def __init__(self, new_id: Callable[[], int], tells_watermarks: bool = False):
        self._new_id = new_id
        self._tells_watermarks = tells_watermarks
        self._sessions: dict[BrokerId, FollowerSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[FollowerSession]:
        return iter(self._sessions.values())

    def of(
        self, broker: BrokerId, request: Fetch, alive: Iterable[int], is_shown: bool = True
    ) -> FollowerSession | ErrorCode:
        """The session of this request, with what it changes. `alive`: the brokers that are up; `is_shown`: this one is,
        with the epoch that it names."""
        session = self._sessions.get(broker)
        if request.session_epoch in (FULL, FINAL):
            for gone in [one for one in self._sessions if one == broker or one not in alive]:
                self._sessions.pop(gone).end()
            session = self._sessions[broker] = FollowerSession(broker, self._new_id(), self._tells_watermarks)
        elif session is None or session.id != request.session_id:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        elif session.epoch != request.session_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        else:
            session.epoch = session.epoch + 1 if session.epoch < 2**31 - 1 else FULL + 1
            session.wake()
        session.change(request, is_shown)
        return session
