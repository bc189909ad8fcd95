"""The SCRAM credentials of users in the store, as Kafka kept them in ZooKeeper. Pure.

    /config/users/NAME   {"version": 1, "config": {"SCRAM-SHA-256": "salt=...,stored_key=...,server_key=...,
                          iterations=4096", and the user's quotas}}

The values are base64. NAME is quoted as Kafka does (`Sanitizer`).
"""

import urllib.parse
from collections.abc import Mapping

from moldau.cluster.state import documents, layout
from moldau.metadata_store.store import Node, NodeOperation, Reading, Set, children_of, node_at, nodes_at
from moldau.transport.sasl.exchange import SaslFailed, from_base64, to_base64
from moldau.transport.sasl.scram import HASHES, Credential

USERS = "/config/users"
_DEFAULT = "<default>"
"""The node of what holds for every user without a value of its own: quotas, never credentials."""


def user_path(user: str) -> str:
    """A user may have any name: it is quoted, and so are dots where it is only dots."""
    quoted = urllib.parse.quote(user, safe="").replace("~", "%7E")
    return f"{USERS}/{quoted if user.strip('.') else quoted.replace('.', '%2E')}"


def text_of(credential: Credential) -> str:
    salt, stored_key, server_key = map(to_base64, credential[:3])
    return f"salt={salt},stored_key={stored_key},server_key={server_key},iterations={credential.iterations}"


def credential_of(text: str) -> Credential | None:
    """None for a text that is not one."""
    fields = dict(part.partition("=")[::2] for part in text.split(","))
    try:
        salt, stored_key, server_key = (from_base64(fields[name]) for name in ("salt", "stored_key", "server_key"))
        return Credential(salt, stored_key, server_key, int(fields["iterations"]))
    except (KeyError, ValueError, SaslFailed):
        return None


def read_credential(user: str, mechanism: str) -> Reading[Credential | None]:
    """Raises `MalformedMetadata`."""
    if not user:
        return None
    path = user_path(user)
    settings = _settings((yield from node_at(path)), path)
    return credential_of(settings.get(mechanism, ""))


LOOKED_UP_MAX = 100
"""The most users that are looked up one by one; of more, only those that exist."""


def read_iterations(users: list[str] | None) -> Reading[dict[str, dict[str, int]]]:
    """User -> mechanism -> iterations, of these users as far as they have credentials, or of all. Raises
    `MalformedMetadata`."""
    if users is None or len(users) > LOOKED_UP_MAX:
        there = [urllib.parse.unquote(name) for name in (yield from children_of(USERS)) if name != _DEFAULT]
        existing = frozenset(there)
        users = there if users is None else [user for user in users if user in existing]
    users = [user for user in users if user]
    paths = [user_path(user) for user in users]
    found = {}
    for user, path, node in zip(users, paths, (yield from nodes_at(paths)), strict=True):
        kept = {name: credential_of(text) for name, text in _settings(node, path).items() if name in HASHES}
        if iterations := {name: one.iterations for name, one in kept.items() if one is not None}:
            found[user] = iterations
    return found


def changed(user: str, node: Node | None, credentials: Mapping[str, Credential | None]) -> NodeOperation:
    """The user's node with these credentials, None for one that is removed; nothing else in it changes. Raises
    `MalformedMetadata`."""
    path = user_path(user)
    settings = _settings(node, path)
    for mechanism, credential in credentials.items():
        settings.pop(mechanism, None)
        if credential is not None:
            settings[mechanism] = text_of(credential)
    operation = layout.config(path, settings, is_new=node is None)
    if node is not None and isinstance(operation, Set):
        return operation._replace(version=node.version)
    return operation


def _settings(node: Node | None, path: str) -> dict[str, str]:
    return documents.overrides(node, path) if node is not None and node.data else {}
