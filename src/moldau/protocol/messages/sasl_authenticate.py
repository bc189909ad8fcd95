"""SaslAuthenticate (API key 36): request and response, in all versions."""

from moldau.protocol.schema import BYTES, INT16, INT64, STRING, message


@message
class SaslAuthenticateRequest:
    auth_bytes: bytes = BYTES()


@message
class SaslAuthenticateResponse:
    error_code: int = INT16()
    error_message: str | None = STRING(nullable=0)
    auth_bytes: bytes = BYTES()
    session_lifetime_ms: int = INT64(since=1)
