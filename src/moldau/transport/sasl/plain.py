"""PLAIN: the client sends its user and password in the clear, so use it with TLS only. Source: RFC 4616.

message = [authorization identity] NUL user NUL password
"""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Final

from moldau.transport.jaas import Login
from moldau.transport.sasl.exchange import NAME_BYTES_MAX, Authenticated, SaslFailed, bounded

MECHANISM: Final = "PLAIN"
_REFUSED: Final = "Authentication failed: Invalid username or password"


class PlainClient:
    def __init__(self, login: Login):
        if "\0" in login.user + login.password or not (login.user and login.password):
            raise ValueError("a user and a password of PLAIN are not empty and have no NUL")
        self._login = login

    def first(self) -> bytes:
        return f"\0{self._login.user}\0{self._login.password}".encode()

    def answer(self, message: bytes) -> bytes | None:
        if message:
            raise SaslFailed("the server goes on after the only message that PLAIN has")
        return None


class PlainServer:
    """`passwords`: by user."""

    def __init__(self, passwords: Mapping[str, str]):
        self._passwords = passwords
        self.authenticated: Authenticated | None = None

    def answer(self, message: bytes) -> bytes:
        parts = bounded(message, 3 * NAME_BYTES_MAX).split("\0")
        if len(parts) != 3:
            raise SaslFailed("Invalid SASL/PLAIN response: expected 3 tokens separated by NUL")
        authorization, user, password = parts
        # An unknown user takes the same steps: its password is compared with one that nobody can give.
        expected = self._passwords.get(user)
        is_right = _same(password, "\0" if expected is None else expected)
        if not (user and password and is_right) or authorization not in ("", user):
            raise SaslFailed(_REFUSED)
        self.authenticated = Authenticated(user)
        return b""


def _same(password: str, expected: str) -> bool:
    """Hashed first, so that the time depends on the length of neither."""
    digests = (hashlib.sha256(text.encode()).digest() for text in (password, expected))
    return hmac.compare_digest(*digests)
