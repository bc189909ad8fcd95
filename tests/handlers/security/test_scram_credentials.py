"""Users of SASL that do not exist: never found, and never made."""

import pytest

from moldau.errors import ErrorCode
from moldau.handlers.security import scram_credentials
from moldau.protocol.apis import ALTER_USER_SCRAM_CREDENTIALS
from moldau.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from moldau.turns import turn
from tests.requests.calling import call

CALL = call(ALTER_USER_SCRAM_CREDENTIALS, 0)


def made(name: str, mechanism: int, iterations: int) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=b"hashed"
    )


@pytest.mark.parametrize("mechanism", scram_credentials.MECHANISMS)
@pytest.mark.parametrize("iterations", [4096, 16384])
def test_a_user_nobody_could_log_in_as_is_not_made(mechanism: int, iterations: int) -> None:
    request = AlterUserScramCredentialsRequest(upsertions=[made("alice", mechanism, iterations)])
    (result,) = turn(scram_credentials.alter(request, CALL)).results
    assert (result.user, result.error_code) == ("alice", ErrorCode.SECURITY_DISABLED)
    assert result.error_message


def test_each_user_is_answered_once_with_the_first_reason() -> None:
    request = AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion(name="alice", mechanism=1)],
        upsertions=[made("alice", 1, 4096), made("bob", 1, 1)],
    )
    assert [(one.user, one.error_code) for one in turn(scram_credentials.alter(request, CALL)).results] == [
        ("alice", ErrorCode.RESOURCE_NOT_FOUND),
        ("bob", ErrorCode.UNACCEPTABLE_CREDENTIAL),
    ]
