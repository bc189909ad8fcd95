"""What Kafka does otherwise than one would think, found request by request: names that collide, policies that are
empty, time-outs that no coordinator allows, a path with a slash at its end, settings of a group that is gone."""

from moldau.protocol.apis import (
    ALTER_REPLICA_LOG_DIRS,
    CREATE_TOPICS,
    DELETE_GROUPS,
    DELETE_RECORDS,
    DELETE_TOPICS,
    DESCRIBE_CONFIGS,
    INCREMENTAL_ALTER_CONFIGS,
    INIT_PRODUCER_ID,
    METADATA,
    OFFSET_COMMIT,
    PRODUCE,
)
from tests.differential.batches import batch
from tests.differential.script import Step, Variables, step
from tests.differential.steps.produce import to
from tests.differential.steps.topics import has_leaders
from tests.differential.steps.transaction_requests import init

GROUP = 32
GONE = "gone-but-set"


def new(name: str, **configs: str) -> dict[str, object]:
    settings = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    return {"name": name, "num_partitions": 1, "replication_factor": 1, "configs": settings}


def with_slash(variables: Variables) -> str:
    return f"{variables['log folder']}/"


BEFORE_COORDINATORS: tuple[Step, ...] = tuple(
    step(
        f"v{version}: {timeout_ms} ms, before anybody coordinates", INIT_PRODUCER_ID, version, init("eager", timeout_ms)
    )
    for version in (0, 5)
    for timeout_ms in (0, 900_001)
)
"""Asked first: `__transaction_state` does not exist yet, and none of these makes it."""

NAMES: tuple[Step, ...] = (
    step("a name with a dot", CREATE_TOPICS, 7, {"topics": [new("other.a")]}),
    step("a name that collides with it", CREATE_TOPICS, 7, {"topics": [new("other_a")]}),
    step("the name with a dot is deleted", DELETE_TOPICS, 5, {"topic_names": ["other.a"], "timeout_ms": 10000}),
)


def to_both(acks: int) -> dict[str, object]:
    """A record for a topic that is there, and one for a topic that is not."""
    parts = [{"index": 0, "records": batch(b"x")}]
    topics = [{"name": name, "partition_data": parts} for name in ("uncleaned", "absent")]
    return {"acks": acks, "timeout_ms": 5000, "topic_data": topics}


POLICIES: tuple[Step, ...] = (
    step("a topic without a cleanup policy", CREATE_TOPICS, 7, {"topics": [new("uncleaned", cleanup_policy="")]}),
    step("it has a leader", METADATA, 12, {"topics": [{"name": "uncleaned"}]}, until=has_leaders),
    step("it takes records", PRODUCE, 9, to("uncleaned", batch(b"1", b"2", b"3"))),
    step(
        "its records are deleted",
        DELETE_RECORDS,
        2,
        {"topics": [{"name": "uncleaned", "partitions": [{"partition_index": 0, "offset": 2}]}], "timeout_ms": 5000},
    ),
    step("records for a topic that is there, and for none", PRODUCE, 9, to_both(-1)),
    step("records for none, without an answer", PRODUCE, 9, to_both(0), connection="unanswered"),
)

FOLDERS: tuple[Step, ...] = (
    step(
        "put a partition into a folder with a slash at its end",
        ALTER_REPLICA_LOG_DIRS,
        2,
        {"dirs": [{"path": with_slash, "topics": [{"name": "uncleaned", "partitions": [0]}]}]},
    ),
)

_settings = {"resource_type": GROUP, "resource_name": GONE}
SETTINGS_OF_GROUPS: tuple[Step, ...] = (
    step(
        "a group that will be gone has a setting",
        INCREMENTAL_ALTER_CONFIGS,
        1,
        {"resources": [{**_settings, "configs": [{"name": "consumer.session.timeout.ms", "value": "50000"}]}]},
    ),
    step(
        "it commits",
        OFFSET_COMMIT,
        8,
        {
            "group_id": GONE,
            "topics": [{"name": "uncleaned", "partitions": [{"partition_index": 0, "committed_offset": 1}]}],
        },
    ),
    step("it is deleted", DELETE_GROUPS, 2, {"groups_names": [GONE]}),
    step(
        "its setting stays",
        DESCRIBE_CONFIGS,
        4,
        {"resources": [{**_settings, "configuration_keys": ["consumer.session.timeout.ms"]}]},
        until=lambda reply: reply["results"][0]["configs"][0]["value"] == "50000",
    ),
    step(
        "its setting goes",
        INCREMENTAL_ALTER_CONFIGS,
        1,
        {"resources": [{**_settings, "configs": [{"name": "consumer.session.timeout.ms", "config_operation": 1}]}]},
    ),
)

STEPS: tuple[Step, ...] = (*NAMES, *POLICIES, *FOLDERS, *SETTINGS_OF_GROUPS)
