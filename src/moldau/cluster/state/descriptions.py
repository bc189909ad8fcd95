"""The value of a setting in force and its origin: every place that defines it, in order of precedence. Pure.

The sources, their order, and the cases in which one is left out are those of Kafka 4.3.1: a topic's setting lists its
broker setting only if that has a value under its first name (`retention.ms` does not list `log.retention.hours` until
`log.retention.ms` is set), and then the other names of the broker setting too.
"""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from moldau.config import (
    CLIENT_METRICS_SETTINGS,
    GROUP_SETTINGS,
    OURS,
    SETTINGS,
    TOPIC_SETTINGS,
    WHILE_RUNNING,
    BrokerConfig,
    Setting,
    Value,
    inherited,
)
from moldau.config.security import of_single_listeners


class ConfigSource(enum.IntEnum):
    """Where a value is defined, with Kafka's numbers."""

    TOPIC = 1
    BROKER = 2
    ALL_BROKERS = 3
    STATIC = 4
    DEFAULT = 5
    LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class ConfigSynonym(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource


class DescribedConfig(NamedTuple):
    setting: Setting
    value: str | None
    source: ConfigSource
    synonyms: list[ConfigSynonym]


_FOR_ALL_BROKERS = ("min.insync.replicas",)
"""Settings that a new cluster of Kafka 4.3.1 copies from its first broker's file to all brokers. This broker describes
them with that source too; the file stays in force."""
_CHAINS = {
    name: setting.broker_names[at:]
    for setting in TOPIC_SETTINGS.values()
    for at, name in enumerate(setting.broker_names)
}
"""A broker setting -> itself and its other names, in order of precedence."""


@dataclass(frozen=True)
class ConfigSources:
    """All definitions of settings: the broker's file, the changes since, and the result (`in_force`)."""

    static: BrokerConfig
    in_force: BrokerConfig
    own: Mapping[str, str]
    everyone: Mapping[str, str]

    def topic(self, overrides: Mapping[str, str]) -> list[DescribedConfig]:
        """All settings of a topic with these overrides, sorted by name; those of ours if they are set."""
        return [
            self._own_setting(TOPIC_SETTINGS[name], overrides, ConfigSource.TOPIC)
            for name in sorted(TOPIC_SETTINGS)
            if name not in OURS or name in overrides
        ]

    def group(self, overrides: Mapping[str, str]) -> list[DescribedConfig]:
        """All settings of a group with these overrides, sorted by name."""
        return [
            self._own_setting(GROUP_SETTINGS[name], overrides, ConfigSource.GROUP) for name in sorted(GROUP_SETTINGS)
        ]

    def client_metrics(self, overrides: Mapping[str, str]) -> list[DescribedConfig]:
        """All settings of a subscription to metrics of clients, sorted by name."""
        return [
            self._own_setting(CLIENT_METRICS_SETTINGS[name], overrides, ConfigSource.CLIENT_METRICS)
            for name in sorted(CLIENT_METRICS_SETTINGS)
        ]

    def broker(self) -> list[DescribedConfig]:
        """All settings of this broker, sorted by name; those that are only set while it runs if they were."""
        running = [WHILE_RUNNING[name] for name in WHILE_RUNNING if name in self.own or name in self.everyone]
        settings = [self._broker_setting(one) for one in SETTINGS.values()]
        settings += [self._running_setting(one) for one in running]
        settings += [self._listeners_setting(*one) for one in of_single_listeners(self.in_force.own_settings)]
        return sorted(settings, key=lambda one: one.setting.name)

    def all_brokers(self) -> list[DescribedConfig]:
        """The settings that were set for all brokers, sorted by name."""
        described = []
        known = SETTINGS | WHILE_RUNNING
        for name in sorted(known.keys() & self._of_all.keys()):
            setting = known[name]
            text = setting.text(setting.parse(self._of_all[name]))
            described.append(
                DescribedConfig(
                    setting, text, ConfigSource.ALL_BROKERS, [ConfigSynonym(name, text, ConfigSource.ALL_BROKERS)]
                )
            )
        return described

    @cached_property
    def _of_all(self) -> Mapping[str, str]:
        """The settings of all brokers, including those of `_FOR_ALL_BROKERS`."""
        given = {name: SETTINGS[name].text(getattr(self.static, SETTINGS[name].field)) for name in _FOR_ALL_BROKERS}
        return {name: text for name, text in given.items() if text is not None} | dict(self.everyone)

    def _own_setting(self, setting: Setting, overrides: Mapping[str, str], source: ConfigSource) -> DescribedConfig:
        synonyms = []
        value = setting.text(inherited(setting, self.in_force))
        if setting.name in overrides:
            value = setting.text(setting.parse(overrides[setting.name]))
            synonyms.append(ConfigSynonym(setting.name, value, source))
        if setting.broker_names:
            synonyms += self._synonyms(setting.broker_names[0])
        return DescribedConfig(setting, value, synonyms[0].source if synonyms else ConfigSource.DEFAULT, synonyms)

    def _broker_setting(self, setting: Setting) -> DescribedConfig:
        value = setting.text(getattr(self.in_force, setting.field))
        synonyms = self._synonyms(setting.name)
        return DescribedConfig(setting, value, synonyms[0].source if synonyms else ConfigSource.DEFAULT, synonyms)

    def _running_setting(self, setting: Setting) -> DescribedConfig:
        synonyms = list(self._definitions(setting))
        return DescribedConfig(setting, synonyms[0].value, synonyms[0].source, synonyms)

    def _listeners_setting(self, setting: Setting, value: Value) -> DescribedConfig:
        of_all = ConfigSource.ALL_BROKERS if setting.name in self.everyone else ConfigSource.STATIC
        source = ConfigSource.BROKER if setting.name in self.own else of_all
        text = setting.text(value)
        return DescribedConfig(setting, text, source, [ConfigSynonym(setting.name, text, source)])

    def _synonyms(self, name: str) -> list[ConfigSynonym]:
        if getattr(self.in_force, SETTINGS[name].field) is None:
            return []
        return [synonym for one in _CHAINS.get(name, (name,)) for synonym in self._definitions(SETTINGS[one])]

    def _definitions(self, setting: Setting) -> Iterator[ConfigSynonym]:
        name = setting.name
        for source, changed in ((ConfigSource.BROKER, self.own), (ConfigSource.ALL_BROKERS, self._of_all)):
            if name in changed:
                yield ConfigSynonym(name, setting.text(setting.parse(changed[name])), source)
        if name in self.static.given:
            yield ConfigSynonym(name, setting.text(getattr(self.static, setting.field)), ConfigSource.STATIC)
        if setting.default is not None:
            yield ConfigSynonym(name, setting.text(setting.default), ConfigSource.DEFAULT)
