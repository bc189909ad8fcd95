"""Every setting of a consumer group, one line each, and how a group gets its values: its own, else the broker's, else the
default.

They are for consumer groups (KIP-848); members of classic groups set their own timeouts. Kafka's
settings of share and streams groups are refused: such groups do not exist here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from moldau.config.broker import SETTINGS, BrokerConfig
from moldau.config.inheriting import all_inherited, own_values
from moldau.config.setting import INT, Setting, settings_of
from moldau.errors import ConfigError


# fmt: off
# ruff: noqa: E501 (one setting is one line)
@dataclass(frozen=True)
class GroupConfig:
    """The settings of one group."""

    consumer_session_timeout_ms: int = INT(45000, "A member without a heartbeat for this long is removed from the group.", low=1, broker_names=("group.consumer.session.timeout.ms",))
    consumer_heartbeat_interval_ms: int = INT(5000, "The interval at which members send heartbeats.", low=1, broker_names=("group.consumer.heartbeat.interval.ms",))
    consumer_assignment_interval_ms: int = INT(1000, "The minimum time between two assignments of the group, even if members join or leave.", low=0, broker_names=("group.consumer.assignment.interval.ms",))
# fmt: on


GROUP_SETTINGS: dict[str, Setting] = settings_of(GroupConfig)


def group_config(broker: BrokerConfig, overrides: Mapping[str, str], *, judge: bool = True) -> GroupConfig:
    """The settings of a group with `overrides` of its own. Raises `ConfigError` for unknown names and bad values.

    Without `judge` the overrides were accepted once: values outside the broker's bounds of today stay, and unknown names
    say nothing.
    """
    config = GroupConfig(**all_inherited(GROUP_SETTINGS, broker))
    if overrides:
        config = replace(config, **own_values(GROUP_SETTINGS, overrides, "group", judge=judge))
    if judge:
        for name in overrides:
            _check(GROUP_SETTINGS[name], config, broker)
    return config


def _check(setting: Setting, config: GroupConfig, broker: BrokerConfig) -> None:
    """A group's value is within the broker's bounds (`group.consumer.min.X` to `group.consumer.max.X`)."""
    bounds = [setting.name.replace("consumer.", f"group.consumer.{which}.") for which in ("min", "max")]
    low, high = (getattr(broker, SETTINGS[name].field) for name in bounds)
    value = getattr(config, setting.field)
    if not low <= value <= high:
        raise ConfigError(f"{setting.name} is {value}, but must be within {bounds[0]} and {bounds[1]}: {low} to {high}")
