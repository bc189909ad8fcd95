"""The changes that IncrementalAlterConfigs and AlterConfigs make to one topic, broker, group or
subscription to metrics of clients. Pure.

A list can be appended to and subtracted from; if it is not set, the change starts from the value in force. Unknown
names may be deleted, so that a setting of an earlier version can be removed. AlterConfigs, the older request, names all
overrides: the other settings return to their defaults. Source: KIP-339, KIP-133; the codes are those of Kafka 4.3.1.
"""

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from moldau.cluster.controlling.controller import Refusal
from moldau.config import (
    CLIENT_METRICS_SETTINGS,
    GROUP_SETTINGS,
    OURS,
    SETTINGS,
    TOPIC_SETTINGS,
    WHILE_RUNNING,
    BrokerConfig,
    Setting,
    SettingType,
    Value,
    client_metrics_refusal,
    group_config,
    inherited,
    known_to_kafka,
)
from moldau.config.security import OF_LISTENER, changes_listener
from moldau.errors import ConfigError, ErrorCode


class OpType(enum.IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Alteration(NamedTuple):
    name: str
    operation: int
    value: str | None


class Replacement(NamedTuple):
    """All overrides, as (name, value): settings that are not named return to their defaults, except ours, which
    Kafka's tools do not know."""

    settings: Sequence[tuple[str, str | None]]

    def alterations(self, now: Mapping[str, str]) -> list[Alteration]:
        """The alterations that turn the overrides `now` into these."""
        kept = {name for name, _ in self.settings}.union(OURS)
        return [Alteration(name, OpType.SET, value) for name, value in self.settings] + [
            Alteration(name, OpType.DELETE, None) for name in now if name not in kept
        ]


ConfigChange: TypeAlias = Sequence[Alteration] | Replacement
_ASKED_EACH_TIME = (
    "client.metrics.topic",
    "group.consumer.assignment.interval.ms",
    "max.connection.creation.rate",
    "max.connections",
    "max.connections.per.ip",
    "max.connections.per.ip.overrides",
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
"""The broker settings that can be changed while it runs: those that topics inherit, and those that are read anew
whenever they are used."""


def topic_overrides(config: BrokerConfig, now: Mapping[str, str], change: ConfigChange) -> dict[str, str] | Refusal:
    """A topic's overrides after the change. The controller decides whether their values are allowed."""
    return _altered(now, _alterations(now, change), TOPIC_SETTINGS, lambda setting: inherited(setting, config))


def broker_overrides(config: BrokerConfig, now: Mapping[str, str], change: ConfigChange) -> dict[str, str] | Refusal:
    """As `topic_overrides`, for one broker or for all brokers."""
    alterations = _alterations(now, change)
    for alteration in alterations:
        name = alteration.name
        is_known = name in DYNAMIC or name in WHILE_RUNNING or changes_listener(name)
        if alteration.operation != OpType.DELETE and not is_known:
            why = "is not a setting of this broker"
            if name in SETTINGS or name.startswith(OF_LISTENER):
                why = "cannot be changed while the broker runs"
            elif known_to_kafka(name):
                why = "is a Kafka setting that this broker does not have"
            return Refusal(ErrorCode.INVALID_REQUEST, f"{name[:200]} {why}")
    return _altered(now, alterations, SETTINGS, lambda setting: getattr(config, setting.field, None))


def group_overrides(config: BrokerConfig, now: Mapping[str, str], change: ConfigChange) -> dict[str, str] | Refusal:
    """As `topic_overrides`, for a group; the values must be within the broker's bounds."""
    overrides = _altered(now, _alterations(now, change), GROUP_SETTINGS, lambda setting: inherited(setting, config))
    if not isinstance(overrides, Refusal):
        try:
            group_config(config, overrides)
        except ConfigError as wrong:
            return Refusal(ErrorCode.INVALID_CONFIG, str(wrong))
    return overrides


def client_metrics_overrides(now: Mapping[str, str], change: ConfigChange) -> dict[str, str] | Refusal:
    """As `topic_overrides`, for a subscription to metrics of clients. Kafka appends to none of its lists either."""
    alterations = _alterations(now, change)
    if any(one.operation in (OpType.APPEND, OpType.SUBTRACT) for one in alterations):
        return Refusal(ErrorCode.INVALID_CONFIG, "client metrics can be set, not appended to or subtracted from")
    overrides = _altered(now, alterations, CLIENT_METRICS_SETTINGS, lambda setting: setting.default)
    refusal = None if isinstance(overrides, Refusal) else client_metrics_refusal(overrides)
    return overrides if refusal is None else Refusal(*refusal)


def _alterations(now: Mapping[str, str], change: ConfigChange) -> Sequence[Alteration]:
    return change.alterations(now) if isinstance(change, Replacement) else change


def _altered(
    now: Mapping[str, str],
    alterations: Sequence[Alteration],
    settings: Mapping[str, Setting],
    in_force: Callable[[Setting], Value],
) -> dict[str, str] | Refusal:
    if len({alteration.name for alteration in alterations}) < len(alterations):
        return Refusal(ErrorCode.INVALID_REQUEST, "a setting is named more than once")
    result = dict(now)
    for name, operation, value in alterations:
        if operation == OpType.DELETE:
            result.pop(name, None)
            continue
        if operation not in list(OpType):
            return Refusal(ErrorCode.INVALID_REQUEST, f"{operation} is not an operation on a setting")
        if value is None:
            return Refusal(ErrorCode.INVALID_REQUEST, f"{name[:200]} has no value")
        if operation == OpType.SET:
            result[name] = value
            continue
        setting = settings.get(name)
        if setting is None or setting.kind is not SettingType.LIST:
            return Refusal(
                ErrorCode.INVALID_CONFIG,
                f"{name[:200]} is not a list: it can be set, not appended to or subtracted from",
            )
        items = result[name].split(",") if name in result else list(_items(in_force(setting)))
        given = [item.strip() for item in value.split(",")]
        if operation == OpType.APPEND:
            items += [item for item in given if item not in items]
        else:
            items = [item for item in items if item.strip() not in given]
        result[name] = ",".join(item for item in items if item)
    return result


def _items(value: Value) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()
