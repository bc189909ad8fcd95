"""The cluster: brokers, features and API versions, log folders, elections, reassignments."""

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, Literal, NamedTuple

from moldau.client.administration.asking import AdminPart, failure
from moldau.client.failures import all_of, unasked
from moldau.client.values import value
from moldau.errors import ConfigError, ErrorCode, KafkaError
from moldau.names import TopicPartition, by_topic
from moldau.peers.address import Address
from moldau.protocol.apis import (
    ALTER_PARTITION_REASSIGNMENTS,
    ALTER_REPLICA_LOG_DIRS,
    API_VERSIONS,
    APIS,
    DESCRIBE_CLUSTER,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_TOPIC_PARTITIONS,
    ELECT_LEADERS,
    LIST_PARTITION_REASSIGNMENTS,
    UNREGISTER_BROKER,
)

ELECTIONS = {"preferred": 0, "unclean": 1}
Election = Literal["preferred", "unclean"]


@value
class ClusterDescription:
    """The brokers with their addresses and racks, by id, and the controller. `fenced`, if asked for, has the addresses
    of brokers that are down and still registered; `brokers` does not have them."""

    cluster_id: str | None
    controller_id: int
    brokers: dict[int, Address]
    racks: dict[int, str | None]
    fenced: dict[int, Address] = field(default_factory=dict)


class VersionRange(NamedTuple):
    """The lowest and the highest version."""

    low: int
    high: int


@value
class Features:
    """The features that a broker supports, and the versions in force in the cluster, by name (KIP-584). `epoch` is -1
    if the broker has none."""

    supported: dict[str, VersionRange]
    finalized: dict[str, VersionRange]
    epoch: int


class ReplicaSize(NamedTuple):
    """A replica in a log folder: bytes, records that it is behind, and whether it is only being moved here."""

    size_bytes: int
    offset_lag: int
    is_future: bool


@value
class LogDir:
    """One log folder of a broker. `error` is set if the folder is offline; sizes of the disk are in bytes, None if
    unknown."""

    path: str
    error: KafkaError | None
    replicas: dict[TopicPartition, ReplicaSize]
    total_bytes: int | None
    usable_bytes: int | None


class Reassignment(NamedTuple):
    """A partition that is moved: all its replicas, those that are added, and those that will be removed."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class EligibleLeaders(NamedTuple):
    """Replicas of a partition that are not in sync: those that may lead it because they have every acknowledged record,
    and those that had it when they were last heard of (KIP-966)."""

    eligible: tuple[int, ...]
    last_known: tuple[int, ...]


class ClusterPart(AdminPart):
    """The part of an admin client for the cluster and its brokers."""

    async def describe_cluster(self, *, include_fenced: bool = False) -> ClusterDescription:
        """The brokers and the controller. With `include_fenced` also brokers that are down and were not
        unregistered, if the answering broker names them (Kafka 4.0 and newer). Kafka before 2.8 does not know
        DescribeCluster: the answer then comes from Metadata, which names the controller in those versions."""
        request = DESCRIBE_CLUSTER.request(include_fenced_brokers=include_fenced)
        try:
            reply = await self._ask(DESCRIBE_CLUSTER, request, "describing the cluster")
        except KafkaError as error:
            if error.code is not ErrorCode.UNSUPPORTED_VERSION:
                raise
            await self._router.retrying(lambda: self._router.refresh([]))
            view = self._router.view
            return ClusterDescription(
                view.cluster_id,
                view.controller_id,
                dict(sorted(view.brokers.items())),
                dict(sorted(view.racks.items())),
            )
        every = sorted(reply.brokers, key=lambda broker: broker.broker_id)
        brokers = [broker for broker in every if not broker.is_fenced]
        return ClusterDescription(
            reply.cluster_id,
            reply.controller_id,
            {broker.broker_id: Address(broker.host, broker.port) for broker in brokers},
            {broker.broker_id: broker.rack for broker in brokers},
            {broker.broker_id: Address(broker.host, broker.port) for broker in every if broker.is_fenced},
        )

    async def describe_features(self, broker_id: int | None = None) -> Features:
        """The features that a broker supports and those in force in the cluster; any broker by default."""
        reply = await self._versions(broker_id)
        supported = {f.name: VersionRange(f.min_version, f.max_version) for f in reply.supported_features}
        finalized = {f.name: VersionRange(f.min_version_level, f.max_version_level) for f in reply.finalized_features}
        return Features(supported, finalized, reply.finalized_features_epoch)

    async def api_versions(self, broker_id: int | None = None) -> dict[str, VersionRange]:
        """The versions of each API that a broker supports; any broker by default. An API that this client does not know
        has its key as name."""
        return {
            APIS[key.api_key].name if key.api_key in APIS else str(key.api_key): VersionRange(
                key.min_version, key.max_version
            )
            for key in (await self._versions(broker_id)).api_keys
        }

    async def _versions(self, broker_id: int | None) -> Any:
        request = API_VERSIONS.request(client_software_name="moldau", client_software_version="admin")
        return await self._ask(API_VERSIONS, request, "API versions", broker_id)

    async def describe_log_dirs(
        self, brokers: Iterable[int] | None = None, *, topics: Iterable[str] | None = None
    ) -> dict[int, list[LogDir]]:
        """The log folders of these brokers (all by default): replicas with their sizes, space on the disk. With
        `topics` only the replicas of these."""
        partitions = None if topics is None else await self._views(topics)
        asked = await self._brokers() if brokers is None else brokers
        return {broker_id: await self._log_dirs(broker_id, partitions) for broker_id in asked}

    async def _log_dirs(self, broker_id: int, partitions: Mapping[str, list[int]] | None) -> list[LogDir]:
        """The log folders of one broker, with the replicas of these partitions of topics, or with all."""
        messages, wanted = DESCRIBE_LOG_DIRS.messages, None
        if partitions is not None:
            wanted = [messages.DescribableLogDirTopic(topic=name, partitions=of) for name, of in partitions.items()]
        request = messages.DescribeLogDirsRequest(topics=wanted)
        reply = await self._ask(DESCRIBE_LOG_DIRS, request, f"log folders of broker {broker_id}", broker_id)
        return [_log_dir(result) for result in reply.results]

    async def alter_replica_log_dirs(
        self, moves: Mapping[tuple[int, TopicPartition], str]
    ) -> dict[tuple[int, TopicPartition], KafkaError | None]:
        """Move replicas, each named by its broker and partition, to other log folders of their brokers: the paths must
        be written as in `log.dirs`. The brokers copy while the replicas are used; `describe_log_dirs` shows the
        progress. To cancel a move, name the folder that the replica is in. If the broker does not have the replica
        yet (`ReplicaNotAvailable`), it will create the replica in that folder. Returns None or the error of each."""
        messages = ALTER_REPLICA_LOG_DIRS.messages
        by_broker: dict[int, dict[str, list[TopicPartition]]] = {}
        for (broker_id, tp), path in moves.items():
            by_broker.setdefault(broker_id, {}).setdefault(path, []).append(tp)
        outcomes: dict[tuple[int, TopicPartition], KafkaError | None] = {}
        for broker_id, by_path in by_broker.items():
            dirs = [
                messages.AlterReplicaLogDir(
                    path=path,
                    topics=[
                        messages.AlterReplicaLogDirTopic(name=name, partitions=numbers)
                        for name, numbers in by_topic(partitions).items()
                    ],
                )
                for path, partitions in by_path.items()
            ]
            request = messages.AlterReplicaLogDirsRequest(dirs=dirs)
            reply = await self._ask(ALTER_REPLICA_LOG_DIRS, request, f"log folders of broker {broker_id}", broker_id)
            for topic in reply.results:
                for one in topic.partitions:
                    tp = TopicPartition(topic.topic_name, one.partition_index)
                    outcomes[broker_id, tp] = failure(one, f"moving {tp} on broker {broker_id}")
        return all_of(outcomes, moves)

    async def unregister_broker(self, broker_id: int) -> None:
        """Remove a broker that has left for good from the cluster, so that nothing waits for it. It stays among the
        replicas of its partitions. Raises `BrokerIdNotRegistered`; `InvalidRequest` if it is running."""
        request = UNREGISTER_BROKER.request(broker_id=broker_id)
        reply = await self._ask_controller(UNREGISTER_BROKER, request, f"unregistering broker {broker_id}")
        if (error := failure(reply, f"unregistering broker {broker_id}")) is not None:
            raise error

    async def _views(self, topics: Iterable[str]) -> dict[str, list[int]]:
        names = [*dict.fromkeys(topics)]
        await self._router.retrying(lambda: self._router.refresh(names))
        views = self._router.view.topics
        return {name: list(views[name].partitions) for name in names if name in views}

    async def elect_leaders(
        self, partitions: Iterable[TopicPartition] | None = None, *, election: Election = "preferred"
    ) -> dict[TopicPartition, KafkaError | None]:
        """Elect leaders of these partitions (all by default): the preferred replicas, or, if a partition has no leader,
        `unclean` also replicas that are not in sync, whose missing records are then lost. Returns None or the error of
        each; `ElectionNotNeeded` where nothing had to change."""
        messages, wanted = ELECT_LEADERS.messages, None
        if election not in ELECTIONS:
            raise ConfigError(f"election={election!r} is not one of {', '.join(ELECTIONS)}")
        if partitions is not None:
            wanted = [
                messages.TopicPartitions(topic=name, partitions=numbers)
                for name, numbers in by_topic(partitions).items()
            ]
        request = messages.ElectLeadersRequest(
            election_type=ELECTIONS[election], topic_partitions=wanted, timeout_ms=self._timeout_ms
        )
        reply = await self._ask_controller(ELECT_LEADERS, request, "electing leaders")
        outcomes: dict[TopicPartition, KafkaError | None] = {}
        for topic in reply.replica_election_results:
            for one in topic.partition_result:
                tp = TopicPartition(topic.topic, one.partition_id)
                outcomes[tp] = failure(one, f"electing the leader of {tp}")
        return outcomes if partitions is None else all_of(outcomes, [*partitions])

    async def describe_eligible_leaders(self, topics: Iterable[str]) -> dict[TopicPartition, EligibleLeaders]:
        """The partitions of these topics that have replicas which may lead them without being in sync; none if no
        broker knows of such (Kafka before 4.0)."""
        messages = DESCRIBE_TOPIC_PARTITIONS.messages
        wanted = [messages.TopicRequest(name=name) for name in sorted(set(topics))]
        cursor, found = None, dict[TopicPartition, EligibleLeaders]()
        while wanted:
            request = messages.DescribeTopicPartitionsRequest(topics=wanted, cursor=cursor)
            try:
                reply = await self._ask(DESCRIBE_TOPIC_PARTITIONS, request, "describing partitions")
            except KafkaError as error:
                if error.code is not ErrorCode.UNSUPPORTED_VERSION:
                    raise
                break
            for topic in reply.topics:
                for one in topic.partitions:
                    eligible = EligibleLeaders(
                        tuple(one.eligible_leader_replicas or ()), tuple(one.last_known_elr or ())
                    )
                    if any(eligible):
                        found[TopicPartition(topic.name, one.partition_index)] = eligible
            if reply.next_cursor is None:
                break
            place = reply.next_cursor.topic_name, reply.next_cursor.partition_index
            if cursor is not None and place == (cursor.topic_name, cursor.partition_index):
                raise unasked("to DescribeTopicPartitions has the same page again")
            cursor = messages.Cursor(topic_name=place[0], partition_index=place[1])
        return found

    async def list_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """The partitions (all, or among these) that are being moved to other brokers."""
        messages, wanted = LIST_PARTITION_REASSIGNMENTS.messages, None
        if partitions is not None:
            wanted = [
                messages.ListPartitionReassignmentsTopics(name=name, partition_indexes=numbers)
                for name, numbers in by_topic(partitions).items()
            ]
        request = messages.ListPartitionReassignmentsRequest(topics=wanted, timeout_ms=self._timeout_ms)
        reply = await self._ask_controller(LIST_PARTITION_REASSIGNMENTS, request, "listing reassignments")
        return {
            TopicPartition(topic.name, p.partition_index): Reassignment(
                tuple(p.replicas), tuple(p.adding_replicas), tuple(p.removing_replicas)
            )
            for topic in reply.topics
            for p in topic.partitions
        }

    async def alter_reassignments(
        self, moves: Mapping[TopicPartition, Iterable[int] | None]
    ) -> dict[TopicPartition, KafkaError | None]:
        """Move partitions to these brokers, the preferred leader first, or cancel a move (None). The brokers work in
        the background: `list_reassignments` returns unfinished moves. Returns None or the error of each."""
        messages, topics = ALTER_PARTITION_REASSIGNMENTS.messages, dict[str, list[Any]]()
        for tp, brokers in moves.items():
            replicas = None if brokers is None else list(brokers)
            one = messages.ReassignablePartition(partition_index=tp.partition, replicas=replicas)
            topics.setdefault(tp.topic, []).append(one)
        wanted = [messages.ReassignableTopic(name=name, partitions=partitions) for name, partitions in topics.items()]
        request = messages.AlterPartitionReassignmentsRequest(timeout_ms=self._timeout_ms, topics=wanted)
        reply = await self._ask_controller(ALTER_PARTITION_REASSIGNMENTS, request, "reassigning partitions")
        outcomes: dict[TopicPartition, KafkaError | None] = {}
        for topic in reply.responses:
            for p in topic.partitions:
                tp = TopicPartition(topic.name, p.partition_index)
                outcomes[tp] = failure(p, f"reassigning {tp}")
        return all_of(outcomes, moves)


def _log_dir(result: Any) -> LogDir:
    replicas = {
        TopicPartition(topic.name, p.partition_index): ReplicaSize(p.partition_size, p.offset_lag, p.is_future_key)
        for topic in result.topics
        for p in topic.partitions
    }
    error = failure(result, f"log folder {result.log_dir}")
    total, usable = (None if size < 0 else size for size in (result.total_bytes, result.usable_bytes))
    return LogDir(result.log_dir, error, replicas, total, usable)
