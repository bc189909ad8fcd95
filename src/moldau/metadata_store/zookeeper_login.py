"""Who this broker is for ZooKeeper: a user and a password by SASL's DIGEST-MD5, as the JAAS file of Kafka has them.

A JAAS file has sections, each with login modules and their options; ours is `Client`:

    Client {
        org.apache.zookeeper.server.auth.DigestLoginModule required
        username="kafka"
        password="secret";
    };

kazoo authenticates with the library pure-sasl, which has had no release since 2019 and is no wheel. So the exchange is
here: the server sends a challenge, the client proves that it knows the password, and the server proves the same.
Source: RFC 2831; "Client-Server mutual authentication" of ZooKeeper's documentation.
"""

import hashlib
import re
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kazoo.exceptions import AuthFailedError
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.serialization import SASL

from moldau.errors import ConfigError

URI = "zookeeper/zk-sasl-md5"
"""What every ZooKeeper server calls itself in this exchange."""
_DIGEST_MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"
_FILE_BYTES_MAX = 1 << 20
_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"((?:[^"\\]|\\.)*)"|([{};=])|([^\s{};="]+)', re.DOTALL)
_FIELD = re.compile(r'\s*([a-z-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^",\s]+))\s*(?:,|$)')


class Login(NamedTuple):
    user: str
    password: str

    def __repr__(self) -> str:
        return f"Login({self.user!r})"


def login_of(path: str, section: str) -> Login | None:
    """The user of that section of a JAAS file; None if it has no such section. Raises `ConfigError`."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            text = file.read(_FILE_BYTES_MAX)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the JAAS file {path}: {getattr(error, 'strerror', None) or error}") from None
    words = _tokens(text)
    for name in words:
        modules = _section(words, name, path)
        if name == section:
            return _login(path, section, *modules[0])
    return None


def _section(words: Iterator[str], name: str, path: str) -> list[tuple[str, dict[str, str]]]:
    """The login modules of a section and their options, at least one. Raises `ConfigError`."""

    def wrong(what: str) -> ConfigError:
        return ConfigError(f"{path} is not a JAAS file: {what}")

    if next(words, None) != "{":
        raise wrong("a section is NAME { MODULE required NAME=VALUE ...; };")
    modules: list[tuple[str, dict[str, str]]] = []
    is_inside = False
    for word in words:
        if word == "}":
            break
        if word == ";":
            is_inside = False
        elif not is_inside:
            modules.append((word, {}))
            next(words, None)  # required, requisite, sufficient or optional
            is_inside = True
        elif next(words, None) == "=":
            modules[-1][1][word] = next(words, "")
        else:
            raise wrong(f"{word} has no value in the section {name}")
    if not modules or next(words, None) != ";":
        raise wrong(f"the section {name} does not end with }};")
    return modules


def _tokens(text: str) -> Iterator[str]:
    for found in _TOKEN.finditer(text):
        quoted, mark, word = found.groups()
        if quoted is not None:
            yield re.sub(r"\\(.)", r"\1", quoted)
        elif mark or word:
            yield mark or word


def _login(path: str, section: str, module: str, options: dict[str, str]) -> Login:
    if module != _DIGEST_MODULE:
        raise ConfigError(f"the section {section} of {path} is for {module}; only {_DIGEST_MODULE} is supported")
    if not options.get("username") or "password" not in options:
        raise ConfigError(f"the section {section} of {path} needs username and password")
    return Login(options["username"], options["password"])


class DigestMd5:
    """The client's part of one exchange; `nonce` is random, `uri` names the service."""

    def __init__(self, login: Login, nonce: str, uri: str = URI):
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
    while found := _FIELD.match(text, at):
        name, quoted, plain = found.groups()
        fields[name] = plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        at = found.end()
    return fields


def _quoted(text: str) -> str:
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'


def _encoded(text: str) -> bytes:
    """As the RFC wants it in the digest: ISO 8859-1 where that is possible."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def log_in(connection: ConnectionHandler, login: Login, refused: Callable[[str], None]) -> None:
    """Make this connection of kazoo's authenticate itself whenever it has connected, before it sends anything else.
    `refused` gets the reason, in kazoo's thread, if the server does not accept the user."""

    def authenticate(_: str, timeout_s: float) -> None:
        exchange = DigestMd5(login, secrets.token_hex(16))
        try:
            challenge = _asked(connection, b"", 1, timeout_s)
            if not challenge:
                raise ValueError("the server has no users: java.security.auth.login.config is not set there")
            last = _asked(connection, exchange.answer(challenge), 2, timeout_s)
            if not exchange.is_proved_by(last or b""):
                raise ValueError("the server does not know the password")
        except (ValueError, AuthFailedError) as error:
            refused(f"it refuses the user {login.user!r}" + (f" ({error})" if str(error) else ""))
            raise AuthFailedError from None

    connection.sasl_options = {}
    connection._authenticate_with_sasl = authenticate


def _asked(connection: Any, token: bytes, number: int, timeout_s: float) -> bytes | None:
    connection._submit(SASL(token), timeout_s, number)
    header, body, offset = connection._read_header(timeout_s)
    if header.err:
        raise AuthFailedError
    found: bytes | None = SASL.deserialize(body, offset)[0]
    return found
