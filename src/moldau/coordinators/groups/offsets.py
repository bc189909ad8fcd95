"""Committed offsets by group: what is written, what is answered, and what is forgotten. Pure; knows no member and no
generation.

The offsets change only in `apply`: after a restart they are whatever replaying the log gives. Whoever commits sees an
offset once it is in the log, and of two commits the later record wins, whatever the clocks said. What was committed in
a transaction waits in `pending` for its end. There may be millions of offsets: they are kept as the bytes of their
records, and made into objects when somebody asks.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from moldau.coordinators.classic.group import Group, State
from moldau.coordinators.consumer.group import ConsumerGroup
from moldau.coordinators.groups.exchange import GroupSettings, NewOffset
from moldau.coordinators.groups.offset_records import (
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
from moldau.coordinators.groups.pending_offsets import PendingOffsets
from moldau.coordinators.outcome import Outcome, Record
from moldau.errors import ErrorCode
from moldau.names import TopicPartition
from moldau.protocol.internal import OffsetCommitValue


class Applied(NamedTuple):
    """What a record changed: the group that it is about, as it stands in the key, and whether that has the offset."""

    group: bytes
    is_there: bool


class OffsetsOfGroup(Mapping[TopicPartition, OffsetCommitValue]):
    """What a group has committed, by partition in the order of first commits."""

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
        """As they are now, whatever is committed later."""
        return OffsetsOfGroup(dict(self._by_place))

    def pairs(self) -> Iterator[tuple[TopicPartition, OffsetCommitValue]]:
        """As `items`, each made when its turn comes."""
        return ((partition_at(place), _value(value)) for place, value in self._by_place.items())

    def stamps(self) -> Iterator[tuple[bytes, Stamps]]:
        """The place of each offset and when it was committed, without reading the rest of it."""
        return ((place, stamps(value)) for place, value in self._by_place.items())


def _value(data: bytes) -> OffsetCommitValue:
    value = read_value(data)
    assert value is not None, "only what can be read is kept"
    return value


class Offsets:
    """The offsets of all groups of one partition of the offsets topic."""

    def __init__(self, settings: GroupSettings):
        self.settings = settings
        self._by_group: dict[bytes, dict[bytes, bytes]] = {}
        self.pending = PendingOffsets()
        self._waiting = self.pending.by_group  # false but for where transactions are open

    def apply(self, record: Record) -> Applied | None:
        """A record whose key is an offset's; None if it is of a version we do not know, which is passed over.

        Raises `ProtocolViolation`, and nothing has changed.
        """
        key, value = record
        group, place = split_key(key)
        offsets = self._by_group.get(group)
        if value is None:
            if offsets is not None and offsets.pop(place, None) is not None and not offsets:
                del self._by_group[group]
            if self._waiting:
                self.pending.delete(group, place)
            return Applied(group, False)
        if not is_value(value):
            return None
        if offsets is None:
            offsets = self._by_group[group] = {}
        offsets[place] = value
        if self._waiting:
            self.pending.overtake(group, place)
        return Applied(group, True)

    def apply_pending(self, producer_id: int, record: Record) -> Applied | None:
        """A record as `apply` takes it, written in a producer's transaction. A deletion waits for nothing, as in Kafka,
        which writes none in transactions."""
        key, value = record
        if value is None:
            return self.apply(record)
        group, place = split_key(key)
        if not is_value(value):
            return None
        self.pending.add(producer_id, group, place, value)
        return Applied(group, True)

    def end(self, producer_id: int, commits: bool) -> None:
        """The producer's transaction has ended: what waited for it counts from now on, or never."""
        for group, place, value in self.pending.end(producer_id, commits):
            self._by_group.setdefault(group, {})[place] = value

    def groups(self) -> Iterator[str]:
        """Those that have committed offsets."""
        return (str(group, "utf-8") for group in self._by_group)

    def groups_in_transactions(self) -> Iterator[str]:
        """Those that offsets wait for."""
        return (str(group, "utf-8") for group in self._waiting)

    def has_any(self, group_id: str) -> bool:
        """Whether the group has offsets, or some wait for it."""
        group = group_id.encode()
        return group in self._by_group or group in self._waiting

    def pending_of(self, group_id: str) -> frozenset[TopicPartition]:
        """The partitions whose offset depends on a transaction that is open."""
        return frozenset(map(partition_at, self.pending.of(group_id.encode())))

    def of(self, group_id: str) -> OffsetsOfGroup:
        return OffsetsOfGroup(self._by_group.get(group_id.encode(), {}))

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

    def _places(self, group_id: str) -> dict[bytes, None]:
        """Of all offsets of a group, and of those that wait for it."""
        group = group_id.encode()
        return dict.fromkeys((*self._by_group.get(group, ()), *self.pending.of(group)))

    def delete_all(self, group_id: str, out: Outcome) -> None:
        out.records += self._tombstones(group_id, map(partition_at, self._places(group_id)))

    def delete_topics(self, group_id: str, topics: frozenset[str], out: Outcome) -> None:
        names = frozenset(map(str.encode, topics))
        gone = [partition_at(place) for place in self._places(group_id) if topic_at(place) in names]
        out.records += self._tombstones(group_id, gone)

    def delete(
        self, group: Group | ConsumerGroup, partitions: Iterable[TopicPartition], out: Outcome
    ) -> list[ErrorCode]:
        """Forget these offsets, but for topics that the group's members are reading (KIP-496)."""
        known, pending = self.of(group.group_id), self.pending_of(group.group_id)
        errors = []
        for partition in partitions:
            if group.is_subscribed(partition.topic):
                errors.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
                continue
            errors.append(ErrorCode.NONE)
            if partition in known or partition in pending:
                out.records += self._tombstones(group.group_id, [partition])
        return errors

    def expire(self, group: Group | ConsumerGroup, stamp_ms: int, out: Outcome) -> bool:
        """Forget what is past `offsets.retention.minutes` (KIP-211), but for what a transaction is about to change;
        whether none is left."""
        since = self._retained_since(group)
        if since is None:
            return False
        offsets, pending = self.of(group.group_id), self.pending_of(group.group_id)
        past = (partition_at(place) for place, when in offsets.stamps() if self._is_old(when, since(when), stamp_ms))
        old = [tp for tp in past if not group.is_subscribed(tp.topic) and tp not in pending]
        out.records += self._tombstones(group.group_id, old)
        return len(old) == len(offsets) and not pending

    def _is_old(self, when: Stamps, since_ms: int, stamp_ms: int) -> bool:
        if when.expire_ms >= 0:
            return stamp_ms >= when.expire_ms
        return stamp_ms - since_ms >= self.settings.offsets_retention_ms

    @staticmethod
    def _retained_since(group: Group | ConsumerGroup) -> Callable[[Stamps], int] | None:
        """From when on the retention of an offset counts; None while its group is busy with it."""
        if isinstance(group, ConsumerGroup):
            return lambda when: when.commit_ms
        if group.protocol_type is None:  # nobody ever joined: its commits are all there is
            return lambda when: when.commit_ms
        if group.state is State.EMPTY:
            return lambda when: group.since_ms if group.since_ms >= 0 else when.commit_ms
        if group.is_consumer and group.state is State.STABLE and group.topics is not None:
            return lambda when: when.commit_ms
        return None

    @staticmethod
    def _tombstones(group_id: str, partitions: Iterable[TopicPartition]) -> list[Record]:
        return [offset_record(group_id, partition, None) for partition in partitions]
