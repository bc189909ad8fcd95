"""The changes that IncrementalAlterConfigs and AlterConfigs make to one topic, broker or group: pure, as everything
the controller decides.

A list can be appended to and subtracted from; where it is not set, it starts from what is in force. Unknown names may
be deleted: that is how a name goes which an earlier version knew. AlterConfigs, the older request, names all settings
that shall be set: the others go back to their defaults. Source: KIP-339, KIP-133; the codes are those of Kafka 4.3.1.
"""

import enum
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from moldau.cluster.controller import Refusal
from moldau.config import (
    GROUP_SETTINGS,
    KEPT,
    SETTINGS,
    TOPIC_SETTINGS,
    BrokerConfig,
    Kind,
    Setting,
    Value,
    group_config,
    inherited,
    known_to_kafka,
)
from moldau.errors import ConfigError, ErrorCode


class Operation(enum.IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Alteration(NamedTuple):
    name: str
    operation: int
    value: str | None


class Replacement(NamedTuple):
    """These settings (name, value), and no others."""

    settings: Sequence[tuple[str, str | None]]

    def alterations(self, now: Mapping[str, str]) -> list[Alteration]:
        """The changes that turn the settings set `now` into these."""
        kept = {name for name, _ in self.settings}
        return [Alteration(name, Operation.SET, value) for name, value in self.settings] + [
            Alteration(name, Operation.DELETE, None) for name in now if name not in kept
        ]


Wish: TypeAlias = Sequence[Alteration] | Replacement
_ASKED_EACH_TIME = (
    "group.consumer.assignment.interval.ms",
    "max.connections",
    "max.connections.per.ip",
    "log.cleaner.backoff.ms",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.io.buffer.load.factor",
    "log.cleaner.io.buffer.size",
    "log.cleaner.io.max.bytes.per.second",
    "log.cleaner.threads",
    "num.recovery.threads.per.data.dir",
    "producer.id.expiration.ms",
    "transaction.partition.verification.enable",
)
DYNAMIC = frozenset(
    name for topic in TOPIC_SETTINGS.values() for name in topic.broker_names if not SETTINGS[name].read_only
).union(_ASKED_EACH_TIME)
"""The broker settings that can be changed while it runs: those that topics inherit, and those that whoever goes by them
asks for each time."""


def topic_overrides(config: BrokerConfig, now: Mapping[str, str], wish: Wish) -> dict[str, str] | Refusal:
    """A topic's own settings after the change; whether their values are allowed is for the controller to say."""
    in_force = {name: inherited(setting, config) for name, setting in TOPIC_SETTINGS.items()}
    return _altered(now, _alterations(now, wish), TOPIC_SETTINGS, in_force)


def broker_overrides(config: BrokerConfig, now: Mapping[str, str], wish: Wish) -> dict[str, str] | Refusal:
    """As `topic_overrides`, for a broker or for all of them."""
    alterations = _alterations(now, wish)
    for alteration in alterations:
        name = alteration.name
        if alteration.operation != Operation.DELETE and name not in DYNAMIC and name not in KEPT:
            why = "is not a setting of this broker"
            if name in SETTINGS:
                why = "cannot be changed while the broker runs"
            elif known_to_kafka(name):
                why = "is a setting of Kafka's that this broker does not have"
            return Refusal(ErrorCode.INVALID_REQUEST, f"{name[:200]} {why}")
    in_force = {name: getattr(config, SETTINGS[name].field) for name in DYNAMIC}
    return _altered(now, alterations, SETTINGS, in_force)


def group_overrides(config: BrokerConfig, now: Mapping[str, str], wish: Wish) -> dict[str, str] | Refusal:
    """As `topic_overrides`, for a group; its values are within the bounds that the broker sets."""
    in_force = {name: inherited(setting, config) for name, setting in GROUP_SETTINGS.items()}
    overrides = _altered(now, _alterations(now, wish), GROUP_SETTINGS, in_force)
    if not isinstance(overrides, Refusal):
        try:
            group_config(config, overrides)
        except ConfigError as wrong:
            return Refusal(ErrorCode.INVALID_CONFIG, str(wrong))
    return overrides


def _alterations(now: Mapping[str, str], wish: Wish) -> Sequence[Alteration]:
    return wish.alterations(now) if isinstance(wish, Replacement) else wish


def _altered(
    now: Mapping[str, str],
    alterations: Sequence[Alteration],
    settings: Mapping[str, Setting],
    in_force: Mapping[str, Value],
) -> dict[str, str] | Refusal:
    if len({alteration.name for alteration in alterations}) < len(alterations):
        return Refusal(ErrorCode.INVALID_REQUEST, "a setting is named more than once")
    result = dict(now)
    for name, operation, value in alterations:
        if operation == Operation.DELETE:
            result.pop(name, None)
            continue
        if operation not in list(Operation):
            return Refusal(ErrorCode.INVALID_REQUEST, f"{operation} is no operation on a setting")
        if value is None:
            return Refusal(ErrorCode.INVALID_REQUEST, f"{name[:200]} has no value")
        if operation == Operation.SET:
            result[name] = value
            continue
        setting = settings.get(name)
        if setting is None or setting.kind is not Kind.LIST:
            return Refusal(
                ErrorCode.INVALID_CONFIG, f"{name[:200]} is no list: it can be set, not added to or taken from"
            )
        items = result[name].split(",") if name in result else list(_items(in_force.get(name)))
        given = [item.strip() for item in value.split(",")]
        if operation == Operation.APPEND:
            items += [item for item in given if item not in items]
        else:
            items = [item for item in items if item.strip() not in given]
        result[name] = ",".join(item for item in items if item)
    return result


def _items(value: Value) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()
