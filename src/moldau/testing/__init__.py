"""A real broker inside a test: `Broker` runs in the caller's process, on a thread and an event loop of its own.

    from moldau.testing import Broker

    with Broker(num_partitions=4) as broker:
        producer = SomeClient(bootstrap_servers=broker.bootstrap_servers)

`broker.fault(...)` makes requests fail, and `broker.clock` moves the broker's time. `Cluster(brokers=3)` is several
brokers with one controller, `RunningRegistry(broker)` a schema registry. pytest finds the fixtures `moldau_broker`,
`moldau_topic` and `moldau_registry` by itself (testing/plugin.py); `MoldauTestCase` is for unittest. The names below
are imported when they are first used: pytest loads this package at every start.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moldau.errors import BrokerFailed
    from moldau.testing.broker import Broker
    from moldau.testing.cases import MoldauTestCase
    from moldau.testing.clock import Clock
    from moldau.testing.cluster import Cluster
    from moldau.testing.faults import Fault
    from moldau.testing.registry import RunningRegistry

__all__ = ["Broker", "BrokerFailed", "Clock", "Cluster", "Fault", "MoldauTestCase", "RunningRegistry"]

_HOMES = {
    "Broker": "moldau.testing.broker",
    "BrokerFailed": "moldau.errors",
    "Clock": "moldau.testing.clock",
    "Cluster": "moldau.testing.cluster",
    "Fault": "moldau.testing.faults",
    "MoldauTestCase": "moldau.testing.cases",
    "RunningRegistry": "moldau.testing.registry",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'moldau.testing' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
