"""Bugs of logins put in on purpose: the tests of SASL, of tokens and of principals find them."""

import base64
from collections.abc import Callable
from typing import Any

import pytest

from moldau.transport.sasl.exchange import SaslFailed
from tests.replacing import Instead, assert_found
from tests.transport import test_tokens as tokens
from tests.transport.sasl import test_scram as scram

SCRAM = "moldau.transport.sasl.scram"
TOKENS = "moldau.transport.tokens"
Do = Callable[..., Any]


def _believes_any_server(answer: Do, self: Any, message: bytes) -> bytes | None:
    return None if self._signature is not None else answer(self, message)


def _believes_any_proof(end: Do, self: Any, text: str, found: Any) -> bytes:
    self.authenticated = self._known and self._known.authenticated
    return end(self, text, found)  # type: ignore[no-any-return]


def _tells_unknown_users(*_: Any) -> Any:
    raise SaslFailed("there is no such user")


def _without_time(user: Do, claims: dict[str, Any], rules: Any, now_ms: int) -> Any:
    return user(claims, rules, min(now_ms, round(1000 * claims["exp"]) - 1000) if "exp" in claims else now_ms)


def _unverified(_: Do, token: str, *__: Any) -> bytes:
    claims = token.split(".")[1]
    return base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4))


BUGS: dict[str, tuple[Instead, Callable[[], None]]] = {
    "a client believes any server": (
        Instead(f"{SCRAM}:ScramClient.answer", _believes_any_server),
        lambda: scram.test_a_client_refuses_a_server_that_does_not_know_the_password(b"v=YWJj"),
    ),
    "a user is authenticated before the proof": (
        Instead(f"{SCRAM}:ScramServer._end", _believes_any_proof),
        lambda: scram.test_a_last_message_that_proves_nothing_is_refused(scram.LAST.replace(scram.PROOF, b"")),
    ),
    "a login tells which users there are": (
        Instead(f"{SCRAM}:ScramServer._made_up", _tells_unknown_users),
        scram.test_an_unknown_user_and_a_wrong_password_take_the_same_steps_and_are_refused_alike,
    ),
    "a token's id is a user": (
        Instead(f"{SCRAM}:_is_token", lambda *_: True),
        scram.test_a_token_authenticates_its_owner_and_is_no_user,
    ),
    "a token never expires": (
        Instead(f"{TOKENS}:_user", _without_time),
        lambda: tokens.test_a_token_that_says_something_else_is_refused({"exp": tokens.NOW_S - 30}, "has expired"),
    ),
    "a token of an unknown key is tried with the others": (
        Instead(f"{TOKENS}:_candidates", lambda _, keys, *__: keys),
        tokens.test_an_unknown_key_is_told_apart,
    ),
    "nobody looks at a token's signature": (
        Instead(f"{TOKENS}:_verified", _unverified),
        tokens.test_a_changed_token_is_refused,
    ),
}


@pytest.mark.bug
@pytest.mark.parametrize("name", BUGS)
def test_a_bug_put_in_on_purpose_is_found(name: str) -> None:
    assert_found(*BUGS[name])
