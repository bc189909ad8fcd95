"""Settings of registry clients and serializers may be given with Confluent's names, in a mapping."""

from collections.abc import Iterable, Mapping
from typing import Any

from moldau.errors import ConfigError
from moldau.names import guess


def keywords(given: Mapping[str, Any], of: str, allowed: Iterable[str]) -> dict[str, Any]:
    """The mapping with Python's names: `auto.register.schemas` is `auto_register_schemas`. Raises `ConfigError`."""
    names = list(allowed)
    renamed: dict[str, Any] = {}
    for name, value in given.items():
        own = str(name).replace(".", "_")
        if own not in names:
            close = guess(own.replace("_", "."), [one.replace("_", ".") for one in names])
            raise ConfigError(f"{of} has no setting {name}{close}")
        renamed[own] = value
    return renamed


def truth(name: str, value: Any) -> bool:
    """A setting that is true or false, also as text. Raises `ConfigError`."""
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise ConfigError(f"{name.replace('_', '.')}={value!r} is not true or false")
    return value
