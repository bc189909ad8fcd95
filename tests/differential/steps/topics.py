"""Asking what is there, and making, growing and deleting topics."""

import uuid

from moldau.protocol.apis import (
    API_VERSIONS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    DESCRIBE_CLUSTER,
    LIST_OFFSETS,
    METADATA,
)
from tests.differential.script import Step, Tree, V, step

NOBODY = uuid.UUID("00000000-dead-beef-0000-000000000001")
KEPT = {"name": "retention.ms", "value": "-1"}


def has_leaders(reply: Tree) -> bool:
    """Every topic asked for is there, and its partitions have leaders."""
    return all(
        topic.get("error_code", 0) == 0
        and topic["partitions"]
        and all(p["error_code"] == 0 for p in topic["partitions"])
        for topic in reply["topics"]
    )


def is_gone(reply: Tree) -> bool:
    return all(topic["error_code"] for topic in reply["topics"])


def new(name: str, partitions: int = 1, replicas: int = 1, **settings: str) -> dict[str, object]:
    configs = [{"name": key.replace("_", "."), "value": value} for key, value in settings.items()]
    return {"name": name, "num_partitions": partitions, "replication_factor": replicas, "configs": [KEPT, *configs]}


def made(what: str, *topics: dict[str, object]) -> tuple[Step, ...]:
    """Topics made and waited for: metadata may name a leader that does not lead yet."""
    asked = [
        {
            "name": topic["name"],
            "partitions": [{"partition_index": i, "timestamp": -1} for i in range(int(str(topic["num_partitions"])))],
        }
        for topic in topics
    ]
    return (
        step(f"create topics {what}", CREATE_TOPICS, 7, {"topics": list(topics)}),
        step(
            f"metadata of the topics {what}",
            METADATA,
            9,
            {"topics": [{"name": topic["name"]} for topic in topics]},
            until=has_leaders,
        ),
        step(f"the ends of the topics {what}", LIST_OFFSETS, 7, {"replica_id": -1, "topics": asked}, until=has_leaders),
    )


ASKING: tuple[Step, ...] = (
    step("what do you speak, in the oldest way", API_VERSIONS, 0),
    step("what do you speak, with throttling", API_VERSIONS, 2),
    step("what do you speak", API_VERSIONS, 3, {"client_software_name": "x", "client_software_version": "1"}),
    step(
        "what do you speak, newest", API_VERSIONS, 4, {"client_software_name": "x-y.z", "client_software_version": "1"}
    ),
    step("a client without a name", API_VERSIONS, 3),
    step(
        "a client whose name has spaces",
        API_VERSIONS,
        4,
        {"client_software_name": "a b", "client_software_version": "1"},
    ),
    step("who is there", DESCRIBE_CLUSTER, 0),
    step("who is there and what may I", DESCRIBE_CLUSTER, 1, {"include_cluster_authorized_operations": True}),
    step("which controllers are there", DESCRIBE_CLUSTER, 1, {"endpoint_type": 2}),
    step("endpoints of a type nobody knows", DESCRIBE_CLUSTER, 1, {"endpoint_type": 9}),
    step("who is there, fenced ones too", DESCRIBE_CLUSTER, 2, {"include_fenced_brokers": True}),
    step("metadata of nothing", METADATA, 1, {"topics": []}),
    step("metadata of all, of which there is none yet", METADATA, 0, {"topics": []}),
    step("metadata of all, newest", METADATA, 13, {"topics": None}),
)

CREATING: tuple[Step, ...] = (
    step("create a topic in the oldest way", CREATE_TOPICS, 2, {"topics": [new("plain")]}),
    step("create the plain topic again", CREATE_TOPICS, 2, {"topics": [new("plain")]}),
    step(
        "create a topic of two partitions with a setting",
        CREATE_TOPICS,
        5,
        {"topics": [new("events", 2, segment_bytes="1048576")]},
    ),
    step("only say whether it would work", CREATE_TOPICS, 5, {"topics": [new("dry", 3)], "validate_only": True}),
    step("only say whether it would fail", CREATE_TOPICS, 4, {"topics": [new("plain", 3)], "validate_only": True}),
    step(
        "create the topics that the other areas use",
        CREATE_TOPICS,
        7,
        {
            "topics": [
                new("compacted", cleanup_policy="compact"),
                new("stamped", message_timestamp_type="LogAppendTime"),
                new("cautious", min_insync_replicas="2"),
                new("small", max_message_bytes="500"),
                new("strict", message_timestamp_after_max_ms="1000", message_timestamp_before_max_ms="3600000000"),
                new("doomed", 2),
                new("grown"),
                new("read", 3),
                new("configured"),
                new("offsets", 2),
                new("recompressed", compression_type="gzip"),
            ]
        },
    ),
    step(
        "let the broker choose partitions and replicas",
        CREATE_TOPICS,
        7,
        {"topics": [{"name": "chosen", "num_partitions": -1, "replication_factor": -1}]},
    ),
    step("defaults before they were allowed", CREATE_TOPICS, 3, {"topics": [new("early", -1, -1)]}),
    step(
        "assign replicas by hand",
        CREATE_TOPICS,
        6,
        {
            "topics": [
                {
                    "name": "assigned",
                    "num_partitions": -1,
                    "replication_factor": -1,
                    "assignments": [
                        {"partition_index": 1, "broker_ids": [1]},
                        {"partition_index": 0, "broker_ids": [1]},
                    ],
                }
            ]
        },
    ),
    step(
        "names that are none",
        CREATE_TOPICS,
        7,
        {"topics": [new(name) for name in ("", ".", "..", "a b", "ü", "x" * 250, "a/b")]},
    ),
    step("the longest name", CREATE_TOPICS, 7, {"topics": [new("y" * 249)], "validate_only": True}),
    step("numbers that are none", CREATE_TOPICS, 7, {"topics": [new("n0", 0), new("n-2", -2), new("r0", 1, 0)]}),
    step("more replicas than brokers", CREATE_TOPICS, 7, {"topics": [new("r2", 1, 2), new("r-5", 1, -5)]}),
    step("far too many partitions", CREATE_TOPICS, 7, {"topics": [new("million", 1_000_000)], "validate_only": True}),
    step("the same topic twice in a request", CREATE_TOPICS, 7, {"topics": [new("twin"), new("twin"), new("alone")]}),
    step("create in no time", CREATE_TOPICS, 7, {"topics": [new("hurried"), new("a b")], "timeout_ms": 0}),
    step("create in less than no time", CREATE_TOPICS, 7, {"topics": [new("hurried")], "timeout_ms": -1}),
    step("no topic at all", CREATE_TOPICS, 5, {"topics": []}),
    step("a setting nobody knows", CREATE_TOPICS, 7, {"topics": [new("odd", no_such_setting="1")]}),
    step("a value that is none", CREATE_TOPICS, 7, {"topics": [new("odd", segment_bytes="many")]}),
    step("a value out of bounds", CREATE_TOPICS, 7, {"topics": [new("odd", min_insync_replicas="0")]}),
    step(
        "a setting without a value",
        CREATE_TOPICS,
        7,
        {"topics": [{**new("odd"), "configs": [{"name": "retention.ms", "value": None}]}]},
    ),
    step("create a name with a dot", CREATE_TOPICS, 7, {"topics": [new("dot.ted")]}),
    step("create one that differs from it only by an underscore", CREATE_TOPICS, 7, {"topics": [new("dot_ted")]}),
)


def assigned(*replicas: tuple[int, list[int]], **more: object) -> dict[str, object]:
    listed = [{"partition_index": index, "broker_ids": brokers} for index, brokers in replicas]
    return {"name": "by.hand", "num_partitions": -1, "replication_factor": -1, "assignments": listed, **more}


ASSIGNING: tuple[Step, ...] = tuple(
    step(f"assigned by hand, wrongly: {what}", CREATE_TOPICS, 7, {"topics": [topic]})
    for what, topic in (
        ("a broker that is not there", assigned((0, [9]))),
        ("the same broker twice", assigned((0, [1, 1]))),
        ("a gap in the partitions", assigned((0, [1]), (2, [1]))),
        ("a partition twice", assigned((0, [1]), (0, [1]))),
        ("no replica", assigned((0, []))),
        ("a number of partitions as well", assigned((0, [1]), num_partitions=1)),
        ("a negative partition", assigned((-1, [1]))),
    )
)

LOOKING: tuple[Step, ...] = (
    step(
        "metadata of the new topics",
        METADATA,
        12,
        {"topics": [{"name": name} for name in ("events", "plain", "read", "grown", "configured", "offsets")]},
        until=has_leaders,
        save={
            "events": "topics[name=events].topic_id",
            "plain": "topics[name=plain].topic_id",
            "read": "topics[name=read].topic_id",
            "offsets": "topics[name=offsets].topic_id",
            "grown": "topics[name=grown].topic_id",
        },
    ),
    step(
        "metadata of the rest",
        METADATA,
        9,
        {"topics": [{"name": n} for n in ("compacted", "stamped", "small", "strict", "doomed", "recompressed")]},
        until=has_leaders,
    ),
    step(
        "metadata of those assigned and chosen",
        METADATA,
        10,
        {"topics": [{"name": "assigned"}, {"name": "chosen"}, {"name": "dot.ted"}]},
        until=has_leaders,
        save={"assigned": "topics[name=assigned].topic_id"},
    ),
    step("metadata in the oldest way", METADATA, 0, {"topics": [{"name": "events"}, {"name": "plain"}]}),
    step("metadata with racks and controller", METADATA, 1, {"topics": [{"name": "events"}]}),
    step("metadata with the cluster's id", METADATA, 2, {"topics": [{"name": "events"}]}),
    step("metadata with offline replicas", METADATA, 5, {"topics": [{"name": "events"}]}),
    step("metadata with leader epochs", METADATA, 7, {"topics": [{"name": "events"}]}),
    step(
        "metadata with what I may do",
        METADATA,
        8,
        {
            "topics": [{"name": "events"}],
            "include_cluster_authorized_operations": True,
            "include_topic_authorized_operations": True,
        },
    ),
    step(
        "metadata with what I may do with a topic",
        METADATA,
        13,
        {"topics": [{"name": "events"}], "include_topic_authorized_operations": True},
    ),
    step("metadata by id", METADATA, 12, {"topics": [{"name": None, "topic_id": V("events")}]}),
    step("metadata by an id nobody has", METADATA, 13, {"topics": [{"name": None, "topic_id": NOBODY}]}),
    step("metadata by id before it was possible", METADATA, 10, {"topics": [{"name": "", "topic_id": V("events")}]}),
    step("metadata by neither name nor id", METADATA, 12, {"topics": [{"name": None}]}),
    step(
        "metadata of one that is not there",
        METADATA,
        4,
        {"topics": [{"name": "absent"}, {"name": "plain"}], "allow_auto_topic_creation": False},
    ),
    step(
        "metadata of names that are none",
        METADATA,
        12,
        {"topics": [{"name": name} for name in ("", "a b", "..", "x" * 250)]},
    ),
    step("metadata of the same topic twice", METADATA, 7, {"topics": [{"name": "plain"}, {"name": "plain"}]}),
    step("asking for a topic makes it", METADATA, 4, {"topics": [{"name": "auto"}]}, until=has_leaders),
    step("asking in the oldest way makes it too", METADATA, 0, {"topics": [{"name": "auto0"}]}, until=has_leaders),
    step(
        "metadata of all topics",
        METADATA,
        7,
        {"topics": None},
    ),
)


def more(name: str, count: int, assignments: list[list[int]] | None = None) -> dict[str, object]:
    listed = None if assignments is None else [{"broker_ids": brokers} for brokers in assignments]
    return {"name": name, "count": count, "assignments": listed}


GROWING: tuple[Step, ...] = (
    step("grow a topic", CREATE_PARTITIONS, 0, {"topics": [more("grown", 2)], "timeout_ms": 5000}),
    step(
        "it has grown",
        METADATA,
        7,
        {"topics": [{"name": "grown"}]},
        until=lambda r: has_leaders(r) and len(r["topics"][0]["partitions"]) == 2,
    ),
    step("grow by hand", CREATE_PARTITIONS, 2, {"topics": [more("grown", 4, [[1], [1]])], "timeout_ms": 5000}),
    step(
        "only say whether it would grow",
        CREATE_PARTITIONS,
        3,
        {"topics": [more("grown", 6)], "timeout_ms": 5000, "validate_only": True},
    ),
    step("grow in no time", CREATE_PARTITIONS, 3, {"topics": [more("grown", 5), more("absent", 2)], "timeout_ms": 0}),
    step(
        "growing wrongly",
        CREATE_PARTITIONS,
        3,
        {
            "topics": [
                more("grown", 4),
                more("plain", 0),
                more("absent", 3),
                more("events", -1),
                more("read", 5, [[1]]),
                more("configured", 2, [[7]]),
                more("compacted", 1),
                more("", 2),
            ],
            "timeout_ms": 5000,
        },
    ),
    step(
        "growing one topic twice in a request", CREATE_PARTITIONS, 1, {"topics": [more("small", 2), more("small", 3)]}
    ),
    step(
        "growing by far too many",
        CREATE_PARTITIONS,
        3,
        {"topics": [more("small", 200_000)], "timeout_ms": 5000, "validate_only": True},
    ),
    step(
        "growing by two replicas on one broker",
        CREATE_PARTITIONS,
        3,
        {"topics": [more("small", 2, [[1, 1]])], "timeout_ms": 5000},
    ),
)

DELETING: tuple[Step, ...] = (
    step("delete a topic", DELETE_TOPICS, 1, {"topic_names": ["doomed", "absent"], "timeout_ms": 5000}),
    step(
        "it is gone",
        METADATA,
        4,
        {"topics": [{"name": "doomed"}], "allow_auto_topic_creation": False},
        until=is_gone,
    ),
    step("delete it again", DELETE_TOPICS, 4, {"topic_names": ["doomed"], "timeout_ms": 5000}),
    step("delete with a message", DELETE_TOPICS, 5, {"topic_names": ["absent", "auto0"], "timeout_ms": 5000}),
    step("delete one twice in a request", DELETE_TOPICS, 4, {"topic_names": ["chosen", "chosen"], "timeout_ms": 5000}),
    step(
        "delete by id",
        DELETE_TOPICS,
        6,
        {"topics": [{"topic_id": V("assigned")}, {"topic_id": NOBODY}, {"name": "absent"}], "timeout_ms": 5000},
    ),
    step(
        "delete by name and id",
        DELETE_TOPICS,
        6,
        {"topics": [{"name": "events", "topic_id": V("events")}], "timeout_ms": 5000},
    ),
    step("delete by neither", DELETE_TOPICS, 6, {"topics": [{"name": None}], "timeout_ms": 5000}),
    step("delete in no time", DELETE_TOPICS, 5, {"topic_names": ["dot.ted", "absent"], "timeout_ms": 0}),
    step("delete nothing", DELETE_TOPICS, 6, {"topics": []}),
    step("delete names that are none", DELETE_TOPICS, 5, {"topic_names": ["", "a b"], "timeout_ms": 5000}),
)

STEPS: tuple[Step, ...] = (*ASKING, *CREATING, *ASSIGNING, *LOOKING, *GROWING)
LAST_STEPS = DELETING
