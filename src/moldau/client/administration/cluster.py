"""The cluster: brokers, features and API versions, log folders, elections, reassignments, quotas, SCRAM credentials."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from moldau.client.administration.asking import AdminPart, by_topic, failure
from moldau.errors import KafkaError
from moldau.names import TopicPartition
from moldau.peers.address import Address
from moldau.protocol.apis import (
    API_VERSIONS,
    APIS,
    DESCRIBE_CLIENT_QUOTAS,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    ELECT_LEADERS,
    LIST_PARTITION_REASSIGNMENTS,
)

ELECTIONS = {"preferred": 0, "unclean": 1}
MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
Election = Literal["preferred", "unclean"]


@dataclass(frozen=True)
class ClusterDescription:
    """The brokers with their addresses and racks, by id, and which of them is the controller."""

    cluster_id: str | None
    controller_id: int
    brokers: dict[int, Address]
    racks: dict[int, str | None]


class VersionRange(NamedTuple):
    """The lowest and the highest version."""

    low: int
    high: int


@dataclass(frozen=True)
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


@dataclass(frozen=True)
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


class ScramCredential(NamedTuple):
    """One credential of a user; its secret is never told."""

    mechanism: str
    iterations: int


QuotaEntity = tuple[tuple[str, str | None], ...]
"""Pairs of a type ("user", "client-id", "ip") and a name; None as name is the default of the type."""


class ClusterPart(AdminPart):
    """The part of an admin client for the cluster and its brokers."""

    async def describe_cluster(self) -> ClusterDescription:
        """The brokers and the controller."""
        await self._router.retrying(lambda: self._router.refresh([]))
        view = self._router.view
        brokers, racks = dict(sorted(view.brokers.items())), dict(sorted(view.racks.items()))
        return ClusterDescription(view.cluster_id, view.controller_id, brokers, racks)

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
        messages, wanted = DESCRIBE_LOG_DIRS.messages, None
        if topics is not None:
            views = await self._views(topics)
            wanted = [
                messages.DescribableLogDirTopic(topic=name, partitions=numbers) for name, numbers in views.items()
            ]
        request = messages.DescribeLogDirsRequest(topics=wanted)
        found: dict[int, list[LogDir]] = {}
        for broker_id in await self._brokers() if brokers is None else brokers:
            reply = await self._ask(DESCRIBE_LOG_DIRS, request, f"log folders of broker {broker_id}", broker_id)
            found[broker_id] = [_log_dir(result) for result in reply.results]
        return found

    async def _views(self, topics: Iterable[str]) -> dict[str, list[int]]:
        names = list(topics)
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
        if partitions is not None:
            wanted = [
                messages.TopicPartitions(topic=name, partitions=numbers)
                for name, numbers in by_topic(partitions).items()
            ]
        request = messages.ElectLeadersRequest(
            election_type=ELECTIONS[election], topic_partitions=wanted, timeout_ms=self._timeout_ms
        )
        reply = await self._ask_controller(ELECT_LEADERS, request, "electing leaders")
        found: dict[TopicPartition, KafkaError | None] = {}
        for topic in reply.replica_election_results:
            for one in topic.partition_result:
                tp = TopicPartition(topic.topic, one.partition_id)
                found[tp] = failure(one, f"electing the leader of {tp}")
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

    async def describe_client_quotas(
        self, match: Mapping[str, str | None] | None = None, *, strict: bool = False
    ) -> dict[QuotaEntity, dict[str, float]]:
        """The client quotas, by entity. `match` limits them: type -> name, None for the type's default; with `strict`
        an entity must not have any other type."""
        messages = DESCRIBE_CLIENT_QUOTAS.messages
        components = [
            messages.ComponentData(entity_type=kind, match_type=1 if name is None else 0, match=name)
            for kind, name in (match or {}).items()
        ]
        request = messages.DescribeClientQuotasRequest(components=components, strict=strict)
        reply = await self._ask(DESCRIBE_CLIENT_QUOTAS, request, "describing client quotas")
        return {
            tuple((part.entity_type, part.entity_name) for part in entry.entity): {v.key: v.value for v in entry.values}
            for entry in reply.entries or []
        }

    async def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None
    ) -> dict[str, list[ScramCredential]]:
        """The SCRAM credentials of these users (all by default), by user. Raises `ResourceNotFound` for a user without
        one."""
        messages = DESCRIBE_USER_SCRAM_CREDENTIALS.messages
        wanted = None if users is None else [messages.UserName(name=name) for name in users]
        request = messages.DescribeUserScramCredentialsRequest(users=wanted)
        reply = await self._ask(DESCRIBE_USER_SCRAM_CREDENTIALS, request, "describing SCRAM credentials")
        found: dict[str, list[ScramCredential]] = {}
        for one in reply.results:
            error = failure(one, f"user {one.user}")
            if error is not None:
                raise error
            found[one.user] = [
                ScramCredential(MECHANISMS.get(info.mechanism, "unknown"), info.iterations)
                for info in one.credential_infos
            ]
        return found


def _log_dir(result: Any) -> LogDir:
    replicas = {
        TopicPartition(topic.name, p.partition_index): ReplicaSize(p.partition_size, p.offset_lag, p.is_future_key)
        for topic in result.topics
        for p in topic.partitions
    }
    error = failure(result, f"log folder {result.log_dir}")
    total, usable = (None if size < 0 else size for size in (result.total_bytes, result.usable_bytes))
    return LogDir(result.log_dir, error, replicas, total, usable)
