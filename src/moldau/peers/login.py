"""How a client, or a broker that dials another one, logs in on a link: SaslHandshake, then SaslAuthenticate as often as
the exchange needs it."""

import asyncio

from moldau.error_codes import error_of
from moldau.errors import ErrorCode, KafkaError
from moldau.peers.link import Link
from moldau.protocol.apis import SASL_AUTHENTICATE, SASL_HANDSHAKE
from moldau.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from moldau.protocol.messages.sasl_handshake import SaslHandshakeRequest
from moldau.transport.sasl.exchange import ClientExchange, SaslFailed

MESSAGES_MAX = 10
"""Of one exchange; none of ours has more than three."""


async def log_in(link: Link, mechanism: str, exchange: ClientExchange, timeout_ms: int) -> int:
    """Authenticate on a link that is not, or must be authenticated again. Returns for how many milliseconds that lasts,
    0 if it does not end. Raises `KafkaError`; the link is of no use then."""
    answer = await link.call(SASL_HANDSHAKE, SaslHandshakeRequest(mechanism=mechanism), timeout_ms)
    if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(name[:60] for name in answer.mechanisms[:20]) or "none"
        raise KafkaError(
            ErrorCode.UNSUPPORTED_SASL_MECHANISM, f"the broker does not offer {mechanism}; it offers {offered}"
        )
    if answer.error_code:
        raise KafkaError(error_of(answer.error_code), f"the broker refuses to authenticate by {mechanism} now")
    message: bytes | None = exchange.first()
    session_ms = 0
    try:
        for _ in range(MESSAGES_MAX):
            request = SaslAuthenticateRequest(auth_bytes=message or b"")
            answer = await link.call(SASL_AUTHENTICATE, request, timeout_ms)
            if answer.error_code:
                why = answer.error_message or "the broker gives no reason"
                raise KafkaError(error_of(answer.error_code), why)
            session_ms = max(int(answer.session_lifetime_ms), 0)
            # A thread: SCRAM derives a key from the password, which may take a second.
            message = await asyncio.to_thread(exchange.answer, bytes(answer.auth_bytes))
            if message is None:
                return session_ms
        raise SaslFailed("the broker's exchange does not end")
    except SaslFailed as failed:
        raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, str(failed)) from None
