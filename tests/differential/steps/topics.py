"""Asking what is there, and making, growing and deleting topics."""

from moldau.protocol.apis import (
    API_VERSIONS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    DESCRIBE_CLUSTER,
    METADATA,
)
from tests.differential.script import Step, Tree, V, step

STEPS: tuple[Step, ...] = (
    step("what do you speak, in the oldest way", API_VERSIONS, 0),
    step("what do you speak", API_VERSIONS, 2),
    step("what do you speak, with the client's name", API_VERSIONS, 4, {"client_software_name": "x", "client_software_version": "1"}),
    step("who is there", DESCRIBE_CLUSTER, 0),
)
