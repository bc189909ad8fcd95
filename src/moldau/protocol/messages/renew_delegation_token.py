"""RenewDelegationToken (API key 39): request and response, in all versions."""

from moldau.protocol.schema import BYTES, INT16, INT32, INT64, message


@message
class RenewDelegationTokenRequest:
    hmac: bytes = BYTES()
    renew_period_ms: int = INT64()


@message
class RenewDelegationTokenResponse:
    error_code: int = INT16()
    expiry_timestamp_ms: int = INT64()
    throttle_time_ms: int = INT32()
