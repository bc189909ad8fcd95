"""What a Kafka's metadata log has as dynamic settings of all brokers and of consumer groups, and as subscriptions to
metrics of clients, as our metadata has it. Pure.

A setting that our broker does not have, or whose value it would refuse, is left behind; of a subscription all or
nothing is adopted, since one without its `match` would ask every client. Settings of a single broker are left behind:
they name its addresses, certificates and threads.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from moldau.cluster.controlling.alterations import DYNAMIC, Alteration, OpType, group_overrides
from moldau.cluster.controlling.controller import Refusal
from moldau.config import BrokerConfig, broker_config, client_metrics_refusal
from moldau.errors import ConfigError
from moldau.files.kafka_leftovers import InForce, Leftover
from moldau.files.metadata_log import BROKER_RESOURCE, GROUP_RESOURCE, METRICS_RESOURCE, ConfigRecord

OF_REPLICAS: Final = frozenset({"min.insync.replicas"})
"""Says something of other brokers: an adopted broker is alone, and no write could find two in sync."""


class KafkaResources(NamedTuple):
    """The settings that are adopted, also by their names (`taken`), and the names of what is left behind."""

    brokers: dict[str, str]
    groups: dict[str, dict[str, str]]
    subscriptions: dict[str, dict[str, str]]
    taken: list[Leftover]
    left: list[Leftover]


def resources_of(others: Iterable[InForce], config: BrokerConfig) -> KafkaResources:
    """Of the entries that are not topics; those that are no settings are left out. `config` has the broker's bounds."""
    records = [(entry, record) for entry, record in others if isinstance(record, ConfigRecord)]
    subscriptions: dict[str, dict[str, str]] = {}
    for _, record in records:
        if record.resource_type == METRICS_RESOURCE:
            subscriptions.setdefault(record.resource_name, {})[record.name] = record.value or ""
    found = KafkaResources({}, {}, {name: own for name, own in subscriptions.items() if _may_be(name, own)}, [], [])
    for entry, record in records:
        is_taken = record.resource_name in found.subscriptions
        if record.resource_type == BROKER_RESOURCE:
            is_taken = not record.resource_name and _of_all_brokers(record.name, record.value or "")
            if is_taken:
                found.brokers[record.name] = record.value or ""
        elif record.resource_type == GROUP_RESOURCE:
            is_taken = _of_a_group(config, record)
            if is_taken:
                found.groups.setdefault(record.resource_name, {})[record.name] = record.value or ""
        (found.taken if is_taken else found.left).append(entry)
    return found


def _may_be(name: str, own: Mapping[str, str]) -> bool:
    return bool(name) and client_metrics_refusal(own) is None


def _of_all_brokers(name: str, value: str) -> bool:
    if name not in DYNAMIC or name in OF_REPLICAS:
        return False
    try:
        broker_config({name: value})
    except ConfigError:
        return False
    return True


def _of_a_group(config: BrokerConfig, record: ConfigRecord) -> bool:
    change = [Alteration(record.name, OpType.SET, record.value)]
    return bool(record.resource_name) and not isinstance(group_overrides(config, {}, change), Refusal)
