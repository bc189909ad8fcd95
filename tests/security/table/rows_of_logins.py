"""The requests of the table about logins and delegation tokens, by API key."""

from collections.abc import Mapping
from typing import Any

from tests.differential.script import V
from tests.security.table.cases import (
    ANNA,
    CARL,
    DORA,
    MADE,
    NOTHING,
    OF_OWNER,
    OWNER,
    RENEWABLE,
    REQUESTED,
    THEIR_TOKEN,
    Case,
    Entry,
    Fields,
    Row,
    Token,
    password_of,
)

HOUR_MS = 3_600_000
AT_ONCE = {"hmac": V(MADE), "expiry_time_period_ms": -1}
OF_BOB = f"user User:{OWNER}"
WITHOUT = (Entry.OPEN, Entry.TOKEN)
"""Where nobody is given a token."""


def plain(user: str, password: str) -> Fields:
    return {"auth_bytes": f"\0{user}\0{password}".encode()}


def user(name: str, kind: str = "User") -> Fields:
    return {"principal_type": kind, "principal_name": name}


def token(**fields: Any) -> Fields:
    return {"renewers": [], "max_lifetime_ms": -1, **fields}


def for_owner(name: str, kind: str = "User", **fields: Any) -> Fields:
    return token(owner_principal_type=kind, owner_principal_name=name, **fields)


def changes(**period: int) -> tuple[Case, ...]:
    """Of a token: by its owner, by others, and where nobody has a token."""

    def of(variable: str) -> Fields:
        return {"hmac": V(variable), **period}

    entry = Entry.PASSWORD
    return (
        Case("its own", of(MADE), entry=entry, token=Token.VALID),
        Case("its own, which is over", of(MADE), entry=entry, token=Token.OVER),
        Case("that of another user, which is over", of(MADE), entry=entry, user=CARL, token=Token.OVER),
        Case("one that it may renew", of(RENEWABLE), entry=entry, user=DORA),
        Case("one that it has asked for", of(REQUESTED), entry=entry),
        Case("that of another user", of(OF_OWNER), entry=entry),
        Case("what is no token", {"hmac": b"none", **period}, entry=entry),
        *(Case(f"where there are none: {where.name.lower()}", of(OF_OWNER), entry=where) for where in WITHOUT),
    )


OF_LOGINS: Mapping[int, Row] = {
    17: (
        Case("without logins", {"mechanism": "PLAIN"}),
        Case("a mechanism that there is", {"mechanism": "PLAIN"}, entry=Entry.NEW),
        Case("one that there is not", {"mechanism": "GSSAPI"}, entry=Entry.NEW),
        Case("twice", {"mechanism": "PLAIN"}, entry=Entry.HANDSHAKE),
        Case("after the login", {"mechanism": "PLAIN"}, entry=Entry.PASSWORD),
    ),
    36: (
        Case("without logins", plain(ANNA, password_of(ANNA))),
        Case("before the handshake", plain(ANNA, password_of(ANNA)), entry=Entry.NEW),
        Case("a user", plain(ANNA, password_of(ANNA)), entry=Entry.HANDSHAKE),
        Case("a wrong password", plain(ANNA, "wrong"), entry=Entry.HANDSHAKE),
        Case("an unknown user", plain("nobody", "wrong"), entry=Entry.HANDSHAKE),
        Case("no exchange of PLAIN", {"auth_bytes": b"anna"}, entry=Entry.HANDSHAKE),
        Case("after the login", plain(ANNA, password_of(ANNA)), entry=Entry.PASSWORD),
    ),
    38: (
        Case("of its own", token(), entry=Entry.PASSWORD),
        Case("of its own, with a renewer", token(renewers=[user(CARL)]), entry=Entry.PASSWORD),
        Case("renewed by a group", token(renewers=[user(CARL, "Group")]), entry=Entry.PASSWORD),
        Case(
            "of another user",
            for_owner(OWNER),
            (NOTHING, (f"{OF_BOB} describe_tokens",), (f"{OF_BOB} create_tokens",)),
            (3, 99),
            Entry.PASSWORD,
        ),
        Case("of a group", for_owner(OWNER, "Group"), (NOTHING, (f"{OF_BOB} create_tokens",)), (3, 99), Entry.PASSWORD),
        *(Case(f"where there are none: {where.name.lower()}", token(), entry=where) for where in WITHOUT),
    ),
    39: changes(renew_period_ms=HOUR_MS),
    40: (
        *changes(expiry_time_period_ms=HOUR_MS),
        *(
            Case(f"at once: {one.name.lower()}, by {name}", AT_ONCE, entry=Entry.PASSWORD, user=name, token=one)
            for one in Token
            for name in (ANNA, CARL)
        ),
    ),
    41: (
        Case(
            "of another user",
            {"owners": [user(OWNER)]},
            (NOTHING, (f"{OF_BOB} create_tokens",), (f"{OF_BOB} describe_tokens",)),
            entry=Entry.PASSWORD,
            user=CARL,
        ),
        *(
            Case(
                what,
                {"owners": [user(name)]},
                (NOTHING, (f"{OF_BOB} describe_tokens",)),
                entry=Entry.PASSWORD,
                user=CARL,
            )
            for what, name in (("of its renewer", DORA), ("of those who have asked for one", ANNA))
        ),
        Case(
            "every one",
            {"owners": None},
            (NOTHING, (f"delegation_token {THEIR_TOKEN} describe",)),
            entry=Entry.PASSWORD,
            user=CARL,
        ),
        Case("what it may renew", {"owners": None}, entry=Entry.PASSWORD, user=DORA),
        Case("of nobody", {"owners": []}, entry=Entry.PASSWORD, user=DORA),
        *(Case(f"where there are none: {where.name.lower()}", {"owners": None}, entry=where) for where in WITHOUT),
    ),
}
