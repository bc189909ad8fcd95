"""How a client, or a broker that dials another one, logs in on a link: SaslHandshake, then SaslAuthenticate as often as
the exchange needs it. `login_steps` decides what is sent, and knows no socket."""

import asyncio
from collections.abc import Generator
from typing import Any

from moldau.error_codes import error_of
from moldau.errors import ErrorCode, KafkaError
from moldau.peers.link import Link
from moldau.protocol.apis import SASL_AUTHENTICATE, SASL_HANDSHAKE, Api
from moldau.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from moldau.protocol.messages.sasl_handshake import SaslHandshakeRequest
from moldau.transport.sasl.exchange import ClientExchange, SaslFailed

MESSAGES_MAX = 10
"""Of one exchange; none of ours has more than three."""
SAID_MAX = 500
"""Characters of a broker's explanation that an error repeats."""
LoginSteps = Generator[tuple[Api, Any], Any, int]
"""Yields what to send, is sent the reply, and returns for how many milliseconds the login lasts."""


async def log_in(link: Link, mechanism: str, exchange: ClientExchange, timeout_ms: int) -> int:
    """Authenticate on a link that is not, or must be authenticated again. Returns for how many milliseconds that lasts,
    0 if it does not end. Raises `KafkaError`; the link is of no use then."""
    steps = login_steps(mechanism, exchange)
    step: tuple[Api, Any] | int = next(steps)
    while not isinstance(step, int):
        reply = await link.call(*step, timeout_ms, urgent=True)
        # A thread: SCRAM derives a key from the password, which may take a second.
        step = await asyncio.to_thread(next_step, steps, reply)
    return step


def next_step(steps: LoginSteps, reply: Any) -> tuple[Api, Any] | int:
    """What to send after that reply; for how long the login lasts if it is over. Raises `KafkaError`."""
    try:
        return steps.send(reply)
    except StopIteration as end:
        return int(end.value)


def login_steps(mechanism: str, exchange: ClientExchange) -> LoginSteps:
    """The requests of a login. Raises `KafkaError`."""
    answer = yield SASL_HANDSHAKE, SaslHandshakeRequest(mechanism=mechanism)
    if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(_shown(name[:60]) for name in answer.mechanisms[:20]) or "none"
        raise KafkaError(
            ErrorCode.UNSUPPORTED_SASL_MECHANISM,
            f"the broker does not offer {mechanism}: set sasl.mechanism to one that it offers, {offered}",
        )
    if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        raise KafkaError(
            ErrorCode.ILLEGAL_SASL_STATE,
            f"the broker takes no login by {mechanism} on this connection: use the port of a listener with SASL, or "
            "another security.protocol",
        )
    if answer.error_code:
        raise KafkaError(
            error_of(answer.error_code),
            f"the broker refuses to authenticate by {mechanism} now ({error_of(answer.error_code).sentence})",
        )
    message: bytes | None = exchange.first()
    try:
        for _ in range(MESSAGES_MAX):
            answer = yield SASL_AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=message or b"")
            if answer.error_code:
                why = _shown((answer.error_message or "the broker gives no reason")[:SAID_MAX])
                raise KafkaError(error_of(answer.error_code), f"the broker refuses the login by {mechanism}: {why}")
            message = exchange.answer(bytes(answer.auth_bytes))
            if message is None:
                return max(int(answer.session_lifetime_ms), 0)
        raise SaslFailed("the broker's exchange does not end")
    except SaslFailed as failed:
        raise KafkaError(
            ErrorCode.SASL_AUTHENTICATION_FAILED, f"the login by {mechanism} has failed: {failed}"
        ) from None


def _shown(text: str) -> str:
    """A broker's text, in one line and without what changes a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
