"""The requests of the table about topics, settings and the cluster, by API key.

A new API needs its row, and what Kafka answers to it: `python -m tests.security.table --write`. An API that asks for no
right, or that no client can send, has a reason instead.
"""

import uuid
from collections.abc import Mapping
from typing import Any

from moldau.records.batch import TRANSACTIONAL_BIT, encode_batch
from moldau.records.batch import Row as RecordRow
from tests.security.table.cases import (
    GONE,
    GROUP,
    HERE,
    NOTHING,
    TRANSACTION,
    UNKNOWN_ID,
    Case,
    Entry,
    Fields,
    Row,
    Unasked,
)
from tests.security.table.rows_of_groups import OF_GROUPS
from tests.security.table.rows_of_logins import OF_LOGINS

WRITTEN_MS = 1_700_000_000_000
BATCH = bytes(encode_batch([RecordRow(None, b"v", WRITTEN_MS)]))
IN_TRANSACTION = bytes(
    encode_batch(
        [RecordRow(None, b"v", WRITTEN_MS)],
        producer_id=5,
        producer_epoch=0,
        base_sequence=0,
        attributes=TRANSACTIONAL_BIT,
    )
)
BETWEEN_BROKERS = Unasked("between brokers, on their listener; tests/handlers/between_brokers asks it")
OURS = Unasked("Kafka has no such API; tests/handlers/producing/test_mirror_append.py asks it")
NO_RIGHT = Unasked("asks for no right")


def named(version: int, here: uuid.UUID, by_id: int, field: str = "name", **rest: Any) -> list[Fields]:
    """The two topics, by name or (from version `by_id` on) by id."""
    if version < by_id:
        return [{field: name, **rest} for name in (HERE, GONE)]
    return [{"topic_id": one, **rest} for one in (here, UNKNOWN_ID)]


def produce(records: bytes, transactional_id: str | None, acks: int = -1) -> Any:
    def fields(version: int, here: uuid.UUID) -> Fields:
        data = [{"index": 0, "records": records}]
        topics = named(version, here, 13, partition_data=data)
        return {"transactional_id": transactional_id, "acks": acks, "timeout_ms": 1000, "topic_data": topics}

    return fields


def fetch(follows: bool) -> Any:
    def fields(version: int, here: uuid.UUID) -> Fields:
        partitions = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}]
        topics = named(version, here, 13, "topic", partitions=partitions)
        request = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1000, "topics": topics}
        if not follows:
            return {"replica_id": -1, **request}
        return {"replica_id": 7, **request} if version < 15 else {"replica_state": {"replica_id": 7}, **request}

    return fields


def by_ids(_: int, here: uuid.UUID) -> Fields:
    ids = [{"name": None, "topic_id": one} for one in (here, UNKNOWN_ID)]
    return {"topics": ids, "allow_auto_topic_creation": False}


def delete_by_ids(_: int, here: uuid.UUID) -> Fields:
    return {"topics": [{"name": None, "topic_id": one} for one in (here, UNKNOWN_ID)], "timeout_ms": 1000}


def delete_by_names(version: int, _: uuid.UUID) -> Fields:
    if version < 6:
        return {"topic_names": [HERE, GONE], "timeout_ms": 1000}
    return {"topics": [{"name": name} for name in (HERE, GONE)], "timeout_ms": 1000}


def of_config(version_of: str) -> Fields:
    """Resources that have settings: topics, a broker, a logger, a group."""
    change = {"name": "retention.ms", "value": "99"}
    own: dict[str, Fields] = {
        "describe": {"configuration_keys": ["retention.ms"]},
        "replace": {"configs": [change]},
        "alter": {"configs": [{**change, "config_operation": 0}]},
    }
    kinds = [(2, HERE), (2, GONE), (4, "1"), (32, GROUP)]
    resources = [{"resource_type": kind, "resource_name": name, **own[version_of]} for kind, name in kinds]
    return {"resources": resources, **({} if version_of == "describe" else {"validate_only": True})}


def of_logger(kind: str) -> Fields:
    change = {"name": "kafka.log", "value": "INFO", **({"config_operation": 0} if kind == "alter" else {})}
    own: Fields = {} if kind == "describe" else {"configs": [change]}
    resources = [{"resource_type": 8, "resource_name": "1", **own}]
    return {"resources": resources, **({} if kind == "describe" else {"validate_only": True})}


ANY = 1
ACL_FILTER = {
    "resource_type_filter": ANY, "resource_name_filter": None, "pattern_type_filter": ANY, "principal_filter": None,
    "host_filter": None, "operation": ANY, "permission_type": ANY,
}  # fmt: skip
ACL = {
    "resource_type": 2, "resource_name": HERE, "resource_pattern_type": 3, "principal": "User:ann", "host": "*",
    "operation": 3, "permission_type": 3,
}  # fmt: skip
OF_ANN = {**ACL_FILTER, "principal_filter": "User:ann"}
MATCH, CLUSTER = 2, 4
ABOUT_HERE = {"resource_name_filter": HERE, "pattern_type_filter": MATCH}
WRONG_ACLS = (
    {**ACL, "resource_name": ""},
    {**ACL, "resource_type": CLUSTER},
    {**ACL, "principal": "ann"},
    {**ACL, "resource_type": CLUSTER, "resource_name": "kafka-cluster"},  # it has no Read, which is taken all the same
    {**ACL, "principal": "user:ann"},
    {**ACL, "principal": "User:"},
)
MAY_ALTER, MAY_DESCRIBE = ("cluster alter",), ("cluster describe",)
READ, WRITE, DESCRIBE, DELETE, ALTER, CREATE = (
    f"topic {HERE} {operation}" for operation in ("read", "write", "describe", "delete", "alter", "create")
)
PARTITION = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}
NEW_TOPICS = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in (GONE, HERE)]
CREATION = {"topics": NEW_TOPICS, "timeout_ms": 1000, "validate_only": True}
MOVES = [{"name": name, "partitions": [{"partition_index": 0, "replicas": [1]}]} for name in (HERE, GONE)]
QUOTA = {
    "entity": [{"entity_type": "user", "entity_name": "ann"}],
    "ops": [{"key": "producer_byte_rate", "value": 1.0}],
}
PASSWORD = {"name": "ann", "mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": b"p" * 32}
ALL_OPERATIONS = {"include_cluster_authorized_operations": True, "include_topic_authorized_operations": True}

ROWS: Mapping[int, Row] = {
    0: (
        Case("records", produce(BATCH, None), (NOTHING, (WRITE,), (DESCRIBE,)), (3, 99)),
        Case("without an acknowledgement", produce(BATCH, None, 0), versions=(3, 99)),
        Case("records of a transaction", produce(IN_TRANSACTION, TRANSACTION), versions=(3, 99)),
    ),
    1: (
        Case("a consumer", fetch(follows=False), (NOTHING, (READ,), (DESCRIBE,))),
        Case("a follower", fetch(follows=True)),
    ),
    2: (
        Case(
            "ends",
            {
                "replica_id": -1,
                "topics": [
                    {"name": name, "partitions": [{"partition_index": 0, "timestamp": -1}]} for name in (HERE, GONE)
                ],
            },
            (NOTHING, (DESCRIBE,), (READ,), (CREATE,)),
        ),
    ),
    3: (
        Case(
            "by name",
            {"topics": [{"name": name} for name in (HERE, GONE)], "allow_auto_topic_creation": False},
            (NOTHING, (DESCRIBE,), (WRITE,)),
        ),
        Case("before the handshake of a login", {"topics": [{"name": HERE}]}, entry=Entry.NEW),
        Case("before the login", {"topics": [{"name": HERE}]}, entry=Entry.HANDSHAKE),
        Case("all", {"topics": None}, (NOTHING, (DESCRIBE,)), (1, 99)),
        Case("by id", by_ids, (NOTHING, (DESCRIBE,)), (12, 99)),
        Case(
            "a topic that it would create",
            {"topics": [{"name": name} for name in (HERE, GONE)], "allow_auto_topic_creation": True},
        ),
        Case(
            "operations",
            {"topics": [{"name": HERE}], "allow_auto_topic_creation": False, **ALL_OPERATIONS},
            (NOTHING, (READ, "cluster describe"), ("cluster create",)),
            (8, 99),
        ),
    ),
    18: NO_RIGHT,
    19: (
        Case("only validated", CREATION, (NOTHING, (f"topic {GONE} create",), ("cluster create",))),
        Case(
            "with its settings",
            CREATION,
            ((f"topic {GONE} create", f"topic {GONE} describe_configs"),),
            (2, 4),
        ),
    ),
    20: (
        Case("by name", delete_by_names, (NOTHING, (DESCRIBE,))),
        Case("by id", delete_by_ids, (NOTHING, (DESCRIBE,)), (6, 99)),
    ),
    21: (
        Case(
            "from the beginning",
            {
                "topics": [
                    {"name": name, "partitions": [{"partition_index": 0, "offset": 0}]} for name in (HERE, GONE)
                ],
                "timeout_ms": 1000,
            },
            (NOTHING, (DELETE,)),
        ),
    ),
    23: (
        Case(
            "an end",
            {"topics": [{"topic": name, "partitions": [PARTITION]} for name in (HERE, GONE)]},
            (NOTHING, (DESCRIBE,), ("cluster cluster_action",)),
        ),
    ),
    30: (
        Case("one, twice", {"creations": [ACL, ACL]}, (NOTHING, MAY_ALTER)),
        Case("wrong ones among right ones", {"creations": [ACL, *WRONG_ACLS]}, (MAY_ALTER,)),
        Case("of unknown kinds", {"creations": [{**ACL, "resource_pattern_type": MATCH}]}, (MAY_ALTER,)),
    ),
    29: (
        Case("all", ACL_FILTER, (NOTHING, ("cluster create",))),
        Case("of somebody", OF_ANN, (MAY_ALTER,)),
        Case(
            "what concerns a topic",
            {**OF_ANN, "resource_name_filter": HERE, "pattern_type_filter": MATCH},
            (MAY_ALTER,),
        ),
        Case("of nobody", {**OF_ANN, "principal_filter": "User:nobody"}, (MAY_ALTER,)),
    ),
    31: (
        Case("all", {"filters": [ACL_FILTER, ACL_FILTER]}),
        Case("of somebody", {"filters": [OF_ANN, {**OF_ANN, "operation": 4}]}, (MAY_ALTER,)),
    ),
    32: (
        Case("a logger", of_logger("describe")),
        Case(
            "topics, a broker, a group",
            of_config("describe"),
            (NOTHING, (f"topic {HERE} describe_configs",), (f"topic {HERE} alter_configs",)),
        ),
    ),
    33: (
        Case("a logger", of_logger("replace")),
        Case("only validated", of_config("replace"), (NOTHING, (f"topic {HERE} alter_configs",))),
    ),
    44: (
        Case("a logger", of_logger("alter")),
        Case("only validated", of_config("alter"), (NOTHING, (f"topic {HERE} alter_configs",))),
    ),
    34: (
        Case(
            "to a folder",
            {"dirs": [{"path": "/nowhere", "topics": [{"name": name, "partitions": [0]} for name in (HERE, GONE)]}]},
            (NOTHING, MAY_ALTER),
        ),
    ),
    35: (Case("all", {"topics": None}),),
    37: (
        Case(
            "only validated",
            {
                "topics": [{"name": name, "count": 2} for name in (HERE, GONE)],
                "timeout_ms": 1000,
                "validate_only": True,
            },
            (NOTHING, (ALTER,)),
        ),
    ),
    43: (
        Case(
            "preferred",
            {
                "topic_partitions": [{"topic": name, "partitions": [0]} for name in (HERE, GONE)],
                "timeout_ms": 1000,
            },
            (NOTHING, MAY_ALTER),
        ),
    ),
    45: (Case("two topics", {"topics": MOVES, "timeout_ms": 1000}, (NOTHING, MAY_ALTER)),),
    46: (Case("all", {"topics": None, "timeout_ms": 1000}, (NOTHING, MAY_DESCRIBE)),),
    48: (Case("all", {"components": []}, (NOTHING, ("cluster describe_configs",))),),
    49: (Case("a user", {"entries": [QUOTA], "validate_only": True}, (NOTHING, ("cluster alter_configs",))),),
    50: (Case("a user", {"users": [{"name": "bob"}]}, (NOTHING, MAY_DESCRIBE)),),
    51: (Case("a user", {"deletions": [], "upsertions": [PASSWORD]}, (NOTHING, MAY_ALTER)),),
    56: BETWEEN_BROKERS,
    58: BETWEEN_BROKERS,
    60: (
        Case(
            "with operations",
            {"include_cluster_authorized_operations": True},
            (NOTHING, ("cluster describe",), ("cluster describe", "cluster alter")),
        ),
    ),
    61: (
        Case(
            "two topics",
            {"topics": [{"name": name, "partition_indexes": [0]} for name in (HERE, GONE)]},
            (NOTHING, (DESCRIBE,)),
        ),
        Case("a name that no topic has", {"topics": [{"name": "a name", "partition_indexes": [0]}]}),
    ),
    64: (Case("a broker that is not there", {"broker_id": 99}, (NOTHING, MAY_ALTER)),),
    73: BETWEEN_BROKERS,
    71: NO_RIGHT,
    72: NO_RIGHT,
    74: (
        Case("all", {"resource_types": []}),
        Case("topics", {"resource_types": [2]}, (("cluster describe_configs",),), (1, 99)),
    ),
    75: (
        Case(
            "by name",
            {"topics": [{"name": name} for name in (HERE, GONE)], "response_partition_limit": 10},
            (NOTHING, (DESCRIBE,)),
        ),
        Case("all", {"topics": [], "response_partition_limit": 10}, (NOTHING, (DESCRIBE,))),
    ),
    30002: BETWEEN_BROKERS,
    30003: BETWEEN_BROKERS,
    30000: BETWEEN_BROKERS,
    30001: BETWEEN_BROKERS,
    30_010: OURS,
    **OF_GROUPS,
    **OF_LOGINS,
}
