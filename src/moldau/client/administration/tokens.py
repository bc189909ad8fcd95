"""Delegation tokens: create, renew, end, describe (KIP-48)."""

from collections.abc import Iterable
from dataclasses import field
from typing import Any

from moldau.client.administration.asking import AdminPart
from moldau.client.values import value
from moldau.protocol.apis import (
    CREATE_DELEGATION_TOKEN,
    DESCRIBE_DELEGATION_TOKEN,
    EXPIRE_DELEGATION_TOKEN,
    RENEW_DELEGATION_TOKEN,
)

USER = "User"


@value
class TokenDescription:
    """A delegation token. `hmac` is its secret; in base64 it is the password that a client logs in with. Users are
    names; times are in milliseconds since 1970."""

    token_id: str
    hmac: bytes = field(repr=False)
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int


class TokensPart(AdminPart):
    """The part of an admin client for delegation tokens."""

    async def create_delegation_token(
        self, *, owner: str | None = None, renewers: Iterable[str] = (), max_lifetime_ms: int | None = None
    ) -> TokenDescription:
        """Create a token of this client's user, or of another `owner`, which `renewers` may renew too."""
        messages = CREATE_DELEGATION_TOKEN.messages
        names = tuple(dict.fromkeys(renewers))
        request = messages.CreateDelegationTokenRequest(
            owner_principal_type=None if owner is None else USER,
            owner_principal_name=owner,
            renewers=[messages.CreatableRenewers(principal_type=USER, principal_name=name) for name in names],
            max_lifetime_ms=-1 if max_lifetime_ms is None else max_lifetime_ms,
        )
        made = await self._ask(CREATE_DELEGATION_TOKEN, request, "creating a delegation token")
        times = (made.issue_timestamp_ms, made.expiry_timestamp_ms, made.max_timestamp_ms)
        requester = made.token_requester_principal_name or made.principal_name
        return TokenDescription(made.token_id, bytes(made.hmac), made.principal_name, requester, names, *times)

    async def renew_delegation_token(self, hmac: bytes, period_ms: int | None = None) -> int:
        """Renew the token with that secret (`TokenDescription.hmac`, or its password decoded from base64) for this
        time, by default `delegation.token.expiry.time.ms` of the brokers. Returns when it expires, in milliseconds
        since 1970."""
        request = RENEW_DELEGATION_TOKEN.request(hmac=hmac, renew_period_ms=-1 if period_ms is None else period_ms)
        reply = await self._ask(RENEW_DELEGATION_TOKEN, request, "renewing a delegation token")
        return int(reply.expiry_timestamp_ms)

    async def expire_delegation_token(self, hmac: bytes, period_ms: int = -1) -> int:
        """End the token with that secret at once, or let it expire after this long. Returns when it expires, in
        milliseconds since 1970."""
        request = EXPIRE_DELEGATION_TOKEN.request(hmac=hmac, expiry_time_period_ms=period_ms)
        reply = await self._ask(EXPIRE_DELEGATION_TOKEN, request, "ending a delegation token")
        return int(reply.expiry_timestamp_ms)

    async def describe_delegation_tokens(self, owners: Iterable[str] | None = None) -> list[TokenDescription]:
        """The tokens of these users (all by default) that this client may see."""
        messages = DESCRIBE_DELEGATION_TOKEN.messages
        wanted = None
        if owners is not None:
            named = messages.DescribeDelegationTokenOwner
            wanted = [named(principal_type=USER, principal_name=name) for name in dict.fromkeys(owners)]
        request = messages.DescribeDelegationTokenRequest(owners=wanted)
        reply = await self._ask(DESCRIBE_DELEGATION_TOKEN, request, "describing delegation tokens")
        return [_described(one) for one in reply.tokens]


def _described(one: Any) -> TokenDescription:
    return TokenDescription(
        one.token_id,
        bytes(one.hmac),
        one.principal_name,
        one.token_requester_principal_name or one.principal_name,
        tuple(renewer.principal_name for renewer in one.renewers),
        one.issue_timestamp,
        one.expiry_timestamp,
        one.max_timestamp,
    )
