"""Values that are kept elsewhere than in the settings: `${PROVIDER:PATH:KEY}` (KIP-297, KIP-421).

    config.providers=env,file,dir
    config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider
    config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
    config.providers.dir.class=org.apache.kafka.common.config.provider.DirectoryConfigProvider
    ssl.key.password=${env:KEY_PASSWORD}                             a variable of the environment
    ssl.keystore.password=${file:/etc/moldau/secret.properties:key}  a setting of another properties file
    delegation.token.secret.key=${dir:/run/secrets:tokens}           the content of a file in a folder

The three providers are Kafka's. A value that cannot be found is refused: Kafka leaves the text as it is, which would be
the password then. Errors name the variable and never a value.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from moldau.config.properties import read_properties
from moldau.errors import ConfigError

PROVIDERS: Final = "config.providers"
_PACKAGE: Final = "org.apache.kafka.common.config.provider."
_VARIABLE: Final = re.compile(r"\$\{([^}:]*):(?:([^}:]*):)?([^}:]*)\}")
_VALUE_BYTES_MAX: Final = 1 << 20


class _Provider(NamedTuple):
    """Its name, and `config.providers.NAME.param.*`."""

    name: str
    parameters: Mapping[str, str]

    def in_environment(self, path: str | None, key: str) -> str | None:
        pattern = self._only("allowlist.pattern")
        if path:
            raise ConfigError(f"a variable of {self.name} is ${{{self.name}:NAME}}, without a path")
        try:
            is_allowed = pattern is None or re.fullmatch(pattern, key) is not None
        except re.error as error:
            raise ConfigError(f"{PROVIDERS}.{self.name}.param.allowlist.pattern cannot be used: {error}") from None
        return os.environ.get(key) if is_allowed else None

    def in_file(self, path: str | None, key: str) -> str | None:
        return read_properties(self._allowed(path)).get(key)

    def in_folder(self, path: str | None, key: str) -> str | None:
        folder = self._allowed(path)
        if key != Path(key).name:
            return None
        try:
            with (folder / key).open("rb") as file:
                return file.read(_VALUE_BYTES_MAX).decode()
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "it is not text"
            raise ConfigError(f"cannot read {folder / key}: {why}") from None

    def _allowed(self, path: str | None) -> Path:
        if not path:
            raise ConfigError(f"a variable of {self.name} is ${{{self.name}:PATH:KEY}}, with a path")
        allowed, found = self._only("allowed.paths"), Path(path)
        if allowed is not None:
            whole = found.resolve()
            if not any(whole.is_relative_to(Path(one.strip()).resolve()) for one in allowed.split(",") if one.strip()):
                raise ConfigError(f"{path} is not below {PROVIDERS}.{self.name}.param.allowed.paths")
        return found

    def _only(self, known: str) -> str | None:
        """The value of the only parameter there is."""
        for name in self.parameters:
            if name != known:
                raise ConfigError(f"{PROVIDERS}.{self.name}.param.{name} is not known; {known} is")
        return self.parameters.get(known)


_KINDS: Final[Mapping[str, Callable[[_Provider, str | None, str], str | None]]] = {
    f"{_PACKAGE}EnvVarConfigProvider": _Provider.in_environment,
    f"{_PACKAGE}FileConfigProvider": _Provider.in_file,
    f"{_PACKAGE}DirectoryConfigProvider": _Provider.in_folder,
}


def resolved(properties: Mapping[str, str]) -> Mapping[str, str]:
    """The settings with the values that their providers have, and without the settings of the providers. Reads files.
    Raises `ConfigError`."""
    names = [name for one in properties.get(PROVIDERS, "").split(",") if (name := one.strip())]
    if not names:
        return properties
    find = {name: _finder(name, properties) for name in names}

    def value(setting: str, match: re.Match[str]) -> str:
        provider, path, key = match.groups()
        if provider not in find:
            return match[0]
        found = find[provider](path, key)
        if found is None:
            raise ConfigError(f"{setting} has {match[0]}, which the provider {provider} does not have")
        return found

    return {
        name: _VARIABLE.sub(lambda match, name=name: value(name, match), text)  # type: ignore[misc]
        for name, text in properties.items()
        if name != PROVIDERS and not name.startswith(f"{PROVIDERS}.")
    }


def _finder(name: str, properties: Mapping[str, str]) -> Callable[[str | None, str], str | None]:
    setting, parameter = f"{PROVIDERS}.{name}.class", f"{PROVIDERS}.{name}.param."
    kind = properties.get(setting, "").strip()
    if kind not in _KINDS:
        known = ", ".join(one.removeprefix(_PACKAGE) for one in _KINDS)
        raise ConfigError(
            f"{setting} must be one of Kafka's {known} (with the package {_PACKAGE.rstrip('.')}): this program cannot "
            "load others"
        )
    parameters = {one.removeprefix(parameter): text for one, text in properties.items() if one.startswith(parameter)}
    provider, find = _Provider(name, parameters), _KINDS[kind]
    return lambda path, key: find(provider, path, key)
