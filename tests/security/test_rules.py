"""The standard authorizer's rules: each line is a question to ACLs, and who decided."""

import pytest

from moldau.cluster.state.acls import AclEntry, AclPattern, AclPatternType, AclPermission, Acls
from moldau.cluster.state.image import Image
from moldau.requests.access import Operation, ResourceType, Right
from moldau.security.authorizer import AclAuthorizer
from moldau.security.rules import address
from tests.security.asking import called

TOPIC = ResourceType.TOPIC
ALLOW, DENY = AclPermission.ALLOW, AclPermission.DENY
ALL = 2
HOST = "10.0.0.7"
OPERATIONS = {"all": ALL, **{one.name.lower(): int(one) for one in Operation}}


def acls(*lines: str) -> Acls:
    """ACLs as `allow ann read t from 10.0.0.7`; a name that ends in ... is a prefix."""
    made: dict[AclPattern, tuple[AclEntry, ...]] = {}
    for line in lines:
        permission, principal, operation, name, *host = line.split()
        kind = AclPatternType.PREFIXED if name.endswith("...") else AclPatternType.LITERAL
        pattern = AclPattern(TOPIC, name.removesuffix("..."), kind)
        where = host[1] if host else "*"
        entry = AclEntry(f"User:{principal}", where, OPERATIONS[operation], AclPermission[permission.upper()])
        made[pattern] = (*made.get(pattern, ()), entry)
    return made


def authorizer(*lines: str, super_users: tuple[str, ...] = (), allow_if_none: bool = False) -> AclAuthorizer:
    return AclAuthorizer(Image("c", acls=acls(*lines)), super_users, allow_if_none)


def asked(by: AclAuthorizer, operation: str, name: str = "t", principal: str = "ann", host: str = HOST) -> bool:
    return by.decision(f"User:{principal}", host, Right(TOPIC, Operation[operation.upper()]), name).allowed


@pytest.mark.parametrize(
    ("line", "operation", "name", "expected"),
    [
        ("allow ann read t", "read", "t", True),
        ("allow ann read t", "write", "t", False),
        ("allow ann read t", "read", "tt", False),
        ("allow bob read t", "read", "t", False),
        ("allow * read t", "read", "t", True),
        ("allow ann all t", "alter_configs", "t", True),
        ("allow ann read t from 10.0.0.7", "read", "t", True),
        ("allow ann read t from 10.0.0.8", "read", "t", False),
        ("allow ann read *", "read", "t", True),
        ("allow ann read t...", "read", "t", True),
        ("allow ann read t...", "read", "tea", True),
        ("allow ann read t...", "read", "at", False),
        ("allow ann write t", "describe", "t", True),
        ("allow ann read t", "describe", "t", True),
        ("allow ann delete t", "describe", "t", True),
        ("allow ann alter t", "describe", "t", True),
        ("allow ann create t", "describe", "t", False),
        ("allow ann alter_configs t", "describe", "t", False),
        ("allow ann alter_configs t", "describe_configs", "t", True),
        ("allow ann describe_configs t", "alter_configs", "t", False),
    ],
)
def test_an_acl_allows_what_it_fits(line: str, operation: str, name: str, expected: bool) -> None:
    assert asked(authorizer(line), operation, name) is expected


def test_the_first_denial_that_fits_wins_over_every_permission() -> None:
    by = authorizer("allow ann all *", "allow ann all t...", "allow ann all t", "deny ann read t...")
    assert not asked(by, "read") and asked(by, "write") and asked(by, "read", "other")
    assert not asked(authorizer("allow ann all t", "deny * all * from 10.0.0.7"), "read")
    assert asked(authorizer("allow ann all t", "deny * all * from 10.0.0.8"), "read")


def test_a_denied_operation_denies_no_operation_that_it_would_imply() -> None:
    by = authorizer("allow ann all t", "deny ann read t")
    assert not asked(by, "read") and asked(by, "describe")
    assert not asked(authorizer("allow ann all t", "deny ann all t"), "describe")


def test_nobody_has_a_right_where_no_acl_is_unless_that_is_allowed() -> None:
    assert not asked(authorizer(), "read")
    everyone = authorizer("allow bob read t", "allow bob read p...", allow_if_none=True)
    assert asked(everyone, "read", "elsewhere")
    assert not asked(everyone, "read", "t") and not asked(everyone, "read", "pp")
    assert asked(everyone, "read", "t", "bob") and not asked(everyone, "write", "t", "bob")


def test_a_super_user_may_do_what_is_denied() -> None:
    by = authorizer("deny * all *", super_users=("User:root",))
    assert asked(by, "alter", principal="root") and not asked(by, "alter")


def test_the_rule_that_decided_is_told() -> None:
    by = authorizer("allow ann read t", "allow ann read t...", "deny bob read *", super_users=("User:root",))
    right = Right(TOPIC, Operation.READ)
    allowed = by.decision("User:ann", HOST, right, "t")
    assert allowed.acl == (AclPattern(TOPIC, "t"), AclEntry("User:ann", "*", Operation.READ, ALLOW))
    denied = by.decision("User:bob", HOST, right, "t")
    assert denied.acl == (AclPattern(TOPIC, "*"), AclEntry("User:bob", "*", Operation.READ, DENY))
    assert by.decision("User:root", HOST, right, "t").rule == "SuperUser"
    assert by.decision("User:eve", HOST, right, "t") == (False, "DefaultDeny", None)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], False),
        (["allow ann write t"], True),
        (["allow bob write t"], False),
        (["allow ann read t"], False),
        (["allow ann all p..."], True),
        (["allow ann write t from 10.0.0.8"], False),
        (["allow ann write t", "deny ann write t"], False),
        (["allow ann write t", "deny ann write t..."], False),
        (["allow ann write tea", "deny ann write te..."], False),
        (["allow ann write te...", "deny ann write tea..."], True),
        (["allow ann write te...", "deny ann write t..."], False),
        (["allow ann write te...", "deny ann write te"], True),
        (["allow ann write *", "deny ann write t..."], True),
        (["allow ann write t", "deny * all *"], False),
        (["allow ann write t", "allow ann write u", "deny ann all t"], True),
    ],
)
def test_whether_any_topic_may_be_written(lines: list[str], expected: bool) -> None:
    by = authorizer(*lines)
    assert by.allows_any(called("User:ann"), Right(TOPIC, Operation.WRITE)) is expected
    assert by.allows_any(called("User:ann"), Right(TOPIC, Operation.WRITE)) is expected


def test_a_super_user_and_everyone_where_no_acl_is_may_write_any_topic() -> None:
    right = Right(TOPIC, Operation.WRITE)
    assert authorizer("deny * all *", super_users=("User:ann",)).allows_any(called("User:ann"), right)
    assert authorizer(allow_if_none=True).allows_any(called("User:ann"), right)


def test_texts_of_one_address_are_the_same_host() -> None:
    assert address("::1") == address("0:0:0:0:0:0:0:1")
    assert address("::ffff:10.0.0.7") == address("10.0.0.7") == "10.0.0.7"
    assert address("fe80::1%eth0") == address("fe80::1")
    assert address("somewhere.example") == "somewhere.example"
    by = authorizer("allow * all *", "deny ann read t from ::ffff:10.0.0.7")
    assert not asked(by, "read") and asked(by, "read", host="10.0.0.8")
