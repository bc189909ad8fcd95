"""What a setting is in force as, and why: each value with the places that could have said it, the strongest first.

Pure. The sources, their order and when they are left out are those that Kafka 4.3.1 shows: a topic's setting lists
its broker setting only where that has a value under its strongest name (`retention.ms` is silent about
`log.retention.hours` until `log.retention.ms` is set), and then all weaker names of it too.
"""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from moldau.config import GROUP_SETTINGS, KEPT, SETTINGS, TOPIC_SETTINGS, BrokerConfig, Setting, inherited


class Source(enum.IntEnum):
    """Kafka's numbers for who said a value."""

    TOPIC = 1
    BROKER = 2
    ALL_BROKERS = 3
    STATIC = 4
    DEFAULT = 5
    LOGGER = 6
    GROUP = 8


class Synonym(NamedTuple):
    name: str
    value: str | None
    source: Source


class Described(NamedTuple):
    setting: Setting
    value: str | None
    source: Source
    synonyms: list[Synonym]


_FOR_ALL_BROKERS = ("min.insync.replicas",)
"""Settings that a new cluster of Kafka 4.3.1 copies from its first broker's file to all brokers. They are described
with that source here, too; the file stays in force."""
_CHAINS = {
    name: setting.broker_names[at:]
    for setting in TOPIC_SETTINGS.values()
    for at, name in enumerate(setting.broker_names)
}
"""A broker setting -> itself and the weaker names of the same thing."""


@dataclass(frozen=True)
class Sources:
    """Everything that can say a value: how the broker was started, what was changed since, and the result."""

    static: BrokerConfig
    in_force: BrokerConfig
    own: Mapping[str, str]
    everyone: Mapping[str, str]

    def topic(self, overrides: Mapping[str, str]) -> list[Described]:
        """All settings of a topic with these of its own, sorted by name."""
        return [self._own_setting(TOPIC_SETTINGS[name], overrides, Source.TOPIC) for name in sorted(TOPIC_SETTINGS)]

    def group(self, overrides: Mapping[str, str]) -> list[Described]:
        """All settings of a group with these of its own, sorted by name."""
        return [self._own_setting(GROUP_SETTINGS[name], overrides, Source.GROUP) for name in sorted(GROUP_SETTINGS)]

    def broker(self) -> list[Described]:
        """All settings of this broker, sorted by name; those that are only kept where they were set."""
        kept = [KEPT[name] for name in KEPT if name in self.own or name in self.everyone]
        found = [self._broker_setting(one) for one in SETTINGS.values()] + [self._kept_setting(one) for one in kept]
        return sorted(found, key=lambda one: one.setting.name)

    def all_brokers(self) -> list[Described]:
        """What was set for all brokers at once, sorted by name."""
        found = []
        known = SETTINGS | KEPT
        for name in sorted(known.keys() & self._of_all.keys()):
            setting = known[name]
            text = setting.text(setting.parse(self._of_all[name]))
            found.append(Described(setting, text, Source.ALL_BROKERS, [Synonym(name, text, Source.ALL_BROKERS)]))
        return found

    @cached_property
    def _of_all(self) -> Mapping[str, str]:
        """The settings of all brokers, and those that count as such."""
        given = {name: SETTINGS[name].text(getattr(self.static, SETTINGS[name].field)) for name in _FOR_ALL_BROKERS}
        return {name: text for name, text in given.items() if text is not None} | dict(self.everyone)

    def _own_setting(self, setting: Setting, overrides: Mapping[str, str], source: Source) -> Described:
        synonyms = []
        value = setting.text(inherited(setting, self.in_force))
        if setting.name in overrides:
            value = setting.text(setting.parse(overrides[setting.name]))
            synonyms.append(Synonym(setting.name, value, source))
        if setting.broker_names:
            synonyms += self._synonyms(setting.broker_names[0])
        return Described(setting, value, synonyms[0].source if synonyms else Source.DEFAULT, synonyms)

    def _broker_setting(self, setting: Setting) -> Described:
        value = setting.text(getattr(self.in_force, setting.field))
        synonyms = self._synonyms(setting.name)
        return Described(setting, value, synonyms[0].source if synonyms else Source.DEFAULT, synonyms)

    def _kept_setting(self, setting: Setting) -> Described:
        synonyms = list(self._said(setting))
        return Described(setting, synonyms[0].value, synonyms[0].source, synonyms)

    def _synonyms(self, name: str) -> list[Synonym]:
        if getattr(self.in_force, SETTINGS[name].field) is None:
            return []
        return [synonym for one in _CHAINS.get(name, (name,)) for synonym in self._said(SETTINGS[one])]

    def _said(self, setting: Setting) -> Iterator[Synonym]:
        name = setting.name
        for source, changed in ((Source.BROKER, self.own), (Source.ALL_BROKERS, self._of_all)):
            if name in changed:
                yield Synonym(name, setting.text(setting.parse(changed[name])), source)
        if name in self.static.given:
            yield Synonym(name, setting.text(getattr(self.static, setting.field)), Source.STATIC)
        if setting.default is not None:
            yield Synonym(name, setting.text(setting.default), Source.DEFAULT)
