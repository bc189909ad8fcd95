"""What the exchanges of all mechanisms have in common: their two ends, how they end well, and how they fail.

An exchange is a short conversation of opaque bytes. The client begins with `first`; from then on each end is handed
what the other one has sent. `plain.py`, `scram.py` and `oauthbearer.py` have the two ends of one mechanism each. None
of them reads a clock, draws a random number or looks anything up by itself: that is handed in.

Messages come from a peer that has proved nothing yet: their length is bounded before they are looked at, and no error
says more than that they were refused. Secrets are in no error and in no `repr`.
"""

import binascii
from typing import Final, NamedTuple, Protocol

MESSAGE_BYTES_MAX: Final = 1 << 19
"""Of one message of an exchange: what `sasl.server.max.receive.size` is by default."""
NAME_BYTES_MAX: Final = 1 << 10
"""Of a user's name, password or nonce."""


class Authenticated(NamedTuple):
    """The user at the other end. `expires_ms` is when what proved it ends, in milliseconds since 1970; None if it does
    not. `by_token`: a delegation token proved it."""

    user: str
    expires_ms: int | None = None
    by_token: bool = False


class SaslFailed(Exception):
    """The exchange has failed; the text may be sent to the other end."""


class ServerExchange(Protocol):
    """The server's end."""

    @property
    def authenticated(self) -> Authenticated | None:
        """The user, once the client has proved it; the exchange is over then."""

    def answer(self, message: bytes) -> bytes:
        """What is sent after that message of the client. Raises `SaslFailed`."""


class ClientExchange(Protocol):
    """The client's end."""

    def first(self) -> bytes:
        """The message that begins the exchange."""

    def answer(self, message: bytes) -> bytes | None:
        """What is sent after that message of the server; None if the exchange has ended well. SCRAM derives a key from
        the password here, which may take a second: call it in a thread. Raises `SaslFailed`."""


def bounded(message: bytes, bytes_max: int = MESSAGE_BYTES_MAX) -> str:
    """The text of a message. Raises `SaslFailed`."""
    if len(message) > bytes_max:
        raise SaslFailed(f"a message of {len(message)} bytes is longer than the {bytes_max} that are allowed")
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise SaslFailed("a message is not UTF-8 text") from None


def from_base64(text: str) -> bytes:
    """Raises `SaslFailed`."""
    try:
        return binascii.a2b_base64(text.encode(), strict_mode=True)
    except (binascii.Error, ValueError):
        raise SaslFailed("a message has a value that is not base64") from None


def to_base64(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode()
