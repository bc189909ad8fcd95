"""Every setting of a broker, a topic, a group and of client metrics, with Kafka's names, types, defaults and bounds.

The modules are imported when one of their names is first used: a command that needs the names of two settings does not
make the hundreds of the tables.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moldau.config.broker import SETTINGS, BrokerConfig, broker_config, with_changes
    from moldau.config.client_metrics import CLIENT_METRICS_SETTINGS, client_metrics_refusal
    from moldau.config.group import GROUP_SETTINGS, GroupConfig, group_config
    from moldau.config.inheriting import inherited
    from moldau.config.kafka_names import known as known_to_kafka
    from moldau.config.listeners import ClientListener, Listener
    from moldau.config.properties import parse_properties, read_properties
    from moldau.config.setting import Setting, SettingType, Value
    from moldau.config.topic import OURS, TOPIC_SETTINGS, TopicConfig, topic_config
    from moldau.config.while_running import RATES, WHILE_RUNNING

__all__ = [
    "CLIENT_METRICS_SETTINGS",
    "GROUP_SETTINGS",
    "OURS",
    "RATES",
    "SETTINGS",
    "TOPIC_SETTINGS",
    "WHILE_RUNNING",
    "BrokerConfig",
    "ClientListener",
    "GroupConfig",
    "Listener",
    "Setting",
    "SettingType",
    "TopicConfig",
    "Value",
    "broker_config",
    "client_metrics_refusal",
    "group_config",
    "inherited",
    "known_to_kafka",
    "parse_properties",
    "read_properties",
    "topic_config",
    "with_changes",
]

_MODULES = {
    "broker": ("SETTINGS", "BrokerConfig", "broker_config", "with_changes"),
    "client_metrics": ("CLIENT_METRICS_SETTINGS", "client_metrics_refusal"),
    "group": ("GROUP_SETTINGS", "GroupConfig", "group_config"),
    "inheriting": ("inherited",),
    "kafka_names": ("known_to_kafka",),
    "listeners": ("ClientListener", "Listener"),
    "properties": ("parse_properties", "read_properties"),
    "setting": ("Setting", "SettingType", "Value"),
    "topic": ("OURS", "TOPIC_SETTINGS", "TopicConfig", "topic_config"),
    "while_running": ("RATES", "WHILE_RUNNING"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}
_THERE = {"known_to_kafka": "known"}
"""Names that are others in their modules."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'moldau.config' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"moldau.config.{_HOMES[name]}"), _THERE.get(name, name))
    globals()[name] = found
    return found
