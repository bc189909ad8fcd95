"""One partition of the offsets topic on a stage: the real shard, a log that commits when told to, and time that moves
when told to.

Scripts play on it line by line (see `transcripts/`), each line with the trace that it leaves: what was appended, and
who was answered what. The property tests use the same stage. Nothing here waits, and nothing is random.
"""

import uuid
from collections.abc import Iterator
from typing import Any

from moldau.cluster.state.image import Image
from moldau.coordinators.classic.messages import Join, Joined, Leaver, Left, Sync, Synced
from moldau.coordinators.classic.records import ClassicGroupRecord
from moldau.coordinators.consumer.messages import ConsumerHeartbeatReply
from moldau.coordinators.consumer.records import ConsumerGroupRecord
from moldau.coordinators.decision import InternalRecord, Replies, Ticket, TransactionEnd
from moldau.coordinators.groups.records import read_record
from moldau.coordinators.groups.settings import GroupCoordinatorSettings
from moldau.coordinators.groups.shard import GroupShard
from moldau.coordinators.offsets.messages import NewOffset, OffsetsToCommit, TransactionalOffsetCommit
from moldau.coordinators.replaying import ReplayStep
from moldau.errors import ErrorCode
from moldau.names import TopicPartition
from moldau.protocol import schema
from moldau.protocol.consumer import (
    AssignedPartitions,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    OwnedPartitions,
    read_assignment,
)
from tests.coordinators.consumer import scene as consumer_scene
from tests.coordinators.held_log import HeldLog
from tests.coordinators.settings import group_settings

TOPIC_ID = uuid.UUID(int=7)


def subscription(*topics: str, owns: str = "") -> bytes:
    """What a member asks for; `owns` is what it has and wants to keep, as in `t-0+t-1`."""
    owned: dict[str, list[int]] = {}
    for name in filter(None, owns.split("+")):
        owned.setdefault(partition(name).topic, []).append(partition(name).partition)
    parts = [OwnedPartitions(topic=topic, partitions=partitions) for topic, partitions in owned.items()]
    asked = ConsumerProtocolSubscription(topics=list(topics), owned_partitions=parts)
    return b"\0\1" + bytes(schema.write(asked, 1, False))


def assignment(text: str) -> bytes:
    """What a leader gives, in the classic protocol's words: `+t-0+t-1` is spelled out, other text is as it is."""
    if not text.startswith("+"):
        return text.encode()
    topics: dict[str, list[int]] = {}
    for name in text.removeprefix("+").split("+"):
        topics.setdefault(partition(name).topic, []).append(partition(name).partition)
    assigned = [AssignedPartitions(topic=topic, partitions=partitions) for topic, partitions in topics.items()]
    return b"\0\0" + bytes(schema.write(ConsumerProtocolAssignment(assigned_partitions=assigned), 0, False))


def assigned(data: bytes) -> str:
    """What a member is given, in words."""
    if not data.startswith(b"\0"):
        return data.decode()
    topics = read_assignment(data).assigned_partitions
    return "".join(f"+{one.topic}-{p}" for one in topics for p in one.partitions) or "none"


class Stage(HeldLog[GroupShard]):
    """For groups and their offsets."""

    def __init__(self, settings: GroupCoordinatorSettings):
        self.settings = settings
        self._ids = 0
        self.image = Image("")
        super().__init__()

    def _new_id(self) -> str:
        self._ids += 1
        return str(self._ids)

    def _loaded(self) -> GroupShard:
        shard = GroupShard(self.settings, self._new_id, lambda: self.image, consumer_scene.matching)
        for written in self.log:
            assert self._applied(shard, written) == []
        self.shard = shard
        self.start(shard)
        return shard

    def _said(self, written: InternalRecord | ReplayStep) -> str:
        return said(written)

    def _applied(self, shard: GroupShard, written: InternalRecord | ReplayStep) -> Replies:
        if isinstance(written, InternalRecord):
            return shard.apply(written, self.now)
        if written.commits is not None:
            return shard.end(written.producer_id, written.commits, self.now)
        return shard.apply_pending(written.producer_id, written.records[0], self.now)

    def refuse_first(self, error: ErrorCode) -> None:
        """The log takes what was decided after the first, but for what builds on it."""
        first, *rest = self.held
        self.held = [first]
        self.refuse_held(error)
        self.held = [outcome for outcome in rest if outcome.chain is None or not outcome.chain.broken]
        broken = [outcome for outcome in rest if outcome not in self.held]
        self.commit_held()
        self.held = broken
        self.refuse_held(error)


def said(record: InternalRecord | ReplayStep) -> str:
    """A record in words."""
    if isinstance(record, ReplayStep):
        producer = f"producer {record.producer_id}"
        if record.commits is not None:
            return f"{producer} {'commits' if record.commits else 'aborts'}"
        return f"{producer}: {said(record.records[0])}"
    known = read_record(record)
    assert known is not None
    if isinstance(known, ConsumerGroupRecord):
        return consumer_scene.said(known)
    if isinstance(known, ClassicGroupRecord):
        if known.value is None:
            return f"group {known.group} deleted"
        members = " ".join(f"{m.member_id}={assigned(m.assignment) or '-'}" for m in known.value.members) or "nobody"
        protocol = known.value.protocol or "no protocol"
        return f"group {known.group} generation {known.value.generation} {protocol}: {members}"
    if known.value is None:
        return f"offset {known.group} {known.partition} deleted"
    return f"offset {known.group} {known.partition} = {known.value.offset}"


class Actor:
    """Plays the lines of a script: a verb, whose answer it is, and `name=value` pairs."""

    def __init__(self, stage: Stage):
        self.stage = stage
        self.names: dict[Ticket, str] = {}

    def play(self, line: str) -> list[str]:
        """The trace of one line."""
        verb, *words = line.split()
        pairs = dict(word.partition("=")[::2] for word in words if "=" in word)
        plain = [word for word in words if "=" not in word]
        self.stage.trace = []
        getattr(self, f"_{verb}")(plain, pairs)
        answered = [(ticket, self.stage.answers.pop(ticket)) for ticket in list(self.stage.answers)]
        return self.stage.trace + [f"{self.names.pop(ticket)}: {told(what)}" for ticket, what in answered]

    def _ticket(self, name: str) -> Ticket:
        ticket = self.stage.ticket()
        self.names[ticket] = name
        return ticket

    def _join(self, plain: list[str], pairs: dict[str, str]) -> None:
        version = int(pairs.get("v", "4"))
        offers = [word.partition(":")[::2] for word in pairs.get("protocols", "range:t").split(",") if word]
        ask = Join(
            group_id=pairs.get("group", "g"),
            member_id=pairs.get("id", ""),
            instance_id=pairs.get("instance"),
            client_id="c",
            client_host="/h",
            session_timeout_ms=milliseconds(pairs.get("session", "10s")),
            rebalance_timeout_ms=milliseconds(pairs.get("rebalance", "30s")),
            protocol_type=pairs.get("type", "consumer"),
            protocols=tuple(
                (name, subscription(*topics.split("+"), owns=pairs.get("owns", ""))) for name, topics in offers
            ),
            can_wait_for_id=version >= 4,
            can_skip=version >= 9,
        )
        self.stage.carry_out(self.stage.shard.join(ask, self._ticket(plain[0]), self.stage.now))

    def _sync(self, plain: list[str], pairs: dict[str, str]) -> None:
        own = {"group", "gen", "id", "instance", "type", "protocol"}
        ask = Sync(
            group_id=pairs.get("group", "g"),
            generation=int(pairs["gen"]),
            member_id=pairs["id"],
            instance_id=pairs.get("instance"),
            protocol_type=pairs.get("type"),
            protocol=pairs.get("protocol"),
            assignments={name: assignment(value) for name, value in pairs.items() if name not in own},
        )
        self.stage.carry_out(self.stage.shard.sync(ask, self._ticket(plain[0]), self.stage.now))

    def _heartbeat(self, plain: list[str], pairs: dict[str, str]) -> None:
        shard, now = self.stage.shard, self.stage.now
        error = shard.heartbeat(pairs.get("group", "g"), int(pairs["gen"]), pairs["id"], pairs.get("instance"), now)
        self.stage.answers[self._ticket(plain[0])] = error

    def _leave(self, plain: list[str], pairs: dict[str, str]) -> None:
        leavers = [Leaver(member, None) for member in plain[1:]]
        if "instance" in pairs:
            leavers.append(Leaver(pairs.get("id", ""), pairs["instance"]))
        ticket = self._ticket(plain[0])
        self.stage.carry_out(self.stage.shard.leave(pairs.get("group", "g"), leavers, ticket, self.stage.now))

    def _topic(self, plain: list[str], pairs: dict[str, str]) -> None:
        self.stage.image = consumer_scene.with_topic(self.stage.image, plain[0], int(plain[1]))

    def _beat(self, plain: list[str], pairs: dict[str, str]) -> None:
        ask = consumer_scene.beat_of(plain[0], pairs)
        self.stage.carry_out(self.stage.shard.beat(ask, self._ticket(plain[0]), self.stage.now))

    @staticmethod
    def _offsets(pairs: dict[str, str]) -> list[NewOffset]:
        own = {"group", "gen", "id", "instance", "retention", "metadata", "producer"}
        return [
            NewOffset(
                partition(name),
                int(value),
                -1,
                "x" * int(pairs.get("metadata", "0")),
                consumer_scene.topic_id(partition(name).topic),
            )
            for name, value in pairs.items()
            if name not in own
        ]

    def _commit_in_transaction(self, plain: list[str], pairs: dict[str, str]) -> None:
        ask = TransactionalOffsetCommit(
            group_id=pairs.get("group", "g"),
            producer_id=int(pairs.get("producer", "1")),
            epoch=0,
            member_id=pairs.get("id", ""),
            instance_id=pairs.get("instance"),
            generation=int(pairs.get("gen", "-1")),
            offsets=self._offsets(pairs),
        )
        ticket, now = self._ticket(plain[0]), self.stage.now
        self.stage.carry_out(self.stage.shard.commit_in_transaction(ask, None, ticket, now))

    def _end_transaction(self, plain: list[str], pairs: dict[str, str]) -> None:
        ending = TransactionEnd(int(pairs.get("producer", "1")), 0, 0, plain[1] == "commits", 2)
        self.stage.carry_out(self.stage.shard.end_transaction(ending, self._ticket(plain[0]), self.stage.now))

    def _commit(self, plain: list[str], pairs: dict[str, str]) -> None:
        ask = OffsetsToCommit(
            group_id=pairs.get("group", "g"),
            member_id=pairs.get("id", ""),
            instance_id=pairs.get("instance"),
            generation=int(pairs.get("gen", "-1")),
            retention_ms=milliseconds(pairs["retention"]) if "retention" in pairs else -1,
            offsets=self._offsets(pairs),
        )
        self.stage.carry_out(self.stage.shard.commit(ask, self._ticket(plain[0]), self.stage.now))

    def _delete(self, plain: list[str], pairs: dict[str, str]) -> None:
        self.stage.carry_out(self.stage.shard.delete_groups(plain[1:], self._ticket(plain[0]), self.stage.now))

    def _delete_offsets(self, plain: list[str], pairs: dict[str, str]) -> None:
        asked, ticket = [partition(name) for name in plain[1:]], self._ticket(plain[0])
        group_id = pairs.get("group", "g")
        self.stage.carry_out(self.stage.shard.delete_offsets(group_id, asked, ticket, self.stage.now))

    def _forget_topic(self, plain: list[str], pairs: dict[str, str]) -> None:
        for out in self.stage.shard.forget_topics(frozenset(plain), self.stage.now):
            self.stage.carry_out(out)

    def _wait(self, plain: list[str], pairs: dict[str, str]) -> None:
        self.stage.wait(milliseconds(plain[0]))

    def _hold(self, plain: list[str], pairs: dict[str, str]) -> None:
        self.stage.holding = True

    def _release(self, plain: list[str], pairs: dict[str, str]) -> None:
        self.stage.holding = False
        self.stage.commit_held()

    def _refuse(self, plain: list[str], pairs: dict[str, str]) -> None:
        self.stage.refuse_held(ErrorCode[plain[0]])

    def _refuse_first(self, plain: list[str], pairs: dict[str, str]) -> None:
        self.stage.refuse_first(ErrorCode[plain[0]])

    def _crash(self, plain: list[str], pairs: dict[str, str]) -> None:
        self.stage.crash()

    def _show(self, plain: list[str], pairs: dict[str, str]) -> None:
        shard = self.stage.shard
        for newer in shard.consumer.live.values():
            self.stage.trace.append(f"{newer.group_id}: {newer.state.value}, epoch {newer.epoch}")
            for member in newer.members.values():
                has = consumer_scene.shown({t: list(p) for t, p in member.assigned.items()})
                self.stage.trace.append(f"  {member.member_id} at epoch {member.epoch} has {has}")
        for group in shard.classic.live.values():
            members = " ".join(
                m.member_id + ("*" if m.member_id == group.leader else "") for m in group.members.values()
            )
            self.stage.trace.append(
                f"{group.group_id}: {group.state.value}, generation {group.generation}: {members or 'nobody'}"
            )
            for tp, value in shard.offsets.of(group.group_id).items():
                self.stage.trace.append(f"  {tp} = {value.offset}")
            for tp in sorted(shard.offsets.pending_of(group.group_id)):
                self.stage.trace.append(f"  {tp} waits")


def partition(name: str) -> TopicPartition:
    topic, _, number = name.rpartition("-")
    return TopicPartition(topic, int(number))


def milliseconds(text: str) -> int:
    for unit, factor in (("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)):
        if text.endswith(unit):
            return int(text.removesuffix(unit)) * factor
    raise AssertionError(f"{text} has no unit")


def told(what: Any) -> str:
    """An answer in words."""
    match what:
        case Joined(error=ErrorCode.NONE):
            members = " ".join(m.member_id for m in what.members)
            skip = ", assignment kept" if what.skip_assignment else ""
            knows = f", knows {members}" if members else ""
            roles = f"{what.protocol}, {what.leader} leads{knows}{skip}"
            return f"joined as {what.member_id}, generation {what.generation}, {roles}"
        case Joined():
            return f"{what.error.name} {what.member_id}".rstrip()
        case Synced(error=ErrorCode.NONE):
            return f"assigned {assigned(what.assignment) or 'nothing'}"
        case Synced():
            return what.error.name
        case ConsumerHeartbeatReply():
            return consumer_scene.told(what)
        case Left(error=ErrorCode.NONE):
            return " ".join(error.name for error in what.members) or "nobody"
        case Left():
            return what.error.name
        case (whole, list(each)):
            return " ".join(error.name for error in (whole, *each))
        case list():
            return " ".join(error.name for error in what)
        case _:
            return str(what.name)


def blocks(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """The script's blocks: its lines (with comments), and the trace that is written beneath them."""
    for block in text.strip("\n").split("\n\n"):
        lines = block.split("\n")
        cut = lines.index("----") if "----" in lines else len(lines)
        yield lines[:cut], lines[cut + 1 :]


def played(text: str) -> str:
    """The script with the trace that it leaves now. The first block gives the settings, one `name = value` a line."""
    (first, _), *rest = blocks(text)
    lines = [line.partition("=") for line in first if "=" in line and not line.startswith("#")]
    settings = {name.strip(): int(value) for name, _, value in lines}
    newer = {name.removeprefix("consumer."): settings.pop(name) for name in list(settings) if "consumer." in name}
    consumer = consumer_scene.consumer_settings(newer)
    actor = Actor(Stage(group_settings(consumer, **settings)))
    parts = ["\n".join(first)]
    for script, _ in rest:
        trace = [row for line in script if not line.startswith("#") for row in actor.play(line)]
        parts.append("\n".join([*script, "----", *trace]))
    return "\n\n".join(parts) + "\n"
