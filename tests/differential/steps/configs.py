"""Settings of topics, brokers and groups: asked for, changed, and refused."""

from moldau.protocol.apis import DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS
from tests.differential.script import Step, step

UNKNOWN, TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 0, 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
BROKER_KEYS = ["log.retention.ms", "message.max.bytes", "num.partitions", "auto.create.topics.enable", "node.id"]


def ask(kind: int, name: str, keys: list[str] | None = None) -> dict[str, object]:
    return {"resource_type": kind, "resource_name": name, "configuration_keys": keys}


def change(kind: int, name: str, *changes: tuple[str, int, str | None]) -> dict[str, object]:
    configs = [{"name": key, "config_operation": operation, "value": value} for key, operation, value in changes]
    return {"resource_type": kind, "resource_name": name, "configs": configs}


ASKING: tuple[Step, ...] = (
    step("all settings of a topic", DESCRIBE_CONFIGS, 1, {"resources": [ask(TOPIC, "events")]}),
    step(
        "settings with their synonyms",
        DESCRIBE_CONFIGS,
        2,
        {
            "resources": [
                ask(TOPIC, "events", ["segment.bytes", "retention.ms", "max.message.bytes", "cleanup.policy"])
            ],
            "include_synonyms": True,
        },
    ),
    step(
        "settings with types and documentation",
        DESCRIBE_CONFIGS,
        3,
        {"resources": [ask(TOPIC, "compacted")], "include_documentation": True},
    ),
    step(
        "all settings of a topic, newest, with everything",
        DESCRIBE_CONFIGS,
        4,
        {"resources": [ask(TOPIC, "stamped")], "include_synonyms": True, "include_documentation": True},
    ),
    step(
        "settings nobody knows", DESCRIBE_CONFIGS, 4, {"resources": [ask(TOPIC, "events", ["no.such", "segment.ms"])]}
    ),
    step("no setting at all", DESCRIBE_CONFIGS, 4, {"resources": [ask(TOPIC, "events", [])]}),
    step(
        "settings of topics that are not there",
        DESCRIBE_CONFIGS,
        4,
        {"resources": [ask(TOPIC, "absent"), ask(TOPIC, "a b"), ask(TOPIC, "")]},
    ),
    step(
        "settings of the broker",
        DESCRIBE_CONFIGS,
        4,
        {"resources": [ask(BROKER, "1", BROKER_KEYS)], "include_synonyms": True},
    ),
    step("settings of all brokers", DESCRIBE_CONFIGS, 4, {"resources": [ask(BROKER, "")]}),
    step(
        "settings of brokers that are not there",
        DESCRIBE_CONFIGS,
        3,
        {"resources": [ask(BROKER, "7", ["node.id"]), ask(BROKER, "x", ["node.id"])]},
    ),
    step("settings of a resource nobody knows", DESCRIBE_CONFIGS, 4, {"resources": [ask(UNKNOWN, "x"), ask(99, "x")]}),
    step("settings of nothing", DESCRIBE_CONFIGS, 4, {"resources": []}),
    step(
        "settings of the same topic twice",
        DESCRIBE_CONFIGS,
        4,
        {"resources": [ask(TOPIC, "events", ["segment.ms"]), ask(TOPIC, "plain", ["segment.ms"])]},
    ),
)

CHANGING: tuple[Step, ...] = (
    step(
        "change a setting in the oldest way",
        INCREMENTAL_ALTER_CONFIGS,
        0,
        {"resources": [change(TOPIC, "configured", ("retention.ms", SET, "86400000"), ("segment.ms", SET, "60000"))]},
    ),
    step(
        "it is changed",
        DESCRIBE_CONFIGS,
        4,
        {
            "resources": [ask(TOPIC, "configured", ["retention.ms", "segment.ms", "cleanup.policy"])],
            "include_synonyms": True,
        },
        until=lambda r: any(c["value"] == "60000" for c in r["results"][0]["configs"]),
    ),
    step(
        "append to a list, and take one back to its default",
        INCREMENTAL_ALTER_CONFIGS,
        1,
        {
            "resources": [
                change(TOPIC, "configured", ("cleanup.policy", APPEND, "compact"), ("segment.ms", DELETE, None))
            ]
        },
    ),
    step(
        "the list is longer, the default back",
        DESCRIBE_CONFIGS,
        4,
        {"resources": [ask(TOPIC, "configured", ["cleanup.policy", "segment.ms"])], "include_synonyms": True},
        until=lambda r: any(
            c["name"] == "cleanup.policy" and "compact" in c["value"] for c in r["results"][0]["configs"]
        ),
    ),
    step(
        "take one from a list",
        INCREMENTAL_ALTER_CONFIGS,
        1,
        {"resources": [change(TOPIC, "configured", ("cleanup.policy", SUBTRACT, "compact"))]},
    ),
    step(
        "only say whether a change would work",
        INCREMENTAL_ALTER_CONFIGS,
        1,
        {"resources": [change(TOPIC, "configured", ("retention.ms", SET, "5"))], "validate_only": True},
    ),
    step(
        "it was not changed",
        DESCRIBE_CONFIGS,
        4,
        {"resources": [ask(TOPIC, "configured", ["retention.ms", "cleanup.policy"])]},
        until=lambda r: any(
            c["name"] == "cleanup.policy" and c["value"] == "delete" for c in r["results"][0]["configs"]
        ),
    ),
) + tuple(
    step(f"changed wrongly: {what}", INCREMENTAL_ALTER_CONFIGS, 1, {"resources": resources})
    for what, resources in (
        ("a setting nobody knows", [change(TOPIC, "configured", ("no.such", SET, "1"))]),
        ("a value that is none", [change(TOPIC, "configured", ("retention.ms", SET, "soon"))]),
        ("a value out of bounds", [change(TOPIC, "configured", ("min.insync.replicas", SET, "0"))]),
        ("a choice that is none", [change(TOPIC, "configured", ("compression.type", SET, "rar"))]),
        ("no value", [change(TOPIC, "configured", ("retention.ms", SET, None))]),
        ("an operation nobody knows", [change(TOPIC, "configured", ("retention.ms", 9, "1"))]),
        ("append to what is no list", [change(TOPIC, "configured", ("retention.ms", APPEND, "1"))]),
        (
            "the same setting twice",
            [change(TOPIC, "configured", ("retention.ms", SET, "1"), ("retention.ms", SET, "2"))],
        ),
        ("the same topic twice", [change(TOPIC, "configured"), change(TOPIC, "configured")]),
        ("a topic that is not there", [change(TOPIC, "absent", ("retention.ms", SET, "1"))]),
        ("a name that is none", [change(TOPIC, "a b", ("retention.ms", SET, "1"))]),
        ("a resource nobody knows", [change(UNKNOWN, "x", ("a", SET, "1")), change(99, "y", ("a", SET, "1"))]),
        ("a broker that is not there", [change(BROKER, "7", ("message.max.bytes", SET, "1000"))]),
        ("a setting of the broker that is read-only", [change(BROKER, "1", ("num.partitions", SET, "2"))]),
        ("nothing at all", []),
        ("no change", [change(TOPIC, "configured")]),
        (
            "one right, one wrong",
            [
                change(TOPIC, "plain", ("retention.ms", SET, "-1")),
                change(TOPIC, "grown", ("retention.ms", SET, "x")),
            ],
        ),
    )
)

RATES = [f"{who}.replication.throttled.rate" for who in ("leader", "follower")]
RATES.append("replica.alter.log.dirs.io.max.bytes.per.second")


def rates(name: str, broker: str, count: int) -> Step:
    fields = {"resources": [ask(BROKER, broker, RATES)], "include_synonyms": True}
    return step(name, DESCRIBE_CONFIGS, 4, fields, until=lambda reply: len(reply["results"][0]["configs"]) == count)


KEPT: tuple[Step, ...] = (
    step(
        "rates that throttle a broker's replication",
        INCREMENTAL_ALTER_CONFIGS,
        1,
        {"resources": [change(BROKER, "1", *[(rate, SET, "1000") for rate in RATES])]},
    ),
    rates("a broker's rates are told", "1", 3),
    step(
        "a rate for all brokers",
        INCREMENTAL_ALTER_CONFIGS,
        1,
        {"resources": [change(BROKER, "", (RATES[0], SET, "7"))]},
    ),
    rates("all brokers' rates are told", "", 1),
    rates("a broker's rate is stronger", "1", 3),
    *(
        step(
            f"a rate that is {value}",
            INCREMENTAL_ALTER_CONFIGS,
            1,
            {"resources": [change(BROKER, "1", (RATES[0], SET, value))]},
        )
        for value in ("soon", "-1")
    ),
    *(
        step(
            f"the rates of {broker or 'all'} are taken back",
            INCREMENTAL_ALTER_CONFIGS,
            1,
            {"resources": [change(BROKER, broker, *[(rate, DELETE, None) for rate in RATES])]},
        )
        for broker in ("1", "")
    ),
    rates("all brokers' rates are gone", "", 0),
    rates("a broker's rates are gone", "1", 0),
    step(
        "the broker's number",
        DESCRIBE_CONFIGS,
        4,
        {"resources": [ask(BROKER, "1", ["broker.id"])], "include_synonyms": True},
    ),
)

STEPS: tuple[Step, ...] = (*ASKING, *CHANGING, *KEPT)
