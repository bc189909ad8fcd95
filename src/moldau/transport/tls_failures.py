"""What a failed TLS handshake means to the side that dialled: one sentence that says what to do."""

import ssl
from typing import Final

from moldau.errors import ErrorCode, KafkaError, SslHandshakeFailed

_CLOSED: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
_EXPIRED, _NOT_YET_VALID = 10, 9
_UNTRUSTED: Final = (2, 18, 19, 20, 21)
_OTHER_HOST: Final = (62, 64)
_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG")
_OUR_CERTIFICATE: Final = (
    "CERTIFICATE_REQUIRED",
    "ALERT_BAD_CERTIFICATE",
    "ALERT_UNKNOWN_CA",
    "ALERT_CERTIFICATE_UNKNOWN",
    "ALERT_CERTIFICATE_EXPIRED",
    "ALERT_UNSUPPORTED_CERTIFICATE",
    "ALERT_CERTIFICATE_REVOKED",
)
_NOTHING_COMMON: Final = ("PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL", "NO_CIPHERS_AVAILABLE")


def tls_failure(name: str, error: ssl.SSLError, *, in_handshake: bool) -> KafkaError:
    """`name` is the address that was dialled. With TLS 1.3 a server refuses a client's certificate when the client's
    handshake is over already; of a connection that works, anything else is a failure of the network."""
    reason = error.reason or ""
    if any(word in reason for word in _OUR_CERTIFICATE):
        why = reason.lower().replace("_", " ").rpartition("alert ")[2]
        return SslHandshakeFailed(
            f"{name} refuses this client's certificate ({why}): it wants one of an authority that it trusts, by"
            " ssl.certificate.location or ssl.keystore.location"
        )
    said = reason.lower().replace("_", " ") or error.strerror or "the connection was closed"
    if not in_handshake or isinstance(error, _CLOSED):
        return KafkaError(ErrorCode.NETWORK_EXCEPTION, f"the connection to {name} broke: {said}")
    if isinstance(error, ssl.SSLCertVerificationError):
        return SslHandshakeFailed(f"{name} is not trusted: {_untrusted(error)}")
    if reason in _NO_TLS:
        return SslHandshakeFailed(
            f"{name} does not speak TLS: use the port of a listener with SSL or SASL_SSL, or another security.protocol"
        )
    if "HANDSHAKE_FAILURE" in reason:
        return SslHandshakeFailed(
            f"{name} accepts none of this client's cipher suites (ssl.cipher.suites), or it wants a certificate of this"
            " client, by ssl.certificate.location or ssl.keystore.location"
        )
    if any(word in reason for word in _NOTHING_COMMON):
        return SslHandshakeFailed(
            f"{name} and this client have no version of TLS in common: change ssl.enabled.protocols of one of them"
        )
    return SslHandshakeFailed(f"the TLS handshake with {name} failed: {said}")


def _untrusted(error: ssl.SSLCertVerificationError) -> str:
    code = error.verify_code
    if code in _UNTRUSTED:
        return (
            "its certificate is not signed by an authority that this client knows: name the authority's certificate"
            " by ssl.ca.location or ssl.truststore.location"
        )
    if code in _OTHER_HOST:
        return (
            "its certificate is for another host: connect by a name that is in the certificate, or have one made with"
            " this name"
        )
    if code == _EXPIRED:
        return "its certificate, or its authority's, has expired: the broker needs a new one"
    if code == _NOT_YET_VALID:
        return "its certificate is not valid yet: is this machine's clock right?"
    return f"{error.verify_message}"
