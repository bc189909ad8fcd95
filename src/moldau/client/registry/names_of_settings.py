"""Settings of registry clients and serializers may be given with Confluent's names, in a mapping."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from moldau.errors import ConfigError


def keywords(given: Mapping[str, Any], of: str, allowed: Iterable[str]) -> dict[str, Any]:
    """The mapping with Python's names: `auto.register.schemas` is `auto_register_schemas`. Raises `ConfigError`."""
    names = list(allowed)
    found: dict[str, Any] = {}
    for name, value in given.items():
        own = str(name).replace(".", "_")
        if own not in names:
            close = difflib.get_close_matches(own, names, 1, 0.5)
            hint = f"; did you mean {close[0].replace('_', '.')}?" if close else ""
            raise ConfigError(f"{of} has no setting {name}{hint}")
        found[own] = value
    return found


def truth(name: str, value: Any) -> bool:
    """A setting that is true or false, also as text. Raises `ConfigError`."""
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise ConfigError(f"{name.replace('_', '.')}={value!r} is not true or false")
    return value
