"""Settings of groups, levels of loggers, and the list of everything that has settings."""

from moldau.protocol.apis import (
    ALTER_CONFIGS,
    CONSUMER_GROUP_HEARTBEAT,
    DESCRIBE_CONFIGS,
    FIND_COORDINATOR,
    INCREMENTAL_ALTER_CONFIGS,
    LIST_CONFIG_RESOURCES,
)
from tests.differential.script import Step, step
from tests.differential.steps.configs import (
    APPEND,
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    SET,
    SUBTRACT,
    TOPIC,
    UNKNOWN,
    ask,
    change,
)
from tests.differential.steps.old_configs import change as replace
from tests.differential.steps.old_configs import described

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
ASSIGNMENT = "consumer.assignment.interval.ms"
OURS = [SESSION, HEARTBEAT, ASSIGNMENT]
ODD_NAME = "a b/ü.%41"


def wrongly(kind: int, name: str, *cases: tuple[str, str, tuple[str, int, str | None]]) -> tuple[Step, ...]:
    return tuple(
        step(f"{where}: {what}", INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [change(kind, name, setting)]})
        for where, what, setting in cases
    )


JOINING = {
    "member_id": "m",
    "member_epoch": 0,
    "rebalance_timeout_ms": 300_000,
    "subscribed_topic_names": ["events"],
    "topic_partitions": [],
}

GROUPS: tuple[Step, ...] = (
    step(
        "settings of a group that nobody set",
        DESCRIBE_CONFIGS,
        4,
        {"resources": [ask(GROUP, "nobody", OURS)], "include_synonyms": True, "include_documentation": True},
    ),
    step(
        "set a group's settings",
        INCREMENTAL_ALTER_CONFIGS,
        1,
        {"resources": [change(GROUP, "tuned", (SESSION, SET, "50000"), (HEARTBEAT, SET, "7000"))]},
    ),
    described("a group's settings are set", GROUP, "tuned", OURS, HEARTBEAT, "7000"),
    step("the coordinator of a group with settings", FIND_COORDINATOR, 3, {"key": "tuned", "key_type": 0}),
    step("a member hears the group's interval", CONSUMER_GROUP_HEARTBEAT, 1, {"group_id": "tuned", **JOINING}),
    step(
        "take one back",
        INCREMENTAL_ALTER_CONFIGS,
        0,
        {"resources": [change(GROUP, "tuned", (HEARTBEAT, DELETE, None))]},
    ),
    described("the other one stays", GROUP, "tuned", OURS, HEARTBEAT, "5000"),
    step(
        "replace a group's settings", ALTER_CONFIGS, 2, {"resources": [replace(GROUP, "tuned", (ASSIGNMENT, "3000"))]}
    ),
    described("a group's settings are replaced", GROUP, "tuned", OURS, ASSIGNMENT, "3000"),
    step(
        "only say whether a group's settings would do",
        INCREMENTAL_ALTER_CONFIGS,
        1,
        {"resources": [change(GROUP, "untouched", (SESSION, SET, "50000"))], "validate_only": True},
    ),
    described("a group's settings are untouched", GROUP, "untouched", OURS, SESSION, "45000"),
    step(
        "set settings of a group with an odd name",
        INCREMENTAL_ALTER_CONFIGS,
        1,
        {"resources": [change(GROUP, ODD_NAME, (SESSION, SET, "46000"))]},
    ),
    described("the odd name is told", GROUP, ODD_NAME, OURS, SESSION, "46000"),
    step("settings of a group without a name", DESCRIBE_CONFIGS, 4, {"resources": [ask(GROUP, "", OURS)]}),
    step(
        "set settings of all groups",
        INCREMENTAL_ALTER_CONFIGS,
        1,
        {"resources": [change(GROUP, "", (SESSION, SET, "50000"))]},
    ),
    *wrongly(
        GROUP,
        "tuned",
        ("a group's settings", "a name nobody knows", ("no.such", SET, "1")),
        ("a group's settings", "a name nobody knows, deleted", ("no.such", DELETE, None)),
        ("a group's settings", "too short", (SESSION, SET, "44999")),
        ("a group's settings", "too long", (SESSION, SET, "60001")),
        ("a group's settings", "no number", (SESSION, SET, "soon")),
        ("a group's settings", "zero", (SESSION, SET, "0")),
        ("a group's settings", "too often", (HEARTBEAT, SET, "4999")),
        ("a group's settings", "too seldom", (HEARTBEAT, SET, "15001")),
        ("a group's settings", "less than nothing", (ASSIGNMENT, SET, "-1")),
        ("a group's settings", "far too seldom", (ASSIGNMENT, SET, "15001")),
        ("a group's settings", "added to", (SESSION, APPEND, "1")),
        ("a group's settings", "taken from", (SESSION, SUBTRACT, "1")),
        ("a group's settings", "no value", (SESSION, SET, None)),
    ),
)

LOGGERS: tuple[Step, ...] = (
    step(
        "set the root's level",
        INCREMENTAL_ALTER_CONFIGS,
        1,
        {"resources": [change(BROKER_LOGGER, "1", ("root", SET, "ERROR"))]},
    ),
    step(
        "the root's level",
        DESCRIBE_CONFIGS,
        4,
        {"resources": [ask(BROKER_LOGGER, "1", ["root", "no.such"])], "include_synonyms": True},
    ),
    step("the root's level, explained", DESCRIBE_CONFIGS, 3, {"resources": [ask(BROKER_LOGGER, "1", ["root"])]}),
    *(
        step(f"loggers of {name!r}", DESCRIBE_CONFIGS, 4, {"resources": [ask(BROKER_LOGGER, name)]})
        for name in ("", "7", "x")
    ),
    *wrongly(
        BROKER_LOGGER,
        "1",
        ("a logger's level", "one nobody knows", ("root", SET, "LOUD")),
        ("a logger's level", "in small letters", ("root", SET, "debug")),
        ("a logger's level", "none at all", ("root", SET, "OFF")),
        ("a logger's level", "no value", ("root", SET, None)),
        ("a logger's level", "added to", ("root", APPEND, "INFO")),
        ("a logger's level", "taken from", ("root", SUBTRACT, "INFO")),
        ("a logger's level", "the root's, deleted", ("root", DELETE, None)),
        ("a logger's level", "of no logger", ("no.such", SET, "INFO")),
        ("a logger's level", "of no logger, deleted", ("no.such", DELETE, None)),
    ),
    *(
        step(
            f"set a logger of {name!r}",
            INCREMENTAL_ALTER_CONFIGS,
            1,
            {"resources": [change(BROKER_LOGGER, name, ("root", SET, "INFO"))]},
        )
        for name in ("", "7", "x")
    ),
    step(
        "one level right, one wrong",
        INCREMENTAL_ALTER_CONFIGS,
        1,
        {"resources": [change(BROKER_LOGGER, "1", ("root", SET, "INFO"), ("no.such", SET, "INFO"))]},
    ),
    step(
        "the same logger twice",
        INCREMENTAL_ALTER_CONFIGS,
        1,
        {"resources": [change(BROKER_LOGGER, "1", ("root", SET, "INFO"), ("root", SET, "WARN"))]},
    ),
    step(
        "only say whether a level would do",
        INCREMENTAL_ALTER_CONFIGS,
        1,
        {"resources": [change(BROKER_LOGGER, "1", ("root", SET, "INFO"))], "validate_only": True},
    ),
    step("the root's level is what it was", DESCRIBE_CONFIGS, 4, {"resources": [ask(BROKER_LOGGER, "1", ["root"])]}),
)

LISTS: tuple[Step, ...] = (
    step("all client metrics, in the older version", LIST_CONFIG_RESOURCES, 0),
    *(
        step(
            f"everything with settings of type {'+'.join(map(str, kinds))}",
            LIST_CONFIG_RESOURCES,
            1,
            {"resource_types": kinds},
        )
        for kinds in (
            [GROUP],
            [BROKER],
            [BROKER_LOGGER],
            [CLIENT_METRICS],
            [TOPIC],
            [GROUP, BROKER, GROUP],
            [UNKNOWN],
            [GROUP, 99],
        )
    ),
    step("everything with settings", LIST_CONFIG_RESOURCES, 1),
    step(
        "take back all settings of groups",
        INCREMENTAL_ALTER_CONFIGS,
        1,
        {
            "resources": [
                change(GROUP, "tuned", (ASSIGNMENT, DELETE, None)),
                change(GROUP, ODD_NAME, (SESSION, DELETE, None)),
            ]
        },
    ),
    step(
        "no group has settings any more",
        LIST_CONFIG_RESOURCES,
        1,
        {"resource_types": [GROUP]},
        until=lambda reply: not reply["config_resources"],
    ),
    step("the member goes", CONSUMER_GROUP_HEARTBEAT, 1, {"group_id": "tuned", "member_id": "m", "member_epoch": -1}),
)

STEPS: tuple[Step, ...] = (*GROUPS, *LOGGERS, *LISTS)
