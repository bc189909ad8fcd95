"""Metrics that clients push (KIP-714): subscriptions as settings, what clients are told, and what they may push.

Kafka has no receiver here, so it does not offer these APIs; it answers them all the same, and drops what is pushed.
Clients have ids of the script's, so that the number of what they are asked for, which depends on them, is compared too:
it tells in which order a broker lists metrics.
"""

import uuid
from collections.abc import Iterator

from moldau.protocol.apis import (
    ALTER_CONFIGS,
    API_VERSIONS,
    DESCRIBE_CONFIGS,
    GET_TELEMETRY_SUBSCRIPTIONS,
    INCREMENTAL_ALTER_CONFIGS,
    LIST_CONFIG_RESOURCES,
    PUSH_TELEMETRY,
)
from tests.differential.script import Step, V, step
from tests.differential.steps.configs import APPEND, CLIENT_METRICS, DELETE, SET, SUBTRACT, ask, change

METRICS, INTERVAL, MATCH = "metrics", "interval.ms", "match"
SUBSCRIPTION = "slow pushers"
MANY = ",".join(
    f"org.apache.kafka.{name}."
    for name in ["producer", "consumer", "admin", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"]
)


def alter(name: str, *changes: tuple[str, int, str | None]) -> dict[str, object]:
    return {"resources": [change(CLIENT_METRICS, name, *changes)]}


def refused() -> Iterator[Step]:
    """Changes that are wrong, or look so; each is one request."""
    for what, changes in {
        "an unknown setting": [("interval", SET, "5000")],
        "too short an interval": [(INTERVAL, SET, "99")],
        "too long an interval": [(INTERVAL, SET, "3600001")],
        "an interval that is no number": [(INTERVAL, SET, "soon")],
        "an interval without a value": [(INTERVAL, SET, None)],
        "an appended interval": [(INTERVAL, APPEND, "5000")],
        "an attribute that clients do not have": [(MATCH, SET, "host=a")],
        "no expression": [(MATCH, SET, "client_id")],
        "an empty expression": [(MATCH, SET, "client_id=")],
        "two expressions in one": [(MATCH, SET, "client_id=a=b")],
        "an expression that is none": [(MATCH, SET, "client_id=[")],
        "the same setting twice": [(METRICS, SET, "a."), (METRICS, SET, "b.")],
        "an operation nobody knows": [(METRICS, 9, "a.")],
    }.items():
        yield step(f"client metrics with {what}", INCREMENTAL_ALTER_CONFIGS, 1, alter("wrong", *changes))
    for what, changes in {
        "the same metrics twice": [(METRICS, SET, "a.,a.")],
        "empty names of metrics": [(METRICS, SET, "a.,,b.")],
        "no metrics": [(METRICS, SET, "")],
        "spaces around everything": [(METRICS, SET, " a. , b. "), (INTERVAL, SET, " 5000 ")],
        "an attribute twice": [(MATCH, SET, "client_id=a,client_id=b")],
        "an expression with = at its end": [(MATCH, SET, "client_id=a=")],
    }.items():
        yield step(f"client metrics with {what}", INCREMENTAL_ALTER_CONFIGS, 1, alter("odd", *changes))
    yield step("client metrics without a name", INCREMENTAL_ALTER_CONFIGS, 1, alter("", (METRICS, SET, "a.")))
    yield step(
        "client metrics that are only validated",
        INCREMENTAL_ALTER_CONFIGS,
        0,
        {**alter("validated", (METRICS, SET, "a.")), "validate_only": True},
    )


def is_value(name: str, value: str) -> object:
    return lambda reply: any(one["name"] == name and one["value"] == value for one in reply["results"][0]["configs"])


SETTINGS: tuple[Step, ...] = (
    step(
        "subscribe to metrics of clients",
        INCREMENTAL_ALTER_CONFIGS,
        1,
        alter(SUBSCRIPTION, (METRICS, SET, MANY), (MATCH, SET, "client_id=slow-.*")),
    ),
    step(
        "describe a subscription",
        DESCRIBE_CONFIGS,
        4,
        {"resources": [ask(CLIENT_METRICS, SUBSCRIPTION)], "include_synonyms": True, "include_documentation": True},
        until=is_value(METRICS, MANY),
    ),
    step(
        "describe one setting of a subscription, and of one that is not there",
        DESCRIBE_CONFIGS,
        1,
        {"resources": [ask(CLIENT_METRICS, SUBSCRIPTION, [MATCH]), ask(CLIENT_METRICS, "absent")]},
    ),
    step("describe a subscription without a name", DESCRIBE_CONFIGS, 4, {"resources": [ask(CLIENT_METRICS, "")]}),
    *refused(),
    step(
        "describe the odd one",
        DESCRIBE_CONFIGS,
        4,
        {"resources": [ask(CLIENT_METRICS, "odd")], "include_synonyms": True},
        until=is_value(MATCH, "client_id=a="),
    ),
    step(
        "append to lists of client metrics",
        INCREMENTAL_ALTER_CONFIGS,
        1,
        alter("odd", (METRICS, APPEND, "c."), (MATCH, SUBTRACT, "client_id=a=")),
    ),
    step(
        "the lists are as they should be",
        DESCRIBE_CONFIGS,
        4,
        {"resources": [ask(CLIENT_METRICS, "odd")]},
        until=is_value(MATCH, ""),
    ),
    step(
        "replace client metrics",
        ALTER_CONFIGS,
        2,
        {
            "resources": [
                {
                    "resource_type": CLIENT_METRICS,
                    "resource_name": "odd",
                    "configs": [{"name": INTERVAL, "value": "100"}],
                }
            ]
        },
    ),
    step(
        "only that is set",
        DESCRIBE_CONFIGS,
        4,
        {"resources": [ask(CLIENT_METRICS, "odd")]},
        until=is_value(INTERVAL, "100"),
    ),
    step("all client metrics, in the older version, again", LIST_CONFIG_RESOURCES, 0),
    step("all client metrics, in the newer version", LIST_CONFIG_RESOURCES, 1, {"resource_types": [CLIENT_METRICS]}),
    step(
        "take the odd one back",
        INCREMENTAL_ALTER_CONFIGS,
        1,
        alter("odd", (METRICS, DELETE, None), (INTERVAL, DELETE, None), (MATCH, DELETE, None)),
    ),
    step(
        "one subscription is left",
        LIST_CONFIG_RESOURCES,
        0,
        until=lambda reply: len(reply["config_resources"]) == 1,
    ),
)

SLOW, LATE, OTHER, SOFT, LAST = (
    uuid.UUID(int=number << 64 | 0xDEAD_BEEF_0000) for number in (0xA1, 0xFFFF_FFFF_0000_0001, 0xC3, 0xD4, 0xE5)
)
NO_ID, ONE = uuid.UUID(int=0), uuid.UUID(int=1)
IS_SLOW = {"connection": "slow", "client_id": "slow-1"}


def get(name: str, client: uuid.UUID | V, **options: object) -> Step:
    fields = {"client_instance_id": client}
    return step(name, GET_TELEMETRY_SUBSCRIPTIONS, 0, fields, **{**IS_SLOW, **options})


def push(name: str, client: uuid.UUID, subscription: int | V, **fields: object) -> Step:
    sent = {"client_instance_id": client, "subscription_id": subscription, "metrics": b"x" * 20, **fields}
    return step(name, PUSH_TELEMETRY, 0, sent, **IS_SLOW)


TELEMETRY: tuple[Step, ...] = (
    get(
        "a slow client asks what to push",
        SLOW,
        until=lambda reply: reply["requested_metrics"],
        save={"slow subscription": "subscription_id"},
    ),
    get("it asks again at once", SLOW),
    push("it pushes", SLOW, V("slow subscription")),
    push("it pushes again at once", SLOW, V("slow subscription")),
    push("it pushes for another subscription, at once", SLOW, 7),
    push(
        "it pushes with an unknown codec, as its last",
        SLOW,
        V("slow subscription"),
        compression_type=9,
        terminating=True,
    ),
    push("it pushes after its last push", SLOW, V("slow subscription")),
    push("it pushes once more", SLOW, V("slow subscription")),
    get("it asks again after all", SLOW),
    push("a client that nobody knows pushes for another subscription", LATE, 7),
    get("it asks what to push instead", LATE, save={"late subscription": "subscription_id"}),
    push("it pushes that before its time", LATE, V("late subscription")),
    push("its last push comes at any time", LATE, V("late subscription"), terminating=True),
    get("it asks after its last push", LATE),
    get(
        "a client that no subscription matches asks",
        OTHER,
        client_id="other",
        save={"other subscription": "subscription_id"},
    ),
    push("it pushes nothing", OTHER, V("other subscription"), metrics=b""),
    get("a client without an id asks", NO_ID),
    get("a client with a reserved id asks", ONE),
    push("a client without an id pushes", NO_ID, 7),
    push("a client with a reserved id pushes", ONE, 7),
    get("a client asks before it pushes too much", LAST, save={"last subscription": "subscription_id"}),
    push("it pushes too much", LAST, V("last subscription"), metrics=bytes((1 << 20) + 1)),
    push("it pushes what cannot be inflated", LAST, V("last subscription"), compression_type=1, terminating=True),
    step(
        "a client says which software it is",
        API_VERSIONS,
        3,
        {"client_software_name": "soft", "client_software_version": "1.2.3"},
        connection="soft",
    ),
    step(
        "subscribe by software and address",
        INCREMENTAL_ALTER_CONFIGS,
        1,
        alter(
            "soft",
            (METRICS, SET, "*,a."),
            (INTERVAL, SET, "60000"),
            (
                MATCH,
                SET,
                "client_software_name=so.t,client_software_version=1\\..*,client_source_address=.+,client_source_port=[0-9]+",
            ),
        ),
    ),
    get(
        "that client asks what to push",
        SOFT,
        connection="soft",
        client_id="none",
        until=lambda reply: reply["requested_metrics"] == ["*"],
    ),
    get("a slow client is asked anew when subscriptions have changed", SLOW),
    *(
        step(
            f"take the subscription of {name} back",
            INCREMENTAL_ALTER_CONFIGS,
            1,
            alter(name, (METRICS, DELETE, None), (INTERVAL, DELETE, None), (MATCH, DELETE, None)),
        )
        for name in ("soft", SUBSCRIPTION)
    ),
    step(
        "no subscription is left",
        LIST_CONFIG_RESOURCES,
        0,
        until=lambda reply: not reply["config_resources"],
    ),
)

STEPS: tuple[Step, ...] = (*SETTINGS, *TELEMETRY)
