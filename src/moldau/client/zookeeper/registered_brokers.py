"""The registration of a broker in ZooKeeper, `/brokers/ids/ID`, as a client reads it. Pure.

A registration is JSON. Up to version 1 it has `host` and `port`; later versions have `endpoints` such as
`SSL://host:9093`, whose names a `listener_security_protocol_map` translates into protocols (without one, the name of an
endpoint is its protocol). Brokers of Kafka 0.7, whose registration is `creator:host:port`, speak another protocol.
"""

import json
from collections.abc import Mapping
from typing import Any

from moldau.peers.address import Address

BROKERS = "/brokers/ids"
PLAINTEXT = "PLAINTEXT"


def address_in(registration: bytes, protocol: str) -> Address | None:
    """The address at which a broker serves clients that use this security protocol; None if the registration names
    none, or is not one."""
    try:
        read = json.loads(registration)
        if not isinstance(read, dict):
            return None
        endpoints = read.get("endpoints")
        if endpoints:
            return _of_protocol(endpoints, read.get("listener_security_protocol_map") or {}, protocol)
        return _checked(read["host"], int(read["port"])) if protocol == PLAINTEXT else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        return None


def _of_protocol(endpoints: Any, protocols: Mapping[str, str], protocol: str) -> Address | None:
    for text in endpoints:
        name, _, address = text.partition("://")
        if protocols.get(name, name) == protocol:
            host, _, port = address.rpartition(":")
            return _checked(host.strip("[]"), int(port))
    return None


def _checked(host: Any, port: int) -> Address | None:
    return Address(host, port) if isinstance(host, str) and host and 0 < port < 65_536 else None
