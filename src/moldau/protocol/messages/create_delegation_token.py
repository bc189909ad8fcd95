"""CreateDelegationToken (API key 38): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, BYTES, INT16, INT32, INT64, STRING, message


@message
class CreatableRenewers:
    principal_type: str = STRING()
    principal_name: str = STRING()


@message
class CreateDelegationTokenRequest:
    owner_principal_type: str | None = STRING(since=3, nullable=3, default=None)
    owner_principal_name: str | None = STRING(since=3, nullable=3, default=None)
    renewers: list[CreatableRenewers] = ARRAY(CreatableRenewers)
    max_lifetime_ms: int = INT64()


@message
class CreateDelegationTokenResponse:
    error_code: int = INT16()
    principal_type: str = STRING()
    principal_name: str = STRING()
    token_requester_principal_type: str = STRING(since=3)
    token_requester_principal_name: str = STRING(since=3)
    issue_timestamp_ms: int = INT64()
    expiry_timestamp_ms: int = INT64()
    max_timestamp_ms: int = INT64()
    token_id: str = STRING()
    hmac: bytes = BYTES()
    throttle_time_ms: int = INT32()
