"""The SCRAM credentials of delegation tokens: made when a token first logs in, in a thread, and kept for a while."""

import hmac
from functools import partial

from moldau.cluster.cluster import Cluster
from moldau.cluster.users.tokens import name_of, password_of, read_token
from moldau.runtime import Runtime
from moldau.transport.sasl import scram
from moldau.transport.sasl.exchange import Authenticated
from moldau.transport.sasl.scram import Credential, NamedCredential

KEPT_MAX = 1_000


class TokenCredentials:
    """`key` makes the tokens' secrets; None if there are none. `secret` makes up salts."""

    def __init__(self, cluster: Cluster, key: str | None, secret: bytes, runtime: Runtime):
        self._cluster = cluster
        self._key = key
        self._secret = secret
        self._runtime = runtime
        self._kept: dict[tuple[str, str], Credential] = {}

    async def find(self, token_id: str, mechanism: str) -> NamedCredential | None:
        """The credential of a token that is valid. Raises `StorageError`."""
        if not self._key:
            return None
        token = await self._cluster.store.read(read_token(token_id))
        if token is None or token.is_over(self._runtime.clock.now_ms()):
            return None
        credential = self._kept.get((token_id, mechanism))
        if credential is None:
            credential = await self._runtime.run(partial(self._made, token_id, mechanism, self._key))
            if len(self._kept) >= KEPT_MAX:
                del self._kept[next(iter(self._kept))]
            self._kept[token_id, mechanism] = credential
        _, user = name_of(token.owner)
        return NamedCredential(credential, Authenticated(user, token.expires_ms, by_token=True))

    def _made(self, token_id: str, mechanism: str, key: str) -> Credential:
        salt = hmac.digest(self._secret, f"token {mechanism} {token_id}".encode(), "sha256")[: scram.SALT_BYTES]
        salted = scram.salted_password(mechanism, password_of(token_id, key), salt, scram.ITERATIONS_MIN)
        return scram.credential(mechanism, salt, scram.ITERATIONS_MIN, salted)
