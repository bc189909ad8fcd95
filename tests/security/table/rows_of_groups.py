"""The requests of the table about groups and transactions, by API key."""

import uuid
from collections.abc import Mapping
from typing import Any

from tests.security.table.cases import CONSUMERS, GONE, GROUP, HERE, NOTHING, TRANSACTION, UNKNOWN_ID, Case, Fields, Row

G_READ, G_DESCRIBE, G_DELETE = (f"group {GROUP} {operation}" for operation in ("read", "describe", "delete"))
X_WRITE, X_DESCRIBE = (f"transactional_id {TRANSACTION} {operation}" for operation in ("write", "describe"))
T_READ, T_WRITE, T_DESCRIBE = (f"topic {HERE} {operation}" for operation in ("read", "write", "describe"))
OFFSET = {"partition_index": 0, "committed_offset": 1}
PRODUCER = {"producer_id": 5, "producer_epoch": 0}
BY_NAME_AND_NO_ID = 10


def topics(version: int, here: uuid.UUID, by_id: int, **rest: Any) -> list[Fields]:
    if version < by_id:
        return [{"name": name, **rest} for name in (HERE, GONE)]
    return [{"topic_id": one, **rest} for one in (here, UNKNOWN_ID)]


def commit(version: int, here: uuid.UUID) -> Fields:
    return {"group_id": GROUP, "topics": topics(version, here, BY_NAME_AND_NO_ID, partitions=[OFFSET])}


def commit_in_transaction(version: int, here: uuid.UUID) -> Fields:
    asked = topics(version, here, 6, partitions=[OFFSET])
    return {"transactional_id": TRANSACTION, "group_id": GROUP, **PRODUCER, "topics": asked}


def offsets(of_all: bool) -> Any:
    def fields(version: int, here: uuid.UUID) -> Fields:
        asked = None if of_all else topics(version, here, BY_NAME_AND_NO_ID, partition_indexes=[0])
        if version < 8:
            return {"group_id": GROUP, "topics": asked}
        return {"groups": [{"group_id": GROUP, "topics": asked}]}

    return fields


def coordinator(kind: int, *keys: str) -> Any:
    def fields(version: int, _: uuid.UUID) -> Fields:
        of_kind = {"key_type": kind} if version else {}
        return {"key": keys[0], **of_kind} if version < 4 else {"coordinator_keys": list(keys), **of_kind}

    return fields


def add_partitions(version: int, _: uuid.UUID) -> Fields:
    asked = [{"name": name, "partitions": [0]} for name in (HERE, GONE)]
    if version >= 4:
        return {"transactions": [{"transactional_id": TRANSACTION, **PRODUCER, "topics": asked}]}
    own = {f"v3_and_below_{name}": value for name, value in PRODUCER.items()}
    return {"v3_and_below_transactional_id": TRANSACTION, **own, "v3_and_below_topics": asked}


def leave(version: int, _: uuid.UUID) -> Fields:
    own = {"member_id": "m"} if version < 3 else {"members": [{"member_id": "m"}]}
    return {"group_id": GROUP, **own}


JOINING = {
    "group_id": GROUP, "session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, "member_id": "",
    "protocol_type": "consumer", "protocols": [{"name": "range", "metadata": b""}],
}  # fmt: skip
SYNCING = {"group_id": GROUP, "generation_id": 1, "member_id": "m"}
NAMED_PROTOCOL = {"protocol_type": "consumer", "protocol_name": "range"}
MARKER = {
    **PRODUCER, "transaction_result": True, "coordinator_epoch": 0,
    "topics": [{"name": name, "partition_indexes": [0]} for name in (HERE, GONE)],
}  # fmt: skip
BEAT = {
    "member_id": "AAAAAAAAAAAAAAAAAAAAAQ", "member_epoch": 0, "rebalance_timeout_ms": 10_000,
    "topic_partitions": [], "subscribed_topic_names": [HERE, GONE],
}  # fmt: skip

OF_GROUPS: Mapping[int, Row] = {
    8: (Case("two topics", commit, (NOTHING, (G_READ,), (G_READ, T_READ), (T_READ,))),),
    9: (
        Case("two topics", offsets(of_all=False), (NOTHING, (G_DESCRIBE,), (G_DESCRIBE, T_DESCRIBE)), (1, 9)),
        Case("all topics", offsets(of_all=True), (NOTHING, (G_DESCRIBE,), (G_READ, T_READ)), (2, 99)),
        Case("by id", offsets(of_all=False), (NOTHING, (G_DESCRIBE,), (G_DESCRIBE, T_DESCRIBE)), (10, 99)),
    ),
    10: (
        Case("of groups", coordinator(0, GROUP, GONE), (NOTHING, (G_DESCRIBE,))),
        Case("of transactions", coordinator(1, TRANSACTION, GONE), (NOTHING, (X_DESCRIBE,)), (1, 99)),
    ),
    11: (Case("a new member", JOINING), Case("with the right", JOINING, ((G_READ,),), (4, 99))),
    12: (Case("a member", {**SYNCING}, (NOTHING, (G_READ,), (G_DESCRIBE,))),),
    13: (Case("a member", leave, (NOTHING, (G_READ,))),),
    14: (
        Case("a member", {**SYNCING, "assignments": []}, (NOTHING, (G_READ,))),
        Case(
            "that names its protocol", {**SYNCING, **NAMED_PROTOCOL, "assignments": []}, (NOTHING, (G_READ,)), (5, 99)
        ),
    ),
    15: (
        Case("two groups", {"groups": [GROUP, GONE]}, (NOTHING, (G_DESCRIBE,))),
        Case(
            "with operations",
            {"groups": [GROUP], "include_authorized_operations": True},
            (NOTHING, (G_READ,)),
            (3, 99),
        ),
    ),
    16: (Case("all", {}, (NOTHING, (G_DESCRIBE,), ("cluster describe",))),),
    22: (
        Case(
            "of a transaction",
            {"transactional_id": TRANSACTION, "transaction_timeout_ms": 60_000},
            (NOTHING, (X_DESCRIBE,)),
        ),
        Case(
            "alone",
            {"transactional_id": None, "transaction_timeout_ms": 60_000},
            (NOTHING, (T_WRITE,), (T_READ,), ("cluster idempotent_write",)),
        ),
    ),
    24: (
        Case("of a client", add_partitions, (NOTHING, (X_WRITE,), (X_WRITE, T_WRITE)), (0, 3)),
        Case("of a broker", add_partitions, (NOTHING, (X_WRITE, T_WRITE), ("cluster cluster_action",)), (4, 99)),
    ),
    25: (Case("a group", {"transactional_id": TRANSACTION, **PRODUCER, "group_id": GROUP}, (NOTHING, (X_WRITE,))),),
    26: (Case("commit", {"transactional_id": TRANSACTION, **PRODUCER, "committed": True}),),
    27: (Case("a marker", {"markers": [MARKER]}),),
    28: (Case("two topics", commit_in_transaction, (NOTHING, (X_WRITE,), (X_WRITE, G_READ))),),
    42: (Case("two groups", {"groups_names": [GROUP, GONE]}, (NOTHING, (G_DESCRIBE,), (f"group {GONE} delete",))),),
    47: (
        Case(
            "two topics",
            {
                "group_id": GROUP,
                "topics": [{"name": name, "partitions": [{"partition_index": 0}]} for name in (HERE, GONE)],
            },
            (NOTHING, (G_DELETE,)),
        ),
    ),
    65: (
        Case(
            "two ids",
            {"transactional_ids": [TRANSACTION, GONE]},
            (NOTHING, (X_DESCRIBE,)),
        ),
    ),
    66: (Case("all", {"state_filters": [], "producer_id_filters": []}, (NOTHING, (X_DESCRIBE,))),),
    68: (
        Case(
            "a new member", {"group_id": "new", **BEAT}, (NOTHING, ("group new read",), ("group new read", T_DESCRIBE))
        ),
    ),
    69: (Case("two groups", {"group_ids": [CONSUMERS, GONE]}, (NOTHING, (f"group {CONSUMERS} describe",))),),
}
