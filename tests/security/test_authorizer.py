"""Decisions that are kept: as long as no ACL changes, and never without a bound."""

import pytest

from moldau.cluster.state.acls import AclEntry, AclPattern, AclPermission
from moldau.cluster.state.image import Image
from moldau.requests.access import WRITE_TOPIC, Operation, ResourceType, Right
from moldau.security import authorizer
from moldau.security.authorizer import AclAuthorizer
from tests.handlers.longest_turn import counted_calls
from tests.security.asking import called
from tests.security.test_rules import acls

READ = Right(ResourceType.TOPIC, Operation.READ)


def test_a_change_of_acls_is_decided_by_at_once() -> None:
    image = Image("c", acls=acls("allow ann read t", "allow ann read p..."))
    by, ann = AclAuthorizer(image, (), allow_if_none=False), called("User:ann")
    assert by.allows(ann, READ, "t", True) and by.allows(ann, READ, "pp", True)
    less = image.with_acls({AclPattern(ResourceType.TOPIC, "t"): None})
    by.follow(less)
    assert not by.allows(ann, READ, "t", True) and by.allows(ann, READ, "pp", True)
    by.follow(Image("c", acls=acls("deny ann read pp", "allow ann read p...")))
    assert not by.allows(ann, READ, "pp", True) and by.allows(ann, READ, "p", True)
    by.follow(Image("c"))
    assert not by.allows(ann, READ, "p", True)


def test_topics_that_a_session_may_write_to_are_taken_back_when_rights_change() -> None:
    image = Image("c", acls=acls("allow ann write t", "allow ann write p..."))
    by, ann, other = AclAuthorizer(image, (), allow_if_none=False), called("User:ann"), called("User:ann")
    assert "t" not in ann.session.writable
    assert by.allows(ann, WRITE_TOPIC, "t", True) and by.allows(other, WRITE_TOPIC, "pp", True)
    assert not by.allows(ann, WRITE_TOPIC, "u", True) and not by.allows(ann, READ, "v", True)
    for call in (ann, other):
        assert {name for name in ("t", "pp", "u", "v") if name in call.session.writable} == {"t", "pp"}
    by.follow(image.with_acls({AclPattern(ResourceType.TOPIC, "t"): None}))
    assert not any(name in call.session.writable for call in (ann, other) for name in ("t", "pp"))
    assert not by.allows(ann, WRITE_TOPIC, "t", True) and by.allows(ann, WRITE_TOPIC, "pp", True)
    assert "t" not in ann.session.writable and "pp" in ann.session.writable
    ann.session.become("User:bob")
    assert "pp" not in ann.session.writable


def test_what_sessions_may_write_to_is_forgotten_when_too_much_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authorizer, "KEPT_MAX", 10)
    by, first = AclAuthorizer(Image("c"), (), allow_if_none=True), called("User:ann")
    sets = []
    for number in range(100):
        call = called(f"User:{number % 7}")
        by.allows(call, WRITE_TOPIC, f"t{number}", True)
        by.allows(call, WRITE_TOPIC, "x" * 600, True)
        sets.append(call.session.writable)
    held = {id(names): names for names in sets}.values()
    assert sum(map(len, held)) <= 10  # type: ignore[arg-type]
    assert by.allows(first, WRITE_TOPIC, "t", True)
    by.follow(Image("c", acls=acls("deny ann write t")))
    assert "t" not in first.session.writable


def test_decisions_differ_by_principal_and_host() -> None:
    by = AclAuthorizer(Image("c", acls=acls("allow ann read t from 10.0.0.7")), (), allow_if_none=False)
    assert by.allows(called("User:ann"), READ, "t", True)
    assert not by.allows(called("User:bob"), READ, "t", True)
    assert not by.allows(called("User:ann", "10.0.0.8"), READ, "t", True)
    assert by.allows(called("User:ann"), READ, "t", True)


def test_only_denials_that_refuse_something_are_told_each_time() -> None:
    told: list[str] = []
    by = AclAuthorizer(Image("c"), (), False, lambda call, right, name, decision: told.append(name))
    for _ in range(2):
        by.allows(called("User:ann"), READ, "probed", False)
        by.allows(called("User:ann"), READ, "asked", True)
    assert told == ["asked", "asked"]


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authorizer, "KEPT_MAX", 10)
    by = AclAuthorizer(Image("c"), (), allow_if_none=False)
    for number in range(100):
        by.allows(called("User:ann"), READ, f"t{number}", False)
        by.allows(called("User:ann"), READ, "x" * 1000 + str(number), False)
        assert len(by._kept) <= 10
    assert all(name is None or len(name) < 600 for *_, name in by._kept)


def test_of_thousands_of_entries_of_others_none_is_looked_at() -> None:
    allow, deny = AclPermission.ALLOW, AclPermission.DENY
    others = [AclEntry(f"User:{number}", "*", Operation.READ, allow) for number in range(3000)]
    own = [AclEntry("User:ann", "*", 2, allow), AclEntry("User:*", "10.0.0.9", Operation.READ, deny)]
    pattern = AclPattern(ResourceType.TOPIC, "*")
    by = AclAuthorizer(Image("c", acls={pattern: (*others, *own)}), (), allow_if_none=True)
    assert by.allows(called("User:ann"), READ, "t", True) and by.allows(called("User:77"), READ, "t", True)
    assert not by.allows(called("User:ann", "10.0.0.9"), READ, "t", True)
    assert not by.allows(called("User:eve"), READ, "t", True)
    with counted_calls() as counted:
        for number in range(100):
            by.allows(called("User:ann"), READ, f"t{number}", True)
    assert counted.calls < 100 * 60
    by.follow(Image("c", acls={pattern: tuple(others)}))
    assert not by.allows(called("User:ann"), READ, "t", True)


def test_a_kept_decision_looks_at_no_acl() -> None:
    entries = tuple(AclEntry(f"User:{n}", "*", Operation.READ, AclPermission.ALLOW) for n in range(1000))
    by = AclAuthorizer(Image("c", acls={AclPattern(ResourceType.TOPIC, "t"): entries}), (), allow_if_none=False)
    assert by.allows(called("User:999"), READ, "t", True)
    by._index = None  # type: ignore[assignment]
    assert by.allows(called("User:999"), READ, "t", True)
