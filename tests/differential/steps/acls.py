"""Access rights, where no authorizer is configured: asked for, made and deleted."""

from moldau.protocol.apis import CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS
from tests.differential.script import Step, step

UNKNOWN, ANY, TOPIC, NEVER_HEARD_OF = 0, 1, 2, 99
LITERAL, PREFIXED = 3, 4
ALLOW, READ = 3, 3

EVERYTHING: dict[str, object] = {
    "resource_type_filter": ANY,
    "resource_name_filter": None,
    "pattern_type_filter": ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": ANY,
    "permission_type": ANY,
}
RIGHT: dict[str, object] = {
    "resource_type": TOPIC,
    "resource_name": "events",
    "resource_pattern_type": LITERAL,
    "principal": "User:alice",
    "host": "*",
    "operation": READ,
    "permission_type": ALLOW,
}

STEPS: tuple[Step, ...] = (
    *(step(f"all access rights, version {version}", DESCRIBE_ACLS, version, EVERYTHING) for version in (1, 2, 3)),
    step("access rights to one topic", DESCRIBE_ACLS, 3, {**EVERYTHING, "resource_type_filter": TOPIC}),
    *(
        step(f"two new access rights, version {version}", CREATE_ACLS, version, {"creations": [RIGHT, RIGHT]})
        for version in (1, 2, 3)
    ),
    step("no new access right", CREATE_ACLS, 3, {"creations": []}),
    step("a new access right by prefix", CREATE_ACLS, 3, {"creations": [{**RIGHT, "resource_pattern_type": PREFIXED}]}),
    step("a new access right of a user without a kind", CREATE_ACLS, 3, {"creations": [{**RIGHT, "principal": "al"}]}),
    *(
        step(f"deleting by two filters, version {version}", DELETE_ACLS, version, {"filters": [EVERYTHING] * 2})
        for version in (1, 2, 3)
    ),
    step("deleting by no filter", DELETE_ACLS, 3, {"filters": []}),
) + tuple(
    one
    for value in (UNKNOWN, NEVER_HEARD_OF)
    for one in (
        *(
            step(f"access rights whose {field} is {value}", DESCRIBE_ACLS, 2, {**EVERYTHING, field: value})
            for field in ("resource_type_filter", "pattern_type_filter", "operation", "permission_type")
        ),
        *(
            step(
                f"a new access right whose {field} is {value}", CREATE_ACLS, 2, {"creations": [{**RIGHT, field: value}]}
            )
            for field in ("resource_type", "resource_pattern_type", "operation", "permission_type")
        ),
        *(
            step(f"deleting by a {field} that is {value}", DELETE_ACLS, 2, {"filters": [{**EVERYTHING, field: value}]})
            for field in ("resource_type_filter", "pattern_type_filter", "operation", "permission_type")
        ),
    )
)
