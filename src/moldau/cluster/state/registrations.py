"""The registrations of brokers in the store, and the last one of each that a controller has handled. Pure: every
function is a reading (see `store.Reading`), or judges the documents that one got.

A document that does not have the shape that `layout` describes raises `MalformedMetadata`, which names its path.
"""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from operator import index
from typing import Any, NamedTuple

from moldau.cluster.state import layout
from moldau.cluster.state.documents import as_numbers, as_text, document, expecting, read_below
from moldau.cluster.state.image import BrokerImage, Endpoint
from moldau.metadata_store.store import Node, Reading, node_at, nodes_at


def read_brokers() -> Reading[dict[int, BrokerImage]]:
    """The brokers that are registered. Raises `StorageError`."""
    brokers = {}
    for name, path, node in (yield from read_below(layout.BROKERS)):
        with expecting("a broker", path):
            brokers[int(name)] = broker(int(name), node, path)
    return dict(sorted(brokers.items()))


def broker(broker_id: int, node: Node, path: str) -> BrokerImage:
    """The broker with this registration, whose czxid is the broker's epoch."""
    with expecting("a broker", path):
        registration = document(node, path)
        directories = tuple(as_text(one) for one in registration.get("directories", ()))
        return BrokerImage(broker_id, _endpoints(registration), registration.get("rack"), directories, node.czxid)


class Registered(NamedTuple):
    """A broker with its registration's time, as text in UTC; empty if the registration does not have it."""

    broker: BrokerImage
    since: str


def registration_of(broker_id: int) -> Reading[Registered | None]:
    """The broker with this id, None if none is registered. Raises `StorageError`."""
    path = f"{layout.BROKERS}/{broker_id}"
    node = yield from node_at(path)
    if node is None:
        return None
    registered = broker(broker_id, node, path)
    try:
        time = datetime.fromtimestamp(int(document(node, path)["timestamp"]) // 1000, UTC)
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return Registered(registered, "")
    return Registered(registered, f"{time:%Y-%m-%d %H:%M:%S} UTC")


def kept_since(brokers: Collection[BrokerImage]) -> Reading[dict[int, dict[str, tuple[int, ...]]]]:
    """The broker epochs since which the log folders of these brokers have lost nothing, by broker and directory id;
    nothing is known of a broker that has registered again meanwhile. Raises `StorageError`."""
    paths = [f"{layout.BROKERS}/{broker.id}" for broker in brokers]
    kept_by = {}
    for broker, path, node in zip(brokers, paths, (yield from nodes_at(paths)), strict=True):
        if node is not None and node.czxid == broker.epoch:
            with expecting("a broker", path):
                kept = document(node, path).get("kept", {})
                kept_by[broker.id] = {directory: as_numbers(epochs) for directory, epochs in kept.items()}
    return kept_by


def dealt_with() -> Reading[dict[int, int]]:
    """The broker epochs that controllers have dealt with, by broker. Raises `StorageError`."""
    epochs = {}
    for name, path, node in (yield from read_below(layout.BROKER_EPOCHS)):
        with expecting("a broker's epoch", path):
            epochs[int(name)] = index(document(node, path)["epoch"])
    return epochs


def read_known() -> Reading[dict[int, BrokerImage]]:
    """The brokers that controllers have dealt with and that were not forgotten since, as they were then, also those
    that are away; a broker has no endpoints if it last registered under an earlier version. Raises `StorageError`."""
    known = {}
    for name, path, node in (yield from read_below(layout.BROKER_EPOCHS)):
        with expecting("a broker that was dealt with", path):
            written = document(node, path)
            endpoints = _endpoints(written) if written.get("endpoints") else ()
            known[int(name)] = BrokerImage(int(name), endpoints, written.get("rack"), (), index(written["epoch"]))
    return known


def _endpoints(registration: Mapping[str, Any]) -> tuple[Endpoint, ...]:
    """The listeners of a registration. Version 1 has a host and a port only; up to version 3 the name of a listener is
    its protocol."""
    if not registration.get("endpoints"):
        return (Endpoint("PLAINTEXT", "PLAINTEXT", as_text(registration["host"]), index(registration["port"])),)
    protocols = registration.get("listener_security_protocol_map", {})
    endpoints = []
    for text in registration["endpoints"]:
        name, _, address = as_text(text).partition("://")
        host, _, port = address.rpartition(":")
        endpoints.append(Endpoint(name, as_text(protocols.get(name, name)), host.strip("[]"), int(port)))
    return tuple(endpoints)
