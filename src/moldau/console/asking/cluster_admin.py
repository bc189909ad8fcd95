"""`ClusterAdmin`: our admin client, with the questions of pages about many topics and groups at once.

An admin client answers about everything, or about one thing; a page shows fifty. Here names are asked for without what
belongs to them, and the rest only for the names that are shown.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from moldau.client.administration.admin import AdminSettings, AsyncAdmin
from moldau.client.administration.cluster import ClusterDescription
from moldau.client.administration.configs import Resource
from moldau.client.administration.groups import GroupListing
from moldau.client.administration.records import EARLIEST, LATEST
from moldau.client.cluster_view import TopicView
from moldau.client.failures import check, error_of
from moldau.client.lag import KnownTimestamps, Lag, Place, lags, waiting_since
from moldau.client.producing.async_producer import AsyncProducer
from moldau.client.producing.delivery import Delivered
from moldau.client.security.brokers import Brokers
from moldau.client.settings import read_settings
from moldau.console.asking.following import TopicFollower
from moldau.console.asking.throughput import PARTITIONS_MAX, GrowthLook, growth, leaders_of
from moldau.console.search.outgoing import RecordToSend
from moldau.errors import ErrorCode, KafkaError
from moldau.monotonic import monotonic_s
from moldau.names import INTERNAL_TOPICS, TopicPartition
from moldau.peers.address import Address
from moldau.protocol.apis import (
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_GROUPS,
    DESCRIBE_TOPIC_PARTITIONS,
    FIND_COORDINATOR,
    OFFSET_FETCH,
)

CLIENT = {"client.id": "moldau-console", "default.api.timeout.ms": "10000", "request.timeout.ms": "10000"}
KEPT_S = 5.0
"""Lists of names are kept for this long: pages of one list agree, and typing in its filter asks nothing."""
READERS_KEPT_S = 15.0
KEPT_TIMES = 300
"""An answer is kept so many times as long as it took: what is asked about a whole cluster takes less than 1% of its
time, so that the 99th percentile of other requests stays what it is."""
KEPT_MAX_S = 300.0
"""Nothing is kept for longer than this: an answer may have waited for a broker that is down."""
UNHEALTHY_TIMES = 60
"""In place of `KEPT_TIMES` for the counts of a cluster that has partitions without a leader or an in-sync replica."""
LAGS_KEPT_S, LAGS_MAX = 60.0, 20_000
"""A group that stands still waits for the same records: their timestamps are not fetched again at each look."""
ROWS_KEPT_S, ROWS_TIMES = 2.0, 100
"""The same of the rows of one part of a list, for which all its partitions are asked for offsets."""
PULSE_KEPT_S = 1.9
"""What plots ask for each two seconds is asked once for all browsers."""
ANSWER_S = 5.0
"""A broker that does not answer for so long has a gap in the plot."""
QUESTIONS_MAX = 200
GROUPS_AT_ONCE, OF_A_PAGE = 100, 2_000
BATCHED = 4, 8
"""The first versions of FindCoordinator and OffsetFetch that take several groups (Kafka 3.0)."""
CONSUMER, WITH_CLIENTS = "consumer", ("", "classic", "consumer")
"""Types of groups: that of KIP-848, and those whose members are counted; "" is that of brokers before Kafka 3.8."""
Committed = dict[str, dict[TopicPartition, int]]
"""Group -> partition -> committed offset."""
T = TypeVar("T")


class ClusterHealth(NamedTuple):
    """Counts over all topics that the user may see."""

    topics: int
    partitions: int
    leaderless: int
    under_replicated: int


class SharedAnswer:
    """An answer that several requests share, on its way or there. `now_s` is the loop's clock."""

    def __init__(self, task: "asyncio.Task[Any]", now_s: Callable[[], float]):
        self.task = task
        self._began_s, self._ended_s, self._now_s = now_s(), 0.0, now_s
        task.add_done_callback(self._end)

    def _end(self, task: "asyncio.Task[Any]") -> None:
        self._ended_s = self._now_s()
        if not task.cancelled():
            task.exception()  # it is no surprise, even if the pages that waited for it have gone

    def is_over(self, now_s: float, kept_s: float, times: int) -> bool:
        """Whether it has failed or is too old. What took long is kept longer."""
        if not self.task.done():
            return False
        failed = self.task.cancelled() or self.task.exception() is not None
        slow_s = min(times * (self._ended_s - self._began_s), KEPT_MAX_S)
        return failed or now_s - self._ended_s > max(kept_s, slow_s)


class ClusterAdmin(AsyncAdmin):
    """An admin client of the console; `client` has its settings by Kafka's names."""

    def __init__(self, client: Mapping[str, Any]):
        # A mapping for other clients may name a client id; the console has its own.
        super().__init__(read_settings(AdminSettings, "the console", ({**client, **CLIENT},), {}))
        self._client = client
        self._producer: AsyncProducer | None = None
        self._kept: dict[str, SharedAnswer] = {}
        self._known: KnownTimestamps = {}
        self._known_since_s = 0.0
        self._growth: GrowthLook | None = None
        self._dialled: set[int] = set()
        self._counted_with: ClusterDescription | None = None
        self._is_unhealthy = False

    async def log_in(self) -> None:
        """Connect to one broker. Raises `AuthenticationFailed` and other `KafkaError`s."""
        await self._router.retrying(self._router.any, timeout_ms=5_000)

    @property
    def brokers(self) -> Brokers:
        """The brokers, with the settings of the user's clients."""
        given = {name: value for name, value in self._client.items() if name != "bootstrap.servers"}
        return Brokers(str(self._client["bootstrap.servers"]), given)

    def follower(self, topic: str, starts: Mapping[int, int], *, committed: bool) -> TopicFollower:
        return TopicFollower(self._client, topic, starts, committed=committed)

    async def produce(self, topic: str, record: RecordToSend) -> Delivered:
        """Send one record, and wait until all in-sync replicas have it. Raises `KafkaError` and `ValueError`."""
        if self._producer is None:
            settings = {"client.id": "moldau-console", "delivery.timeout.ms": "20000", "request.timeout.ms": "10000"}
            self._producer = AsyncProducer({**self._client, **settings})
            await self._producer.start()
        delivery = await self._producer.send(
            topic, record.value, record.key, partition=record.partition, headers=record.headers
        )
        await self._producer.flush()
        return await delivery

    async def close(self) -> None:
        """Close the connections; calls that await a reply fail."""
        if self._producer is not None:
            await self._producer.close()
        await super().close()

    async def topic_names(self) -> list[str]:
        """The names of all topics, sorted; without their partitions where brokers can tell them (Kafka 4.1)."""
        return await self._once("topics", self._topic_names)

    async def every_topic(self) -> dict[str, TopicView]:
        """All topics with their partitions."""
        return await self._once("every topic", lambda: self.list_topics(internal=True))

    async def groups(self) -> list[GroupListing]:
        """All groups, sorted by name."""
        return await self._once("groups", self.list_groups)

    async def health(self) -> ClusterHealth:
        """What all partitions add up to; asked in portions, and again when a broker has come or gone, or another one is
        the controller."""
        cluster = await self.cluster()
        if self._counted_with is not None and _members(cluster) != _members(self._counted_with):
            self.forget("health")
        self._counted_with = cluster
        health = await self._once("health", self._health, times=UNHEALTHY_TIMES if self._is_unhealthy else KEPT_TIMES)
        self._is_unhealthy = bool(health.leaderless or health.under_replicated)
        return health

    async def cluster(self) -> ClusterDescription:
        """The brokers that are up, and the controller; shared by pages that ask at the same time."""
        return await self._once("cluster", self.describe_cluster, PULSE_KEPT_S, 0)

    async def throughput(self) -> dict[str, float]:
        """Records and bytes per second of the whole cluster; empty at the first look, and if it is too large."""
        return await self._once("throughput", self._throughput, PULSE_KEPT_S)

    async def _throughput(self) -> dict[str, float]:
        if (await self.health()).partitions > PARTITIONS_MAX:
            return {}
        topics: dict[str, TopicView] = await self._once("all topics", self.list_topics)
        leaders, before = leaders_of(topics), self._growth
        now_s, ends = asyncio.get_running_loop().time(), await self.ends(leaders)
        found = await self.known_sizes(topics)
        sizes = {tp: found[tp][leader] for tp, leader in leaders.items() if leader in found.get(tp, {})}
        self._growth = GrowthLook(now_s, ends, sizes)
        return growth(before, self._growth)

    async def answer_times(self) -> dict[int, float | None]:
        """Broker -> how long it took to answer a small request just now, in ms; None for one that did not answer."""
        return await self._once("answer times", self._answer_times, PULSE_KEPT_S, 0)

    async def _answer_times(self) -> dict[int, float | None]:
        brokers = [*(await self.cluster()).brokers]

        async def ask(broker_id: int) -> float:
            async with asyncio.timeout(ANSWER_S):
                if broker_id not in self._dialled:
                    await self.api_versions(broker_id)
                    self._dialled.add(broker_id)
                began_s = monotonic_s()
                await self.api_versions(broker_id)
                return (monotonic_s() - began_s) * 1_000

        answers = await asyncio.gather(*map(ask, brokers), return_exceptions=True)
        times = zip(brokers, answers, strict=True)
        return {broker: None if isinstance(took, BaseException) else round(took, 3) for broker, took in times}

    async def rows(self, what: str, names: Iterable[str], ask: Callable[[], Awaitable[T]]) -> T:
        """The rows of a part of a list, with these names, which several browsers share while they are young."""
        return await self._once(f"{what} {[*names]}", ask, ROWS_KEPT_S, ROWS_TIMES)

    async def _once(
        self, what: str, ask: Callable[[], Awaitable[T]], kept_s: float | None = None, times: int | None = None
    ) -> T:
        """The answer to a question that several requests share while it is young."""
        loop = asyncio.get_running_loop()
        if len(self._kept) > QUESTIONS_MAX:
            self._kept = {name: one for name, one in self._kept.items() if not one.task.done()}
        known = self._kept.get(what)
        kept_s, times = KEPT_S if kept_s is None else kept_s, KEPT_TIMES if times is None else times
        if known is None or known.is_over(loop.time(), kept_s, times):
            known = self._kept[what] = SharedAnswer(loop.create_task(_awaited(ask)), loop.time)
        result: T = await asyncio.shield(known.task)
        return result

    def forget(self, what: str) -> None:
        """The next question is asked again: the user has just changed what it is about."""
        self._kept.pop(what, None)

    async def committed_in(self, topics: Iterable[str]) -> Committed:
        """The committed offsets of the groups that have some in these topics. A group that reads one of them only now
        is found as soon as all groups are asked anew."""
        readers = await self._once("readers", self._readers, READERS_KEPT_S)
        return await self.committed(group_id for topic in topics for group_id in readers.get(topic, ()))

    async def _readers(self) -> dict[str, list[str]]:
        """Topic -> the groups with a committed offset there: no broker can tell them without being asked for all
        groups."""
        ids, readers = [one.group_id for one in await self.groups()], dict[str, list[str]]()
        for at in range(0, len(ids), GROUPS_AT_ONCE):
            for group_id, offsets in (await self.committed(ids[at : at + GROUPS_AT_ONCE])).items():
                for topic in {tp.topic for tp in offsets}:
                    readers.setdefault(topic, []).append(group_id)
        return readers

    async def _topic_names(self) -> list[str]:
        try:
            return await self.configs.list_resources(Resource.TOPIC)
        except KafkaError as refused:
            if refused.code not in (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.CLUSTER_AUTHORIZATION_FAILED):
                raise
            return sorted(await self.list_topics(internal=True))

    async def topics_named(self, names: Iterable[str]) -> dict[str, TopicView]:
        """Those of these topics that exist and that the user may describe."""
        wanted = [*names]
        if not wanted:
            return {}
        await self._router.retrying(lambda: self._router.refresh(wanted))
        known = self._router.view.topics
        return {name: known[name] for name in wanted if name in known}

    async def _health(self) -> ClusterHealth:
        messages, cursor = DESCRIBE_TOPIC_PARTITIONS.messages, None
        counts = [0, 0, 0, 0]
        while True:
            request = messages.DescribeTopicPartitionsRequest(
                topics=[], response_partition_limit=OF_A_PAGE, cursor=cursor
            )
            try:
                reply = await self._ask(DESCRIBE_TOPIC_PARTITIONS, request, "describing partitions")
            except KafkaError as refused:
                if refused.code is not ErrorCode.UNSUPPORTED_VERSION:
                    raise
                return _counted((await self.list_topics(internal=True)).values())
            for topic in reply.topics:
                counts[0] += not topic.partitions or topic.partitions[0].partition_index == 0
                counts[1] += len(topic.partitions)
                counts[2] += sum(p.leader_id < 0 for p in topic.partitions)
                counts[3] += sum(len(p.isr_nodes) < len(p.replica_nodes) for p in topic.partitions)
            if reply.next_cursor is None:
                return ClusterHealth(*counts)
            place = reply.next_cursor
            cursor = messages.Cursor(topic_name=place.topic_name, partition_index=place.partition_index)

    async def ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The end of each partition that has a leader who knows it."""
        return await self.offsets(dict.fromkeys(partitions, LATEST), known_only=True)

    async def starts(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of each partition that has a leader."""
        return await self.offsets(dict.fromkeys(partitions, EARLIEST), known_only=True)

    async def sizes(self, topics: Iterable[str]) -> dict[TopicPartition, dict[int, int]]:
        """Partition -> broker -> bytes of its replica there, for these topics. Brokers that do not answer are left
        out."""
        views = await self.topics_named(topics)
        partitions = {name: sorted(view.partitions) for name, view in views.items()}
        found: dict[TopicPartition, dict[int, int]] = {}

        async def ask(broker_id: int) -> None:
            try:
                folders = await self._log_dirs(broker_id, partitions)
            except KafkaError as failure:
                if not failure.retriable:
                    raise
                return
            for folder in folders:
                for tp, replica in folder.replicas.items():
                    if not replica.is_future:
                        found.setdefault(tp, {})[broker_id] = replica.size_bytes

        if partitions:
            await asyncio.gather(*map(ask, [*self._router.view.brokers]))  # as the same metadata have them
        return found

    async def known_sizes(self, topics: Iterable[str]) -> dict[TopicPartition, dict[int, int]]:
        """As `sizes`; empty for a user who may not see log folders, for which Describe on the cluster is needed."""
        try:
            return await self.sizes(topics)
        except KafkaError as failure:
            if failure.retriable:
                raise
            return {}

    async def committed(self, group_ids: Iterable[str]) -> Committed:
        """The committed offsets of these groups; those of groups that the user may not describe are left out."""
        ids = [*dict.fromkeys(group_ids)]
        committed: Committed = {}
        for at in range(0, len(ids), GROUPS_AT_ONCE):
            some = ids[at : at + GROUPS_AT_ONCE]
            if not await self._takes_several():
                for group_id in some:
                    offsets = await self.group_offsets(group_id)
                    committed[group_id] = {tp: one.offset for tp, one in offsets.items()}
                continue
            for broker_id, of_broker in (await self._coordinators(some)).items():
                committed |= await self._committed(broker_id, of_broker)
        return committed

    async def member_counts(self, groups: Iterable[GroupListing]) -> dict[str, int]:
        """How many members each of these groups has, for one page of them; groups that the user may not describe are
        left out."""
        asked = {one.group_id: one.type.lower() for one in groups if one.type.lower() in WITH_CLIENTS}
        if not asked or not await self._takes_several():
            return {}
        counts: dict[str, int] = {}
        for broker_id, ids in (await self._coordinators([*asked])).items():
            newer = [one for one in ids if asked[one] == CONSUMER]
            for api, some in ((CONSUMER_GROUP_DESCRIBE, newer), (DESCRIBE_GROUPS, [*set(ids).difference(newer)])):
                if some:
                    by_name = {"group_ids": some} if api is CONSUMER_GROUP_DESCRIBE else {"groups": some}
                    reply = await self._ask(api, api.request(**by_name), "the members of groups", broker_id)
                    counts |= {one.group_id: len(one.members) for one in reply.groups if not one.error_code}
        return counts

    async def _takes_several(self) -> bool:
        """Whether brokers answer for several groups at once."""
        versions = (await self._router.any()).versions
        return versions.of(FIND_COORDINATOR) >= BATCHED[0] and versions.of(OFFSET_FETCH) >= BATCHED[1]

    async def _coordinators(self, group_ids: list[str]) -> dict[int, list[str]]:
        """The groups by the broker that coordinates them."""
        request = FIND_COORDINATOR.request(key_type=0, coordinator_keys=group_ids)
        reply = await self._ask(FIND_COORDINATOR, request, "the coordinators of groups")
        found: dict[int, list[str]] = {}
        for one in reply.coordinators:
            if error_of(one.error_code) is ErrorCode.GROUP_AUTHORIZATION_FAILED:
                continue
            check(one.error_code, f"the coordinator of group {one.key}", one.error_message)
            self._router.view.brokers[one.node_id] = Address(one.host, one.port)
            found.setdefault(one.node_id, []).append(one.key)
        return found

    async def _committed(self, broker_id: int, group_ids: list[str]) -> Committed:
        group = OFFSET_FETCH.messages.OffsetFetchRequestGroup
        groups = [group(group_id=one, topics=None) for one in group_ids]
        reply = await self._ask(OFFSET_FETCH, OFFSET_FETCH.request(groups=groups), "the offsets of groups", broker_id)
        return {
            one.group_id: {
                TopicPartition(topic.name, p.partition_index): p.committed_offset
                for topic in one.topics
                for p in topic.partitions
                if p.committed_offset >= 0
            }
            for one in reply.groups
            if not one.error_code
        }

    async def lag_of(self, offsets: Mapping[TopicPartition, int | None]) -> dict[TopicPartition, Lag]:
        """The lag behind the ends of those of these partitions that still exist."""
        there = await self.topics_named({tp.topic for tp in offsets})
        wanted = {
            tp: offset
            for tp, offset in sorted(offsets.items())
            if tp.topic in there and tp.partition in there[tp.topic].partitions
        }
        return await lags(self._router, wanted, self.now_ms(), self._known_times())

    async def waiting_since(self, wanted: Mapping[Place, int]) -> dict[Place, int | None]:
        """The timestamps of the first records from these places on, each with the end of its partition."""
        return await waiting_since(self._router, wanted, self._known_times())

    def now_ms(self) -> int:
        """The time of day, with which timestamps are compared."""
        return self._router.runtime.clock.now_ms()

    def _known_times(self) -> KnownTimestamps:
        now_s = asyncio.get_running_loop().time()
        if now_s - self._known_since_s > LAGS_KEPT_S or len(self._known) > LAGS_MAX:
            self._known, self._known_since_s = {}, now_s
        return self._known


def _members(cluster: ClusterDescription) -> tuple[int, frozenset[int]]:
    return cluster.controller_id, frozenset(cluster.brokers)


def is_internal(topic: str) -> bool:
    return topic in INTERNAL_TOPICS


async def _awaited(ask: Callable[[], Awaitable[T]]) -> T:
    return await ask()


def _counted(topics: Iterable[TopicView]) -> ClusterHealth:
    views = [*topics]
    partitions = [p for topic in views for p in topic.partitions.values()]
    return ClusterHealth(
        len(views),
        len(partitions),
        sum(p.leader < 0 for p in partitions),
        sum(len(p.isr) < len(p.replicas) for p in partitions),
    )
