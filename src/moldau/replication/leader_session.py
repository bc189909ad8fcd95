"""The fetch session of a follower with one leader (KIP-227), from the follower's side: what the next request names.

The leader remembers the position of every partition that a request has named. So a request names only the partitions
whose position has changed since (`due`), and those that the leader must drop. Requests may follow each other before the
first is answered; each has a number. What an answer says of a partition that a later request has named is out of date.

Nothing here waits or sends: `follower` does, and it decides which partitions pause.
"""

import uuid
from typing import Final, NamedTuple

from moldau.config import BrokerConfig
from moldau.names import BrokerId
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState
from moldau.replication.catching_up import position_of
from moldau.replication.for_followers import FollowerPosition
from moldau.replication.pauses import Key, Pauses
from moldau.replication.replica import Replica

ANSWER_MS: Final = 10_000
"""An answer that is later than its request may wait by more than this means that the connection is dead."""
NEW_SESSION: Final = (0, 0)
EPOCH_MAX: Final = 2**31 - 1


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
    not in the session. `is_throttled`: it pauses, or paused last, because of the throttle. `damaged_at`: where the last
    damaged answer was to be appended, -1 if there was none."""

    __slots__ = ("asked", "asked_in", "damaged_at", "is_throttled", "replica")

    def __init__(self, replica: Replica):
        self.replica = replica
        self.asked: FollowerPosition | None = None
        self.asked_in = 0
        self.is_throttled = False
        self.damaged_at = -1


class LeaderSession:
    """`followed`: the replicas here of what the leader leads. `due`: the partitions that the next request must name,
    because the session has another position of them; with the position to name, or None for the end of the log at that
    time. `sent`, `answered`: the number of the last request, and of the last one that was answered or has failed."""

    __slots__ = ("_epoch", "_forgotten", "_id", "_settings", "answered", "due", "followed", "sent")

    def __init__(self, settings: FollowerSettings):
        self.followed: dict[Key, FollowedReplica] = {}
        self.due: dict[Key, FollowerPosition | None] = {}
        self.sent = self.answered = 0
        self._settings = settings
        self._id, self._epoch = NEW_SESSION
        """The session's id, and the epoch of its next request."""
        self._forgotten: dict[Key, None] = {}
        """Partitions that the session has and must drop."""

    @property
    def is_new(self) -> bool:
        """Whether the leader has no session yet, as far as we know: the next request names everything."""
        return (self._id, self._epoch) == NEW_SESSION

    @property
    def must_tell(self) -> bool:
        """Whether nothing is followed any more, and the leader does not know it."""
        return not self.followed and bool(self._forgotten) and not self.is_new

    def leave(self, key: Key) -> None:
        """The leader must drop this partition, until a later request names it."""
        followed = self.followed[key]
        if followed.asked is not None:
            followed.asked = None
            self._forgotten[key] = None

    def forget(self, key: Key) -> None:
        """The partition is followed no longer."""
        self.leave(key)
        self.due.pop(key, None)
        del self.followed[key]

    def lost(self, pauses: Pauses) -> None:
        """The leader has lost the session, or cannot be reached: the next request begins one, and names everything that
        does not pause."""
        self._id, self._epoch = NEW_SESSION
        self._forgotten.clear()
        for key, followed in self.followed.items():
            followed.asked = None
            if key not in pauses:
                self.due[key] = None

    def opened(self, session_id: int) -> None:
        """An answer without an error came, which has this session id."""
        if self.is_new:
            self._id, self._epoch = session_id, 1

    def answered_from(self, followed: FollowedReplica) -> FollowerPosition | None:
        """The position from which the last answer goes on; None if a later request has named the partition, or none
        has."""
        return followed.asked if followed.asked_in <= self.answered else None

    def request(self, broker_id: BrokerId, broker_epoch: int) -> FetchRequest:
        """The next request of this broker: it names what is due, which is not due any more. The first one of a session
        does not wait at the leader, since it could not be ended, nor does one that only tells it that nothing is
        followed any more."""
        self.sent += 1
        settings, session_id, session_epoch = self._settings, self._id, self._epoch
        topics = self._due_topics()
        request = FetchRequest(
            replica_state=ReplicaState(replica_id=broker_id, replica_epoch=broker_epoch),
            max_wait_ms=settings.wait_ms if session_id and self.followed else 0,
            min_bytes=settings.bytes_min,
            max_bytes=settings.answer_bytes_max,
            session_id=session_id,
            session_epoch=session_epoch,
            topics=topics,
            forgotten_topics_data=self._forgotten_topics(),
        )
        # A request that begins a session has no id: its successor has the one of the answer, and the epoch 1.
        if session_id:
            self._epoch = session_epoch + 1 if session_epoch < EPOCH_MAX else 1
        return request

    def _due_topics(self) -> list[FetchTopic]:
        topics: dict[bytes, FetchTopic] = {}
        for key, ahead in self.due.items():
            followed = self.followed[key]
            position = followed.asked = ahead or position_of(followed.replica)
            followed.asked_in = self.sent
            self._forgotten.pop(key, None)
            topic_id, index = key
            topic = topics.setdefault(topic_id, FetchTopic(topic_id=followed.replica.topic_id, partitions=[]))
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
        self.due.clear()
        return list(topics.values())

    def _forgotten_topics(self) -> list[ForgottenTopic]:
        topics: dict[bytes, ForgottenTopic] = {}
        # A new session has nothing to drop.
        if not self.is_new:
            for topic_id, index in self._forgotten:
                topic = topics.setdefault(topic_id, ForgottenTopic(topic_id=uuid.UUID(bytes=topic_id), partitions=[]))
                topic.partitions.append(index)
        self._forgotten.clear()
        return list(topics.values())


def key_of(replica: Replica) -> Key:
    return replica.topic_id.bytes, replica.tp.partition
