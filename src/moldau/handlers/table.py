"""The handler of every API, one row each.

A handler is made when its API is first asked for, and its module and messages are imported then: a broker that starts
does not wait for modules that few clients need. Produce and Fetch are made at the start.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from moldau.cluster.cluster import Cluster
from moldau.cluster.state.image import Image
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.config import BrokerConfig
from moldau.coordinators.importing import import_for
from moldau.errors import KafkaError, StorageError
from moldau.handlers.groups.group_trace import traced
from moldau.names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from moldau.protocol import apis
from moldau.replication.replicas import Replicas
from moldau.requests.gate import Handler
from moldau.runtime import Runtime
from moldau.turns import Turns

if TYPE_CHECKING:
    from moldau.coordinators.groups.coordinator import GroupCoordinator
    from moldau.coordinators.transactions.coordinator import TransactionCoordinator
    from moldau.coordinators.transactions.messages import AddsPartitions
    from moldau.handlers.fetching.fetch import Near
    from moldau.handlers.telemetry.client_telemetry import ClientTelemetry
    from moldau.replication.markers import MarkerWriter
    from moldau.replication.replica import Replica
    from moldau.replication.throttling import Throttle


class FollowerParts(NamedTuple):
    """What serves followers, which are other brokers. `asked` is called with each replica that a follower has fetched
    from; `throttle` limits what followers fetch."""

    asked: "Callable[[Replica], None]"
    throttle: "Throttle"


class BrokerParts(NamedTuple):
    """The parts of a broker that handlers work with."""

    cluster: Cluster
    replicas: Replicas
    groups: "Callable[[], GroupCoordinator]"
    transactions: "Callable[[], TransactionCoordinator]"
    markers: "Callable[[], MarkerWriter]"
    runtime: Runtime
    turns: Turns
    coordinator_anywhere: "Callable[[], AddsPartitions]"
    followers: FollowerParts | None = None
    """None if no other broker may follow this one."""
    telemetry: "Callable[[], ClientTelemetry] | None" = None
    """None only where clients are not served: on the controller, for what it decides."""

    @property
    def metadata(self) -> MetadataCache:
        return self.cluster.metadata

    def image(self) -> Image:
        """The cluster as this broker knows it now."""
        return self.cluster.metadata.image

    def config(self) -> BrokerConfig:
        """The settings in force now."""
        return self.cluster.metadata.config


class HandlerRow(NamedTuple):
    """`handler` is `module:function`, `module:Class` or `module:Class.method`; `arguments` are those of the class.
    `coordinator`: the internal topic of the coordinator that `arguments` makes."""

    handler: str
    arguments: Callable[[BrokerParts], tuple[Any, ...]] | None = None
    coordinator: str | None = None

    def module(self) -> ModuleType:
        return import_module(self.handler.partition(":")[0])

    def import_all(self) -> None:
        """Import what the handler needs. Blocks."""
        if self.coordinator is not None:
            import_for(self.coordinator)
        self.module()

    def make(self, parts: BrokerParts) -> Handler:
        name, _, method = self.handler.partition(":")[2].partition(".")
        handler = getattr(self.module(), name)
        if self.arguments is not None:
            handler = handler(*self.arguments(parts))
        made: Handler = getattr(handler, method) if method else handler
        return made


class Handlers(dict[int, Handler]):
    """Handlers by API key, each made when it is first asked for; it is called with the request's message and its
    `Call`."""

    def __init__(self, parts: BrokerParts, controllers: Callable[[apis.Api], Handler | None] | None = None):
        """`controllers` returns the handler of an API that only the controller can answer, None for all others; a
        broker alone answers everything itself."""
        super().__init__()
        self._parts = parts
        self._controllers = controllers
        for api in (apis.PRODUCE, apis.FETCH):
            self.__missing__(api.key)

    def __missing__(self, key: int) -> Handler:
        api = apis.SERVED[key]
        handler = None if self._controllers is None else self._controllers(api)
        handler = self[key] = handler or traced(api, TABLE[api].make(self._parts))
        return handler

    def imports(self) -> dict[int, Callable[[], object]]:
        """By the key of each API whose handler is not made yet: the import of its modules, which any thread may do."""
        return {api.key: row.import_all for api, row in TABLE.items() if api.key not in self}


def _of_produce(parts: BrokerParts) -> tuple[Any, ...]:
    from moldau.handlers.producing.transaction_verification import TransactionVerifier

    return parts.replicas, parts.runtime, TransactionVerifier(parts.coordinator_anywhere, parts.config), parts.turns


def _of_fetch(parts: BrokerParts) -> tuple[Any, ...]:
    config = parts.config()
    sessions_max = config.max_incremental_fetch_session_cache_slots
    followers = None
    if parts.followers is not None:
        from moldau.handlers.following.follower_fetch import FollowerFetch

        followers = FollowerFetch(
            parts.replicas,
            parts.image,
            config.fetch_max_bytes,
            parts.runtime.random,
            parts.followers.asked,
            parts.followers.throttle,
            tells_watermarks=config.reads_near,
        )
    near = _near(parts.image) if followers is not None and config.reads_near else None
    return parts.replicas, config.fetch_max_bytes, sessions_max, parts.runtime, parts.turns, followers, near


def _near(image: Callable[[], Image]) -> "Callable[[str, str], Near]":
    from moldau.replication.closest import closest

    def near(rack: str, listener: str) -> "Near":
        return lambda leadership, offset: closest(leadership, image().brokers, rack, listener, offset)

    return near


def _of_list_offsets(parts: BrokerParts) -> tuple[Any, ...]:
    from moldau.handlers.fetching.places import Places

    return parts.replicas, Places(parts.runtime)


def _of_find_coordinator(parts: BrokerParts) -> tuple[Any, ...]:
    from moldau.cluster.controlling.controller import Refusal
    from moldau.cluster.state.image import TopicImage
    from moldau.handlers.cluster.find_coordinator import GROUP, TRANSACTION, CoordinatorType

    def kind(name: str, ensure: Callable[[], Awaitable[TopicImage | Refusal]]) -> CoordinatorType:
        async def make() -> None:
            try:  # first: this broker leads the topic as soon as it exists
                await parts.runtime.run(partial(import_for, name))
            except OSError as error:
                raise StorageError(f"the code of its coordinator cannot be read: {error.strerror}") from None
            topic = await ensure()
            if isinstance(topic, Refusal):
                raise KafkaError(topic.code, topic.message)

        return CoordinatorType(name, make)

    kinds = {
        GROUP: kind(OFFSETS_TOPIC, parts.cluster.topics.ensure_offsets_topic),
        TRANSACTION: kind(TRANSACTIONS_TOPIC, parts.cluster.topics.ensure_transactions_topic),
    }
    return kinds, parts.image


def _groups(parts: BrokerParts) -> tuple[Any, ...]:
    return (parts.groups(),)


def _groups_and_image(parts: BrokerParts) -> tuple[Any, ...]:
    return (parts.groups(), parts.image)


def _topics(parts: BrokerParts) -> tuple[Any, ...]:
    return (parts.metadata, parts.cluster.topics)


def _changes(parts: BrokerParts) -> tuple[Any, ...]:
    return (parts.cluster.topics,)


def _configs(parts: BrokerParts) -> tuple[Any, ...]:
    return (parts.metadata, parts.cluster.configs)


def _acls(parts: BrokerParts) -> tuple[Any, ...]:
    from moldau.cluster.controlling.acl_changes import AclChanges

    return (parts.metadata, AclChanges(parts.metadata, parts.cluster.queue))


def _user_changes(parts: BrokerParts) -> tuple[Any, ...]:
    from moldau.cluster.users.changes import UserChanges

    return (UserChanges(parts.cluster.queue),)


def _token_changes(parts: BrokerParts) -> tuple[Any, ...]:
    from moldau.cluster.users.token_changes import TokenChanges

    return TokenChanges(parts.cluster.queue, parts.config, parts.runtime), parts.config


def _replicas(parts: BrokerParts) -> tuple[Any, ...]:
    return (parts.replicas,)


def _image(parts: BrokerParts) -> tuple[Any, ...]:
    return (parts.image,)


def _queue(parts: BrokerParts) -> tuple[Any, ...]:
    return (parts.cluster.queue,)


def _metadata(parts: BrokerParts) -> tuple[Any, ...]:
    return (parts.metadata,)


def _transactions(parts: BrokerParts) -> tuple[Any, ...]:
    return (parts.transactions(),)


def _telemetry(parts: BrokerParts) -> tuple[Any, ...]:
    assert parts.telemetry is not None, "clients are served"
    return (parts.telemetry(),)


TABLE: Mapping[apis.Api, HandlerRow] = {
    apis.PRODUCE: HandlerRow("moldau.handlers.producing.produce:ProduceHandler", _of_produce),
    apis.FETCH: HandlerRow("moldau.handlers.fetching.fetch:FetchHandler", _of_fetch),
    apis.LIST_OFFSETS: HandlerRow("moldau.handlers.fetching.list_offsets:ListOffsets", _of_list_offsets),
    apis.METADATA: HandlerRow("moldau.handlers.topics.metadata:Metadata", _topics),
    apis.OFFSET_COMMIT: HandlerRow(
        "moldau.handlers.groups.offset_commit:OffsetCommit", lambda p: (p.groups(), p.metadata), OFFSETS_TOPIC
    ),
    apis.OFFSET_FETCH: HandlerRow("moldau.handlers.groups.offset_fetch:OffsetFetch", _groups_and_image, OFFSETS_TOPIC),
    apis.FIND_COORDINATOR: HandlerRow("moldau.handlers.cluster.find_coordinator:FindCoordinator", _of_find_coordinator),
    apis.JOIN_GROUP: HandlerRow("moldau.handlers.groups.join_group:JoinGroup", _groups, OFFSETS_TOPIC),
    apis.HEARTBEAT: HandlerRow("moldau.handlers.groups.heartbeat:Heartbeat", _groups, OFFSETS_TOPIC),
    apis.LEAVE_GROUP: HandlerRow("moldau.handlers.groups.leave_group:LeaveGroup", _groups, OFFSETS_TOPIC),
    apis.SYNC_GROUP: HandlerRow("moldau.handlers.groups.sync_group:SyncGroup", _groups, OFFSETS_TOPIC),
    apis.DESCRIBE_GROUPS: HandlerRow("moldau.handlers.groups.describe_groups:DescribeGroups", _groups, OFFSETS_TOPIC),
    apis.LIST_GROUPS: HandlerRow("moldau.handlers.groups.list_groups:ListGroups", _groups, OFFSETS_TOPIC),
    apis.SASL_HANDSHAKE: HandlerRow("moldau.handlers.security.sasl:handshake"),
    apis.SASL_AUTHENTICATE: HandlerRow("moldau.handlers.security.sasl:authenticate"),
    apis.API_VERSIONS: HandlerRow("moldau.handlers.cluster.api_versions:ApiVersions", _metadata),
    apis.CREATE_TOPICS: HandlerRow("moldau.handlers.topics.topics:TopicAdministration.create", _topics),
    apis.DELETE_TOPICS: HandlerRow("moldau.handlers.topics.topics:TopicAdministration.delete", _topics),
    apis.DELETE_RECORDS: HandlerRow(
        "moldau.handlers.topics.delete_records:DeleteRecords", lambda p: (p.replicas, p.image, p.turns)
    ),
    apis.INIT_PRODUCER_ID: HandlerRow(
        "moldau.handlers.transactions.init_producer_id:InitProducerId",
        lambda p: (p.cluster.producer_ids, p.transactions),
    ),
    apis.OFFSET_FOR_LEADER_EPOCH: HandlerRow(
        "moldau.handlers.fetching.offset_for_leader_epoch:OffsetForLeaderEpoch", _replicas
    ),
    apis.ADD_PARTITIONS_TO_TXN: HandlerRow(
        "moldau.handlers.transactions.add_partitions_to_txn:AddPartitionsToTxn",
        lambda p: (p.transactions(), p.image),
        TRANSACTIONS_TOPIC,
    ),
    apis.ADD_OFFSETS_TO_TXN: HandlerRow(
        "moldau.handlers.transactions.add_offsets_to_txn:AddOffsetsToTxn",
        lambda p: (p.transactions(), p.groups),
        TRANSACTIONS_TOPIC,
    ),
    apis.END_TXN: HandlerRow("moldau.handlers.transactions.end_txn:EndTxn", _transactions, TRANSACTIONS_TOPIC),
    apis.TXN_OFFSET_COMMIT: HandlerRow(
        "moldau.handlers.groups.txn_offset_commit:TxnOffsetCommit",
        lambda p: (p.groups(), p.coordinator_anywhere, p.image, p.config),
        OFFSETS_TOPIC,
    ),
    apis.WRITE_TXN_MARKERS: HandlerRow(
        "moldau.handlers.transactions.write_txn_markers:WriteTxnMarkers", lambda p: (p.markers(), p.image)
    ),
    apis.DESCRIBE_ACLS: HandlerRow("moldau.handlers.security.acls:AclAdministration.describe", _acls),
    apis.CREATE_ACLS: HandlerRow("moldau.handlers.security.acls:AclAdministration.create", _acls),
    apis.DELETE_ACLS: HandlerRow("moldau.handlers.security.acls:AclAdministration.delete", _acls),
    apis.DESCRIBE_CONFIGS: HandlerRow("moldau.handlers.topics.configs:ConfigAdministration.describe", _configs),
    apis.ALTER_CONFIGS: HandlerRow("moldau.handlers.topics.configs:ConfigAdministration.replace", _configs),
    apis.ALTER_REPLICA_LOG_DIRS: HandlerRow(
        "moldau.handlers.cluster.alter_replica_log_dirs:AlterReplicaLogDirs", _replicas
    ),
    apis.DESCRIBE_LOG_DIRS: HandlerRow("moldau.handlers.cluster.describe_log_dirs:DescribeLogDirs", _replicas),
    apis.CREATE_PARTITIONS: HandlerRow("moldau.handlers.topics.topics:TopicAdministration.create_partitions", _topics),
    apis.CREATE_DELEGATION_TOKEN: HandlerRow("moldau.handlers.security.tokens:CreateToken", _token_changes),
    apis.RENEW_DELEGATION_TOKEN: HandlerRow("moldau.handlers.security.tokens:ChangeToken", _token_changes),
    apis.EXPIRE_DELEGATION_TOKEN: HandlerRow("moldau.handlers.security.tokens:ChangeToken", _token_changes),
    apis.DESCRIBE_DELEGATION_TOKEN: HandlerRow(
        "moldau.handlers.security.tokens:DescribeTokens", lambda p: (p.cluster, p.config, p.runtime)
    ),
    apis.DELETE_GROUPS: HandlerRow("moldau.handlers.groups.delete_groups:DeleteGroups", _groups, OFFSETS_TOPIC),
    apis.ELECT_LEADERS: HandlerRow(
        "moldau.handlers.cluster.elections:ElectLeaders", lambda p: (p.image, p.cluster.elect)
    ),
    apis.INCREMENTAL_ALTER_CONFIGS: HandlerRow("moldau.handlers.topics.configs:ConfigAdministration.alter", _configs),
    apis.ALTER_PARTITION_REASSIGNMENTS: HandlerRow(
        "moldau.handlers.cluster.reassignments:AlterReassignments", _changes
    ),
    apis.LIST_PARTITION_REASSIGNMENTS: HandlerRow(
        "moldau.handlers.cluster.reassignments:ListReassignments", lambda p: (p.image,)
    ),
    apis.OFFSET_DELETE: HandlerRow(
        "moldau.handlers.groups.offset_delete:OffsetDelete", _groups_and_image, OFFSETS_TOPIC
    ),
    apis.DESCRIBE_USER_SCRAM_CREDENTIALS: HandlerRow(
        "moldau.handlers.security.scram_credentials:DescribeCredentials", lambda p: (p.cluster,)
    ),
    apis.ALTER_USER_SCRAM_CREDENTIALS: HandlerRow(
        "moldau.handlers.security.scram_credentials:AlterCredentials", _user_changes
    ),
    apis.DESCRIBE_CLIENT_QUOTAS: HandlerRow("moldau.handlers.security.client_quotas:DescribeQuotas", _image),
    apis.ALTER_CLIENT_QUOTAS: HandlerRow("moldau.handlers.security.client_quotas:AlterQuotas", _queue),
    apis.UNREGISTER_BROKER: HandlerRow(
        "moldau.handlers.cluster.unregister_broker:UnregisterBroker", lambda p: (p.image, p.cluster.forget_broker)
    ),
    apis.DESCRIBE_CLUSTER: HandlerRow(
        "moldau.handlers.cluster.describe_cluster:DescribeCluster",
        lambda p: (p.metadata, p.cluster.has_controller, p.cluster.known_brokers),
    ),
    apis.DESCRIBE_PRODUCERS: HandlerRow(
        "moldau.handlers.transactions.describe_producers:DescribeProducers", lambda p: (p.replicas, p.image)
    ),
    apis.DESCRIBE_TRANSACTIONS: HandlerRow(
        "moldau.handlers.transactions.describe_transactions:DescribeTransactions", _transactions, TRANSACTIONS_TOPIC
    ),
    apis.LIST_TRANSACTIONS: HandlerRow(
        "moldau.handlers.transactions.list_transactions:ListTransactions",
        lambda p: (p.transactions(), p.runtime.clock.now_ms),
        TRANSACTIONS_TOPIC,
    ),
    apis.CONSUMER_GROUP_HEARTBEAT: HandlerRow(
        "moldau.handlers.groups.consumer_group_heartbeat:ConsumerGroupHeartbeat", _groups, OFFSETS_TOPIC
    ),
    apis.CONSUMER_GROUP_DESCRIBE: HandlerRow(
        "moldau.handlers.groups.consumer_group_describe:ConsumerGroupDescribe", _groups_and_image, OFFSETS_TOPIC
    ),
    apis.GET_TELEMETRY_SUBSCRIPTIONS: HandlerRow(
        "moldau.handlers.telemetry.requests:GetTelemetrySubscriptions", _telemetry
    ),
    apis.PUSH_TELEMETRY: HandlerRow("moldau.handlers.telemetry.requests:PushTelemetry", _telemetry),
    apis.LIST_CONFIG_RESOURCES: HandlerRow(
        "moldau.handlers.topics.configs:ConfigAdministration.list_resources", _configs
    ),
    apis.DESCRIBE_TOPIC_PARTITIONS: HandlerRow(
        "moldau.handlers.topics.topic_partitions:DescribeTopicPartitions", _metadata
    ),
    apis.MIRROR_APPEND: HandlerRow(
        "moldau.handlers.producing.mirror_append:MirrorAppend", lambda p: (p.replicas, p.runtime)
    ),
}
