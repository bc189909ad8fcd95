"""OAUTHBEARER: the client sends a signed token that somebody else has issued to it. Source: RFC 7628, KIP-255.

client  n,,^Aauth=Bearer TOKEN^Aname=value^A^A      ^A is the byte 1; the names are extensions
server  (nothing)                                    the token is good
        {"status":"invalid_token"}                   it is not; the client answers ^A, and is told that it failed
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Final

from moldau.transport.sasl.exchange import Authenticated, SaslFailed, bounded

MECHANISM: Final = "OAUTHBEARER"
_DIVIDER: Final = "\x01"
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")
_EXTENSION: Final = re.compile(r"([A-Za-z]+)=([\x21-\x7e \t\r\n]*)")
_REPLY_BYTES_MAX: Final = 1 << 14


class TokenRefused(Exception):
    """The text says why, and is for the log of the server: the client learns only that the token is refused."""


class OauthbearerClient:
    """`extensions` are sent beside the token."""

    def __init__(self, token: str, extensions: Mapping[str, str] | None = None):
        pairs = [f"{name}={value}" for name, value in (extensions or {}).items()]
        if not _TOKEN.fullmatch(token):
            raise ValueError("a token of OAUTHBEARER has letters, digits and ._~+/- only")
        if any(not _EXTENSION.fullmatch(pair) for pair in pairs) or "auth" in (extensions or {}):
            raise ValueError(
                "an extension of OAUTHBEARER has a name of letters, other than auth, and a printable value"
            )
        self._first = _DIVIDER.join(["n,,", f"auth=Bearer {token}", *pairs, "", ""])
        self._refusal: str | None = None

    def first(self) -> bytes:
        return self._first.encode()

    def answer(self, message: bytes) -> bytes | None:
        if self._refusal is not None:
            raise SaslFailed(self._refusal)
        if not message:
            return None
        self._refusal = f"the server refuses the token: {_status(message)}"
        return _DIVIDER.encode()


class OauthbearerServer:
    """`check` returns whose token it is, and until when it is valid. It raises `TokenRefused`, and `refused` is called
    with that then."""

    def __init__(self, check: Callable[[str], Authenticated], refused: Callable[[TokenRefused], None]):
        self._check = check
        self._refused = refused
        self._refusal: str | None = None
        self.authenticated: Authenticated | None = None

    def answer(self, message: bytes) -> bytes:
        if self._refusal is not None:
            raise SaslFailed(self._refusal)
        authorization, token = _read_first(bounded(message))
        try:
            found = self._check(token)
            if authorization not in ("", found.user):
                raise TokenRefused("the authorization id differs from the token's user")
        except TokenRefused as error:
            self._refused(error)
            self._refusal = '{"status":"invalid_token"}'
            return self._refusal.encode()
        self.authenticated = found
        return b""


def token_in(first: bytes) -> str:
    """The token in a client's first message. Raises `SaslFailed`."""
    return _read_first(bounded(first))[1]


def _read_first(text: str) -> tuple[str, str]:
    """The authorization id and the token of the client's first message. Raises `SaslFailed`."""
    header, *pairs = text.split(_DIVIDER)
    flag, _, rest = header.partition(",")
    authorization, comma, more = rest.partition(",")
    names = [pair.partition("=")[0] for pair in pairs[:-2]]
    kind, _, token = dict(pair.split("=", 1) for pair in pairs[:-2] if "=" in pair).get("auth", "").partition(" ")
    if (
        flag != "n"
        or not comma
        or more
        or (authorization and not authorization.startswith("a="))
        or pairs[-2:] != ["", ""]
        or len(set(names)) < len(names)
        or any(not _EXTENSION.fullmatch(pair) for pair in pairs[:-2])
        or kind.lower() != "bearer"
        or not _TOKEN.fullmatch(token)
    ):
        raise SaslFailed("Invalid OAUTHBEARER client first message")
    return authorization[2:], token


def _status(message: bytes) -> str:
    """The status in a server's refusal, which may be anything."""
    try:
        fields = json.loads(bounded(message, _REPLY_BYTES_MAX))
    except (ValueError, RecursionError, SaslFailed):
        fields = None
    status = fields.get("status") if isinstance(fields, dict) else None
    return status[:200] if isinstance(status, str) and status.isprintable() else "it says nothing more"
