"""The offsets topic as it lies in the log, read by a checker for itself, beside what the coordinator made of it.

What is committed stays: after a crash the log begins with the records that it had, and the coordinator that has
loaded it, or goes on with it, knows those offsets and groups and no others. The records also tell when a group was
deleted or changed its protocol, from which its generations may count anew (`era`).
"""

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from moldau.broker import Broker
from moldau.coordinators.classic.records import ClassicGroupRecord
from moldau.coordinators.consumer.group import ConsumerMember, TargetAssignment
from moldau.coordinators.consumer.records import ConsumerGroupRecord, ConsumerRecordType
from moldau.coordinators.decision import InternalRecord
from moldau.coordinators.groups.records import read_record
from moldau.coordinators.groups.shard import GroupShard
from moldau.errors import KafkaError
from moldau.names import OFFSETS_TOPIC, TopicPartition
from moldau.records.batch import batches
from tests.coordinators.replayed import Replaying
from tests.worlds.workload import Broken

READ_BYTES = 1 << 20
STORED = ("epoch", "metadata_hash", "members", "statics", "targets", "target_epoch", "target_stamp_ms", "expressions")
"""What the log says of a consumer group."""
Newer = dict[tuple[ConsumerRecordType, str], Any]


class ReplayedPartition:
    """One partition of the topic, as far as it was read."""

    def __init__(self) -> None:
        self.offset = 0
        self.records: list[InternalRecord] = []
        self.offsets: dict[str, dict[TopicPartition, Any]] = {}
        self.classic: dict[str, Any] = {}
        self.newer: dict[str, Newer] = {}
        self._replaying = Replaying()

    def read(self, log: Any, until: int, gone: Callable[[str], None]) -> None:
        while self.offset < until:
            chunk = memoryview(log.read_batches(self.offset, READ_BYTES))
            whole = [(at, header) for at, header in batches(chunk) if header.next_offset <= until]
            if not whole:
                return
            at, last = whole[-1]
            for record in self._replaying.records(chunk[: at + last.size]):
                self.records.append(record)
                self._apply(record, gone)
            self.offset = last.next_offset

    def _apply(self, record: InternalRecord, gone: Callable[[str], None]) -> None:
        known = read_record(record)
        if known is None:
            return
        if isinstance(known, ClassicGroupRecord):
            if known.value is None:
                self.classic.pop(known.group, None)
                gone(known.group)
            else:
                self.classic[known.group] = known.value
        elif isinstance(known, ConsumerGroupRecord):
            self._apply_newer(known, gone)
        elif known.value is None:
            self.offsets.get(known.group, {}).pop(known.partition, None)
        else:
            self.offsets.setdefault(known.group, {})[known.partition] = known.value

    def _apply_newer(self, known: ConsumerGroupRecord, gone: Callable[[str], None]) -> None:
        if known.kind is ConsumerRecordType.EPOCH and known.value is None:
            self.newer.pop(known.group, None)
            gone(known.group)
        elif known.value is not None:
            self.newer.setdefault(known.group, {})[known.kind, known.name] = known.value
        elif known.group in self.newer:
            self.newer[known.group].pop((known.kind, known.name), None)


class CommittedLog:
    """All partitions of the topic. `eras` counts for each group how often it went."""

    def __init__(self) -> None:
        self.eras: Counter[str] = Counter()
        self._partitions: dict[int, ReplayedPartition] = {}

    def era(self, broker: Broker | None, group: str) -> int:
        """How often the group has gone, as far as is known without a broker."""
        if broker is not None:
            self.follow(broker)
        return self.eras[group]

    def follow(self, broker: Broker) -> None:
        """Read what has been committed since the last time."""
        for number, (log, until) in _logs(broker).items():
            replayed = self._partitions.setdefault(number, ReplayedPartition())
            if replayed.offset < until:
                replayed.read(log, until, self._gone)

    def _gone(self, group: str) -> None:
        self.eras[group] += 1

    def members(self, broker: Broker, group: str) -> set[str]:
        """The ids of who is in the group, of either kind."""
        self.follow(broker)
        known: set[str] = set()
        for log in self._partitions.values():
            known.update(name for kind, name in log.newer.get(group, {}) if kind is ConsumerRecordType.MEMBER)
            if group in log.classic:
                known.update(member.member_id for member in log.classic[group].members)
        return known

    def classic(self, broker: Broker) -> set[str]:
        """The groups of the classic protocol."""
        self.follow(broker)
        return {group for log in self._partitions.values() for group in log.classic}

    @staticmethod
    def is_behind(broker: Broker, number: int) -> bool:
        """Whether something is written to that partition and not committed yet."""
        log, until = _logs(broker).get(number, (None, 0))
        return log is not None and log.log_end_offset > until

    def check_kept(self, broker: Broker) -> None:
        """Another life of the broker: what was committed in those before is there, and nothing instead of it."""
        for number, (log, until) in _logs(broker).items():
            before = self._partitions.get(number, ReplayedPartition())
            again = ReplayedPartition()
            again.read(log, until, lambda _: None)
            if again.records[: len(before.records)] != before.records:
                raise Broken(f"partition {number} of {OFFSETS_TOPIC} lost or changed what was committed there")
        self.follow(broker)

    def check_coordinator(self, broker: Broker) -> bool:
        """What the coordinator has is what the log says; False where it has still to load it."""
        self.follow(broker)
        complete = True
        for number in _logs(broker):
            try:
                shard = broker.coordinators.groups.shard(number)
            except KafkaError:
                complete = False
                continue
            self._check_shard(shard, self._partitions.setdefault(number, ReplayedPartition()))
        return complete

    def check_settled(self, broker: Broker) -> None:
        """Nothing is under way: consumer groups live by what is stored of them."""
        for number in _logs(broker):
            consumers = broker.coordinators.groups.shard(number).consumer
            for group_id, group in consumers.stored.items():
                live = consumers.live[group_id]
                if any(getattr(live, name) != getattr(group, name) for name in STORED):
                    raise Broken(f"{group_id} lives as {live}, and is stored as {group}")

    @staticmethod
    def _check_shard(shard: GroupShard, log: ReplayedPartition) -> None:
        offsets = {group: committed for group, committed in log.offsets.items() if committed}
        ours = {group: dict(shard.offsets.of(group).items()) for group in shard.offsets.groups()}
        if ours != offsets:
            raise Broken(f"the coordinator has the offsets {ours}, the log {offsets}")
        if shard.classic.stored != log.classic:
            raise Broken(f"the coordinator has the groups {shard.classic.stored}, the log {log.classic}")
        if shard.consumer.stored.keys() != log.newer.keys():
            raise Broken(f"the coordinator has the groups {[*shard.consumer.stored]}, the log {[*log.newer]}")
        for group_id, records in log.newer.items():
            group = shard.consumer.stored[group_id]
            members = {name for kind, name in records if kind is ConsumerRecordType.MEMBER}
            epoch = records[ConsumerRecordType.EPOCH, ""].epoch
            if (group.epoch, set(group.members)) != (epoch, members):
                raise Broken(f"{group_id} is at epoch {group.epoch} with {[*group.members]}, in the log at {epoch}")
            target = records.get((ConsumerRecordType.TARGET_EPOCH, ""))
            if group.target_epoch != (0 if target is None else target.assignment_epoch):
                raise Broken(f"the target of {group_id} is of {group.target_epoch}, in the log {target}")
            for name, member in group.members.items():
                _check_member(group_id, member, records, group.targets.get(name, {}))


def _check_member(group_id: str, member: ConsumerMember, records: Newer, target: TargetAssignment) -> None:
    """It has, and is to have and to give back, what the log says."""
    current = records.get((ConsumerRecordType.CURRENT, member.member_id))
    if current is not None:
        ours = member.epoch, _places(member.assigned), _places(member.revoking)
        given, back = current.assigned_partitions, current.partitions_pending_revocation
        logged = current.member_epoch, _logged(given), _logged(back)
        if ours != logged:
            raise Broken(f"{member.member_id} of {group_id} is at {ours}, in the log at {logged}")
    wanted = records.get((ConsumerRecordType.TARGET, member.member_id))
    if _places(target) != (set() if wanted is None else _logged(wanted.topic_partitions)):
        raise Broken(f"{member.member_id} of {group_id} is to have {target}, in the log {wanted}")


def _places(owned: Mapping[uuid.UUID, Iterable[int]]) -> set[tuple[uuid.UUID, int]]:
    return {(topic, number) for topic, numbers in owned.items() for number in numbers}


def _logged(owned: Iterable[Any]) -> set[tuple[uuid.UUID, int]]:
    return {(one.topic_id, number) for one in owned for number in one.partitions}


def _logs(broker: Broker) -> dict[int, tuple[Any, int]]:
    """The log of each partition that the broker has, and up to where it is committed."""
    found = {}
    topic = broker.cluster.image.topics.get(OFFSETS_TOPIC)
    for number in range(len(topic.partitions) if topic is not None else 0):
        replica = broker.replicas.find(OFFSETS_TOPIC, None, number)
        if replica is not None:
            found[number] = replica.log, int(replica.high_watermark)
    return found
