"""Quotas of clients in the store, as Kafka kept them in ZooKeeper, and the entities that they are set for. Pure.

    /config/users/USER                  {"version": 1, "config": {"producer_byte_rate": "1000000", ...}}
    /config/users/USER/clients/CLIENT   the same, of one client id of a user
    /config/clients/CLIENT, /config/ips/ADDRESS

A node called `<default>` has the quotas of every user, client id or address without its own. Names are quoted as Kafka
does (`Sanitizer`). A user's node has other things as well (SCRAM credentials), which are left as they are. A value that
is no quota counts as none.
"""

import math
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from moldau.cluster.state import documents
from moldau.metadata_store.store import Create, Node, Reading, children_of, nodes_at

USERS, CLIENTS, IPS = "/config/users", "/config/clients", "/config/ips"
PRODUCE, FETCH, REQUEST = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
MUTATION, CONNECTION = "controller_mutation_rate", "connection_creation_rate"
OF_CLIENTS = {PRODUCE: int, FETCH: int, REQUEST: float, MUTATION: float}
"""The quotas of users and client ids, and the type of their values."""
OF_ADDRESSES = {CONNECTION: int}
DEFAULT = ""
"""Names what holds for everything without a quota of its own. No user, client id or address has an empty name."""
_DEFAULT_NODE = "<default>"

QuotaValues: TypeAlias = Mapping[str, float]


class QuotaOwner(NamedTuple):
    """What has quotas: a user, a client id, both together, or an address. None is a part that it does not have, empty
    is the default of that part."""

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None


Quotas: TypeAlias = Mapping[QuotaOwner, QuotaValues]


def path_of(entity: QuotaOwner) -> str:
    """The node of an entity."""
    if entity.ip is not None:
        return f"{IPS}/{_quoted(entity.ip)}"
    client = None if entity.client_id is None else _quoted(entity.client_id)
    if entity.user is None:
        return f"{CLIENTS}/{client}"
    user = f"{USERS}/{_quoted(entity.user)}"
    return user if client is None else f"{user}/clients/{client}"


def parents_of(entity: QuotaOwner) -> tuple[str, ...]:
    """The nodes above the entity's that a new cluster does not have."""
    if entity.user is None or entity.client_id is None:
        return ()
    user = path_of(QuotaOwner(entity.user))
    return user, f"{user}/clients"


def bare(parent: str) -> Create:
    """A node that only has others below it. That of a user is read by whoever reads users."""
    return Create(parent, b"" if parent.endswith("/clients") else b'{"version":1,"config":{}}')


def entity_of(path: str) -> QuotaOwner | None:
    """The reverse of `path_of`; None for the path of another node."""
    match path.split("/")[1:]:
        case ["config", "ips", ip]:
            return QuotaOwner(ip=_name(ip))
        case ["config", "clients", client]:
            return QuotaOwner(client_id=_name(client))
        case ["config", "users", user]:
            return QuotaOwner(_name(user))
        case ["config", "users", user, "clients", client]:
            return QuotaOwner(_name(user), _name(client))
    return None


def _quoted(name: str) -> str:
    if name == DEFAULT:
        return _DEFAULT_NODE
    quoted = urllib.parse.quote(name, safe="").replace("~", "%7E")
    return quoted if name.strip(".") else quoted.replace(".", "%2E")


def _name(node: str) -> str:
    return DEFAULT if node == _DEFAULT_NODE else urllib.parse.unquote(node)


def text_of(key: str, value: float) -> str:
    """A quota's value as Kafka writes it."""
    return str(int(value)) if {**OF_CLIENTS, **OF_ADDRESSES}[key] is int else str(value)


def settings_in(node: Node | None, path: str) -> dict[str, str]:
    """Everything that the node of an entity has. Raises `MalformedMetadata`."""
    return documents.overrides(node, path) if node is not None and node.data else {}


def quotas_in(node: Node | None, path: str) -> QuotaValues:
    """The quotas that the node of an entity has. Raises `MalformedMetadata`."""
    allowed = OF_ADDRESSES if path.startswith(IPS + "/") else OF_CLIENTS
    found = {}
    for key, text in settings_in(node, path).items():
        if key in allowed and (value := _number(text)) is not None:
            found[key] = value
    return found


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def read_quotas() -> Reading[Quotas]:
    """All quotas. Raises `StorageError`."""
    users = yield from children_of(USERS)
    found = yield from _read(f"{USERS}/{user}" for user in users)
    below = [f"{USERS}/{user}/clients" for user in users]
    for path, node in zip(below, (yield from nodes_at(below)), strict=True):
        if node is not None:
            found |= yield from _read(f"{path}/{client}" for client in (yield from children_of(path)))
    for parent in (CLIENTS, IPS):
        found |= yield from _read(f"{parent}/{name}" for name in (yield from children_of(parent)))
    return found


def _read(paths: Iterable[str]) -> Reading[dict[QuotaOwner, QuotaValues]]:
    known: Sequence[str] = list(paths)
    found = {}
    for path, node in zip(known, (yield from nodes_at(known)), strict=True):
        entity, values = entity_of(path), quotas_in(node, path)
        if entity is not None and values:
            found[entity] = values
    return found
