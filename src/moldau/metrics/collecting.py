"""Reads a broker's numbers on its loop, in turns, into a `Snapshot`.

A turn reads at most `READ_IN_TURN` partitions or offsets, about a millisecond. Numbers of different partitions are
therefore not of the same moment, as they are not in Kafka. Nothing here is kept between two scrapes.
"""

import asyncio
import gc
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from moldau.cluster.cluster import Cluster
from moldau.cluster.state.image import NO_LEADER
from moldau.coordinators.assembly import Coordinators
from moldau.coordinators.groups.messages import ListedGroup
from moldau.coordinators.groups.shard import GroupShard
from moldau.log.compaction.cleaner import Cleaner
from moldau.log.folders.folders import LogFolders
from moldau.metrics.loop_watch import LoopWatch
from moldau.metrics.snapshot import (
    BrokerNumbers,
    GroupNumbers,
    GroupOffset,
    LeaderlessPartition,
    PartitionNumbers,
    Snapshot,
    TopicNumbers,
)
from moldau.net.measured import RequestTimes
from moldau.net.server import Server
from moldau.protocol.apis import SUPPORTED
from moldau.replication.lag.asking import CallBroker, Committed, ask_leaders
from moldau.replication.lag.reading import UNKNOWN_LAG, LagReader, PartitionLag
from moldau.replication.replica import Replica
from moldau.replication.replicas import Replicas
from moldau.runtime import Runtime
from moldau.turns import Turns

if TYPE_CHECKING:
    from moldau.handlers.telemetry.client_telemetry import ClientTelemetry

T = TypeVar("T")

READ_IN_TURN = 200


@dataclass
class MeasuredParts:
    """The parts of a broker that have numbers. `controls`: whether it is the controller now; `unclean_elections`: how
    many it has made as one."""

    cluster: Cluster
    replicas: Replicas
    folders: LogFolders
    coordinators: Coordinators
    cleaner: Cleaner
    server: Server
    turns: Turns
    runtime: Runtime
    listeners: Callable[[], Iterable[str]]
    controls: Callable[[], bool]
    unclean_elections: Callable[[], int]
    ask_brokers: CallBroker | None = None
    """None for a broker alone."""
    telemetry: "Callable[[], ClientTelemetry | None]" = lambda: None
    """None until a client has asked which metrics to push."""


class ReadingPace:
    """Counts what was read in this turn of the loop, across all kinds of things that are read."""

    def __init__(self, size: int = READ_IN_TURN):
        self._size = self._left = size

    async def paced(self, items: Iterable[T]) -> AsyncIterator[T]:
        """The items one by one, with a turn for others whenever this turn has had its share."""
        for item in items:
            yield item
            self._left -= 1
            if not self._left:
                self._left = self._size
                await asyncio.sleep(0)


class Collecting:
    """The reading of one broker. `times` are those of its server."""

    def __init__(self, parts: MeasuredParts, times: RequestTimes, watch: LoopWatch):
        self._parts = parts
        self._times = times
        self._watch = watch
        self._lag_reader = LagReader(parts.replicas, parts.runtime)

    async def snapshot(self, *, is_whole: bool = True) -> Snapshot:
        """Unless it is whole, it has the numbers of requests, of the broker itself and of its traffic: no partition is
        looked at."""
        parts = self._parts
        image, metadata = parts.cluster.metadata.image, parts.cluster.metadata
        now = Snapshot(parts.runtime.clock.now_ms(), metadata.broker_id, image.cluster_id, parts.controls())
        pace = ReadingPace()
        if not is_whole:
            await self._traffic_sums(now, pace)
            self._numbers(now)
            return now
        sizes, folders = Counter[str](), dict[int, str]()
        values = now.values = {"mirrors": 0, "unflushed": 0, "catching_up": 0, "offline_replicas": 0}
        async for replica in pace.paced(parts.replicas):
            row, leadership = _partition(replica), replica.leadership
            now.partitions.append(row)
            values["mirrors"] += bool(row.leads and replica.config.mirror_source)
            values["unflushed"] += replica.log.unflushed_records
            values["catching_up"] += not row.leads and now.broker_id not in leadership.isr
            shared = id(replica.log.services)  # by all logs of a folder: a path costs more than the whole row
            if shared not in folders:
                folders[shared] = str(replica.log.folder.parent)
            sizes[folders[shared]] += row.size
        now.directories = [(path, online, sizes[path]) for path, online in parts.folders.named.items()]
        now.traffic = {topic: one.copy() for topic, one in parts.replicas.traffic.by_topic.items()}
        now.traffic_gone = parts.replicas.traffic.gone.copy()
        async for topic in pace.paced(image.topics.values()):
            values["offline_replicas"] += sum(
                now.broker_id in part.replicas and (topic.name, number) not in parts.replicas.hosted
                for number, part in enumerate(topic.partitions)
            )
        if now.controls:
            await self._cluster(now, pace)
        await self._groups(now, pace)
        await self._transactions(now, pace)
        await self._connections(now, pace)
        await self._traffic_sums(now, pace)
        self._numbers(now)
        return now

    async def _traffic_sums(self, now: Snapshot, pace: ReadingPace) -> None:
        traffic = self._parts.replicas.traffic
        records_in = bytes_in = bytes_out = 0
        async for one in pace.paced([traffic.gone, *traffic.by_topic.values()]):
            records_in += one.records_in
            bytes_in += one.bytes_in
            bytes_out += one.bytes_out
        now.values |= {"records_in": records_in, "bytes_in": bytes_in, "bytes_out": bytes_out}

    async def _cluster(self, now: Snapshot, pace: ReadingPace) -> None:
        """What there is once in a cluster."""
        metadata = self._parts.cluster.metadata
        image, inter_broker = metadata.image, metadata.config.inter_broker_listener
        brokers = []
        for broker in image.brokers.values():
            at = broker.endpoint(inter_broker) or broker.endpoints[0]
            brokers.append(BrokerNumbers(broker.id, at.host, at.port, broker.rack))
        now.brokers = brokers
        topics, leaderless = [], []
        async for topic in pace.paced(image.topics.values()):
            if topic.name not in metadata.image.topics:  # deleted since the scrape began
                continue
            factor = max((len(part.replicas) for part in topic.partitions), default=0)
            policy = ",".join(metadata.topic_config(topic.name).cleanup_policy)
            topics.append(TopicNumbers(topic.name, len(topic.partitions), factor, policy))
            leaderless += [
                LeaderlessPartition(topic.name, number, len(part.replicas), len(part.isr))
                for number, part in enumerate(topic.partitions)
                if part.leader == NO_LEADER
            ]
        now.topics, now.leaderless = topics, leaderless

    async def _groups(self, now: Snapshot, pace: ReadingPace) -> None:
        coordinator = self._parts.coordinators.made_groups
        found: list[tuple[ListedGroup, int, list[Committed]]] = []
        for shard in coordinator.loaded_shards() if coordinator is not None else ():
            async for listed in pace.paced(shard.listed()):
                offsets = await self._offsets(shard, listed.group_id, pace)
                found.append((listed, shard.members(listed.group_id), offsets))
        lags = await self._lags(list(dict.fromkeys(one for _, _, offsets in found for one in offsets)))
        async for listed, members, offsets in pace.paced(found):
            rows = [
                GroupOffset(tp.topic, tp.partition, offset, *lags.get((tp, offset), UNKNOWN_LAG))
                for tp, offset in offsets
            ]
            now.groups.append(GroupNumbers(*listed, members, rows))

    async def _offsets(self, shard: GroupShard, group_id: str, pace: ReadingPace) -> list[Committed]:
        committed = shard.offsets.of(group_id).copy()  # commits go on between two turns
        return [(tp, value.offset) async for tp, value in pace.paced(committed.pairs())]

    async def _lags(self, committed: Sequence[Committed]) -> dict[Committed, PartitionLag]:
        """How far behind these offsets are: read here, or asked of the leaders of their partitions."""
        here = [one for one in committed if self._lag_reader.can_read(one[0])]
        lags = dict(zip(here, await self._lag_reader.read_all(here), strict=True))
        ask = self._parts.ask_brokers
        away = [one for one in committed if one not in lags]
        if ask is not None and away:
            lags |= await ask_leaders(ask, self._parts.cluster.metadata.image, away)
        return lags

    async def _transactions(self, now: Snapshot, pace: ReadingPace) -> None:
        coordinator = self._parts.coordinators.made_transactions
        states: Counter[str] = Counter()
        for shard in coordinator.loaded_shards() if coordinator is not None else ():
            async for listed in pace.paced(shard.listed()):
                states[listed.state] += 1
        now.transactions = states

    async def _connections(self, now: Snapshot, pace: ReadingPace) -> None:
        server = self._parts.server
        by_listener = Counter(dict.fromkeys(self._parts.listeners(), 0))
        waiting = Counter[str]()
        async for connection in pace.paced(list(server.connections)):
            by_listener[connection.listener] += 1
            if connection.in_flight:
                key = int.from_bytes(connection.asked[:2], "big") if connection.asked else -1
                waiting["Fetch" if key == 1 else "Produce" if key in (0, -1) else "other"] += 1
        now.connections = by_listener
        for name, count in waiting.items():
            now.values[f"waiting_{name}"] = count

    def _numbers(self, now: Snapshot) -> None:
        parts, values = self._parts, now.values
        times = self._times
        now.durations = {SUPPORTED[key].name: one.copy() for key, one in times.answered().items() if key in SUPPORTED}
        now.requests = {SUPPORTED[key].name: times.requests(key) for key in times.seen() if key in SUPPORTED}
        values.update(_telemetry(parts.telemetry()))
        now.loop_delay, now.loop_idle = self._watch.delay.copy(), self._watch.idle
        server, totals = parts.server, parts.cleaner.totals
        traffic = [*parts.replicas.traffic.by_topic.values(), parts.replicas.traffic.gone]
        values |= {
            "long_turns": server.watchdog.long_turns,
            "longest_turn_s": server.watchdog.longest_ms / 1000,
            "request_bytes": server.pool.taken,
            "request_bytes_max": server.pool.limit,
            "connections_waiting": server.waiting_for_share,
            "handshakes": len(server.shaking),
            "wide_bytes": parts.turns.held_bytes,
            "open_files": len(parts.replicas.files),
            "held_files": parts.replicas.files.held,
            "cleanings": totals.cleanings,
            "cleaned_bytes": totals.bytes_removed,
            "cleaner_bytes": totals.bytes_moved,
            "cleaner_s": totals.seconds,
            "uncleanable": parts.cleaner.uncleanable,
            "isrshrinks": sum(one.isr_shrinks for one in traffic),
            "isrexpands": sum(one.isr_expands for one in traffic),
            "failedisrupdates": sum(one.isr_refused for one in traffic),
            "unclean_elections": parts.unclean_elections(),
            "collections": gc.get_stats()[-1]["collections"],
        }


def _partition(replica: Replica) -> PartitionNumbers:
    log, leadership = replica.log, replica.leadership
    segments = log.segments
    return PartitionNumbers(
        replica.tp.topic,
        replica.tp.partition,
        leadership.leads,
        leadership.leader,
        bool(leadership.replicas) and leadership.leader == leadership.replicas[0],
        len(leadership.replicas),
        len(leadership.isr),
        min(replica.config.min_insync_replicas, len(leadership.replicas)),
        int(log.log_start_offset),
        int(log.log_end_offset),
        int(replica.high_watermark),
        int(replica.last_stable_offset),
        sum(segment.size for segment in segments),
        len(segments),
    )


def _telemetry(telemetry: "ClientTelemetry | None") -> dict[str, float]:
    if telemetry is None:
        return {}
    counts = telemetry.counts
    return {
        "telemetry_clients": len(telemetry.instances),
        "telemetry_pushes": counts.pushes,
        "telemetry_bytes": counts.bytes,
        "telemetry_throttled": counts.throttled,
        "telemetry_unknown": counts.unknown_subscriptions,
        "telemetry_refused": counts.refused,
        "telemetry_crowded": counts.crowded,
        "telemetry_held": telemetry.held_bytes,
        "telemetry_written": counts.written,
        "telemetry_lost": counts.lost,
    }
