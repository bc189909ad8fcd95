"""Filters of ACLs, and ACLs that cannot be made."""

import pytest

from moldau.cluster.state.acls import AclEntry, AclPattern, AclPatternType, AclPermission
from moldau.errors import ErrorCode
from moldau.requests.access import Operation, ResourceType
from moldau.security.selecting import ANY, MATCH, AclSelection, Invalid, made

TOPIC, LITERAL, PREFIXED = ResourceType.TOPIC, AclPatternType.LITERAL, AclPatternType.PREFIXED
ENTRY = AclEntry("User:ann", "*", Operation.READ, AclPermission.ALLOW)
PATTERNS = {
    "t": AclPattern(TOPIC, "t"),
    "tea": AclPattern(TOPIC, "tea"),
    "t...": AclPattern(TOPIC, "t", PREFIXED),
    "*": AclPattern(TOPIC, "*"),
    "group t": AclPattern(ResourceType.GROUP, "t"),
}


@pytest.mark.parametrize(
    ("which", "selected"),
    [
        (AclSelection(), {*PATTERNS}),
        (AclSelection(TOPIC), {*PATTERNS} - {"group t"}),
        (AclSelection(name="t"), {"t", "t...", "group t"}),
        (AclSelection(TOPIC, "t", LITERAL), {"t"}),
        (AclSelection(TOPIC, "t", PREFIXED), {"t..."}),
        (AclSelection(TOPIC, None, PREFIXED), {"t..."}),
        (AclSelection(TOPIC, "tea", MATCH), {"tea", "t...", "*"}),
        (AclSelection(TOPIC, "x", MATCH), {"*"}),
        (AclSelection(TOPIC, None, MATCH), {*PATTERNS} - {"group t"}),
        (AclSelection(TOPIC, "*", LITERAL), {"*"}),
        (AclSelection(99), set()),
        (AclSelection(pattern_type=99), set()),
    ],
)
def test_a_filter_selects_patterns(which: AclSelection, selected: set[str]) -> None:
    assert {name for name, pattern in PATTERNS.items() if which.selects(pattern, ENTRY)} == selected


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        ({"principal": "User:ann"}, True),
        ({"principal": "User:bob"}, False),
        ({"host": "*"}, True),
        ({"host": "10.0.0.7"}, False),
        ({"operation": Operation.READ}, True),
        ({"operation": Operation.WRITE}, False),
        ({"operation": 2}, False),
        ({"permission": AclPermission.DENY}, False),
        ({"permission": ANY}, True),
    ],
)
def test_a_filter_selects_entries_that_are_equal_to_it(which: dict[str, object], expected: bool) -> None:
    assert AclSelection(**which).selects(PATTERNS["t"], ENTRY) is expected  # type: ignore[arg-type]


VALID: dict[str, object] = {
    "resource_type": TOPIC,
    "name": "t",
    "pattern_type": LITERAL,
    "principal": "User:ann",
    "host": "*",
    "operation": Operation.READ,
    "permission": AclPermission.ALLOW,
}


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"name": ""}, "Invalid empty resource name"),
        ({"resource_type": ANY}, "resources of type 1"),
        ({"resource_type": 99}, "resources of type 99"),
        ({"pattern_type": ANY}, "literal or prefixed"),
        ({"pattern_type": MATCH}, "literal or prefixed"),
        ({"operation": ANY}, "the operation 1"),
        ({"permission": ANY}, "allows or denies"),
        ({"principal": "ann"}, "TYPE:NAME, such as User:ann, not ann"),
        ({"host": ""}, "a host is an address"),
        ({"resource_type": ResourceType.CLUSTER, "name": "mine"}, "is kafka-cluster, not mine"),
    ],
)
def test_an_acl_that_cannot_be_is_an_invalid_request(wrong: dict[str, object], why: str) -> None:
    refused = made(**{**VALID, **wrong})  # type: ignore[arg-type]
    assert isinstance(refused, Invalid) and refused.code is ErrorCode.INVALID_REQUEST and why in refused.message


@pytest.mark.parametrize(
    "odd",
    [
        {"resource_type": ResourceType.CLUSTER, "name": "kafka-cluster"},  # Read, which the cluster does not have
        {"principal": "user:ann"},
        {"principal": "User:"},
        {"operation": 2},
    ],
)
def test_what_matches_nobody_is_taken_as_by_kafka(odd: dict[str, object]) -> None:
    assert not isinstance(made(**{**VALID, **odd}), Invalid)  # type: ignore[arg-type]
