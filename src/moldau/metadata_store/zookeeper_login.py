"""Who this broker is for ZooKeeper: a user and a password by SASL's DIGEST-MD5, as the JAAS file of Kafka has them; the
section is `Client`.

kazoo authenticates with the library pure-sasl, which has had no release since 2019 and is no wheel, so the exchange is
ours (`transport/sasl`). Source: "Client-Server mutual authentication" of ZooKeeper's documentation.
"""

import secrets
from collections.abc import Callable
from typing import Any

from kazoo.exceptions import AuthFailedError
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.serialization import SASL

from moldau.transport.jaas import Login
from moldau.transport.sasl.digest_md5 import DigestMd5

URI = "zookeeper/zk-sasl-md5"
"""What every ZooKeeper server calls itself in this exchange."""


def log_in(connection: ConnectionHandler, login: Login, refused: Callable[[str], None]) -> None:
    """Make this connection of kazoo's authenticate itself whenever it has connected, before it sends anything else.
    `refused` gets the reason, in kazoo's thread, if the server does not accept the user."""

    def authenticate(_: str, timeout_s: float) -> None:
        exchange = DigestMd5(login, secrets.token_hex(16), URI)
        try:
            challenge = _asked(connection, b"", 1, timeout_s)
            if not challenge:
                raise ValueError("the server has no users: it runs without java.security.auth.login.config")
            last = _asked(connection, exchange.answer(challenge), 2, timeout_s)
            if not exchange.is_proved_by(last or b""):
                raise ValueError("the server could not prove that it knows the password")
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
    challenge: bytes | None = SASL.deserialize(body, offset)[0]
    return challenge
