"""Random ACLs and changes of them: the authorizer's answers are those of the rules, read one after another."""

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.tiers import examples
from moldau.cluster.state.acls import AclEntry, AclPattern, AclPatternType, AclPermission, Acls
from moldau.cluster.state.image import Image
from moldau.requests.access import Operation, ResourceType, Right
from moldau.security.authorizer import AclAuthorizer
from tests.security.asking import called

NAMES = st.text("ab", min_size=1, max_size=3)
PRINCIPALS = ("User:ann", "User:bob", "User:root")
HOSTS = ("10.0.0.7", "10.0.0.8")
KINDS = (ResourceType.TOPIC, ResourceType.GROUP)
PATTERNS = st.builds(AclPattern, st.sampled_from(KINDS), NAMES | st.just("*"), st.sampled_from(AclPatternType))
ENTRIES = st.builds(
    AclEntry,
    st.sampled_from([*PRINCIPALS, "User:*"]),
    st.sampled_from([*HOSTS, "*"]),
    st.sampled_from([2, *Operation]),
    st.sampled_from(AclPermission),
)
ACLS = st.dictionaries(PATTERNS, st.lists(ENTRIES, min_size=1, max_size=12).map(tuple), max_size=6)
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


@settings(max_examples=examples(10, 300))
@given(st.lists(ACLS, min_size=1, max_size=3), st.booleans())
def test_decisions_are_those_of_the_rules(later: list[Acls], if_none: bool) -> None:
    by = AclAuthorizer(Image("c", acls=later[0]), {"User:root"}, if_none)
    for acls in later:
        by.follow(Image("c", acls=acls))
        for principal, host, right, name in QUESTIONS:
            expected, call = allowed(acls, principal, host, right, name, if_none), called(principal, host)
            assert by.allows(call, right, name, True) is by.allows(call, right, name, False) is expected
            if name == "hardcode" and expected:
                assert by.allows_any(call, right)
