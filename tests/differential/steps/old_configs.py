"""Settings replaced as a whole, by the older request: of topics, brokers, and of what it does not know."""

from moldau.protocol.apis import ALTER_CONFIGS, CREATE_TOPICS, DESCRIBE_CONFIGS
from tests.differential.script import Step, Tree, step
from tests.differential.steps.configs import BROKER, BROKER_LOGGER, TOPIC, UNKNOWN, ask

NEVER_WITHOUT = ("min.insync.replicas", "1")  # Kafka has it for all brokers from the start, and keeps it
RETENTION, SEGMENT = "retention.ms", "segment.ms"


def change(kind: int, name: str, *settings: tuple[str, str | None]) -> dict[str, object]:
    configs = [{"name": key, "value": value} for key, value in settings]
    return {"resource_type": kind, "resource_name": name, "configs": configs}


def told(name: str, value: str, places: int = 1) -> object:
    """A reply that has the setting with that value."""

    def is_told(reply: Tree) -> bool:
        found = [one for one in reply["results"][0]["configs"] if (one["name"], one["value"]) == (name, value)]
        return len(found) == places

    return is_told


def described(name: str, kind: int, of: str, keys: list[str], key: str, value: str, places: int = 1) -> Step:
    fields = {"resources": [ask(kind, of, keys)], "include_synonyms": True}
    return step(name, DESCRIBE_CONFIGS, 4, fields, until=told(key, value, places))


NEW_TOPIC = {"name": "replaced", "num_partitions": 1, "replication_factor": 1}

STEPS: tuple[Step, ...] = (
    step("a topic whose settings are replaced", CREATE_TOPICS, 5, {"topics": [NEW_TOPIC]}),
    *(
        step(
            f"replace in version {version}",
            ALTER_CONFIGS,
            version,
            {"resources": [change(TOPIC, "replaced", (SEGMENT, "60000"), (RETENTION, str(5000 + version)))]},
        )
        for version in (0, 1, 2)
    ),
    described("both are set", TOPIC, "replaced", [RETENTION, SEGMENT], RETENTION, "5002"),
    step(
        "only say whether replacing would work",
        ALTER_CONFIGS,
        2,
        {"resources": [change(TOPIC, "replaced", (SEGMENT, "70000"))], "validate_only": True},
    ),
    described("nothing was replaced", TOPIC, "replaced", [RETENTION, SEGMENT], RETENTION, "5002"),
    step("replace two by one", ALTER_CONFIGS, 2, {"resources": [change(TOPIC, "replaced", (SEGMENT, "80000"))]}),
    described("the other is its default again", TOPIC, "replaced", [RETENTION, SEGMENT], SEGMENT, "80000"),
    step("replace all by nothing", ALTER_CONFIGS, 2, {"resources": [change(TOPIC, "replaced")]}),
    described("all are their defaults again", TOPIC, "replaced", [RETENTION, SEGMENT], SEGMENT, "604800000"),
    step(
        "replace a broker's", ALTER_CONFIGS, 2, {"resources": [change(BROKER, "1", ("message.max.bytes", "2000000"))]}
    ),
    described("a broker's is replaced", BROKER, "1", ["message.max.bytes"], "message.max.bytes", "2000000"),
    step("replace a broker's by nothing", ALTER_CONFIGS, 2, {"resources": [change(BROKER, "1")]}),
    described("a broker's is its default again", BROKER, "1", ["message.max.bytes"], "message.max.bytes", "1048588"),
    step(
        "replace all brokers'",
        ALTER_CONFIGS,
        2,
        {"resources": [change(BROKER, "", NEVER_WITHOUT, ("message.max.bytes", "3000000"))]},
    ),
    described("all brokers' are replaced", BROKER, "", ["message.max.bytes"], "message.max.bytes", "3000000"),
    step(
        "replace all brokers' by nothing of theirs",
        ALTER_CONFIGS,
        2,
        {"resources": [change(BROKER, "", NEVER_WITHOUT)]},
    ),
    described("all brokers' are gone", BROKER, "", ["message.max.bytes"], "message.max.bytes", "3000000", places=0),
) + tuple(
    step(f"replaced wrongly: {what}", ALTER_CONFIGS, 2, {"resources": resources})
    for what, resources in (
        ("a setting nobody knows", [change(TOPIC, "replaced", ("no.such", "1"))]),
        ("a value that is none", [change(TOPIC, "replaced", (RETENTION, "soon"))]),
        ("a value out of bounds", [change(TOPIC, "replaced", ("min.insync.replicas", "0"))]),
        ("no value", [change(TOPIC, "replaced", (RETENTION, None))]),
        ("the same setting twice", [change(TOPIC, "replaced", (RETENTION, "1"), (RETENTION, "2"))]),
        ("a topic that is not there", [change(TOPIC, "absent", (RETENTION, "1"))]),
        ("a topic that is not there, by nothing", [change(TOPIC, "absent")]),
        ("a name that is none", [change(TOPIC, "a b", (RETENTION, "1"))]),
        ("a topic without a name", [change(TOPIC, "", (RETENTION, "1"))]),
        ("a resource nobody knows", [change(UNKNOWN, "x", ("a", "1")), change(99, "y", ("a", "1"))]),
        ("a logger, which it cannot name", [change(BROKER_LOGGER, "1", ("root", "INFO"))]),
        ("a broker that is not there", [change(BROKER, "7", ("message.max.bytes", "1000"))]),
        ("a broker without a number", [change(BROKER, "x", ("message.max.bytes", "1000"))]),
        ("a setting of the broker that is read-only", [change(BROKER, "1", ("num.partitions", "2"))]),
        ("a value of the broker that is none", [change(BROKER, "1", ("message.max.bytes", None))]),
        ("nothing at all", []),
        (
            "one right, one wrong",
            [change(TOPIC, "replaced", (RETENTION, "3000")), change(TOPIC, "absent", (RETENTION, "1"))],
        ),
    )
)
