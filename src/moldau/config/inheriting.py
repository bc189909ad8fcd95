"""How a topic or a group gets its settings: its own values over what it inherits from its broker.

A setting names the broker settings that its default comes from (`Setting.broker_names`), the strongest first; those in
minutes or hours are converted to milliseconds.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from moldau.config.setting import Setting, Value
from moldau.errors import ConfigError
from moldau.names import guess

if TYPE_CHECKING:
    from moldau.config.broker import BrokerConfig

_UNITS_MS = {"minutes": 60_000, "hours": 3_600_000}


def inherited(setting: Setting, broker: "BrokerConfig") -> Value:
    """A setting's value if its owner has none: that of the strongest broker setting with a value."""
    for name in setting.broker_names:
        value: Value = getattr(broker, name.replace(".", "_"))
        if value is not None:
            unit = name.rpartition(".")[2]
            if unit in _UNITS_MS and isinstance(value, int):
                return value * _UNITS_MS[unit] if value >= 0 else value
            return value
    return setting.default


def all_inherited(settings: Mapping[str, Setting], broker: "BrokerConfig") -> dict[str, Any]:
    """The values, by field, of an owner without values of its own."""
    return {setting.field: inherited(setting, broker) for setting in settings.values()}


def own_values(
    settings: Mapping[str, Setting], overrides: Mapping[str, str], owner: str, *, judge: bool
) -> dict[str, Any]:
    """The values of `overrides`, by field. Raises `ConfigError` for bad values and, with `judge`, for unknown
    names: they say nothing without it. `owner` names what has the settings ("topic")."""
    values: dict[str, Any] = {}
    for name, text in overrides.items():
        setting = settings.get(name)
        if setting is not None:
            values[setting.field] = setting.parse(text)
        elif judge:
            raise ConfigError(f"there is no {owner} setting {name[:200]!r}{guess(name, settings)}")
    return values
