"""The handler of every API, one line each.

A handler is made, and its module and messages imported, when its API is first asked for: a broker that starts is not
kept waiting by what few clients ever ask.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from moldau.cluster.cluster import Cluster
from moldau.errors import KafkaError
from moldau.handlers.group_trace import traced
from moldau.names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from moldau.protocol import apis
from moldau.replication.replicas import Replicas
from moldau.requests.gate import Handler
from moldau.requests.session import Call
from moldau.runtime import Runtime
from moldau.turns import Turns

if TYPE_CHECKING:
    from moldau.coordinators.groups.coordinator import GroupCoordinator
    from moldau.coordinators.transactions.coordinator import TransactionCoordinator
    from moldau.replication.markers import MarkerWriter


class Parts(NamedTuple):
    """What handlers are made of."""

    cluster: Cluster
    replicas: Replicas
    groups: "Callable[[], GroupCoordinator]"
    transactions: "Callable[[], TransactionCoordinator]"
    markers: "Callable[[], MarkerWriter]"
    runtime: Runtime
    turns: Turns


class OnFirstUse:
    """A handler that is made when it is first called."""

    __slots__ = ("_handler", "_make", "_parts")

    def __init__(self, make: Callable[[Parts], Handler], parts: Parts):
        self._make = make
        self._parts = parts
        self._handler: Handler | None = None

    def __call__(self, request: Any, call: Call) -> Any:
        handler = self._handler
        if handler is None:
            handler = self._handler = self._make(self._parts)
        return handler(request, call)


def handlers(parts: Parts) -> Mapping[int, Handler]:
    """By API key; each is called with the request's message and its `Call`."""
    made: dict[int, Handler] = {api.key: OnFirstUse(make, parts) for api, make in TABLE.items()}
    for api in (apis.PRODUCE, apis.FETCH):
        made[api.key] = TABLE[api](parts)
    return traced(made)


def _produce(parts: Parts) -> Handler:
    from moldau.handlers.produce import ProduceHandler
    from moldau.handlers.transaction_verification import TransactionVerifier

    verifier = TransactionVerifier(parts.transactions, lambda: parts.cluster.metadata.config)
    return ProduceHandler(parts.replicas, parts.runtime, verifier, parts.turns)


def _fetch(parts: Parts) -> Handler:
    from moldau.handlers.fetch import FetchHandler

    config = parts.cluster.metadata.config
    sessions_max = config.max_incremental_fetch_session_cache_slots
    return FetchHandler(parts.replicas, config.fetch_max_bytes, sessions_max, parts.runtime, parts.turns)


def _api_versions(parts: Parts) -> Handler:
    from moldau.handlers.api_versions import api_versions

    return api_versions


def _acls(function: str) -> Callable[[Parts], Handler]:
    def make(parts: Parts) -> Handler:
        from moldau.handlers import acls

        handler: Handler = getattr(acls, function)
        return handler

    return make


def _metadata(parts: Parts) -> Handler:
    from moldau.handlers.metadata import Metadata

    return Metadata(parts.cluster.metadata, parts.cluster.topics)


def _describe_cluster(parts: Parts) -> Handler:
    from moldau.handlers.cluster import DescribeCluster

    return DescribeCluster(parts.cluster.metadata)


def _topics(method: str) -> Callable[[Parts], Handler]:
    def make(parts: Parts) -> Handler:
        from moldau.handlers.topics import Topics

        handler: Handler = getattr(Topics(parts.cluster.metadata, parts.cluster.topics), method)
        return handler

    return make


def _configs(method: str) -> Callable[[Parts], Handler]:
    def make(parts: Parts) -> Handler:
        from moldau.handlers.configs import Configs

        handler: Handler = getattr(Configs(parts.cluster.metadata, parts.cluster.configs), method)
        return handler

    return make


def _init_producer_id(parts: Parts) -> Handler:
    from moldau.handlers.init_producer_id import InitProducerId

    return InitProducerId(parts.cluster.producer_ids, parts.transactions)


def _list_offsets(parts: Parts) -> Handler:
    from moldau.handlers.list_offsets import ListOffsetsHandler
    from moldau.handlers.places import Places

    return ListOffsetsHandler(parts.replicas, Places(parts.runtime))


def _offset_for_leader_epoch(parts: Parts) -> Handler:
    from moldau.handlers.offset_for_leader_epoch import OffsetForLeaderEpoch

    return OffsetForLeaderEpoch(parts.replicas)


def _delete_records(parts: Parts) -> Handler:
    from moldau.handlers.delete_records import DeleteRecordsHandler

    return DeleteRecordsHandler(parts.replicas)


def _describe_log_dirs(parts: Parts) -> Handler:
    from moldau.handlers.describe_log_dirs import DescribeLogDirs

    return DescribeLogDirs(parts.replicas)


def _find_coordinator(parts: Parts) -> Handler:
    from moldau.cluster.controller import Refusal
    from moldau.cluster.image import TopicImage
    from moldau.handlers.find_coordinator import GROUP, TRANSACTION, CoordinatorType, FindCoordinator

    def made(ensure: Callable[[], Awaitable[TopicImage | Refusal]]) -> Callable[[], Awaitable[None]]:
        async def make() -> None:
            topic = await ensure()
            if isinstance(topic, Refusal):
                raise KafkaError(topic.code, topic.message)

        return make

    cluster, groups, transactions = parts.cluster, parts.groups, parts.transactions
    kinds = {
        GROUP: CoordinatorType(
            OFFSETS_TOPIC, made(cluster.topics.ensure_offsets_topic), lambda key: groups().partition_of(key)
        ),
        TRANSACTION: CoordinatorType(
            TRANSACTIONS_TOPIC,
            made(cluster.topics.ensure_transactions_topic),
            lambda key: transactions().partition_of(key),
        ),
    }
    return FindCoordinator(kinds, lambda: parts.cluster.image)


def _join_group(parts: Parts) -> Handler:
    from moldau.handlers.join_group import JoinGroup

    return JoinGroup(parts.groups())


def _sync_group(parts: Parts) -> Handler:
    from moldau.handlers.sync_group import SyncGroup

    return SyncGroup(parts.groups())


def _heartbeat(parts: Parts) -> Handler:
    from moldau.handlers.heartbeat import Heartbeat

    return Heartbeat(parts.groups())


def _leave_group(parts: Parts) -> Handler:
    from moldau.handlers.leave_group import LeaveGroup

    return LeaveGroup(parts.groups())


def _list_groups(parts: Parts) -> Handler:
    from moldau.handlers.list_groups import ListGroups

    return ListGroups(parts.groups())


def _describe_groups(parts: Parts) -> Handler:
    from moldau.handlers.describe_groups import DescribeGroups

    return DescribeGroups(parts.groups())


def _delete_groups(parts: Parts) -> Handler:
    from moldau.handlers.delete_groups import DeleteGroups

    return DeleteGroups(parts.groups())


def _consumer_group_heartbeat(parts: Parts) -> Handler:
    from moldau.handlers.consumer_group_heartbeat import ConsumerGroupHeartbeat

    return ConsumerGroupHeartbeat(parts.groups())


def _consumer_group_describe(parts: Parts) -> Handler:
    from moldau.handlers.consumer_group_describe import ConsumerGroupDescribe

    return ConsumerGroupDescribe(parts.groups(), lambda: parts.cluster.image)


def _offset_commit(parts: Parts) -> Handler:
    from moldau.handlers.offset_commit import OffsetCommit

    return OffsetCommit(parts.groups(), lambda: parts.cluster.image)


def _offset_fetch(parts: Parts) -> Handler:
    from moldau.handlers.offset_fetch import OffsetFetch

    return OffsetFetch(parts.groups(), lambda: parts.cluster.image)


def _offset_delete(parts: Parts) -> Handler:
    from moldau.handlers.offset_delete import OffsetDelete

    return OffsetDelete(parts.groups(), lambda: parts.cluster.image)


def _add_partitions_to_txn(parts: Parts) -> Handler:
    from moldau.handlers.add_partitions_to_txn import AddPartitionsToTxn

    return AddPartitionsToTxn(parts.transactions(), lambda: parts.cluster.image)


def _add_offsets_to_txn(parts: Parts) -> Handler:
    from moldau.handlers.add_offsets_to_txn import AddOffsetsToTxn

    return AddOffsetsToTxn(parts.transactions(), parts.groups)


def _end_txn(parts: Parts) -> Handler:
    from moldau.handlers.end_txn import EndTxn

    return EndTxn(parts.transactions())


def _txn_offset_commit(parts: Parts) -> Handler:
    from moldau.handlers.txn_offset_commit import TxnOffsetCommit

    return TxnOffsetCommit(
        parts.groups(), parts.transactions, lambda: parts.cluster.image, lambda: parts.cluster.metadata.config
    )


def _list_transactions(parts: Parts) -> Handler:
    from moldau.handlers.list_transactions import ListTransactions

    return ListTransactions(parts.transactions(), parts.runtime.clock.now_ms)


def _describe_transactions(parts: Parts) -> Handler:
    from moldau.handlers.describe_transactions import DescribeTransactions

    return DescribeTransactions(parts.transactions())


def _describe_producers(parts: Parts) -> Handler:
    from moldau.handlers.describe_producers import DescribeProducers

    return DescribeProducers(parts.replicas, lambda: parts.cluster.image)


def _write_txn_markers(parts: Parts) -> Handler:
    from moldau.handlers.write_txn_markers import WriteTxnMarkers

    return WriteTxnMarkers(parts.markers(), lambda: parts.cluster.image)


def _describe_topic_partitions(parts: Parts) -> Handler:
    from moldau.handlers.topic_partitions import DescribeTopicPartitions

    return DescribeTopicPartitions(parts.cluster.metadata)


def _alter_replica_log_dirs(parts: Parts) -> Handler:
    from moldau.handlers.alter_replica_log_dirs import AlterReplicaLogDirs

    return AlterReplicaLogDirs(parts.replicas)


def _elect_leaders(parts: Parts) -> Handler:
    from moldau.handlers.elections import ElectLeaders

    return ElectLeaders(lambda: parts.cluster.image)


def _reassignments(method: str) -> Callable[[Parts], Handler]:
    def make(parts: Parts) -> Handler:
        from moldau.handlers.reassignments import Reassignments

        handler: Handler = getattr(Reassignments(lambda: parts.cluster.image), method)
        return handler

    return make


def _client_quotas(function: str) -> Callable[[Parts], Handler]:
    def make(parts: Parts) -> Handler:
        from moldau.handlers import client_quotas

        handler: Handler = getattr(client_quotas, function)
        return handler

    return make


def _scram_credentials(function: str) -> Callable[[Parts], Handler]:
    def make(parts: Parts) -> Handler:
        from moldau.handlers import scram_credentials

        handler: Handler = getattr(scram_credentials, function)
        return handler

    return make


TABLE: Mapping[apis.Api, Callable[[Parts], Handler]] = {
    apis.PRODUCE: _produce,
    apis.FETCH: _fetch,
    apis.LIST_OFFSETS: _list_offsets,
    apis.METADATA: _metadata,
    apis.OFFSET_COMMIT: _offset_commit,
    apis.OFFSET_FETCH: _offset_fetch,
    apis.FIND_COORDINATOR: _find_coordinator,
    apis.JOIN_GROUP: _join_group,
    apis.HEARTBEAT: _heartbeat,
    apis.LEAVE_GROUP: _leave_group,
    apis.SYNC_GROUP: _sync_group,
    apis.DESCRIBE_GROUPS: _describe_groups,
    apis.LIST_GROUPS: _list_groups,
    apis.API_VERSIONS: _api_versions,
    apis.CREATE_TOPICS: _topics("create"),
    apis.DELETE_TOPICS: _topics("delete"),
    apis.DELETE_RECORDS: _delete_records,
    apis.INIT_PRODUCER_ID: _init_producer_id,
    apis.OFFSET_FOR_LEADER_EPOCH: _offset_for_leader_epoch,
    apis.ADD_PARTITIONS_TO_TXN: _add_partitions_to_txn,
    apis.ADD_OFFSETS_TO_TXN: _add_offsets_to_txn,
    apis.END_TXN: _end_txn,
    apis.TXN_OFFSET_COMMIT: _txn_offset_commit,
    apis.WRITE_TXN_MARKERS: _write_txn_markers,
    apis.DESCRIBE_ACLS: _acls("describe_acls"),
    apis.CREATE_ACLS: _acls("create_acls"),
    apis.DELETE_ACLS: _acls("delete_acls"),
    apis.DESCRIBE_CONFIGS: _configs("describe"),
    apis.ALTER_CONFIGS: _configs("replace"),
    apis.ALTER_REPLICA_LOG_DIRS: _alter_replica_log_dirs,
    apis.DESCRIBE_LOG_DIRS: _describe_log_dirs,
    apis.CREATE_PARTITIONS: _topics("create_partitions"),
    apis.DELETE_GROUPS: _delete_groups,
    apis.ELECT_LEADERS: _elect_leaders,
    apis.INCREMENTAL_ALTER_CONFIGS: _configs("alter"),
    apis.ALTER_PARTITION_REASSIGNMENTS: _reassignments("alter"),
    apis.LIST_PARTITION_REASSIGNMENTS: _reassignments("list_reassignments"),
    apis.OFFSET_DELETE: _offset_delete,
    apis.DESCRIBE_CLIENT_QUOTAS: _client_quotas("describe"),
    apis.ALTER_CLIENT_QUOTAS: _client_quotas("alter"),
    apis.DESCRIBE_USER_SCRAM_CREDENTIALS: _scram_credentials("describe"),
    apis.ALTER_USER_SCRAM_CREDENTIALS: _scram_credentials("alter"),
    apis.DESCRIBE_CLUSTER: _describe_cluster,
    apis.DESCRIBE_PRODUCERS: _describe_producers,
    apis.DESCRIBE_TRANSACTIONS: _describe_transactions,
    apis.LIST_TRANSACTIONS: _list_transactions,
    apis.CONSUMER_GROUP_HEARTBEAT: _consumer_group_heartbeat,
    apis.CONSUMER_GROUP_DESCRIBE: _consumer_group_describe,
    apis.LIST_CONFIG_RESOURCES: _configs("list_resources"),
    apis.DESCRIBE_TOPIC_PARTITIONS: _describe_topic_partitions,
}
