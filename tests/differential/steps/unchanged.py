"""Requests that have nothing to do on one broker: elections, reassignments, moves between folders, quotas, users."""

from moldau.protocol.apis import (
    ALTER_CLIENT_QUOTAS,
    ALTER_PARTITION_REASSIGNMENTS,
    ALTER_REPLICA_LOG_DIRS,
    ALTER_USER_SCRAM_CREDENTIALS,
    CREATE_TOPICS,
    DESCRIBE_CLIENT_QUOTAS,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    ELECT_LEADERS,
    LIST_PARTITION_REASSIGNMENTS,
    METADATA,
    UNREGISTER_BROKER,
)
from tests.differential.script import Step, V, step

TOPIC = "unmoved"
PREFERRED, UNCLEAN = 0, 1
USER, CLIENT_ID, IP = "user", "client-id", "ip"
EXACT, DEFAULT, ANY = range(3)
SHA_256, SHA_512 = 1, 2

FIRST: tuple[Step, ...] = (
    step(
        "a topic that stays where it is",
        CREATE_TOPICS,
        5,
        {"topics": [{"name": TOPIC, "num_partitions": 2, "replication_factor": 1}]},
    ),
    step(
        "it is led",
        METADATA,
        4,
        {"topics": [{"name": TOPIC}]},
        until=lambda reply: all(part["leader_id"] == 1 for part in reply["topics"][0]["partitions"]),
    ),
)


def elect(
    name: str, version: int, wanted: list[tuple[str, list[int]]], election: int = PREFERRED, **more: object
) -> Step:
    fields = {"topic_partitions": [{"topic": topic, "partitions": numbers} for topic, numbers in wanted], **more}
    return step(f"elect {name}", ELECT_LEADERS, version, {**fields, "election_type": election} if version else fields)


BOTH = [(TOPIC, [0, 1])]
ELECTIONS: tuple[Step, ...] = (
    *(elect(f"the preferred leaders, version {version}", version, BOTH) for version in (0, 1, 2)),
    elect("uncleanly", 2, BOTH, UNCLEAN),
    elect("in a way nobody knows", 2, BOTH, 7),
    elect("for no partition", 2, []),
    elect("for no partition of a topic", 2, [(TOPIC, [])]),
    elect("for partitions that are not there", 2, [(TOPIC, [0, 0, 7, -1]), ("absent", [0]), ("", [0])]),
    elect("uncleanly for partitions that are not there", 2, [(TOPIC, [0, 7]), ("absent", [0])], UNCLEAN),
    elect("for a topic in two parts", 2, [(TOPIC, [0]), (TOPIC, [1])]),
    elect("without time", 2, BOTH, timeout_ms=0),
    step("elect every leader", ELECT_LEADERS, 2, {"topic_partitions": None}),
    step("elect every leader, in the oldest way", ELECT_LEADERS, 0, {"topic_partitions": None}),
)


def move(name: str, version: int, *wanted: tuple[str, int, list[int] | None], **more: object) -> Step:
    topics = [{"name": topic, "partitions": [{"partition_index": n, "replicas": who}]} for topic, n, who in wanted]
    return step(f"reassign {name}", ALTER_PARTITION_REASSIGNMENTS, version, {"topics": topics, **more})


REASSIGNMENTS: tuple[Step, ...] = (
    *(move(f"to where they are, version {version}", version, (TOPIC, 0, [1]), (TOPIC, 1, [1])) for version in (0, 1)),
    move("with as many replicas", 1, (TOPIC, 0, [1]), allow_replication_factor_change=False),
    move("what is not being moved: cancel", 1, (TOPIC, 0, None)),
    move("to a broker that is not there", 1, (TOPIC, 0, [2])),
    move("to one broker more", 1, (TOPIC, 0, [1, 2])),
    move("to no broker", 1, (TOPIC, 0, [])),
    move("to one broker twice", 1, (TOPIC, 0, [1, 1])),
    move("to less than nobody", 1, (TOPIC, 0, [-1])),
    move("a partition that is not there", 1, (TOPIC, 7, [1]), (TOPIC, 7, None), (TOPIC, -1, [1])),
    move("a topic that is not there", 1, ("absent", 0, [1]), ("absent", 0, None), ("", 0, [1])),
    move("the same partition twice", 1, (TOPIC, 0, [1]), (TOPIC, 0, [1])),
    move("without time", 1, (TOPIC, 0, [1]), timeout_ms=0),
    step("reassign no partition", ALTER_PARTITION_REASSIGNMENTS, 1, {"topics": [{"name": TOPIC}]}),
    *(
        step(f"what is being reassigned: {name}", LIST_PARTITION_REASSIGNMENTS, 0, {"topics": topics})
        for name, topics in (
            ("everything", None),
            ("nothing", []),
            ("two partitions", [{"name": TOPIC, "partition_indexes": [0, 1]}]),
            ("what is not there", [{"name": TOPIC, "partition_indexes": [7]}, {"name": "absent"}, {"name": ""}]),
        )
    ),
)


def put(name: str, version: int, *wanted: tuple[object, str, list[int]]) -> Step:
    dirs = [{"path": path, "topics": [{"name": topic, "partitions": numbers}]} for path, topic, numbers in wanted]
    return step(f"put {name}", ALTER_REPLICA_LOG_DIRS, version, {"dirs": dirs})


FOLDERS: tuple[Step, ...] = (
    step(
        "the log folder",
        DESCRIBE_LOG_DIRS,
        4,
        {"topics": [{"topic": TOPIC, "partitions": [0, 1]}]},
        until=lambda reply: sum(len(topic["partitions"]) for topic in reply["results"][0]["topics"]) == 2,
        save={"log folder": "results[0].log_dir"},
    ),
    *(
        put(f"partitions where they are, version {version}", version, (V("log folder"), TOPIC, [0, 1]))
        for version in (1, 2)
    ),
    put("a partition nowhere", 2, ("/nowhere", TOPIC, [0])),
    put("a partition into a folder without a name", 2, ("", TOPIC, [0])),
    put("partitions that are not there", 2, (V("log folder"), TOPIC, [7]), (V("log folder"), "absent", [0])),
    put("partitions that are not there nowhere", 2, ("/nowhere", "absent", [0])),
    put("a partition in two places", 2, ("/nowhere", TOPIC, [0]), (V("log folder"), TOPIC, [0])),
    put("no partition", 2, (V("log folder"), TOPIC, [])),
    step("put nothing", ALTER_REPLICA_LOG_DIRS, 2),
)


BROKERS: tuple[Step, ...] = tuple(
    step(f"unregister {name}", UNREGISTER_BROKER, 0, {"broker_id": number})
    for name, number in (("a broker that was never there", 99), ("less than nobody", -1))
)


def quotas(name: str, *filters: tuple[str, int, str | None], version: int = 1, strict: bool = False) -> Step:
    components = [{"entity_type": kind, "match_type": how, "match": match} for kind, how, match in filters]
    return step(f"quotas {name}", DESCRIBE_CLIENT_QUOTAS, version, {"components": components, "strict": strict})


def limit(name: str, entity: list[tuple[str, str | None]], *keys: str, version: int = 1, removes: bool = True) -> Step:
    """Remove quotas, which needs none, or set them."""
    entry = {
        "entity": [{"entity_type": kind, "entity_name": who} for kind, who in entity],
        "ops": [{"key": key, "value": 1e9, "remove": removes} for key in keys],
    }
    return step(f"{'remove' if removes else 'set'} quotas {name}", ALTER_CLIENT_QUOTAS, version, {"entries": [entry]})


QUOTAS: tuple[Step, ...] = (
    quotas("of everybody, in the older version", version=0),
    quotas("of everybody"),
    quotas("of everybody, strictly", strict=True),
    quotas("of one user", (USER, EXACT, "alice")),
    quotas("of users without one", (USER, DEFAULT, None)),
    quotas("of any user and client", (USER, ANY, None), (CLIENT_ID, ANY, None), strict=True),
    quotas("of an address", (IP, EXACT, "127.0.0.1")),
    quotas("of what nobody knows", ("nonsense", EXACT, "a")),
    quotas("of nothing", ("", EXACT, "a")),
    quotas("in a way nobody knows", (USER, 9, "a")),
    quotas("of a user without a name", (USER, EXACT, None)),
    quotas("of no user by name", (USER, DEFAULT, "a")),
    quotas("of any user by name", (USER, ANY, "a")),
    quotas("of two users", (USER, EXACT, "a"), (USER, EXACT, "b")),
    quotas("of an address and a user", (IP, ANY, None), (USER, ANY, None)),
    *(
        limit(f"of a user, version {version}", [(USER, "a")], "consumer_byte_rate", version=version)
        for version in (0, 1)
    ),
    limit("of users without one", [(USER, None)], "producer_byte_rate", "request_percentage"),
    limit("of a user's client", [(USER, "a"), (CLIENT_ID, "b")], "controller_mutation_rate"),
    limit("of an address", [(IP, "127.0.0.1")], "connection_creation_rate"),
    limit("that nobody knows", [(USER, "a")], "nonsense"),
    limit("of an address that only clients have", [(IP, "127.0.0.1")], "consumer_byte_rate"),
    limit("of what nobody knows", [("nonsense", "a")], "consumer_byte_rate"),
    limit("of nobody", [], "consumer_byte_rate"),
    limit("of a user, but none", [(USER, "a")]),
    step("no quotas at all", ALTER_CLIENT_QUOTAS, 1),
    limit("of a user", [(USER, "nobody")], "consumer_byte_rate", removes=False),
    limit("of a user again", [(USER, "nobody")], "consumer_byte_rate"),
)


def forget(name: str, *wanted: tuple[str, int]) -> Step:
    deletions = [{"name": user, "mechanism": mechanism} for user, mechanism in wanted]
    return step(f"forget {name}", ALTER_USER_SCRAM_CREDENTIALS, 0, {"deletions": deletions})


def make(name: str, user: str, mechanism: int, iterations: int) -> Step:
    credential = {"name": user, "mechanism": mechanism, "iterations": iterations}
    salted = {"salt": b"salt", "salted_password": b"hashed"}
    return step(f"make {name}", ALTER_USER_SCRAM_CREDENTIALS, 0, {"upsertions": [{**credential, **salted}]})


USERS: tuple[Step, ...] = (
    *(
        step(
            f"users: {name}",
            DESCRIBE_USER_SCRAM_CREDENTIALS,
            0,
            {"users": None if users is None else [{"name": user} for user in users]},
        )
        for name, users in (("all", None), ("none", []), ("two", ["a", "b"]), ("twice", ["a", "a"]), ("no name", [""]))
    ),
    forget("nobody"),
    forget("a user that is not there", ("a", SHA_256)),
    forget("two users that are not there", ("a", SHA_256), ("b", SHA_512)),
    forget("both credentials of one", ("a", SHA_256), ("a", SHA_512)),
    forget("an unknown mechanism", ("a", 0)),
    forget("a user without a name", ("", SHA_256)),
    make("a user of too few iterations", "a", SHA_256, 4095),
    make("a user of too many iterations", "a", SHA_256, 16385),
    make("a user of an unknown mechanism", "a", 9, 4096),
    make("a user without a name", "", SHA_256, 4096),
    make("a user", "nobody", SHA_256, 4096),
)

STEPS: tuple[Step, ...] = (*FIRST, *ELECTIONS, *REASSIGNMENTS, *FOLDERS, *BROKERS, *QUOTAS, *USERS)
