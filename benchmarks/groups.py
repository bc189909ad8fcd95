"""What consumer groups cost at scale: loading committed offsets, a rebalance of a large classic group, and
static members that come back.

usage: python -m benchmarks.groups [--quick] [--only loading,rebalance]

Loading is what a broker does with a partition of the offsets topic when it becomes its leader, from the page cache to
the first answer; seconds of the processor count, as other work may run beside it, and the longest time that the loop
was held is the processor's too. Both kinds of topic are loaded in two sizes: cost is linear if each offset costs the
same. Targets are the project's own.
"""

import argparse
import asyncio
import contextlib
import logging
import os
import statistics
import struct
import sys
import tempfile
import time
import tracemalloc
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks import frames
from benchmarks.broker_load import Wire
from harness.brokers import Broker
from harness.logs import NOW_MS, append, open_log
from moldau.coordinators.coordinator_runtime import CoordinatorRuntime
from moldau.coordinators.groups.settings import GroupCoordinatorSettings
from moldau.coordinators.groups.shard import GroupShard
from moldau.coordinators.offsets.records import offset_record
from moldau.errors import ErrorCode
from moldau.log.log import Log
from moldau.names import OFFSETS_TOPIC, BrokerId, LeaderEpoch, TopicPartition
from moldau.protocol import codec, schema
from moldau.protocol.apis import CREATE_TOPICS, FIND_COORDINATOR, JOIN_GROUP, LEAVE_GROUP, OFFSET_FETCH, SYNC_GROUP, Api
from moldau.protocol.consumer import AssignedPartitions, ConsumerProtocolAssignment, ConsumerProtocolSubscription
from moldau.protocol.internal import OffsetCommitValue
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from moldau.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from moldau.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from moldau.records.batch import Row
from moldau.replication.internal_topic import InternalTopic
from moldau.replication.leadership import Leadership, PartitionRoles
from moldau.replication.replica import Replica

COMMITS = 1_000_000
BATCH_COMMITS = 100
PARTITIONS_PER_GROUP = 1000
READ_BYTES = 5 * 1024 * 1024
"""Kafka's default of `offsets.load.buffer.size`."""
COMMIT_TIMEOUT_MS = 5000

TOPIC, GROUP = "orders", "large"
TIMEOUT_MS = 60_000
DELAY_MS = 1000
JOIN_VERSION, SYNC_VERSION, FETCH_VERSION, LEAVE_VERSION = 9, 5, 8, 5


class Loaded(NamedTuple):
    """What loading took: by the clock, of the processor, and the longest that the loop was held."""

    seconds: float
    cpu_s: float
    held_ms: float


def write_commits(log: Log, commits: int, distinct: int) -> None:
    """So many commits over so many distinct offsets, in rounds."""
    topic_id = uuid.UUID(int=7)
    for first in range(0, commits, BATCH_COMMITS):
        rows = []
        for at in range(first, min(first + BATCH_COMMITS, commits)):
            key = at % distinct
            partition = TopicPartition("orders", key % PARTITIONS_PER_GROUP)
            value = OffsetCommitValue(
                offset=at, leader_epoch=3, metadata="", commit_timestamp=NOW_MS, topic_id=topic_id
            )
            record = offset_record(f"group-{key // PARTITIONS_PER_GROUP}", partition, value)
            rows.append(Row(record.key, record.value, NOW_MS))
        append(log, rows)


async def held_longest(stop: asyncio.Event) -> float:
    """Seconds of the processor that one turn of the loop took at most, until `stop` is set."""
    longest, before = 0.0, time.thread_time()
    while not stop.is_set():
        await asyncio.sleep(0)
        now = time.thread_time()
        longest, before = max(longest, now - before), now
    return longest


async def load(log: Log, watched: bool = False) -> tuple[Loaded, GroupShard]:
    """The loaded shard, and what loading took; how long the loop was held only if it is watched, which costs time."""
    tp, broker = TopicPartition(OFFSETS_TOPIC, 0), BrokerId(1)
    replica = Replica(tp, log.topic_id, log, log.config, Leadership(broker), log.log_start_offset, log.services.runtime)
    replica.take_roles(PartitionRoles(broker, LeaderEpoch(0), (broker,), (broker,)), 0)
    hosted: Any = SimpleNamespace(hosted={tp: replica}, exchange=None)
    topic = InternalTopic(OFFSETS_TOPIC, hosted, READ_BYTES, COMMIT_TIMEOUT_MS, log.services.runtime)
    host = CoordinatorRuntime(topic, lambda _: GroupShard(GroupCoordinatorSettings(), str), log.services.runtime.clock)
    stop = asyncio.Event()
    watch = asyncio.create_task(held_longest(stop)) if watched else None
    began, cpu = time.perf_counter(), time.process_time()
    host.lead(0, 0)
    await host.loaded(0)
    seconds, cpu_s = time.perf_counter() - began, time.process_time() - cpu
    stop.set()
    shard = host.machine(0)
    held_ms = await watch * 1000 if watch is not None else 0.0
    await host.stop()
    return Loaded(seconds, cpu_s, held_ms), shard


def loading(commits: int, distinct: int) -> Loaded:
    with tempfile.TemporaryDirectory(prefix="moldau-bench-") as folder:
        log = open_log(Path(folder) / "log")
        write_commits(log, commits, distinct)
        loaded, shard = asyncio.run(load(log))
        assert sum(len(shard.offsets.of(group)) for group in shard.offsets.groups()) == distinct
        del shard
        watched, _ = asyncio.run(load(log, watched=True))
        log.abandon()
    return loaded._replace(held_ms=watched.held_ms)


def bytes_each(distinct: int) -> float:
    """The memory that a kept offset needs."""
    with tempfile.TemporaryDirectory(prefix="moldau-bench-") as folder:
        log = open_log(Path(folder) / "log")
        write_commits(log, distinct, distinct)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        shard = asyncio.run(load(log))[1]
        kept = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        log.abandon()
        assert shard.offsets.groups()
    return kept / distinct


class Client:
    """One connection of a member that waits for each reply."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self._reader, self._writer = reader, writer

    async def ask(self, api: Api, version: int, request: Any) -> Any:
        self._writer.write(codec.write_request(api, version, 1, "member", request))
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        return codec.read_reply(api, version, await self._reader.readexactly(size))

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()


class Member:
    """A consumer of the classic protocol; the leader hands out `PARTITIONS` in turns."""

    def __init__(self, client: Client, partitions: int, instance_id: str | None = None):
        self._client = client
        self._partitions = partitions
        self._instance_id = instance_id
        self.member_id = ""
        self.generation = -1
        self.owned: list[int] = []
        self.leads = False

    async def join(self) -> bool:
        """One round of JoinGroup, SyncGroup and OffsetFetch; False if the group has moved on meanwhile."""
        subscription = b"\0\1" + schema.write(ConsumerProtocolSubscription(topics=[TOPIC]), 1, False)
        protocols = [JoinGroupRequestProtocol(name="range", metadata=subscription)]
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=TIMEOUT_MS,
            rebalance_timeout_ms=TIMEOUT_MS,
            member_id=self.member_id,
            group_instance_id=self._instance_id,
            protocol_type="consumer",
            protocols=protocols,
        )
        joined = await self._client.ask(JOIN_GROUP, JOIN_VERSION, request)
        self.member_id = joined.member_id
        if joined.error_code:
            assert joined.error_code == ErrorCode.MEMBER_ID_REQUIRED, joined
            return False
        self.generation, self.leads = joined.generation_id, joined.leader == joined.member_id
        sync = SyncGroupRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self._instance_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=self._shares([member.member_id for member in joined.members]),
        )
        synced = await self._client.ask(SYNC_GROUP, SYNC_VERSION, sync)
        if synced.error_code:
            assert synced.error_code == ErrorCode.REBALANCE_IN_PROGRESS, synced
            return False
        assignment, _ = schema.read(ConsumerProtocolAssignment, 1, False, synced.assignment, 2)
        self.owned = [p for topic in assignment.assigned_partitions for p in topic.partitions]
        asked = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=self.owned)
        groups = [OffsetFetchRequestGroup(group_id=GROUP, topics=[asked])]
        fetched = await self._client.ask(OFFSET_FETCH, FETCH_VERSION, OffsetFetchRequest(groups=groups))
        assert not fetched.groups[0].error_code, fetched
        return True

    def _shares(self, members: list[str]) -> list[SyncGroupRequestAssignment]:
        """What the leader hands out; nothing for others, who are told of no members."""
        shares = []
        for number, member_id in enumerate(members):
            part = AssignedPartitions(topic=TOPIC, partitions=list(range(number, self._partitions, len(members))))
            assignment = b"\0\1" + schema.write(ConsumerProtocolAssignment(assigned_partitions=[part]), 1, False)
            shares.append(SyncGroupRequestAssignment(member_id=member_id, assignment=assignment))
        return shares

    async def settle(self) -> None:
        while not await self.join():
            pass


class Rebalanced(NamedTuple):
    """Seconds from the first request to the last member's assignment, and of these the broker's processor."""

    what: str
    seconds: float
    broker_s: float


Scenario = Callable[[Broker, int, int, int], Coroutine[Any, Any, list[Rebalanced]]]


def broker_cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Scene:
    """A group of members that are not there yet, and what was measured of it."""

    def __init__(self, broker: Broker, members: list[Member], partitions: int):
        self.members = members
        self.found: list[Rebalanced] = []
        self._broker = broker
        self._partitions = partitions

    async def measure(self, what: str, *work: Awaitable[object]) -> None:
        began, cpu = time.perf_counter(), broker_cpu_s(self._broker.pid)
        await asyncio.gather(*work)
        cpu_s = broker_cpu_s(self._broker.pid) - cpu
        self.found.append(Rebalanced(what, time.perf_counter() - began, cpu_s))
        there = [member for member in self.members if member.owned]
        assert len({member.generation for member in there}) == 1
        assert sorted(p for member in there for p in member.owned) == list(range(self._partitions))

    async def end(self) -> list[Rebalanced]:
        for member in self.members:
            await member._client.close()
        return self.found


async def scene(broker: Broker, members: int, partitions: int, *, static: bool = False) -> Scene:
    host, _, port = broker.address.rpartition(":")
    group = []
    for number in range(members):
        client = Client(*await asyncio.open_connection(host, int(port)))
        group.append(Member(client, partitions, f"worker-{number}" if static else None))
    await group[0]._client.ask(FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=[GROUP]))
    return Scene(broker, group, partitions)


async def rebalances(broker: Broker, members: int, partitions: int, rounds: int) -> list[Rebalanced]:
    """A group forms, and then all members rejoin because one more has come, or one has gone."""
    group = await scene(broker, members + 1, partitions)
    *all_but_one, last = group.members
    await group.measure("all come", *(member.settle() for member in all_but_one))
    for _ in range(rounds):
        await group.measure("one more comes", *(member.settle() for member in group.members))
        gone = MemberIdentity(member_id=last.member_id)
        last.member_id, last.owned = "", []
        leaving = LeaveGroupRequest(group_id=GROUP, members=[gone])
        await group.members[0]._client.ask(LEAVE_GROUP, LEAVE_VERSION, leaving)
        await group.measure("one leaves", *(member.settle() for member in all_but_one))
    return await group.end()


async def returns(broker: Broker, members: int, partitions: int, rounds: int) -> list[Rebalanced]:
    """A group of static members forms, and then all of them are started anew and come back: no rebalance."""
    group = await scene(broker, members, partitions, static=True)
    await group.measure("all static come", *(member.settle() for member in group.members))
    for _ in range(rounds):
        for member in group.members:
            member.member_id, member.owned = "", []
        await group.measure("all static come back", *(member.settle() for member in group.members))
    assert {member.generation for member in group.members} == {1}
    return await group.end()


def rebalancing(members: int, partitions: int, rounds: int, scenario: Scenario) -> list[Rebalanced]:
    """The median of each kind of rebalance, in a broker of its own."""
    with tempfile.TemporaryDirectory(prefix="moldau-bench-") as folder:
        broker = Broker(Path(folder), {"group.initial.rebalance.delay.ms": str(DELAY_MS)})
        broker.start()
        try:
            with Wire(int(broker.address.rpartition(":")[2])) as wire:
                made = wire.ask(CREATE_TOPICS, frames.CREATE_VERSION, frames.create(TOPIC, partitions))
                assert not made.topics[0].error_code, made
            found = asyncio.run(scenario(broker, members, partitions, rounds))
        finally:
            broker.stop()
    kinds: dict[str, list[Rebalanced]] = {}
    for each in found:
        kinds.setdefault(each.what, []).append(each)
    return [
        Rebalanced(what, statistics.median(r.seconds for r in some), statistics.median(r.broker_s for r in some))
        for what, some in kinds.items()
    ]


def loading_table(commits: int) -> Table:
    title = f"Loading committed offsets, of which each needs {bytes_each(commits // 4):,.0f} bytes"
    table = Table("commits", "of offsets", "seconds", "processor", "each", "loop held", title=title)
    for count, distinct in ((commits // 4, commits // 4), (commits, commits), (commits, commits // 1000)):
        loaded = loading(count, distinct)
        each_us = loaded.cpu_s / count * 1e6
        times = (f"{loaded.seconds:.2f} s", f"{loaded.cpu_s:.2f} s", f"{each_us:.2f} us", f"{loaded.held_ms:.1f} ms")
        table.add_row(f"{count:,}", f"{distinct:,}", *times)
    return table


def rebalance_table(sizes: Sequence[tuple[int, int]], rounds: int) -> Table:
    title = f"Rebalance of a classic group, formed after a delay of {DELAY_MS} ms"
    table = Table("members", "partitions", "because", "seconds", "broker's processor", title=title)
    for scenario in (rebalances, returns):
        for members, partitions in sizes:
            for what, seconds, broker_s in rebalancing(members, partitions, rounds, scenario):
                table.add_row(f"{members}", f"{partitions:,}", what, f"{seconds:.2f} s", f"{broker_s:.2f} s")
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.groups", description="What consumer groups cost.")
    parser.add_argument("--quick", action="store_true", help="small numbers: to see that it runs")
    parser.add_argument("--only", default="loading,rebalance")
    asked = parser.parse_args(arguments)
    logging.getLogger("moldau").setLevel(logging.WARNING)
    console = Console()
    if "loading" in asked.only:
        console.print(loading_table(COMMITS // 50 if asked.quick else COMMITS))
    if "rebalance" in asked.only:
        sizes = ((20, 40),) if asked.quick else ((125, 250), (250, 500), (500, 1000))
        console.print(rebalance_table(sizes, 1 if asked.quick else 5))
    return 0


if __name__ == "__main__":
    sys.exit(main())
