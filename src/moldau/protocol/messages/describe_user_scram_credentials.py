"""DescribeUserScramCredentials (API key 50): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, INT8, INT16, INT32, STRING, message


@message
class UserName:
    name: str = STRING()


@message
class DescribeUserScramCredentialsRequest:
    users: list[UserName] | None = ARRAY(UserName, nullable=0)


@message
class CredentialInfo:
    mechanism: int = INT8()
    iterations: int = INT32()


@message
class DescribeUserScramCredentialsResult:
    user: str = STRING()
    error_code: int = INT16()
    error_message: str | None = STRING(nullable=0)
    credential_infos: list[CredentialInfo] = ARRAY(CredentialInfo)


@message
class DescribeUserScramCredentialsResponse:
    throttle_time_ms: int = INT32()
    error_code: int = INT16()
    error_message: str | None = STRING(nullable=0)
    results: list[DescribeUserScramCredentialsResult] = ARRAY(DescribeUserScramCredentialsResult)
