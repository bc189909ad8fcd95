"""Every setting of a broker, a topic and a group, with Kafka's names, types, defaults and bounds."""

from moldau.config.broker import SETTINGS, BrokerConfig, broker_config, with_changes
from moldau.config.group import GROUP_SETTINGS, GroupConfig, group_config
from moldau.config.inheriting import inherited
from moldau.config.kafka_names import known as known_to_kafka
from moldau.config.listeners import ClientListener, Listener
from moldau.config.properties import parse_properties, read_properties
from moldau.config.setting import Setting, SettingType, Value
from moldau.config.topic import OURS, TOPIC_SETTINGS, TopicConfig, topic_config
from moldau.config.while_running import RATES, WHILE_RUNNING

__all__ = [
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
    "group_config",
    "inherited",
    "known_to_kafka",
    "parse_properties",
    "read_properties",
    "topic_config",
    "with_changes",
]
