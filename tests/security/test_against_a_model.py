"""Random ACLs and changes of them: the authorizer's answers are those of the rules, read one after another."""

import random

import pytest

from harness.tiers import sized
from moldau.cluster.state.acls import AclEntry, AclPattern, AclPatternType, AclPermission, Acls
from moldau.cluster.state.image import Image
from moldau.requests.access import Operation, ResourceType, Right
from moldau.security.authorizer import AclAuthorizer
from tests.security.asking import called

PRINCIPALS = ("User:ann", "User:bob", "User:root")
HOSTS = ("10.0.0.7", "10.0.0.8")
KINDS = (ResourceType.TOPIC, ResourceType.GROUP)
NAMES = ("a", "ab", "abb", "b", "ba", "*")


def drawn(chance: random.Random) -> Acls:
    """Random ACLs; a pattern has few entries or many."""

    def entry() -> AclEntry:
        return AclEntry(
            chance.choice([*PRINCIPALS, "User:*"]),
            chance.choice([*HOSTS, "*"]),
            chance.choice([2, *Operation]),
            chance.choice([*AclPermission]),
        )

    patterns = [
        AclPattern(chance.choice(KINDS), chance.choice(NAMES), chance.choice([*AclPatternType]))
        for _ in range(chance.randrange(6))
    ]
    return {pattern: tuple(entry() for _ in range(chance.randrange(1, 13))) for pattern in patterns}


DESCRIBING = {Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}


def allowed(acls: Acls, principal: str, host: str, right: Right, name: str, if_none: bool) -> bool:
    """By the rules as the documents have them, with no index and nothing kept."""
    if principal == "User:root":
        return True
    about = [
        entry
        for pattern, entries in acls.items()
        if pattern.resource_type == right.resource_type
        and (
            name.startswith(pattern.name)
            if pattern.pattern_type is AclPatternType.PREFIXED
            else pattern.name in (name, "*")
        )
        for entry in entries
    ]
    mine = [one for one in about if one.principal in (principal, "User:*") and one.host in (host, "*")]
    if any(one.permission is AclPermission.DENY and one.operation in (2, right.operation) for one in mine):
        return False
    enough = {2, right.operation}
    if right.operation is Operation.DESCRIBE:
        enough |= DESCRIBING
    if right.operation is Operation.DESCRIBE_CONFIGS:
        enough.add(Operation.ALTER_CONFIGS)
    if any(one.permission is AclPermission.ALLOW and one.operation in enough for one in mine):
        return True
    return if_none and not about


NAMES_ASKED = ("a", "ab", "abb", "b", "hardcode")
ASKED = (Operation.READ, Operation.CREATE, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS)
QUESTIONS = [
    (principal, host, Right(kind, operation), name)
    for principal in PRINCIPALS
    for host in HOSTS
    for kind in KINDS
    for operation in ASKED
    for name in NAMES_ASKED
]


@pytest.mark.parametrize("seed", range(sized(10, 20, 1000)))
def test_decisions_are_those_of_the_rules(seed: int) -> None:
    chance = random.Random(seed)
    if_none = chance.random() < 0.5
    by = AclAuthorizer(Image("c"), {"User:root"}, if_none)
    for _ in range(4):
        acls = drawn(chance)
        by.follow(Image("c", acls=acls))
        for principal, host, right, name in QUESTIONS:
            expected, call = allowed(acls, principal, host, right, name, if_none), called(principal, host)
            assert by.allows(call, right, name, True) is by.allows(call, right, name, False) is expected
            if name == "hardcode" and expected:
                assert by.allows_any(call, right)
