"""SCRAM-SHA-256 and SCRAM-SHA-512: both ends prove that they know the password, and neither sends it. Source: RFC 5802,
RFC 7677; Kafka's extension `tokenauth` (KIP-48). As in Kafka, passwords are UTF-8 as they are, without SASLprep.

    client  n,,n=USER,r=NONCE                        the beginning; with tokenauth=true USER is the id of a token
    server  r=NONCE+MORE,s=SALT,i=ITERATIONS
    client  c=biws,r=NONCE+MORE,p=PROOF              the proof is made of the password's key and of all messages
    server  v=SIGNATURE                              as is the signature

A server keeps a `Credential`, from which the password cannot be computed back. A user without one goes through the same
messages with a salt and a key made up from a secret of the server: the same salt each time, and the same refusal as
after a wrong password.
"""

import hashlib
import hmac
from collections.abc import Callable
from typing import Final, NamedTuple

from moldau.transport.jaas import Login
from moldau.transport.sasl.exchange import (
    NAME_BYTES_MAX,
    Authenticated,
    SaslFailed,
    bounded,
    from_base64,
    to_base64,
)

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
ITERATIONS_MIN, ITERATIONS_MAX = 4_096, 16_384
"""Of the credentials that a server keeps."""
ITERATIONS_ASKED_MAX = 1_000_000
"""The most that a server may ask of a client: a third of a second."""
OTHER_IDENTITY: Final = "Authentication failed: Client requested an authorization id that is different from username"
SALT_BYTES = 24
_USUAL_ITERATIONS = (4_096, 8_192)
"""Of Kafka's tools and of ours: nobody can tell by them that a user does not exist."""
_SALT_BYTES_MAX = NAME_BYTES_MAX
_NONCE_MAX = 256
_MESSAGE_BYTES_MAX = 8 * NAME_BYTES_MAX


class Credential(NamedTuple):
    """What a server knows of a user's password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"Credential(iterations={self.iterations})"


class NamedCredential(NamedTuple):
    """The credential of a user or a token, and who is authenticated by it."""

    credential: Credential
    authenticated: Authenticated


Find = Callable[[str, bool], NamedCredential | None]
"""Looks up a name; the second argument says whether it is the id of a token."""


def salted_password(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    """Slow on purpose."""
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)


def credential(mechanism: str, salt: bytes, iterations: int, salted: bytes) -> Credential:
    """The credential of a salted password."""
    name = HASHES[mechanism]
    client_key = hmac.digest(salted, b"Client Key", name)
    return Credential(
        salt, hashlib.new(name, client_key).digest(), hmac.digest(salted, b"Server Key", name), iterations
    )


class ScramClient:
    """`nonce` is random, and printable without commas. `by_token`: the user is the id of a delegation token, and the
    password its HMAC."""

    def __init__(self, mechanism: str, login: Login, nonce: str, by_token: bool = False):
        self._mechanism = mechanism
        self._password = login.password
        self._nonce = nonce
        self._bare = f"n={_escaped(login.user)},r={nonce}{',tokenauth=true' if by_token else ''}"
        self._signature: bytes | None = None

    def first(self) -> bytes:
        return f"n,,{self._bare}".encode()

    def answer(self, message: bytes) -> bytes | None:
        text = bounded(message, 4 * NAME_BYTES_MAX)
        if self._signature is None:
            return self._proof(text)
        fields = _fields(text)
        if "e" in fields:
            raise SaslFailed("the server refuses the user or its password")
        if not hmac.compare_digest(from_base64(fields.get("v", "")), self._signature):
            raise SaslFailed("the server does not know the password that it asks for: it is another server")
        return None

    def _proof(self, text: str) -> bytes:
        fields = _fields(text)
        nonce, salt, count = fields.get("r", ""), from_base64(fields.get("s", "")), fields.get("i", "")
        if "m" in fields or not (count.isascii() and count.isdecimal() and len(count) < 10 and salt):
            raise SaslFailed("this is not the server's first message of SCRAM")
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce) or len(salt) > _SALT_BYTES_MAX:
            raise SaslFailed("the server's first message of SCRAM does not answer the client's")
        if not ITERATIONS_MIN <= int(count) <= ITERATIONS_ASKED_MAX:
            raise SaslFailed(
                f"the server asks for {int(count)} iterations of SCRAM; {ITERATIONS_MIN} to {ITERATIONS_ASKED_MAX} are "
                "allowed"
            )
        salted = salted_password(self._mechanism, self._password, salt, int(count))
        last = f"c=biws,r={nonce}"
        said = f"{self._bare},{text},{last}".encode()
        name = HASHES[self._mechanism]
        client_key = hmac.digest(salted, b"Client Key", name)
        signature = hmac.digest(hashlib.new(name, client_key).digest(), said, name)
        self._signature = hmac.digest(hmac.digest(salted, b"Server Key", name), said, name)
        return f"{last},p={to_base64(_xor(client_key, signature))}".encode()


class ScramServer:
    """`nonce` is random and printable, `secret` the same for all exchanges of all brokers of a cluster."""

    def __init__(self, mechanism: str, find: Find, nonce: str, secret: bytes):
        self._mechanism = mechanism
        self._find = find
        self._nonce = nonce
        self._secret = secret
        self._binding = b""
        self._said = ""
        self._known: NamedCredential | None = None
        self._credential: Credential | None = None
        self.authenticated: Authenticated | None = None

    def answer(self, message: bytes) -> bytes:
        text = bounded(message, _MESSAGE_BYTES_MAX)
        return self._begin(text) if self._credential is None else self._end(text, self._credential)

    def _begin(self, text: str) -> bytes:
        flag, authorization, bare, fields = _first(text)
        name, nonce = _unescaped(fields["n"]), fields["r"]
        if len(nonce) > _NONCE_MAX or not (nonce.isascii() and nonce.isprintable()):
            raise SaslFailed("Invalid SCRAM client first message format: the nonce is too long or not printable")
        if authorization and authorization != f"a={fields['n']}":
            raise SaslFailed(OTHER_IDENTITY)
        by_token = _is_token(fields)
        self._known = self._find(name, by_token)
        found = self._credential = self._made_up(name) if self._known is None else self._known.credential
        self._binding = f"{flag},{authorization},".encode()
        self._nonce = nonce + self._nonce
        first = f"r={self._nonce},s={to_base64(found.salt)},i={found.iterations}"
        self._said = f"{bare},{first}"
        return first.encode()

    def _end(self, text: str, found: Credential) -> bytes:
        fields = _fields(text)
        without_proof, _, _ = text.rpartition(",p=")
        if from_base64(fields.get("c", "")) != self._binding or [*fields][1:2] != ["r"] or [*fields][-1] != "p":
            raise SaslFailed("Invalid SCRAM client final message format")
        if fields["r"] != self._nonce:
            raise SaslFailed("Invalid client nonce in the final client message.")
        name = HASHES[self._mechanism]
        said = f"{self._said},{without_proof}".encode()
        signature = hmac.digest(found.stored_key, said, name)
        proof = from_base64(fields.get("p", ""))
        client_key = _xor(proof, signature) if len(proof) == len(signature) else b""
        is_right = hmac.compare_digest(hashlib.new(name, client_key).digest(), found.stored_key)
        last = f"v={to_base64(hmac.digest(found.server_key, said, name))}"
        if not is_right or self._known is None:
            raise SaslFailed(
                f"Authentication failed during authentication due to invalid credentials with SASL mechanism "
                f"{self._mechanism}"
            )
        self.authenticated = self._known.authenticated
        return last.encode()

    def _made_up(self, name: str) -> Credential:
        """The credential that an unknown user has, always the same."""

        def part(which: str) -> bytes:
            return hmac.digest(self._secret, f"{which} {self._mechanism} {name}".encode(), HASHES[self._mechanism])

        iterations = _USUAL_ITERATIONS[part("iterations")[0] % 2]
        return Credential(part("salt")[:SALT_BYTES], part("stored key"), part("server key"), iterations)


def name_in(first: bytes) -> tuple[str, bool]:
    """The name in a client's first message, and whether it is the id of a token. Raises `SaslFailed`."""
    fields = _first(bounded(first, _MESSAGE_BYTES_MAX)).fields
    return _unescaped(fields["n"]), _is_token(fields)


class _First(NamedTuple):
    flag: str
    authorization: str
    bare: str
    fields: dict[str, str]


def _first(text: str) -> _First:
    flag, _, rest = text.partition(",")
    authorization, comma, bare = rest.partition(",")
    fields = _fields(bare)
    if flag not in ("n", "y") or not comma or next(iter(fields), "") != "n" or not (fields["n"] and fields.get("r")):
        raise SaslFailed("Invalid SCRAM client first message format")
    return _First(flag, authorization, bare, fields)


def _is_token(fields: dict[str, str]) -> bool:
    return fields.get("tokenauth", "").lower() == "true"


def _fields(text: str) -> dict[str, str]:
    """The fields of a message, in their order; without one of two with the same name, and without what has no `=`.
    Raises `SaslFailed`."""
    fields: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals or name in fields:
            raise SaslFailed("a message of SCRAM is a list of NAME=VALUE, with each name once")
        fields[name] = value
    return fields


def _escaped(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def _unescaped(name: str) -> str:
    """Raises `SaslFailed` for a `=` that escapes neither of the two characters."""
    pieces = name.split("=")
    if any(piece[:2] not in ("2C", "3D") for piece in pieces[1:]) or len(name) > NAME_BYTES_MAX:
        raise SaslFailed("Invalid SCRAM client first message format: the username is not escaped")
    return pieces[0] + "".join(("," if piece[:2] == "2C" else "=") + piece[2:] for piece in pieces[1:])


def _xor(one: bytes, other: bytes) -> bytes:
    return (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).to_bytes(len(one), "big")
