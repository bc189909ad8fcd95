"""DIGEST-MD5, the client's part: the server sends a challenge, the client proves that it knows the password, and the
server proves the same. Source: RFC 2831."""

import hashlib
import re
from collections.abc import Callable
from typing import Final

from moldau.transport.jaas import Login

_FIELD: Final = re.compile(r'\s*([a-z-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^",\s]+))\s*(?:,|$)')


class DigestMd5:
    """The client's part of one exchange; `nonce` is random, `uri` names the service."""

    def __init__(self, login: Login, nonce: str, uri: str):
        self._login = login
        self._nonce = nonce
        self._uri = uri
        self._proof: Callable[[str], str] | None = None

    def answer(self, challenge: bytes) -> bytes:
        """What the client sends after the server's challenge. Raises `ValueError` if that is none."""
        fields = _fields(challenge)
        realm, nonce = fields.get("realm", ""), fields.get("nonce", "")
        if not nonce or fields.get("algorithm") != "md5-sess" or "auth" not in fields.get("qop", "auth").split(","):
            raise ValueError("this is not a challenge of DIGEST-MD5")
        user, password = self._login
        secret = hashlib.md5(_encoded(user) + b":" + _encoded(realm) + b":" + _encoded(password)).digest()
        session = hashlib.md5(secret + f":{nonce}:{self._nonce}".encode()).hexdigest()

        def proof(method: str) -> str:
            asked = hashlib.md5(f"{method}:{self._uri}".encode()).hexdigest()
            return hashlib.md5(f"{session}:{nonce}:00000001:{self._nonce}:auth:{asked}".encode()).hexdigest()

        self._proof = proof
        return ",".join(
            (
                "charset=utf-8",
                f"username={_quoted(user)}",
                f"realm={_quoted(realm)}",
                f"nonce={_quoted(nonce)}",
                "nc=00000001",
                f"cnonce={_quoted(self._nonce)}",
                f"digest-uri={_quoted(self._uri)}",
                "maxbuf=65536",
                f"response={proof('AUTHENTICATE')}",
                "qop=auth",
            )
        ).encode()

    def is_proved_by(self, last: bytes) -> bool:
        """Whether the server has shown that it knows the password too."""
        return self._proof is not None and _fields(last).get("rspauth") == self._proof("")


def _fields(message: bytes) -> dict[str, str]:
    text, at, fields = message.decode("utf-8", "replace"), 0, dict[str, str]()
    while match := _FIELD.match(text, at):
        name, quoted, plain = match.groups()
        fields[name] = plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        at = match.end()
    return fields


def _quoted(text: str) -> str:
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'


def _encoded(text: str) -> bytes:
    """As the RFC wants it in the digest: ISO 8859-1 where that is possible."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()
