"""SaslHandshake (API key 17): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, INT16, STRING, message


@message
class SaslHandshakeRequest:
    mechanism: str = STRING()


@message
class SaslHandshakeResponse:
    error_code: int = INT16()
    mechanisms: list[str] = ARRAY(STRING)
