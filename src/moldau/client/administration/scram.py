"""SCRAM credentials of users: describe and alter (KIP-554). Passwords are salted here and never sent."""

from collections.abc import Iterable
from dataclasses import field
from typing import Literal, NamedTuple

from moldau.client.administration.asking import AdminPart, Outcomes, failure
from moldau.client.failures import all_of
from moldau.client.values import value
from moldau.errors import ConfigError
from moldau.protocol.apis import ALTER_USER_SCRAM_CREDENTIALS, DESCRIBE_USER_SCRAM_CREDENTIALS

ScramMechanism = Literal["SCRAM-SHA-256", "SCRAM-SHA-512"]
MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
NUMBERS = {name: number for number, name in MECHANISMS.items()}
HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
ITERATIONS = 8_192
ITERATIONS_MAX = 16_384
"""Brokers take no more, since each login costs as many."""
SALT_BYTES = 24


class ScramCredential(NamedTuple):
    """One credential of a user. Brokers never return its secret."""

    mechanism: str
    iterations: int


@value
class ScramUpsertion:
    """A new password of a user for a mechanism."""

    user: str
    password: str = field(repr=False)
    mechanism: ScramMechanism = "SCRAM-SHA-512"
    iterations: int = ITERATIONS

    def __post_init__(self) -> None:
        _check(self.mechanism)
        if type(self.iterations) is not int or not 1 <= self.iterations <= ITERATIONS_MAX:
            raise ConfigError(f"iterations={self.iterations!r} is not a number from 1 to {ITERATIONS_MAX}")


@value
class ScramDeletion:
    """A credential to delete."""

    user: str
    mechanism: ScramMechanism = "SCRAM-SHA-512"

    def __post_init__(self) -> None:
        _check(self.mechanism)


class ScramPart(AdminPart):
    """The part of an admin client for SCRAM credentials."""

    async def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None
    ) -> dict[str, list[ScramCredential]]:
        """The SCRAM credentials of these users (all by default), by user. Raises `ResourceNotFound` for a user without
        one."""
        messages = DESCRIBE_USER_SCRAM_CREDENTIALS.messages
        wanted = None
        if users is not None:
            wanted = [messages.UserName(name=name) for name in dict.fromkeys(users)]
        request = messages.DescribeUserScramCredentialsRequest(users=wanted)
        reply = await self._ask(DESCRIBE_USER_SCRAM_CREDENTIALS, request, "describing SCRAM credentials")
        credentials: dict[str, list[ScramCredential]] = {}
        for one in reply.results:
            error = failure(one, f"user {one.user}")
            if error is not None:
                raise error
            credentials[one.user] = [
                ScramCredential(MECHANISMS.get(info.mechanism, "unknown"), info.iterations)
                for info in one.credential_infos
            ]
        return credentials

    async def alter_user_scram_credentials(self, changes: Iterable[ScramUpsertion | ScramDeletion]) -> Outcomes:
        """Give users passwords, or delete their credentials. Returns None or the error of each user."""
        import secrets

        messages, users = ALTER_USER_SCRAM_CREDENTIALS.messages, dict[str, None]()
        request = messages.AlterUserScramCredentialsRequest()
        for one in changes:
            mechanism, users[one.user] = NUMBERS[one.mechanism], None
            if isinstance(one, ScramDeletion):
                request.deletions.append(messages.ScramCredentialDeletion(name=one.user, mechanism=mechanism))
                continue
            salt = secrets.token_bytes(SALT_BYTES)
            salted = salted_password(one.mechanism, one.password, salt, one.iterations)
            request.upsertions.append(
                messages.ScramCredentialUpsertion(
                    name=one.user,
                    mechanism=mechanism,
                    iterations=one.iterations,
                    salt=salt,
                    salted_password=salted,
                )
            )
        reply = await self._ask(ALTER_USER_SCRAM_CREDENTIALS, request, "altering SCRAM credentials")
        return all_of({one.user: failure(one, f"user {one.user}") for one in reply.results}, users)


def salted_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """SaltedPassword of RFC 5802, section 3. As Kafka, without SASLprep."""
    import hashlib  # here and not above: commands that need no password start without it

    return hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)


def _check(mechanism: str) -> None:
    if mechanism not in NUMBERS:
        raise ConfigError(f"mechanism={mechanism!r} is not one of {', '.join(NUMBERS)}")
