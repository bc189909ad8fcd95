"""AlterUserScramCredentials (API key 51): request and response, in all versions."""

from moldau.protocol.schema import ARRAY, BYTES, INT8, INT16, INT32, STRING, message


@message
class ScramCredentialDeletion:
    name: str = STRING()
    mechanism: int = INT8()


@message
class ScramCredentialUpsertion:
    name: str = STRING()
    mechanism: int = INT8()
    iterations: int = INT32()
    salt: bytes = BYTES()
    salted_password: bytes = BYTES()


@message
class AlterUserScramCredentialsRequest:
    deletions: list[ScramCredentialDeletion] = ARRAY(ScramCredentialDeletion)
    upsertions: list[ScramCredentialUpsertion] = ARRAY(ScramCredentialUpsertion)


@message
class AlterUserScramCredentialsResult:
    user: str = STRING()
    error_code: int = INT16()
    error_message: str | None = STRING(nullable=0)


@message
class AlterUserScramCredentialsResponse:
    throttle_time_ms: int = INT32()
    results: list[AlterUserScramCredentialsResult] = ARRAY(AlterUserScramCredentialsResult)
