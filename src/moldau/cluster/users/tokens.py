"""Delegation tokens: what the store keeps of one, who may do what with it, and until when it is valid. Pure. As Kafka
kept them in ZooKeeper (KIP-48):

    /delegation_token/tokens/ID   {"version": 3, "owner": "User:alice", "tokenRequester": "User:alice", "renewers":
                                   ["User:bob"], "issueTimestamp": ..., "maxTimestamp": ..., "expiryTimestamp": ...,
                                   "tokenId": ID}

A token's secret is a keyed hash of its id (`delegation.token.secret.key`), and is kept nowhere. Who has it logs in by
SCRAM with the id as the user and the hash in base64 as the password.
"""

import hmac
import json
import re
from typing import Final, NamedTuple

from moldau.cluster.state import documents
from moldau.metadata_store.store import Node, Reading, node_at
from moldau.transport.sasl.exchange import to_base64

PARENT: Final = "/delegation_token"
TOKENS: Final = "/delegation_token/tokens"
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


class DelegationToken(NamedTuple):
    """Principals are texts such as `User:alice`; times are in milliseconds since 1970."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int

    def may_be_renewed_by(self, principal: str) -> bool:
        """Or ended. As in Kafka, the requester of a token for another user may look at it, and no more."""
        return principal in (self.owner, *self.renewers)

    def is_shown_to(self, principal: str) -> bool:
        """Without any right."""
        return principal == self.requester or self.may_be_renewed_by(principal)

    def is_over(self, now_ms: int) -> bool:
        return now_ms > min(self.expires_ms, self.max_ms)


def secret_of(token_id: str, key: str) -> bytes:
    """The token's HMAC."""
    return hmac.digest(key.encode(), token_id.encode(), "sha512")


def password_of(token_id: str, key: str) -> str:
    """By which a client with the token logs in."""
    return to_base64(secret_of(token_id, key))


def token_path(token_id: str) -> str:
    return f"{TOKENS}/{token_id}"


def is_id(text: str) -> bool:
    """Whether this can be the id of a token: ids are parts of paths."""
    return _ID.fullmatch(text) is not None


def document_of(token: DelegationToken) -> bytes:
    return json.dumps(
        {
            "version": 3,
            "owner": token.owner,
            "tokenRequester": token.requester,
            "renewers": list(token.renewers),
            "issueTimestamp": token.issued_ms,
            "maxTimestamp": token.max_ms,
            "expiryTimestamp": token.expires_ms,
            "tokenId": token.token_id,
        },
        separators=(",", ":"),
    ).encode()


def token_in(node: Node, path: str) -> DelegationToken:
    """Raises `MalformedMetadata`."""
    with documents.expecting("a delegation token", path):
        said = documents.document(node, path)
        owner = documents.as_text(said["owner"])
        issued, expires, last = documents.as_numbers(
            said[name] for name in ("issueTimestamp", "expiryTimestamp", "maxTimestamp")
        )
        return DelegationToken(
            documents.as_text(said["tokenId"]),
            owner,
            documents.as_text(said.get("tokenRequester", owner)),
            tuple(documents.as_text(one) for one in said["renewers"]),
            issued,
            expires,
            last,
        )


def read_token(token_id: str) -> Reading[DelegationToken | None]:
    """Raises `MalformedMetadata`."""
    if not is_id(token_id):
        return None
    path = token_path(token_id)
    node = yield from node_at(path)
    return None if node is None else token_in(node, path)


def read_tokens() -> Reading[list[tuple[DelegationToken, Node]]]:
    """All of them, expired or not. Raises `MalformedMetadata`."""
    below = yield from documents.read_below(TOKENS)
    return [(token_in(node, path), node) for _, path, node in below]


def name_of(principal: str) -> tuple[str, str]:
    """The type and the name of a principal."""
    kind, _, name = principal.partition(":")
    return kind, name
