"""Delegation tokens are made, renewed and ended by the controller. Each change also removes some that are over, and
`sweep` all of them."""

import hmac
from collections.abc import Callable, Sequence
from itertools import islice
from typing import NamedTuple

from moldau.cluster.controlling.change_queue import ChangeQueue, in_turn
from moldau.cluster.users.tokens import (
    PARENT,
    TOKENS,
    DelegationToken,
    document_of,
    read_tokens,
    secret_of,
    token_path,
)
from moldau.config import BrokerConfig
from moldau.errors import ErrorCode
from moldau.metadata_store.store import Create, Delete, Node, NodeOperation, Set, nodes_at
from moldau.names import short_id
from moldau.runtime import Runtime

TOKENS_MAX = 10_000
"""More are refused: each change reads all of them."""
REMOVED_MAX = 1_000
"""That many nodes are removed by one change: ZooKeeper takes 1 MB at a time."""


class TokenTime(NamedTuple):
    """The outcome of a change: until when the token is valid, 0 if nothing was changed."""

    error: ErrorCode
    expires_ms: int = 0


class TokenChanges:
    """`queue` is the controller's; `config` has the settings in force. Raises what `ChangeQueue.commit` raises."""

    def __init__(self, queue: ChangeQueue, config: Callable[[], BrokerConfig], runtime: Runtime):
        self.queue = queue
        self._config = config
        self._runtime = runtime

    @in_turn
    async def create(
        self, owner: str, requester: str, renewers: Sequence[str], lifetime_ms: int
    ) -> DelegationToken | None:
        """`lifetime_ms` is above 0 if it may be shorter than the longest. None if there are too many tokens."""
        config, now_ms = self._config(), self._runtime.clock.now_ms()
        longest_ms = config.delegation_token_max_lifetime_ms
        max_ms = now_ms + (min(lifetime_ms, longest_ms) if lifetime_ms > 0 else longest_ms)
        expires_ms = min(max_ms, now_ms + config.delegation_token_expiry_time_ms)
        token_id = short_id(self._runtime.random.uuid())
        token = DelegationToken(token_id, owner, requester, tuple(renewers), now_ms, expires_ms, max_ms)
        tokens = await self.queue.read(read_tokens())
        if sum(not one.is_over(now_ms) for one, _ in tokens) >= TOKENS_MAX:
            return None
        parents = await self.queue.read(nodes_at([PARENT, TOKENS]))
        made = [Create(path) for path, node in zip((PARENT, TOKENS), parents, strict=True) if node is None]
        await self.queue.commit([*made, *_ended(tokens, now_ms), Create(token_path(token_id), document_of(token))])
        return token

    @in_turn
    async def renew(self, secret: bytes, principal: str, period_ms: int) -> TokenTime:
        """`period_ms` is above 0 if it may be shorter than usual."""
        config, now_ms = self._config(), self._runtime.clock.now_ms()
        usual_ms = config.delegation_token_expiry_time_ms
        wanted_ms = min(period_ms, usual_ms) if period_ms > 0 else usual_ms
        return await self._change(secret, principal, now_ms, lambda token: min(token.max_ms, now_ms + wanted_ms), True)

    @in_turn
    async def expire(self, secret: bytes, principal: str, period_ms: int) -> TokenTime:
        """A negative `period_ms` ends the token at once, even one that is over."""
        now_ms = self._runtime.clock.now_ms()
        if period_ms < 0:
            return await self._change(secret, principal, now_ms, None)
        return await self._change(secret, principal, now_ms, lambda token: min(token.max_ms, now_ms + period_ms))

    async def sweep(self) -> None:
        """Remove all that are over."""
        while await self._sweep_some():
            pass

    @in_turn
    async def _sweep_some(self) -> bool:
        """Whether more may be left."""
        ended = _ended(await self.queue.read(read_tokens()), self._runtime.clock.now_ms())
        if ended:
            await self.queue.commit(ended)
        return len(ended) == REMOVED_MAX

    async def _change(
        self,
        secret: bytes,
        principal: str,
        now_ms: int,
        until_ms: Callable[[DelegationToken], int] | None,
        renews: bool = False,
    ) -> TokenTime:
        key = self._config().delegation_token_secret_key or ""
        tokens = await self.queue.read(read_tokens())

        def with_secret() -> tuple[DelegationToken, Node] | None:
            ours = (one for one in tokens if hmac.compare_digest(secret_of(one[0].token_id, key), secret))
            return next(ours, None)

        found = await self.queue.decided(len(tokens), with_secret)
        if found is None:
            return TokenTime(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        token, node = found
        if renews and token.is_over(now_ms):  # Kafka tells strangers, too, before it asks whose it is
            return TokenTime(ErrorCode.DELEGATION_TOKEN_EXPIRED)
        if not token.may_be_renewed_by(principal):
            return TokenTime(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
        others = [one for one in tokens if one[0] is not token]
        path = token_path(token.token_id)
        if until_ms is None:
            await self.queue.commit([*_ended(others, now_ms), Delete(path, node.version)])
            return TokenTime(ErrorCode.NONE, now_ms)
        if token.is_over(now_ms):
            return TokenTime(ErrorCode.DELEGATION_TOKEN_EXPIRED)
        expires_ms = until_ms(token)
        changed = document_of(token._replace(expires_ms=expires_ms))
        await self.queue.commit([*_ended(others, now_ms), Set(path, changed, node.version)])
        return TokenTime(ErrorCode.NONE, expires_ms)


def _ended(tokens: Sequence[tuple[DelegationToken, Node]], now_ms: int) -> list[NodeOperation]:
    over = (Delete(token_path(one.token_id), node.version) for one, node in tokens if one.is_over(now_ms))
    return list(islice(over, REMOVED_MAX))
