"""Operations on resources, as Kafka's access control lists name them (KIP-11).

An `Authorizer` (`requests/session.py`) decides whether a client has a right; a broker without one allows everything.
`handlers/rights.py` lists the rights that each API needs. Rights on the one resource that a whole request is about are
judged by the gate (`requests/requirements.py`), rights on each of several resources by the handler (`Call.may`).
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from moldau.errors import ErrorCode

CLUSTER_NAME = "kafka-cluster"
"""The name of the only resource of its type."""


class ResourceType(IntEnum):
    """The types of resources, with Kafka's numbers."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7

    __hash__ = int.__hash__  # that of enums hashes the name, in Python


class Operation(IntEnum):
    """The operations, with Kafka's numbers: the bits of "authorized operations" in replies."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15

    __hash__ = int.__hash__


DENIED = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
"""The error of a client that lacks a right on a resource of that type."""


class Right(NamedTuple):
    """An operation on a resource of a type."""

    resource_type: ResourceType
    operation: Operation

    @property
    def denied(self) -> ErrorCode:
        """The error of a client that lacks this right."""
        return DENIED[self.resource_type]


READ_TOPIC = Right(ResourceType.TOPIC, Operation.READ)
WRITE_TOPIC = Right(ResourceType.TOPIC, Operation.WRITE)
CREATE_TOPIC = Right(ResourceType.TOPIC, Operation.CREATE)
DELETE_TOPIC = Right(ResourceType.TOPIC, Operation.DELETE)
ALTER_TOPIC = Right(ResourceType.TOPIC, Operation.ALTER)
DESCRIBE_TOPIC = Right(ResourceType.TOPIC, Operation.DESCRIBE)
DESCRIBE_TOPIC_CONFIGS = Right(ResourceType.TOPIC, Operation.DESCRIBE_CONFIGS)
ALTER_TOPIC_CONFIGS = Right(ResourceType.TOPIC, Operation.ALTER_CONFIGS)
READ_GROUP = Right(ResourceType.GROUP, Operation.READ)
DELETE_GROUP = Right(ResourceType.GROUP, Operation.DELETE)
DESCRIBE_GROUP = Right(ResourceType.GROUP, Operation.DESCRIBE)
DESCRIBE_GROUP_CONFIGS = Right(ResourceType.GROUP, Operation.DESCRIBE_CONFIGS)
ALTER_GROUP_CONFIGS = Right(ResourceType.GROUP, Operation.ALTER_CONFIGS)
CREATE_IN_CLUSTER = Right(ResourceType.CLUSTER, Operation.CREATE)
DELETE_IN_CLUSTER = Right(ResourceType.CLUSTER, Operation.DELETE)
ALTER_CLUSTER = Right(ResourceType.CLUSTER, Operation.ALTER)
DESCRIBE_CLUSTER = Right(ResourceType.CLUSTER, Operation.DESCRIBE)
CLUSTER_ACTION = Right(ResourceType.CLUSTER, Operation.CLUSTER_ACTION)
DESCRIBE_CLUSTER_CONFIGS = Right(ResourceType.CLUSTER, Operation.DESCRIBE_CONFIGS)
ALTER_CLUSTER_CONFIGS = Right(ResourceType.CLUSTER, Operation.ALTER_CONFIGS)
IDEMPOTENT_WRITE = Right(ResourceType.CLUSTER, Operation.IDEMPOTENT_WRITE)
WRITE_TRANSACTIONAL_ID = Right(ResourceType.TRANSACTIONAL_ID, Operation.WRITE)
DESCRIBE_TRANSACTIONAL_ID = Right(ResourceType.TRANSACTIONAL_ID, Operation.DESCRIBE)
TWO_PHASE_COMMIT = Right(ResourceType.TRANSACTIONAL_ID, Operation.TWO_PHASE_COMMIT)
DESCRIBE_TOKEN = Right(ResourceType.DELEGATION_TOKEN, Operation.DESCRIBE)
CREATE_TOKENS = Right(ResourceType.USER, Operation.CREATE_TOKENS)
DESCRIBE_TOKENS = Right(ResourceType.USER, Operation.DESCRIBE_TOKENS)

OPERATIONS: Mapping[ResourceType, tuple[Operation, ...]] = {
    ResourceType.TOPIC: (
        Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE, Operation.ALTER, Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ, Operation.DELETE, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE, Operation.ALTER, Operation.DESCRIBE, Operation.CLUSTER_ACTION, Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS, Operation.IDEMPOTENT_WRITE,
    ),
}  # fmt: skip
"""The operations that replies list as authorized, where a client asks for them. Kafka 4.3.1 leaves DELETE of the
cluster out."""
ALL_OPERATIONS = {kind: sum(1 << one for one in operations) for kind, operations in OPERATIONS.items()}
"""All of them, as bits."""
