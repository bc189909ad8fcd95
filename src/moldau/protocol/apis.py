"""The supported APIs: key, name, the range that is advertised, and the first flexible version.

A message class is imported when its API is first used: building all of them would multiply the time of a start-up.
`flexible` is the first version with compact types, tagged fields and request header v2 / response header v1 (`NEVER`
for APIs that never became flexible). An API that is not in `APIS` is not advertised, and a request of it closes a
client's connection; those of `BETWEEN_BROKERS` are for brokers, `OURS` for our own programs. The reasons for the ranges
are in `docs/protocol.md` and `docs/protocol-behaviour.md`.
"""

import importlib
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

from moldau.protocol.schema import NEVER


@dataclass(frozen=True)
class Api:
    """One API. `low` to `high` are the advertised versions; `lowest` is the lowest that is implemented."""

    key: int
    name: str
    low: int
    high: int
    flexible: int
    lowest: int = 0

    def is_flexible(self, version: int) -> bool:
        return version >= self.flexible

    @cached_property
    def messages(self) -> ModuleType:
        """The module of its messages."""
        module = "".join(f"_{c.lower()}" if c.isupper() else c for c in self.name).lstrip("_")
        return importlib.import_module(f"moldau.protocol.messages.{module}")

    @cached_property
    def request(self) -> type[Any]:
        message: type[Any] = getattr(self.messages, f"{self.name}Request")
        return message

    @cached_property
    def response(self) -> type[Any]:
        message: type[Any] = getattr(self.messages, f"{self.name}Response")
        return message


PRODUCE = Api(0, "Produce", 0, 13, 9, lowest=3)  # 0-2 are advertised for old librdkafka; a request in them is refused
FETCH = Api(1, "Fetch", 4, 18, 12)
LIST_OFFSETS = Api(2, "ListOffsets", 1, 11, 6)
METADATA = Api(3, "Metadata", 0, 13, 9)
OFFSET_COMMIT = Api(8, "OffsetCommit", 2, 10, 8)
OFFSET_FETCH = Api(9, "OffsetFetch", 1, 10, 6)
FIND_COORDINATOR = Api(10, "FindCoordinator", 0, 6, 3)
JOIN_GROUP = Api(11, "JoinGroup", 0, 9, 6)
HEARTBEAT = Api(12, "Heartbeat", 0, 4, 4)
LEAVE_GROUP = Api(13, "LeaveGroup", 0, 5, 4)
SYNC_GROUP = Api(14, "SyncGroup", 0, 5, 4)
DESCRIBE_GROUPS = Api(15, "DescribeGroups", 0, 6, 5)
LIST_GROUPS = Api(16, "ListGroups", 0, 5, 3)
SASL_HANDSHAKE = Api(17, "SaslHandshake", 0, 1, NEVER)
API_VERSIONS = Api(18, "ApiVersions", 0, 5, 3)
CREATE_TOPICS = Api(19, "CreateTopics", 2, 7, 5)
DELETE_TOPICS = Api(20, "DeleteTopics", 1, 6, 4)
DELETE_RECORDS = Api(21, "DeleteRecords", 0, 2, 2)
INIT_PRODUCER_ID = Api(22, "InitProducerId", 0, 5, 2)
OFFSET_FOR_LEADER_EPOCH = Api(23, "OffsetForLeaderEpoch", 2, 4, 4, lowest=2)
ADD_PARTITIONS_TO_TXN = Api(24, "AddPartitionsToTxn", 0, 5, 3)
ADD_OFFSETS_TO_TXN = Api(25, "AddOffsetsToTxn", 0, 4, 3)
END_TXN = Api(26, "EndTxn", 0, 5, 3)
WRITE_TXN_MARKERS = Api(27, "WriteTxnMarkers", 1, 2, 1, lowest=1)
TXN_OFFSET_COMMIT = Api(28, "TxnOffsetCommit", 0, 6, 3)
DESCRIBE_ACLS = Api(29, "DescribeAcls", 1, 3, 2, lowest=1)
CREATE_ACLS = Api(30, "CreateAcls", 1, 3, 2, lowest=1)
DELETE_ACLS = Api(31, "DeleteAcls", 1, 3, 2, lowest=1)
DESCRIBE_CONFIGS = Api(32, "DescribeConfigs", 1, 4, 4)
ALTER_CONFIGS = Api(33, "AlterConfigs", 0, 2, 2)
ALTER_REPLICA_LOG_DIRS = Api(34, "AlterReplicaLogDirs", 1, 2, 2, lowest=1)
DESCRIBE_LOG_DIRS = Api(35, "DescribeLogDirs", 1, 5, 2)
SASL_AUTHENTICATE = Api(36, "SaslAuthenticate", 0, 2, 2)
CREATE_PARTITIONS = Api(37, "CreatePartitions", 0, 3, 2)
CREATE_DELEGATION_TOKEN = Api(38, "CreateDelegationToken", 1, 3, 2, lowest=1)
RENEW_DELEGATION_TOKEN = Api(39, "RenewDelegationToken", 1, 2, 2, lowest=1)
EXPIRE_DELEGATION_TOKEN = Api(40, "ExpireDelegationToken", 1, 2, 2, lowest=1)
DESCRIBE_DELEGATION_TOKEN = Api(41, "DescribeDelegationToken", 1, 3, 2, lowest=1)
DELETE_GROUPS = Api(42, "DeleteGroups", 0, 3, 2)
ELECT_LEADERS = Api(43, "ElectLeaders", 0, 2, 2)
INCREMENTAL_ALTER_CONFIGS = Api(44, "IncrementalAlterConfigs", 0, 1, 1)
ALTER_PARTITION_REASSIGNMENTS = Api(45, "AlterPartitionReassignments", 0, 1, 0)
LIST_PARTITION_REASSIGNMENTS = Api(46, "ListPartitionReassignments", 0, 0, 0)
OFFSET_DELETE = Api(47, "OffsetDelete", 0, 0, NEVER)
DESCRIBE_CLIENT_QUOTAS = Api(48, "DescribeClientQuotas", 0, 1, 1)
ALTER_CLIENT_QUOTAS = Api(49, "AlterClientQuotas", 0, 1, 1)
DESCRIBE_USER_SCRAM_CREDENTIALS = Api(50, "DescribeUserScramCredentials", 0, 0, 0)
ALTER_USER_SCRAM_CREDENTIALS = Api(51, "AlterUserScramCredentials", 0, 0, 0)
DESCRIBE_CLUSTER = Api(60, "DescribeCluster", 0, 2, 0)
DESCRIBE_PRODUCERS = Api(61, "DescribeProducers", 0, 0, 0)
UNREGISTER_BROKER = Api(64, "UnregisterBroker", 0, 0, 0)
DESCRIBE_TRANSACTIONS = Api(65, "DescribeTransactions", 0, 0, 0)
LIST_TRANSACTIONS = Api(66, "ListTransactions", 0, 2, 0)
CONSUMER_GROUP_HEARTBEAT = Api(68, "ConsumerGroupHeartbeat", 0, 1, 0)
CONSUMER_GROUP_DESCRIBE = Api(69, "ConsumerGroupDescribe", 0, 1, 0)
GET_TELEMETRY_SUBSCRIPTIONS = Api(71, "GetTelemetrySubscriptions", 0, 0, 0)
PUSH_TELEMETRY = Api(72, "PushTelemetry", 0, 0, 0)
LIST_CONFIG_RESOURCES = Api(74, "ListConfigResources", 0, 1, 0)
DESCRIBE_TOPIC_PARTITIONS = Api(75, "DescribeTopicPartitions", 0, 0, 0)

APIS: dict[int, Api] = {api.key: api for api in list(globals().values()) if isinstance(api, Api)}

ALTER_PARTITION = Api(56, "AlterPartition", 3, 3, 0, lowest=3)
ENVELOPE = Api(58, "Envelope", 0, 0, 0)
ASSIGN_REPLICAS_TO_DIRS = Api(73, "AssignReplicasToDirs", 0, 0, 0)
INTRODUCE = Api(30_000, "Introduce", 0, 0, 0)
FOLLOW_CLUSTER = Api(30_001, "FollowCluster", 0, 0, 0)
GET_REPLICA_LOG_INFO = Api(30_002, "GetReplicaLogInfo", 0, 0, 0)
DESCRIBE_WAITING = Api(30_003, "DescribeWaiting", 0, 1, 0)
MIRROR_APPEND = Api(30_010, "MirrorAppend", 0, 0, 0)

BETWEEN_BROKERS: dict[int, Api] = {
    api.key: api
    for api in (
        ALTER_PARTITION,
        ENVELOPE,
        ASSIGN_REPLICAS_TO_DIRS,
        GET_REPLICA_LOG_INFO,
        DESCRIBE_WAITING,
        INTRODUCE,
        FOLLOW_CLUSTER,
    )
}
"""Supported on connections between brokers of one cluster only, and never advertised to clients."""
OURS: dict[int, Api] = {MIRROR_APPEND.key: MIRROR_APPEND}
"""Supported on every connection, and advertised to our own programs only: others might not expect such keys."""
SERVED: dict[int, Api] = APIS | OURS
"""All that a client may send."""
SUPPORTED: dict[int, Api] = SERVED | BETWEEN_BROKERS
