"""SaslHandshake (key 17; versions 0 and 1) and SaslAuthenticate (key 36; versions 0 to 2).

Both are answered with ILLEGAL_SASL_STATE where they are out of place: on a listener without SASL, and on a connection
that is authenticated and need not do so again. `requests/authentication.py` has everything else.
"""

from collections.abc import Awaitable

from moldau.errors import ErrorCode
from moldau.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from moldau.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from moldau.requests.authentication import Authenticating, Authentication
from moldau.requests.session import Call


def handshake(request: SaslHandshakeRequest, call: Call) -> SaslHandshakeResponse:
    state = call.session.sasl
    if not isinstance(state, Authentication):
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    error = state.handshake(request.mechanism, call.version)
    enabled = [] if error == ErrorCode.ILLEGAL_SASL_STATE else list(state.logins.mechanisms)
    return SaslHandshakeResponse(error_code=error, mechanisms=enabled)


def authenticate(
    request: SaslAuthenticateRequest, call: Call
) -> SaslAuthenticateResponse | Awaitable[SaslAuthenticateResponse]:
    state = call.session.sasl
    if not isinstance(state, Authentication):
        return SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE,
            error_message="SaslAuthenticate request received on a listener without SASL",
        )
    outcome = state.authenticate(request.auth_bytes)
    return _later(outcome) if isinstance(outcome, Awaitable) else _response(outcome)


async def _later(outcome: Awaitable[Authenticating]) -> SaslAuthenticateResponse:
    return _response(await outcome)


def _response(outcome: Authenticating) -> SaslAuthenticateResponse:
    error, message, answer, session_ms = outcome
    return SaslAuthenticateResponse(
        error_code=error, error_message=message or "", auth_bytes=answer, session_lifetime_ms=session_ms
    )
