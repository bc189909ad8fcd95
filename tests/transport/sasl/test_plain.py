"""PLAIN: the message, users and passwords."""

import pytest

from moldau.transport.jaas import Login
from moldau.transport.sasl.exchange import SaslFailed
from moldau.transport.sasl.plain import PlainClient, PlainServer

from .exchanges import refusal, run

USERS = {"alice": "pässword", "empty": ""}


def test_the_right_password_authenticates_its_user() -> None:
    assert run(PlainClient(Login("alice", "pässword")), PlainServer(USERS)).user == "alice"


def test_an_unknown_user_and_a_wrong_password_are_refused_alike() -> None:
    wrong, unknown = (PlainClient(Login(*one)) for one in (("alice", "guess"), ("bob", "guess")))
    assert refusal(wrong, PlainServer(USERS)) == refusal(unknown, PlainServer(USERS))


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\0",
        b"alice\0p",
        b"\0\0\0",
        b"\0empty\0",
        b"\0alice\0p\0more",
        b"root\0alice\0p\xc3\xa4ssword",
        b"\xff\0a\0b",
        b"\0alice\0" + b"x" * 5000,
    ],
)
def test_a_message_that_proves_nothing_is_refused(message: bytes) -> None:
    server = PlainServer(USERS)
    with pytest.raises(SaslFailed):
        server.answer(message)
    assert server.authenticated is None


def test_a_user_may_ask_for_its_own_authorization() -> None:
    server = PlainServer({"a": "b"})
    assert server.answer(b"a\0a\0b") == b""
    assert server.authenticated is not None


def test_a_client_refuses_what_the_message_cannot_carry() -> None:
    for login in (Login("", "b"), Login("a", ""), Login("a\0", "b")):
        with pytest.raises(ValueError, match="PLAIN"):
            PlainClient(login)


def test_a_client_refuses_a_server_that_goes_on() -> None:
    with pytest.raises(SaslFailed, match="goes on"):
        PlainClient(Login("a", "b")).answer(b"more")
