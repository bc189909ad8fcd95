"""DescribeUserScramCredentials (key 50) and AlterUserScramCredentials (51), version 0: this broker has no SASL users.

Users and credentials are checked as by Kafka, and never found. Creating one is refused as SECURITY_DISABLED,
because it could not be used to log in (KIP-554).
"""

from collections import Counter

from moldau.cluster.controlling.controller import Refusal
from moldau.errors import ErrorCode
from moldau.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from moldau.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from moldau.requests.session import Call
from moldau.turns import Steps

MECHANISMS = (1, 2)
"""SCRAM-SHA-256 and SCRAM-SHA-512."""
ITERATIONS_MIN, ITERATIONS_MAX = 4096, 16384


def describe(request: DescribeUserScramCredentialsRequest, call: Call) -> Steps[DescribeUserScramCredentialsResponse]:
    counts = Counter(user.name for user in request.users or ())
    unknown = Refusal(ErrorCode.RESOURCE_NOT_FOUND, "there is no such user")
    doubled = Refusal(ErrorCode.DUPLICATE_RESOURCE, "the request names this user more than once")
    results = []
    for name, count in counts.items():
        code, message = unknown if count == 1 else doubled
        results.append(DescribeUserScramCredentialsResult(user=name, error_code=code, error_message=message))
        yield
    return DescribeUserScramCredentialsResponse(results=results)


def alter(request: AlterUserScramCredentialsRequest, call: Call) -> Steps[AlterUserScramCredentialsResponse]:
    refusals: dict[str, Refusal] = {}
    asked: list[ScramCredentialDeletion | ScramCredentialUpsertion] = [*request.deletions, *request.upsertions]
    for one in asked:
        refusals.setdefault(one.name, _refusal(one))
        yield
    response = AlterUserScramCredentialsResponse()
    for name, (code, message) in refusals.items():
        response.results.append(AlterUserScramCredentialsResult(user=name, error_code=code, error_message=message))
        yield
    return response


def _refusal(one: ScramCredentialDeletion | ScramCredentialUpsertion) -> Refusal:
    if not one.name:
        return Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "a user needs a name")
    if one.mechanism not in MECHANISMS:
        return Refusal(ErrorCode.UNSUPPORTED_SASL_MECHANISM, f"SCRAM mechanism {one.mechanism} is unknown")
    if isinstance(one, ScramCredentialDeletion):
        return Refusal(ErrorCode.RESOURCE_NOT_FOUND, "there is no such credential")
    if not ITERATIONS_MIN <= one.iterations <= ITERATIONS_MAX:
        sentence = f"a credential needs {ITERATIONS_MIN} to {ITERATIONS_MAX} iterations, not {one.iterations}"
        return Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, sentence)
    return Refusal(ErrorCode.SECURITY_DISABLED, "this broker has no SASL: this user could not log in")
