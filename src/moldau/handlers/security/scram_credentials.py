"""DescribeUserScramCredentials (key 50) and AlterUserScramCredentials (51), version 0 (KIP-554).

A request names each user once: of one that it names twice nothing is altered. No list of users is every user, as by
Kafka, and so is an empty one. The salted password that a client sends is kept as the two keys that are derived from it.
"""

from collections import Counter
from collections.abc import Sequence

from moldau.cluster.cluster import Cluster
from moldau.cluster.controlling.controller import Refusal
from moldau.cluster.users.changes import MISSING, CredentialChange, UserChanges
from moldau.cluster.users.credentials import read_iterations
from moldau.errors import ErrorCode, KafkaError, StorageError
from moldau.handlers.responding import not_made
from moldau.metadata_store.store import StoreConflict
from moldau.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from moldau.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from moldau.requests.session import Call
from moldau.transport.sasl.scram import HASHES, ITERATIONS_MAX, ITERATIONS_MIN, credential
from moldau.turns import in_turns

MECHANISMS = dict(enumerate(HASHES, 1))
NUMBERS = {name: number for number, name in MECHANISMS.items()}
NAME_MAX, SALT_BYTES_MAX = 1024, 1024
"""Of a user and of a salt: their node has to fit into the store."""
_TWICE = Refusal(ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
_DONE = Refusal(ErrorCode.NONE, "")
_DESCRIBED_TWICE = "Cannot describe SCRAM credentials for the same user twice in a single request: "
_UNKNOWN = "Attempt to describe a user credential that does not exist: "


class DescribeCredentials:
    """Any broker answers: all of them can read the store."""

    def __init__(self, cluster: Cluster):
        self._cluster = cluster

    async def __call__(
        self, request: DescribeUserScramCredentialsRequest, call: Call
    ) -> DescribeUserScramCredentialsResponse:
        counts: Counter[str] = Counter()
        async for user in in_turns(request.users or ()):
            counts[user.name] += 1
        try:
            known = await self._cluster.store.read(read_iterations([*counts] if counts else None))
        except StorageError as error:
            code, message = not_made(error)
            return DescribeUserScramCredentialsResponse(error_code=code, error_message=message)
        results = []
        async for name in in_turns(counts or sorted(known)):
            result = DescribeUserScramCredentialsResult(user=name)
            if counts[name] > 1:
                result.error_code, result.error_message = ErrorCode.DUPLICATE_RESOURCE, _DESCRIBED_TWICE + name
            elif name not in known:
                result.error_code, result.error_message = ErrorCode.RESOURCE_NOT_FOUND, _UNKNOWN + name
            else:
                result.credential_infos = [
                    CredentialInfo(mechanism=NUMBERS[mechanism], iterations=iterations)
                    for mechanism, iterations in sorted(known[name].items())
                ]
            results.append(result)
        return DescribeUserScramCredentialsResponse(results=results, error_message="")


class AlterCredentials:
    """Answers for the controller."""

    def __init__(self, users: UserChanges):
        self._users = users

    async def __call__(
        self, request: AlterUserScramCredentialsRequest, call: Call
    ) -> AlterUserScramCredentialsResponse:
        refusals: dict[str, Refusal] = {}
        changes: dict[str, CredentialChange] = {}
        asked: Sequence[ScramCredentialDeletion | ScramCredentialUpsertion] = [*request.deletions, *request.upsertions]
        try:
            known = await self._users.known([*dict.fromkeys(one.name for one in request.deletions)])
        except (StorageError, KafkaError) as error:
            return _all_refused(asked, not_made(error))
        async for one in in_turns(asked):
            if one.name in refusals:
                continue
            refusal = _TWICE if changes.pop(one.name, None) is not None else _refusal(one)
            if refusal is None and isinstance(one, ScramCredentialDeletion):
                kept = known.get(one.name, ())
                refusal = None if MECHANISMS[one.mechanism] in kept else MISSING
            if refusal is not None:
                refusals[one.name] = refusal
            else:
                changes[one.name] = _change(one)
        refusals = await self._altered([*changes.values()]) | refusals
        response = AlterUserScramCredentialsResponse()
        async for user, (code, message) in in_turns(sorted(refusals.items(), key=_is_refused)):
            response.results.append(
                AlterUserScramCredentialsResult(user=user, error_code=code, error_message=message or None)
            )
        return response

    async def _altered(self, changes: list[CredentialChange]) -> dict[str, Refusal]:
        """The outcome for each user."""
        if not changes:
            return {}
        outcomes: Sequence[Refusal | None]
        try:
            outcomes = await self._users.alter(changes)
        except (StorageError, KafkaError) as error:
            outcomes = [not_made(error)] * len(changes)
        except StoreConflict as conflict:
            outcomes = [Refusal(ErrorCode.KAFKA_STORAGE_ERROR, str(conflict))] * len(changes)
        return {one.user: outcome or _DONE for one, outcome in zip(changes, outcomes, strict=True)}


def _all_refused(
    asked: Sequence[ScramCredentialDeletion | ScramCredentialUpsertion], refusal: Refusal
) -> AlterUserScramCredentialsResponse:
    code, message = refusal
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(user=name, error_code=code, error_message=message)
            for name in dict.fromkeys(one.name for one in asked)
        ]
    )


def _is_refused(answer: tuple[str, Refusal]) -> bool:
    return answer[1].code != ErrorCode.NONE


def _refusal(one: ScramCredentialDeletion | ScramCredentialUpsertion) -> Refusal | None:
    unacceptable = ErrorCode.UNACCEPTABLE_CREDENTIAL
    if not one.name:
        return Refusal(unacceptable, "Username must not be empty")
    if one.mechanism not in MECHANISMS:
        return Refusal(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if len(one.name.encode()) > NAME_MAX:
        return Refusal(unacceptable, f"Username must not be longer than {NAME_MAX} bytes")
    if isinstance(one, ScramCredentialUpsertion):
        if one.iterations < ITERATIONS_MIN:
            return Refusal(unacceptable, "Too few iterations")
        if one.iterations > ITERATIONS_MAX:
            return Refusal(unacceptable, "Too many iterations")
        if len(one.salt) > SALT_BYTES_MAX:
            return Refusal(unacceptable, f"The salt must not be longer than {SALT_BYTES_MAX} bytes")
    return None


def _change(one: ScramCredentialDeletion | ScramCredentialUpsertion) -> CredentialChange:
    mechanism = MECHANISMS[one.mechanism]
    if isinstance(one, ScramCredentialDeletion):
        return CredentialChange(one.name, mechanism, None)
    made = credential(mechanism, bytes(one.salt), one.iterations, bytes(one.salted_password))
    return CredentialChange(one.name, mechanism, made)
