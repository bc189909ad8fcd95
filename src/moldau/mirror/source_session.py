"""The fetch session of a worker with one leader of the source (KIP-227): what the next Fetch names. Pure.

The leader remembers the position of each partition that a request has named. So a request names only what has changed:
partitions that are new, or read on from another offset, and those that it must drop. An answer names only partitions
with records, an error, or other offsets of their logs. A leader that begins no session (it has no room, or is older
than Kafka 1.1) is sent full requests, in an order in which each partition gets its turn.

An answer for a partition counts only if the partition is still wanted as it was when the request was sent.
"""

import uuid
from collections.abc import Iterator
from typing import Final, NamedTuple

from moldau.client.failures import check, error_of
from moldau.error_codes import ErrorCode
from moldau.names import TopicPartition
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic

FETCH_BYTES, PART_BYTES = 8 << 20, 1 << 20
"""The most bytes of one answer, and of one partition in it. A larger batch comes whole all the same."""
NO_SESSION, FIRST_EPOCH, LAST_EPOCH = 0, 0, 2**31 - 1
NO_FETCH_SESSION: Final = -1
"""The epoch of a request that neither has nor begins a session."""
SESSION_LOST: Final = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)  # fmt: skip
"""The leader has another session than we think, or none: the next request begins one."""


class FetchedBatches(NamedTuple):
    """A leader's answer for one partition; offsets that it does not say are -1."""

    error: ErrorCode
    records: memoryview
    start: int
    high_watermark: int


class WantedPartition(NamedTuple):
    """`topic_id` is zero where topics have none. `leader_epoch`: the leader must be of this one, if it is not -1."""

    topic_id: uuid.UUID
    offset: int
    leader_epoch: int


class SourceSession:
    """`is_kept`: whether to begin a session, else every request is a full one."""

    def __init__(self, is_kept: bool = True):
        self._is_kept = is_kept
        self._wanted: dict[TopicPartition, WantedPartition] = {}
        self._has: dict[TopicPartition, WantedPartition] = {}
        """What the leader has in the session, or was sent last."""
        self._due: dict[TopicPartition, None] = {}
        """Partitions that the session has otherwise than they are wanted."""
        self._dropped: dict[TopicPartition, WantedPartition] = {}
        self._names: dict[uuid.UUID, str] = {}
        self._id, self._epoch = NO_SESSION, FIRST_EPOCH

    def __len__(self) -> int:
        return len(self._wanted)

    def __contains__(self, tp: TopicPartition) -> bool:
        return tp in self._wanted

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(list(self._wanted))

    def want(self, tp: TopicPartition, wanted: WantedPartition) -> None:
        """Fetch this partition from now on, or from there on."""
        if tp in self._dropped and self._dropped[tp].topic_id != wanted.topic_id:
            self.lost()  # a topic that was made anew: a leader that goes by names would drop this one
        self._wanted[tp] = wanted
        self._due[tp] = None

    def read_to(self, tp: TopicPartition, offset: int) -> None:
        """Fetch a wanted partition from this offset on."""
        self.want(tp, self._wanted[tp]._replace(offset=offset))

    def drop(self, tp: TopicPartition) -> None:
        """Fetch this partition no more."""
        if self._wanted.pop(tp, None) is not None:
            self._due.pop(tp, None)
            if (has := self._has.pop(tp, None)) is not None:
                self._dropped[tp] = has

    def lost(self) -> None:
        """The leader could not be reached: the next request begins a session."""
        self._id, self._epoch = NO_SESSION, FIRST_EPOCH
        self._has.clear()
        self._dropped.clear()

    def request(self, wait_ms: int) -> FetchRequest:
        """The next request. A full one names everything, also that which was named before."""
        is_full = self._id == NO_SESSION
        named = list(self._wanted) if is_full else list(self._due)
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            session_id=self._id,
            session_epoch=self._epoch if self._is_kept else NO_FETCH_SESSION,
            topics=self._topics(named),
            forgotten_topics_data=[] if is_full else self._forgotten(),
        )
        self._has.update((tp, self._wanted[tp]) for tp in named)
        self._due.clear()
        self._dropped.clear()
        return request

    def answered(self, reply: FetchResponse) -> dict[TopicPartition, FetchedBatches]:
        """What the leader says of the partitions that are wanted as they were. Raises `KafkaError` for an error of the
        whole request; after one of the session there are no answers, and the next request begins another."""
        if error_of(reply.error_code) in SESSION_LOST:
            self.lost()
            return {}
        check(reply.error_code, "fetching")
        if self._id == NO_SESSION:
            self._id, self._epoch = reply.session_id, FIRST_EPOCH
        if self._id != NO_SESSION:
            self._epoch = self._epoch + 1 if self._epoch < LAST_EPOCH else FIRST_EPOCH + 1
        answers: dict[TopicPartition, FetchedBatches] = {}
        for topic in reply.responses:
            name = topic.topic or self._names.get(topic.topic_id, "")
            for part in topic.partitions:
                tp = TopicPartition(name, part.partition_index)
                wanted = self._wanted.get(tp)
                if wanted is None or self._has.get(tp) != wanted:
                    continue
                records = memoryview(part.records or b"")
                answers[tp] = FetchedBatches(
                    error_of(part.error_code), records, part.log_start_offset, part.high_watermark
                )
                if len(records):  # in a full request, those that had no records come first
                    self._wanted[tp] = self._wanted.pop(tp)
        return answers

    def _topics(self, named: list[TopicPartition]) -> list[FetchTopic]:
        topics: dict[str, FetchTopic] = {}
        for tp in named:
            topic_id, offset, epoch = self._wanted[tp]
            self._names[topic_id] = tp.topic
            topic = topics.get(tp.topic)
            if topic is None:
                topic = topics[tp.topic] = FetchTopic(topic=tp.topic, topic_id=topic_id, partitions=[])
            topic.partitions.append(
                FetchPartition(
                    partition=tp.partition,
                    current_leader_epoch=epoch,
                    fetch_offset=offset,
                    partition_max_bytes=PART_BYTES,
                )
            )
        return [*topics.values()]

    def _forgotten(self) -> list[ForgottenTopic]:
        """What the leader must drop. A partition that is named again stays."""
        topics: dict[tuple[str, uuid.UUID], ForgottenTopic] = {}
        for tp, (topic_id, _, _) in self._dropped.items():
            if tp not in self._wanted:
                topic = topics.setdefault(
                    (tp.topic, topic_id), ForgottenTopic(topic=tp.topic, topic_id=topic_id, partitions=[])
                )
                topic.partitions.append(tp.partition)
        return [*topics.values()]
