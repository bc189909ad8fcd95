"""Which rights each API asks for, one line an API.

The gate judges a `_whole` right, which is about the one resource that a request names: without it nothing of the
request is done. The handler asks for each of the `parts`. Where a version or the order of errors decides, it is the
handler that asks. Source: what Kafka 4.3.1 asks in every API.
"""

from collections.abc import Mapping

from moldau.protocol import apis
from moldau.requests.access import (
    ALTER_CLUSTER,
    ALTER_CLUSTER_CONFIGS,
    ALTER_GROUP_CONFIGS,
    ALTER_TOPIC,
    ALTER_TOPIC_CONFIGS,
    CLUSTER_ACTION,
    CREATE_IN_CLUSTER,
    CREATE_TOKENS,
    CREATE_TOPIC,
    DELETE_GROUP,
    DELETE_IN_CLUSTER,
    DELETE_TOPIC,
    DESCRIBE_CLUSTER,
    DESCRIBE_CLUSTER_CONFIGS,
    DESCRIBE_GROUP,
    DESCRIBE_GROUP_CONFIGS,
    DESCRIBE_TOKEN,
    DESCRIBE_TOKENS,
    DESCRIBE_TOPIC,
    DESCRIBE_TOPIC_CONFIGS,
    DESCRIBE_TRANSACTIONAL_ID,
    IDEMPOTENT_WRITE,
    READ_GROUP,
    READ_TOPIC,
    TWO_PHASE_COMMIT,
    WRITE_TOPIC,
    WRITE_TRANSACTIONAL_ID,
    Right,
)
from moldau.requests.requirements import Requirement, Rights


def _cluster(*any_of: Right) -> Rights:
    """One of these on the cluster."""
    return Rights(whole=(Requirement(any_of),))


def _whole(*whole: Requirement, parts: tuple[Right, ...] = ()) -> Rights:
    return Rights(whole, parts)


def _parts(*parts: Right) -> Rights:
    return Rights(parts=parts)


_MEMBER = Requirement((READ_GROUP,), "group_id")
_WRITER = Requirement((WRITE_TRANSACTIONAL_ID,), "transactional_id")

RIGHTS: Mapping[apis.Api, Rights] = {
    apis.PRODUCE: _parts(WRITE_TRANSACTIONAL_ID, WRITE_TOPIC),
    apis.FETCH: _parts(CLUSTER_ACTION, READ_TOPIC),
    apis.LIST_OFFSETS: _parts(DESCRIBE_TOPIC),
    apis.METADATA: _parts(DESCRIBE_TOPIC, CREATE_IN_CLUSTER, CREATE_TOPIC, DESCRIBE_CLUSTER),
    apis.OFFSET_COMMIT: _whole(_MEMBER, parts=(READ_TOPIC,)),
    apis.OFFSET_FETCH: _parts(DESCRIBE_GROUP, DESCRIBE_TOPIC),
    apis.FIND_COORDINATOR: _parts(DESCRIBE_GROUP, DESCRIBE_TRANSACTIONAL_ID),
    apis.JOIN_GROUP: _whole(_MEMBER),
    apis.HEARTBEAT: _whole(_MEMBER),
    apis.LEAVE_GROUP: _whole(_MEMBER),
    apis.SYNC_GROUP: _parts(READ_GROUP),  # a missing protocol is told before
    apis.DESCRIBE_GROUPS: _parts(DESCRIBE_GROUP),
    apis.LIST_GROUPS: _parts(DESCRIBE_CLUSTER, DESCRIBE_GROUP),
    apis.SASL_HANDSHAKE: Rights(),
    apis.SASL_AUTHENTICATE: Rights(),
    apis.API_VERSIONS: Rights(),
    apis.CREATE_TOPICS: _parts(CREATE_IN_CLUSTER, CREATE_TOPIC, DESCRIBE_TOPIC_CONFIGS),
    apis.DELETE_TOPICS: _parts(DELETE_IN_CLUSTER, DESCRIBE_TOPIC, DELETE_TOPIC),
    apis.DELETE_RECORDS: _parts(DELETE_TOPIC),
    apis.INIT_PRODUCER_ID: _parts(WRITE_TRANSACTIONAL_ID, TWO_PHASE_COMMIT, IDEMPOTENT_WRITE, WRITE_TOPIC),
    apis.OFFSET_FOR_LEADER_EPOCH: _parts(CLUSTER_ACTION, DESCRIBE_TOPIC),
    apis.ADD_PARTITIONS_TO_TXN: _parts(CLUSTER_ACTION, WRITE_TRANSACTIONAL_ID, WRITE_TOPIC),
    apis.ADD_OFFSETS_TO_TXN: _whole(_WRITER, _MEMBER),
    apis.END_TXN: _whole(_WRITER),
    apis.TXN_OFFSET_COMMIT: _whole(_WRITER, _MEMBER, parts=(READ_TOPIC,)),
    apis.WRITE_TXN_MARKERS: _cluster(ALTER_CLUSTER, CLUSTER_ACTION),
    apis.DESCRIBE_ACLS: _cluster(DESCRIBE_CLUSTER),
    apis.CREATE_ACLS: _cluster(ALTER_CLUSTER),
    apis.DELETE_ACLS: _cluster(ALTER_CLUSTER),
    apis.DESCRIBE_CONFIGS: _parts(DESCRIBE_TOPIC_CONFIGS, DESCRIBE_GROUP_CONFIGS, DESCRIBE_CLUSTER_CONFIGS),
    apis.ALTER_CONFIGS: _parts(ALTER_TOPIC_CONFIGS, ALTER_GROUP_CONFIGS, ALTER_CLUSTER_CONFIGS),
    apis.ALTER_REPLICA_LOG_DIRS: _cluster(ALTER_CLUSTER),
    apis.DESCRIBE_LOG_DIRS: _parts(DESCRIBE_CLUSTER),  # older versions have no place for the error
    apis.CREATE_PARTITIONS: _parts(ALTER_TOPIC),
    apis.CREATE_DELEGATION_TOKEN: _parts(CREATE_TOKENS),
    apis.RENEW_DELEGATION_TOKEN: Rights(),  # the owner of the token, and those that it names
    apis.EXPIRE_DELEGATION_TOKEN: Rights(),
    apis.DESCRIBE_DELEGATION_TOKEN: _parts(DESCRIBE_TOKEN, DESCRIBE_TOKENS),
    apis.DELETE_GROUPS: _parts(DELETE_GROUP),
    apis.ELECT_LEADERS: _cluster(ALTER_CLUSTER),
    apis.INCREMENTAL_ALTER_CONFIGS: _parts(ALTER_TOPIC_CONFIGS, ALTER_GROUP_CONFIGS, ALTER_CLUSTER_CONFIGS),
    apis.ALTER_PARTITION_REASSIGNMENTS: _cluster(ALTER_CLUSTER),
    apis.LIST_PARTITION_REASSIGNMENTS: _cluster(DESCRIBE_CLUSTER),
    apis.UNREGISTER_BROKER: _cluster(ALTER_CLUSTER),
    apis.OFFSET_DELETE: _whole(Requirement((DELETE_GROUP,), "group_id"), parts=(READ_TOPIC,)),
    apis.DESCRIBE_CLIENT_QUOTAS: _cluster(DESCRIBE_CLUSTER_CONFIGS),
    apis.ALTER_CLIENT_QUOTAS: _cluster(ALTER_CLUSTER_CONFIGS),
    apis.DESCRIBE_USER_SCRAM_CREDENTIALS: _cluster(DESCRIBE_CLUSTER),
    apis.ALTER_USER_SCRAM_CREDENTIALS: _cluster(ALTER_CLUSTER),
    apis.ALTER_PARTITION: _cluster(CLUSTER_ACTION),
    apis.ENVELOPE: _cluster(CLUSTER_ACTION),
    apis.DESCRIBE_CLUSTER: _parts(DESCRIBE_CLUSTER),
    apis.DESCRIBE_PRODUCERS: _parts(READ_TOPIC),
    apis.DESCRIBE_TRANSACTIONS: _parts(DESCRIBE_TRANSACTIONAL_ID, DESCRIBE_TOPIC),
    apis.LIST_TRANSACTIONS: _parts(DESCRIBE_TRANSACTIONAL_ID),
    apis.CONSUMER_GROUP_HEARTBEAT: _whole(_MEMBER, parts=(DESCRIBE_TOPIC,)),
    apis.CONSUMER_GROUP_DESCRIBE: _parts(DESCRIBE_GROUP, DESCRIBE_TOPIC),
    apis.GET_TELEMETRY_SUBSCRIPTIONS: Rights(),  # any client, as in Kafka
    apis.PUSH_TELEMETRY: Rights(),
    apis.LIST_CONFIG_RESOURCES: _cluster(DESCRIBE_CLUSTER_CONFIGS),
    apis.DESCRIBE_TOPIC_PARTITIONS: _parts(DESCRIBE_TOPIC),
    apis.GET_REPLICA_LOG_INFO: _cluster(CLUSTER_ACTION),
    apis.ASSIGN_REPLICAS_TO_DIRS: _cluster(CLUSTER_ACTION),
    apis.DESCRIBE_WAITING: _cluster(CLUSTER_ACTION),
    apis.MIRROR_APPEND: _parts(CLUSTER_ACTION, ALTER_TOPIC),  # either of them
    apis.INTRODUCE: _parts(CLUSTER_ACTION),
    apis.FOLLOW_CLUSTER: _cluster(CLUSTER_ACTION),
}
