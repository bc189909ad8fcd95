"""CreateDelegationToken (key 38), RenewDelegationToken (39), ExpireDelegationToken (40), DescribeDelegationToken (41).

A client asks for tokens only if it has proved who it is, and not by a token itself: else it is told so by the broker
that it is connected to. Without `delegation.token.secret.key` there are no tokens. A client that may not see a token is
not told that it exists. A token counts as one of its owner, requester and renewers.
"""

from collections.abc import Callable
from typing import Any

from moldau.cluster.cluster import Cluster
from moldau.cluster.users.token_changes import TokenChanges, TokenTime
from moldau.cluster.users.tokens import DelegationToken, name_of, read_tokens, secret_of
from moldau.config import BrokerConfig
from moldau.config.listeners import PLAINTEXT
from moldau.errors import ErrorCode, KafkaError, StorageError
from moldau.handlers.responding import not_made
from moldau.metadata_store.store import StoreConflict
from moldau.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from moldau.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from moldau.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from moldau.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from moldau.requests.access import CREATE_TOKENS, DESCRIBE_TOKEN, DESCRIBE_TOKENS
from moldau.requests.authentication import Authentication
from moldau.requests.session import ANONYMOUS, Call
from moldau.runtime import Runtime
from moldau.turns import in_turns

USER = "User"
NAME_MAX, RENEWERS_MAX = 1024, 1000
Config = Callable[[], BrokerConfig]


def may_ask(call: Call, config: BrokerConfig) -> bool:
    """Whether the client may ask for tokens. One whose request another broker passes on was allowed there."""
    session = call.session
    if session.is_forwarded:
        return True
    protocols = {one.name: one.protocol for one in config.client_listeners}
    by_token = isinstance(session.sasl, Authentication) and session.sasl.by_token
    return session.principal != ANONYMOUS and protocols.get(session.listener) != PLAINTEXT and not by_token


class CreateToken:
    def __init__(self, changes: TokenChanges, config: Config):
        self._changes = changes
        self._config = config

    def early(self, request: CreateDelegationTokenRequest, call: Call) -> CreateDelegationTokenResponse | None:
        """The answer that the client's own broker gives without asking the controller, if any."""
        if may_ask(call, self._config()):
            return None
        return _not_created(call, call.session.principal, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)

    async def __call__(self, request: CreateDelegationTokenRequest, call: Call) -> CreateDelegationTokenResponse:
        me = owner = call.session.principal
        refused = self.early(request, call)
        if refused is not None:
            return refused
        if request.owner_principal_name:
            owner = f"{request.owner_principal_type}:{request.owner_principal_name}"
        if owner != me and not call.may(CREATE_TOKENS, owner):
            return _not_created(call, owner, CREATE_TOKENS.denied)
        kinds = {one.principal_type for one in request.renewers} | {name_of(owner)[0]}
        if kinds != {USER} or not 0 <= len(request.renewers) <= RENEWERS_MAX:
            return _not_created(call, owner, ErrorCode.INVALID_PRINCIPAL_TYPE)
        names = [f"{one.principal_type}:{one.principal_name}" for one in request.renewers]
        if any(len(name.encode()) > NAME_MAX for name in (owner, *names)):
            return _not_created(call, owner, ErrorCode.INVALID_REQUEST)
        key = self._config().delegation_token_secret_key
        if not key:
            return _not_created(call, owner, ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
        try:
            token = await self._changes.create(owner, me, list(dict.fromkeys(names)), request.max_lifetime_ms)
        except (StorageError, KafkaError, StoreConflict) as error:
            return _not_created(call, owner, _code(error))
        if token is None:
            return _not_created(call, owner, ErrorCode.POLICY_VIOLATION)
        response = _not_created(call, owner, ErrorCode.NONE)
        response.issue_timestamp_ms, response.expiry_timestamp_ms = token.issued_ms, token.expires_ms
        response.max_timestamp_ms, response.token_id = token.max_ms, token.token_id
        response.hmac = secret_of(token.token_id, key)
        return response


def _not_created(call: Call, owner: str, error: ErrorCode) -> CreateDelegationTokenResponse:
    (kind, name), (my_kind, my_name) = name_of(owner), name_of(call.session.principal)
    return CreateDelegationTokenResponse(
        error_code=error,
        principal_type=kind,
        principal_name=name,
        token_requester_principal_type=my_kind,
        token_requester_principal_name=my_name,
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )


class ChangeToken:
    """Renews a token, or ends it."""

    def __init__(self, changes: TokenChanges, config: Config):
        self._changes = changes
        self._config = config

    def early(self, request: Any, call: Call) -> Any:
        """See `CreateToken`."""
        if may_ask(call, self._config()):
            return None
        return self._response(request, TokenTime(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, -1))

    async def __call__(self, request: Any, call: Call) -> Any:
        refused = self.early(request, call)
        if refused is not None:
            return refused
        if not self._config().delegation_token_secret_key:
            return self._response(request, TokenTime(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED))
        try:
            return self._response(request, await self._changed(request, call.session.principal))
        except (StorageError, KafkaError, StoreConflict) as error:
            return self._response(request, TokenTime(_code(error)))

    async def _changed(self, request: Any, principal: str) -> TokenTime:
        if isinstance(request, RenewDelegationTokenRequest):
            return await self._changes.renew(bytes(request.hmac), principal, request.renew_period_ms)
        assert isinstance(request, ExpireDelegationTokenRequest)
        return await self._changes.expire(bytes(request.hmac), principal, request.expiry_time_period_ms)

    @staticmethod
    def _response(request: Any, time: TokenTime) -> Any:
        is_renewed = isinstance(request, RenewDelegationTokenRequest)
        made = RenewDelegationTokenResponse if is_renewed else ExpireDelegationTokenResponse
        return made(error_code=time.error, expiry_timestamp_ms=time.expires_ms)


class DescribeTokens:
    def __init__(self, cluster: Cluster, config: Config, runtime: Runtime):
        self._cluster = cluster
        self._config = config
        self._runtime = runtime

    async def __call__(self, request: DescribeDelegationTokenRequest, call: Call) -> DescribeDelegationTokenResponse:
        key = self._config().delegation_token_secret_key
        if not may_ask(call, self._config()):
            return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
        if not key:
            return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
        owners = request.owners
        wanted = None if owners is None else {f"{one.principal_type}:{one.principal_name}" for one in owners}
        try:
            known = await self._cluster.store.read(read_tokens())
        except StorageError as error:
            return DescribeDelegationTokenResponse(error_code=_code(error))
        now_ms = self._runtime.clock.now_ms()
        response = DescribeDelegationTokenResponse()
        async for token, _ in in_turns(known):
            is_wanted = wanted is None or any(map(token.is_shown_to, wanted))
            if is_wanted and not token.is_over(now_ms) and _may_see(token, call):
                response.tokens.append(_described(token, key))
        return response


def _may_see(token: DelegationToken, call: Call) -> bool:
    return (
        token.is_shown_to(call.session.principal)
        or call.may(DESCRIBE_TOKEN, token.token_id, logged=False)
        or call.may(DESCRIBE_TOKENS, token.owner, logged=False)
    )


def _described(token: DelegationToken, key: str) -> DescribedDelegationToken:
    (kind, name), (its_kind, its_name) = name_of(token.owner), name_of(token.requester)
    renewers = [name_of(one) for one in token.renewers]
    return DescribedDelegationToken(
        principal_type=kind,
        principal_name=name,
        token_requester_principal_type=its_kind,
        token_requester_principal_name=its_name,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.max_ms,
        token_id=token.token_id,
        hmac=secret_of(token.token_id, key),
        renewers=[DescribedDelegationTokenRenewer(principal_type=one, principal_name=two) for one, two in renewers],
    )


def _code(error: Exception) -> ErrorCode:
    if isinstance(error, StorageError | KafkaError):
        return not_made(error).code
    return ErrorCode.KAFKA_STORAGE_ERROR
