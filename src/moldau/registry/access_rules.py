"""Who may use the registry, and which subjects: rules from a file, and the answer to each request.

    user.ann=scrypt:14:8:1:SALT:HASH
    rights.ann=read:*,write:orders-*

A right is `read`, `write` (which includes `read`) or `admin` (everything; `admin:*` also the settings of the registry),
for a subject or, with `*` at the end, all that begin with it. `rights.*` are those of every user.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from typing import NamedTuple

from moldau.errors import ConfigError
from moldau.registry.contexts import canonical, qualified
from moldau.registry.http_messages import RestRequest
from moldau.registry.refusals import Refused
from moldau.registry.state import RegistryState

READ, WRITE, ADMIN = "read", "write", "admin"
INCLUDES = {READ: (READ, WRITE, ADMIN), WRITE: (WRITE, ADMIN), ADMIN: (ADMIN,)}
"""What is asked for -> the rights that include it."""
EVERYBODY = "*"
ID_DIGITS_MAX = 10
_SALT_BYTES, _HASH_BYTES = 16, 32
_LOG2_COST, _BLOCK, _PARALLEL = 14, 8, 1
_LOG2_COSTS, _BLOCKS, _PARALLELS = range(10, 18), range(1, 17), range(1, 5)
_MEMORY_BYTES_MAX = 320 << 20


class PasswordHash(NamedTuple):
    """What is kept of a password: the numbers of scrypt (RFC 7914), its salt and its result."""

    log2_cost: int
    block: int
    parallel: int
    salt: bytes
    hash: bytes

    def matches(self, password: bytes) -> bool:
        """Whether it is the password. Takes some 50 ms of a processor, as it should."""
        return hmac.compare_digest(_scrypt(password, *self[:4]), self.hash)

    def __repr__(self) -> str:
        return "PasswordHash(...)"

    def text(self) -> str:
        """The value of `user.NAME`."""
        salt, made = (base64.b64encode(part).decode() for part in (self.salt, self.hash))
        return f"scrypt:{self.log2_cost}:{self.block}:{self.parallel}:{salt}:{made}"


def hashed(password: bytes, salt: bytes, log2_cost: int = _LOG2_COST) -> PasswordHash:
    """What is to be kept of a password; the salt is 16 bytes of chance."""
    numbers = log2_cost, _BLOCK, _PARALLEL
    return PasswordHash(*numbers, salt, _scrypt(password, *numbers, salt))


def _scrypt(password: bytes, log2_cost: int, block: int, parallel: int, salt: bytes) -> bytes:
    return hashlib.scrypt(
        password, salt=salt, n=1 << log2_cost, r=block, p=parallel, maxmem=_MEMORY_BYTES_MAX, dklen=_HASH_BYTES
    )


class _Right(NamedTuple):
    operation: str
    pattern: str

    def covers(self, subject: str) -> bool:
        if self.pattern.endswith("*"):
            return subject.startswith(self.pattern[:-1])
        return subject == self.pattern


class AccessRules:
    """The users of a file and what they may do. Raises `ConfigError` for a file that is wrong."""

    def __init__(self, properties: Mapping[str, str]):
        self._users: dict[str, PasswordHash] = {}
        self._rights: dict[str, list[_Right]] = {}
        for name, value in properties.items():
            kind, _, user = name.partition(".")
            if not user or ":" in user or kind not in ("user", "rights"):
                raise ConfigError(f"{name!r} is not user.NAME or rights.NAME")
            if kind == "user":
                self._users[user] = _password_hash(user, value)
            else:
                self._rights[user] = [_right(user, text.strip()) for text in value.split(",") if text.strip()]
        if unknown := sorted(self._rights.keys() - self._users.keys() - {EVERYBODY}):
            raise ConfigError(f"rights.{unknown[0]} is about a user that the file does not have")
        if not self._users:
            raise ConfigError("the file has no user: `moldau registry password NAME` makes a line")

    def user(self, name: str) -> PasswordHash | None:
        return self._users.get(name)

    @property
    def anybody(self) -> PasswordHash:
        """A hash to compare with where there is no user, so that this takes as long."""
        return next(iter(self._users.values()))

    def may(self, user: str, operation: str, subject: str) -> bool:
        """Whether the user may do this to a subject, by its name as it is stored."""
        rights = [*self._rights.get(user, ()), *self._rights.get(EVERYBODY, ())]
        return any(one.operation in INCLUDES[operation] and one.covers(subject) for one in rights)

    def may_all(self, user: str) -> bool:
        """Whether the user may change the settings of the registry itself."""
        return any(one == _Right(ADMIN, "*") for one in self._rights.get(user, ()))


def _password_hash(user: str, text: str) -> PasswordHash:
    parts = text.split(":")
    try:
        kind, (log2_cost, block, parallel) = parts[0], map(int, parts[1:4])
        salt, made = (base64.b64decode(part, validate=True) for part in parts[4:])
    except (ValueError, binascii.Error):
        kind, log2_cost, block, parallel, salt, made = "", 0, 0, 0, b"", b""
    is_bounded = log2_cost in _LOG2_COSTS and block in _BLOCKS and parallel in _PARALLELS
    if kind != "scrypt" or not is_bounded or len(salt) < _SALT_BYTES or len(made) != _HASH_BYTES:
        raise ConfigError(f"user.{user} is not a line that `moldau registry password` has made")
    return PasswordHash(log2_cost, block, parallel, salt, made)


def _right(user: str, text: str) -> _Right:
    operation, colon, pattern = text.partition(":")
    if operation not in INCLUDES or not colon or not pattern:
        raise ConfigError(f"rights.{user} has {text!r}, which is not read, write or admin, a colon and a subject")
    return _Right(operation, pattern if pattern == "*" else canonical(pattern))


class RequestRules:
    """Decides on requests, by what they are about."""

    def __init__(self, rules: AccessRules, state: RegistryState):
        self._rules = rules
        self._state = state

    def check(self, user: str, request: RestRequest) -> None:
        """Raise `Refused` if the user may not ask this."""
        first, *rest = request.parts or ("",)
        reads = request.method in ("GET", "HEAD")
        match first:
            case "subjects" if rest:
                posts = request.method == "POST"  # a look-up, or a registration, which may write nothing
                self._need(user, READ if reads or posts else WRITE, rest[0])
                if posts:
                    self._check_references(user, request, rest[0])
            case "compatibility" if len(rest) > 1:
                self._need(user, READ, rest[1])
                self._check_references(user, request, rest[1])
            case "config" | "mode" if rest:
                self._need(user, READ if reads else WRITE, rest[0])
            case "config" | "mode" if not reads and not self._rules.may_all(user):
                raise forbidden(user, "change the settings of the registry: that needs admin:*")
            case "schemas" if len(rest) > 1 and rest[0] in ("ids", "guids"):
                self._check_schema(user, rest[0], rest[1], request)

    def check_registering(self, user: str, request: RestRequest) -> None:
        """Raise `Refused` if the user may not add a schema to the subject that this registers one for."""
        self._need(user, WRITE, request.parts[1])

    def may_read(self, user: str, subject: str) -> bool:
        """Whether the user may read the subject, by its stored name."""
        return self._rules.may(user, READ, subject)

    def _need(self, user: str, operation: str, subject: str) -> None:
        if not self._rules.may(user, operation, canonical(subject)):
            raise forbidden(user, f"{operation} the subject {subject[:200]!r}")

    def _check_references(self, user: str, request: RestRequest, subject: str) -> None:
        """A schema shows what it refers to, so that must be readable."""
        for reference in request.content().schema.references:
            self._need(user, READ, qualified(reference.subject, canonical(subject)))

    def _check_schema(self, user: str, kind: str, which: str, request: RestRequest) -> None:
        """A schema may be read by those who may read one of the subjects that have it."""
        if kind == "guids":
            ids = self._state.ids_of_guid(which.lower())
        else:
            is_number = which.isascii() and which.isdecimal() and len(which) <= ID_DIGITS_MAX
            ids = [(context, int(which)) for context in self._state.all_contexts()] if is_number else []
        places = [place for context, number in ids for place in self._state.places(context, number)]
        if places and not any(self._rules.may(user, READ, subject) for subject, _ in places):
            raise forbidden(user, f"read the schema {which[:60]}")


def forbidden(user: str, what: str) -> Refused:
    return Refused(403, 40301, f"{user} may not {what}")


def unauthorized() -> Refused:
    return Refused(401, 40101, "The registry needs a name and password: basic authentication")


def basic_credentials(header: str) -> tuple[str, bytes] | None:
    """The name and password in an Authorization header; None if it is another one."""
    kind, _, coded = header.partition(" ")
    if kind.lower() != "basic":
        return None
    try:
        name, colon, password = base64.b64decode(coded.strip(), validate=True).partition(b":")
        return (name.decode(), password) if colon else None
    except (binascii.Error, ValueError):
        return None
