"""One setting: its name, type, default, bounds and sentence, and how a line of text becomes its value.

A setting is declared as one dataclass field (`INT(default, "sentence", low=...)`); `settings_of` reads the
declarations back into a table, from which parsing, DescribeConfigs and the reference page are all derived. Values are
what Kafka's types say: `int` within 32 or 64 bits, `float`, `bool`, `str`, a tuple of `str` for a list; None where
nothing is set. Whatever is wrong with a value is a `ConfigError` of one sentence. Source: "Configuration" of Kafka's
documentation.
"""

import dataclasses
import enum
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from moldau.errors import ConfigError

Value: TypeAlias = bool | int | float | str | tuple[str, ...] | None
LONG_MAX = (1 << 63) - 1
INT_MAX = (1 << 31) - 1
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_TEXT_MAX = 1 << 15


class SettingType(enum.IntEnum):
    """Kafka's types of values, numbered as DescribeConfigs does."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


_LIMITS = {SettingType.SHORT: (1 << 15) - 1, SettingType.INT: INT_MAX, SettingType.LONG: LONG_MAX}


@dataclass(frozen=True, slots=True)
class Setting:
    """One line of the reference. `broker_names`: where a topic's setting has its default, the strongest first."""

    name: str
    kind: SettingType
    default: Value
    sentence: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    broker_names: tuple[str, ...] = ()
    read_only: bool = False
    sensitive: bool = False
    also: int | None = None

    @property
    def field(self) -> str:
        return self.name.replace(".", "_")

    @property
    def bounds(self) -> str:
        """What is allowed, for people; empty if everything of its type is."""
        if self.choices:
            return ", ".join(self.choices)
        low, high = (
            None if limit is None else f"{limit:g}" if self.kind is SettingType.DOUBLE else str(limit)
            for limit in (self.low, self.high)
        )
        if self.also is not None:
            return f"{self.also}, or {low} to {high}"
        if high is not None:
            return f"{low} to {high}"
        return "" if low is None else f"at least {low}"

    def parse(self, text: str) -> Value:
        """The value that `text` says. Raises `ConfigError`."""
        if len(text) > _TEXT_MAX:
            raise ConfigError(f"{self.name} is longer than {_TEXT_MAX} characters")
        text = text.strip()
        if self.kind is SettingType.BOOLEAN:
            if text.lower() not in ("true", "false"):
                raise ConfigError(f"{self.name} must be true or false, not {_quote(text)}")
            return text.lower() == "true"
        if self.kind is SettingType.LIST:
            return self._list(text)
        if self.kind in (SettingType.INT, SettingType.SHORT, SettingType.LONG, SettingType.DOUBLE):
            return self._number(text)
        if self.choices and text not in self.choices:
            raise ConfigError(f"{self.name} must be one of {', '.join(self.choices)}, not {_quote(text)}")
        return text

    def _number(self, text: str) -> int | float:
        number: int | float
        if self.kind is SettingType.DOUBLE:
            try:
                number = float(text)
            except ValueError:
                number = math.nan
            if math.isnan(number) or "_" in text:
                raise ConfigError(f"{self.name} must be a number, not {_quote(text)}")
        else:
            if not _WHOLE.fullmatch(text):
                raise ConfigError(f"{self.name} must be a whole number, not {_quote(text)}")
            number = int(text)
            limit = _LIMITS[self.kind]
            if not -limit - 1 <= number <= limit:
                raise ConfigError(f"{self.name} must be within {-limit - 1} and {limit}, not {text}")
        if number != self.also and (
            (self.low is not None and number < self.low) or (self.high is not None and number > self.high)
        ):
            raise ConfigError(f"{self.name} must be {self.bounds}, not {text}")
        return number

    def _list(self, text: str) -> tuple[str, ...]:
        items = tuple(item.strip() for item in text.split(",")) if text else ()
        for item in items:
            if self.choices and item not in self.choices:
                raise ConfigError(f"{self.name} must be a list of {', '.join(self.choices)}, not {_quote(text)}")
        return tuple(dict.fromkeys(items)) if self.choices else items

    def text(self, value: Value) -> str | None:
        """A value as Kafka writes it; None for no value."""
        if value is None:
            return None
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, tuple):
            return ",".join(value)
        if isinstance(value, float):
            return str(value).replace("e+", "E")  # as Java does
        return str(value)


def _quote(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _kind(kind: SettingType) -> Callable[..., Any]:
    def declare(default: Value, sentence: str, **more: Any) -> Any:
        is_secret = kind is SettingType.PASSWORD
        if is_secret:
            more = {"sensitive": True, **more}
        return dataclasses.field(
            default=default, repr=not is_secret, metadata={"setting": (kind, default, sentence, more)}
        )

    declare.__name__ = kind.name
    return declare


BOOLEAN = _kind(SettingType.BOOLEAN)
STRING = _kind(SettingType.STRING)
INT = _kind(SettingType.INT)
SHORT = _kind(SettingType.SHORT)
LONG = _kind(SettingType.LONG)
DOUBLE = _kind(SettingType.DOUBLE)
LIST = _kind(SettingType.LIST)
PASSWORD = _kind(SettingType.PASSWORD)


def settings_of(config: type) -> dict[str, Setting]:
    """Every setting that a config class declares, by name, in the order of the declarations."""
    settings = {}
    for field in dataclasses.fields(config):
        if "setting" in field.metadata:
            kind, default, sentence, more = field.metadata["setting"]
            name = field.name.replace("_", ".")
            settings[name] = Setting(name, kind, default, sentence, **more)
    return settings
