"""Committed offsets by group: writing, reading, deleting and expiring them. Pure; knows no member and no generation.

Offsets change only in `apply`, so replaying the log restores them. A commit becomes visible once it is in the log. Of
two commits of one partition the later record wins, whatever their timestamps are. Offsets that were committed in a
transaction stay in `pending` until the transaction ends. Millions of offsets are possible: they are kept as the bytes
of their records, and decoded when they are read.
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, Protocol

from moldau.coordinators.decision import Decision, InternalRecord
from moldau.coordinators.offsets.messages import NewOffset, OffsetSettings
from moldau.coordinators.offsets.pending import PendingOffsets
from moldau.coordinators.offsets.records import (
    Stamps,
    is_value,
    offset_record,
    partition_at,
    place_of,
    read_value,
    split_key,
    stamps,
    topic_at,
)
from moldau.errors import ErrorCode
from moldau.names import TopicPartition
from moldau.protocol.internal import OffsetCommitValue

TIMESTAMP_MAX_MS: Final = (1 << 63) - 1
"""The largest timestamp that fits into an offset's record (int64)."""


class SubscribedGroup(Protocol):
    """A group of any kind, as far as its offsets' retention depends on it."""

    @property
    def group_id(self) -> str: ...
    @property
    def lets_offsets_expire(self) -> bool:
        """False while the group may be using all of its offsets."""

    def is_subscribed(self, topic: str) -> bool:
        """Whether members consume the topic; its offsets then neither expire nor can be deleted."""

    def retention_start_ms(self, commit_ms: int) -> int:
        """When the retention of an offset that was committed at `commit_ms` starts to count."""


class Applied(NamedTuple):
    """The group of an offset's record, as bytes of its key, and whether the group now has the offset. A value of an
    unknown version changes nothing."""

    group: bytes
    is_there: bool


class OffsetsOfGroup(Mapping[TopicPartition, OffsetCommitValue]):
    """A group's committed offsets by partition, in the order of their first commits."""

    __slots__ = ("_by_place",)

    def __init__(self, by_place: Mapping[bytes, bytes]):
        self._by_place = by_place

    def __getitem__(self, partition: TopicPartition) -> OffsetCommitValue:
        place = place_of(partition)
        if place is None:
            raise KeyError(partition)
        return _value(self._by_place[place])

    def __contains__(self, partition: object) -> bool:
        return isinstance(partition, TopicPartition) and place_of(partition) in self._by_place

    def __iter__(self) -> Iterator[TopicPartition]:
        return map(partition_at, self._by_place)

    def __len__(self) -> int:
        return len(self._by_place)

    def copy(self) -> "OffsetsOfGroup":
        """A copy that later commits do not change."""
        return OffsetsOfGroup(dict(self._by_place))

    def pairs(self) -> Iterator[tuple[TopicPartition, OffsetCommitValue]]:
        """As `items`, each decoded when it is reached."""
        return ((partition_at(place), _value(value)) for place, value in self._by_place.items())

    def stamps(self) -> Iterator[tuple[bytes, Stamps]]:
        """The place of each offset and its timestamps, without decoding the rest of it."""
        return ((place, stamps(value)) for place, value in self._by_place.items())


def _value(data: bytes) -> OffsetCommitValue:
    value = read_value(data)
    assert value is not None, "only decodable values are kept"
    return value


class CommittedOffsets:
    """The offsets of all groups of one partition of the offsets topic."""

    def __init__(self, settings: OffsetSettings):
        self.settings = settings
        self._by_group: dict[bytes, dict[bytes, bytes]] = {}
        self.pending = PendingOffsets()
        self._waiting = self.pending.by_group  # empty unless transactions are open
        self._undecided: dict[bytes, dict[bytes, bytes]] = {}
        """Group -> place -> the value that was decided last, if the log neither took nor refused it yet. A deletion
        that is decided meanwhile is appended behind it, and would take it along. Holds no empty dictionary."""

    def apply(self, record: InternalRecord) -> Applied | None:
        """Apply a record; None if its key is not an offset's.

        Raises `ProtocolViolation` for a damaged record, and then has changed nothing.
        """
        key, value = record
        split = split_key(key)
        if split is None:
            return None
        group, place = split
        offsets = self._by_group.get(group)
        if value is None:
            if offsets is not None and offsets.pop(place, None) is not None and not offsets:
                del self._by_group[group]
            if self._waiting:
                self.pending.delete(group, place)
            return Applied(group, False)
        if not is_value(value):
            return Applied(group, False)
        if offsets is None:
            offsets = self._by_group[group] = {}
        offsets[place] = value
        if self._waiting:
            self.pending.overtake(group, place)
        if self._undecided:
            self._settle(group, place, value)
        return Applied(group, True)

    def apply_pending(self, producer_id: int, record: InternalRecord) -> Applied | None:
        """As `apply`, for a record of a producer's transaction. A tombstone takes effect at once; Kafka writes none in
        transactions."""
        key, value = record
        split = split_key(key)
        if value is None or split is None:
            return self.apply(record)
        group, place = split
        if not is_value(value):
            return Applied(group, False)
        self.pending.add(producer_id, group, place, value)
        self._settle(group, place, value)
        return Applied(group, True)

    def _settle(self, group: bytes, place: bytes, value: bytes) -> None:
        """The log took this very value, or refused it: earlier ones are settled, a later one is not."""
        places = self._undecided.get(group, {})
        if places.get(place) is value:
            del places[place]
            if not places:
                del self._undecided[group]

    def end(self, producer_id: int, commits: bool) -> None:
        """The producer's transaction has ended: its offsets take effect if it commits."""
        for group, place, value in self.pending.end(producer_id, commits):
            self._by_group.setdefault(group, {})[place] = value

    def groups(self) -> Iterator[str]:
        """The groups that have committed offsets."""
        return (str(group, "utf-8") for group in self._by_group)

    def groups_in_transactions(self) -> Iterator[str]:
        """The groups with offsets that wait for the end of a transaction."""
        return (str(group, "utf-8") for group in self._waiting)

    def groups_undecided(self) -> Iterator[str]:
        """The groups with offsets that are on their way to the log."""
        return (str(group, "utf-8") for group in self._undecided)

    def has_any(self, group_id: str) -> bool:
        """Whether the group has offsets, committed or waiting for the end of a transaction."""
        group = group_id.encode()
        return group in self._by_group or group in self._waiting

    def pending_of(self, group_id: str) -> frozenset[TopicPartition]:
        """The partitions with an offset that an open transaction may change."""
        return frozenset(map(partition_at, self.pending.of(group_id.encode())))

    def of(self, group_id: str) -> OffsetsOfGroup:
        return OffsetsOfGroup(self._by_group.get(group_id.encode(), {}))

    def commit(
        self,
        group_id: str,
        offsets: Iterable[NewOffset],
        errors: list[ErrorCode],
        retention_ms: int,
        wall_ms: int,
        out: Decision,
    ) -> None:
        """Write the offsets that have no error into `out`; `errors` has one or NONE for each, and gets more."""
        decided: list[tuple[bytes, bytes, bytes]] = []
        for number, new in enumerate(offsets):
            if errors[number] is not ErrorCode.NONE:
                continue
            if len(new.metadata) > self.settings.metadata_max_bytes:
                errors[number] = ErrorCode.OFFSET_METADATA_TOO_LARGE
                continue
            value = OffsetCommitValue(
                offset=new.offset,
                leader_epoch=new.leader_epoch,
                metadata=new.metadata,
                commit_timestamp=wall_ms,
                expire_timestamp=-1 if retention_ms < 0 else min(wall_ms + retention_ms, TIMESTAMP_MAX_MS),
                topic_id=new.topic_id,
            )
            record = offset_record(group_id, new.partition, value)
            split = split_key(record.key)
            assert split is not None and record.value is not None
            out.records.append(record)
            decided.append((*split, record.value))
        for group, place, written in decided:
            self._undecided.setdefault(group, {})[place] = written
        if decided:
            out.undo.append(lambda _error, _then: self._refused(decided))

    def _refused(self, decided: Iterable[tuple[bytes, bytes, bytes]]) -> None:
        for group, place, value in decided:
            self._settle(group, place, value)

    def _places(self, group_id: str) -> dict[bytes, None]:
        """The places of the group's offsets: committed, waiting for the end of a transaction, or on their way to the
        log."""
        group = group_id.encode()
        return dict.fromkeys((*self._by_group.get(group, ()), *self.pending.of(group), *self._undecided.get(group, ())))

    def _changing(self, group_id: str) -> frozenset[TopicPartition]:
        """The partitions with an offset of the group that is pending in a transaction, or on its way to the log."""
        group = group_id.encode()
        return frozenset(map(partition_at, (*self.pending.of(group), *self._undecided.get(group, ()))))

    def delete_all(self, group_id: str, out: Decision) -> None:
        """Delete the group's offsets, also those that wait for the end of a transaction."""
        out.records += self._tombstones(group_id, map(partition_at, self._places(group_id)))

    def delete_topics(self, group_id: str, topics: Mapping[bytes, uuid.UUID | None], out: Decision) -> None:
        """Delete the group's offsets in these topics, by UTF-8 name. The id is that of a topic that has this name
        again: then only where no offset is committed for that topic, and none is about to be."""
        group = group_id.encode()

        def is_gone(place: bytes) -> bool:
            name = topic_at(place)
            if name not in topics:
                return False
            anew = topics[name]
            return anew is None or all(_value(one).topic_id != anew for one in self._newest(group, place))

        gone = [partition_at(place) for place in self._places(group_id) if is_gone(place)]
        out.records += self._tombstones(group_id, gone)

    def _newest(self, group: bytes, place: bytes) -> list[bytes]:
        """The values that may be the offset later. The last commit on its way to the log replaces all others; without
        one, these are the committed value, and those that wait for the end of a transaction."""
        undecided = self._undecided.get(group, {}).get(place)
        if undecided is not None:
            return [undecided]
        committed = self._by_group.get(group, {}).get(place)
        values = (committed, *self.pending.values(group, place))
        return [value for value in values if value is not None]

    def delete(self, group: SubscribedGroup, partitions: Iterable[TopicPartition], out: Decision) -> list[ErrorCode]:
        """Delete the offsets of these partitions, except of topics that the group's members consume (KIP-496).

        One error or NONE for each partition.
        """
        known, changing = self.of(group.group_id), self._changing(group.group_id)
        errors = []
        for partition in partitions:
            if group.is_subscribed(partition.topic):
                errors.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
                continue
            errors.append(ErrorCode.NONE)
            if partition in known or partition in changing:
                out.records += self._tombstones(group.group_id, [partition])
        return errors

    def expire(self, group: SubscribedGroup, wall_ms: int, out: Decision) -> bool:
        """Delete the offsets past `offsets.retention.minutes` (KIP-211), except those that an open transaction may
        change, or for which a newer commit is on its way. Returns whether the group has no offsets left."""
        if not group.lets_offsets_expire:
            return False
        offsets, changing = self.of(group.group_id), self._changing(group.group_id)
        past = (partition_at(place) for place, stamps in offsets.stamps() if self._is_expired(group, stamps, wall_ms))
        expired = [tp for tp in past if not group.is_subscribed(tp.topic) and tp not in changing]
        out.records += self._tombstones(group.group_id, expired)
        return len(expired) == len(offsets) and not changing

    def _is_expired(self, group: SubscribedGroup, stamps: Stamps, wall_ms: int) -> bool:
        if stamps.expire_ms >= 0:
            return wall_ms >= stamps.expire_ms
        return wall_ms - group.retention_start_ms(stamps.commit_ms) >= self.settings.retention_ms

    @staticmethod
    def _tombstones(group_id: str, partitions: Iterable[TopicPartition]) -> list[InternalRecord]:
        return [offset_record(group_id, partition, None) for partition in partitions]
