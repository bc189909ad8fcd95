"""Writes the access rights, users, quotas and tokens of an adopted Kafka into our metadata store, while our broker does
not run. Nothing that is there already is changed: a user keeps the password that it has here.
"""

from collections.abc import Iterable

from moldau.cluster.controlling.quota_changes import QuotaChange, operations
from moldau.cluster.state import acls, layout, quotas
from moldau.cluster.state.acls import AclEntry, AclPattern
from moldau.cluster.users import credentials, tokens
from moldau.cluster.users.changes import CredentialChange
from moldau.files.kafka_security import FoundAcl, KafkaSecurity
from moldau.metadata_store.embedded import EmbeddedStore
from moldau.metadata_store.store import Create, NodeOperation
from moldau.transport.sasl.scram import Credential


def register_security(store: EmbeddedStore, security: KafkaSecurity) -> None:
    """A step for each kind: what an interruption leaves out comes with the next run. Raises `StorageError`."""
    store.multi(_acls(store, security.acls))
    store.multi(_credentials(store, security.credentials))
    store.multi(_quotas(store, security.quotas))
    store.multi(_tokens(store, security.tokens))


def _missing(store: EmbeddedStore, paths: Iterable[str]) -> list[NodeOperation]:
    return [Create(path) for path in dict.fromkeys(paths) if store.get(path) is None]


def _acls(store: EmbeddedStore, found: Iterable[FoundAcl]) -> list[NodeOperation]:
    by_pattern: dict[AclPattern, set[AclEntry]] = {}
    for pattern, entry in found:
        by_pattern.setdefault(pattern, set()).add(entry)
    steps = _missing(store, (path for pattern in by_pattern for path in acls.parents_of(pattern)))
    for pattern, entries in by_pattern.items():
        path = acls.path_of(pattern)
        node = store.get(path)
        there = set() if node is None else {*acls.entries_of(node, path)}
        if not entries <= there:
            steps += layout.acls_changed(pattern, sorted(there | entries), None if node is None else node.version)
    return steps


def _credentials(store: EmbeddedStore, found: Iterable[CredentialChange]) -> list[NodeOperation]:
    by_user: dict[str, dict[str, Credential | None]] = {}
    for user, mechanism, credential in found:
        if store.read(credentials.read_credential(user, mechanism)) is None:
            by_user.setdefault(user, {})[mechanism] = credential
    return [credentials.changed(user, store.get(credentials.user_path(user)), made) for user, made in by_user.items()]


def _quotas(store: EmbeddedStore, found: Iterable[QuotaChange]) -> list[NodeOperation]:
    wanted: dict[quotas.QuotaOwner, dict[str, float | None]] = {}
    for owner, values in found:
        path = quotas.path_of(owner)
        there = quotas.quotas_in(store.get(path), path)
        new = {key: value for key, value in values.items() if key not in there}
        if new:
            wanted.setdefault(owner, {}).update(new)
    changes = [QuotaChange(owner, values) for owner, values in wanted.items()]
    paths = {path for owner in wanted for path in (*quotas.parents_of(owner), quotas.path_of(owner))}
    return operations(changes, {path: store.get(path) for path in paths})


def _tokens(store: EmbeddedStore, found: Iterable[tokens.DelegationToken]) -> list[NodeOperation]:
    new = [one for one in found if store.get(tokens.token_path(one.token_id)) is None]
    parents = _missing(store, (tokens.PARENT, tokens.TOKENS)) if new else []
    return [*parents, *(Create(tokens.token_path(one.token_id), tokens.document_of(one)) for one in new)]
