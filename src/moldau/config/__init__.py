"""Every setting: what a broker and a topic can be told, in Kafka's names, types, defaults and bounds."""

from moldau.config.broker import SETTINGS, BrokerConfig, broker_config, with_changes
from moldau.config.listeners import Listener
from moldau.config.properties import parse_properties, read_properties
from moldau.config.setting import Kind, Setting, Value
from moldau.config.topic import TOPIC_SETTINGS, TopicConfig, inherited, topic_config

__all__ = [
    "SETTINGS",
    "TOPIC_SETTINGS",
    "BrokerConfig",
    "Kind",
    "Listener",
    "Setting",
    "TopicConfig",
    "Value",
    "broker_config",
    "inherited",
    "parse_properties",
    "read_properties",
    "topic_config",
    "with_changes",
]
