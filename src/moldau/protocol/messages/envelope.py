"""Envelope (API key 58): request and response; a client's request that one broker passes on to another."""

from moldau.protocol.schema import BOOL, BYTES, INT16, STRING, message


@message
class EnvelopeRequest:
    request_data: bytes = BYTES()
    """The client's request: header and message."""
    request_principal: bytes | None = BYTES(nullable=0)
    """A version number and `DefaultPrincipalData`."""
    client_host_address: bytes = BYTES()
    """4 or 16 bytes."""


@message
class EnvelopeResponse:
    response_data: bytes | None = BYTES(nullable=0, default=None)
    """The reply: header and message."""
    error_code: int = INT16()


@message
class DefaultPrincipalData:
    """Version 0, flexible."""

    type: str = STRING()
    name: str = STRING()
    token_authenticated: bool = BOOL()
