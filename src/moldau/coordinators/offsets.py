"""Committed offsets by group: what is written, what is answered, and what is forgotten. Pure; knows no member and no
generation.

The offsets change only in `apply`: after a restart they are whatever replaying the log gives. Whoever commits sees an
offset once it is in the log, and of two commits the later record wins, whatever the clocks said.
"""

from collections.abc import Callable, Iterable

from moldau.coordinators.consumer_group import ConsumerGroup
from moldau.coordinators.exchange import GroupSettings, NewOffset
from moldau.coordinators.group import Group, State
from moldau.coordinators.group_records import OffsetRecord, offset_record
from moldau.coordinators.outcome import Outcome, Record
from moldau.errors import ErrorCode
from moldau.names import TopicPartition
from moldau.protocol.internal import OffsetCommitValue


class Offsets:
    """The offsets of all groups of one partition of the offsets topic."""

    def __init__(self, settings: GroupSettings):
        self.settings = settings
        self._by_group: dict[str, dict[TopicPartition, OffsetCommitValue]] = {}

    def apply(self, record: OffsetRecord) -> None:
        if record.value is not None:
            self._by_group.setdefault(record.group, {})[record.partition] = record.value
        elif record.group in self._by_group:
            offsets = self._by_group[record.group]
            offsets.pop(record.partition, None)
            if not offsets:
                del self._by_group[record.group]

    def groups(self) -> list[str]:
        return list(self._by_group)

    def of(self, group_id: str) -> dict[TopicPartition, OffsetCommitValue]:
        """What a group has committed, by partition in the order of first commits."""
        return self._by_group.get(group_id, {})

    def commit(
        self, group_id: str, offsets: Iterable[NewOffset], retention_ms: int, stamp_ms: int, out: Outcome
    ) -> list[ErrorCode]:
        """One error or none for each offset; those without one are in `out`'s records."""
        errors = []
        for new in offsets:
            if len(new.metadata) > self.settings.offset_metadata_max_bytes:
                errors.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
                continue
            errors.append(ErrorCode.NONE)
            value = OffsetCommitValue(
                offset=new.offset,
                leader_epoch=new.leader_epoch,
                metadata=new.metadata,
                commit_timestamp=stamp_ms,
                expire_timestamp=-1 if retention_ms < 0 else stamp_ms + retention_ms,
                topic_id=new.topic_id,
            )
            out.records.append(offset_record(group_id, new.partition, value))
        return errors

    def delete_all(self, group_id: str, out: Outcome) -> None:
        out.records += self._tombstones(group_id, self.of(group_id))

    def delete_topics(self, group_id: str, topics: frozenset[str], out: Outcome) -> None:
        gone = [partition for partition in self.of(group_id) if partition.topic in topics]
        out.records += self._tombstones(group_id, gone)

    def delete(
        self, group: Group | ConsumerGroup, partitions: Iterable[TopicPartition], out: Outcome
    ) -> list[ErrorCode]:
        """Forget these offsets, but for topics that the group's members are reading (KIP-496)."""
        known = self.of(group.group_id)
        errors = []
        for partition in partitions:
            if group.is_subscribed(partition.topic):
                errors.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
                continue
            errors.append(ErrorCode.NONE)
            if partition in known:
                out.records += self._tombstones(group.group_id, [partition])
        return errors

    def expire(self, group: Group | ConsumerGroup, stamp_ms: int, out: Outcome) -> bool:
        """Forget what is past `offsets.retention.minutes` (KIP-211); whether none is left."""
        since = self._retained_since(group)
        if since is None:
            return False
        old = [
            partition
            for partition, value in self.of(group.group_id).items()
            if self._is_old(value, since(value), stamp_ms) and not group.is_subscribed(partition.topic)
        ]
        out.records += self._tombstones(group.group_id, old)
        return len(old) == len(self.of(group.group_id))

    def _is_old(self, value: OffsetCommitValue, since_ms: int, stamp_ms: int) -> bool:
        if value.expire_timestamp >= 0:
            return stamp_ms >= value.expire_timestamp
        return stamp_ms - since_ms >= self.settings.offsets_retention_ms

    @staticmethod
    def _retained_since(group: Group | ConsumerGroup) -> Callable[[OffsetCommitValue], int] | None:
        """From when on the retention of an offset counts; None while its group is busy with it."""
        if isinstance(group, ConsumerGroup):
            return lambda value: value.commit_timestamp
        if group.protocol_type is None:  # nobody ever joined: its commits are all there is
            return lambda value: value.commit_timestamp
        if group.state is State.EMPTY:
            return lambda value: group.since_ms if group.since_ms >= 0 else value.commit_timestamp
        if group.is_consumer and group.state is State.STABLE and group.topics is not None:
            return lambda value: value.commit_timestamp
        return None

    @staticmethod
    def _tombstones(group_id: str, partitions: Iterable[TopicPartition]) -> list[Record]:
        return [offset_record(group_id, partition, None) for partition in partitions]
