"""DescribeDelegationToken (API key 41): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, BYTES, INT16, INT32, INT64, STRING, message


@message
class DescribeDelegationTokenOwner:
    principal_type: str = STRING()
    principal_name: str = STRING()


@message
class DescribeDelegationTokenRequest:
    owners: list[DescribeDelegationTokenOwner] | None = ARRAY(DescribeDelegationTokenOwner, nullable=0)


@message
class DescribedDelegationTokenRenewer:
    principal_type: str = STRING()
    principal_name: str = STRING()


@message
class DescribedDelegationToken:
    principal_type: str = STRING()
    principal_name: str = STRING()
    token_requester_principal_type: str = STRING(since=3)
    token_requester_principal_name: str = STRING(since=3)
    issue_timestamp: int = INT64()
    expiry_timestamp: int = INT64()
    max_timestamp: int = INT64()
    token_id: str = STRING()
    hmac: bytes = BYTES()
    renewers: list[DescribedDelegationTokenRenewer] = ARRAY(DescribedDelegationTokenRenewer)


@message
class DescribeDelegationTokenResponse:
    error_code: int = INT16()
    tokens: list[DescribedDelegationToken] = ARRAY(DescribedDelegationToken)
    throttle_time_ms: int = INT32()
