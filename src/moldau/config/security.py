"""The settings that protect listeners: each has Kafka's name, type and default, and holds for every listener unless one
has a value of its own, `listener.name.<listener>.<name>`.

`ProtectionSettings` is a part of `BrokerConfig`; `overrides` reads the values of single listeners. A name that no listener
and no setting of Kafka's has is refused, because a misspelt protection would be none.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from moldau.config.sasl import CALLBACK, MECHANISMS, OF_MECHANISM, SASL, VALIDATOR
from moldau.config.setting import BOOLEAN, INT_MAX, LIST, PASSWORD, STRING, Setting, SettingType, settings_of
from moldau.errors import ConfigError
from moldau.names import guess

OF_LISTENER = "listener.name."
CLIENT_AUTH = ("none", "requested", "required")
FILES = ("ssl.keystore.location", "ssl.keystore.type", "ssl.truststore.location", "ssl.truststore.type")
"""The settings of a listener that can be changed while the broker runs. Secrets cannot: the metadata keeps none."""
_FIXED = {"read_only": True}


# fmt: off
# ruff: noqa: E501 (one setting is one line)
@dataclass(frozen=True)
class ProtectionSettings:
    """The settings that one listener may have for itself, and their values for all others."""

    ssl_client_auth: str = STRING("none", "Whether clients of an SSL listener must have a certificate (required), are asked for one (requested) or not (none). A SASL_SSL listener asks only if its own listener.name.<listener>.ssl.client.auth says so.", choices=CLIENT_AUTH, **_FIXED)
    ssl_keystore_location: str | None = STRING(None, "The file with the certificate of the listeners, the certificates that lead to its authority, and its key.", **_FIXED)
    ssl_keystore_type: str | None = STRING(None, "The format of that file, PEM or PKCS12; by the end of its name, or by what it begins with, if not set.", **_FIXED)
    ssl_keystore_password: str | None = PASSWORD(None, "The password of that file.", **_FIXED)
    ssl_key_password: str | None = PASSWORD(None, "The password of the key in a PEM file or in ssl.keystore.key.", **_FIXED)
    ssl_keystore_certificate_chain: str | None = PASSWORD(None, "The certificate, and those that lead to its authority, as text in PEM, instead of a file.", **_FIXED)
    ssl_keystore_key: str | None = PASSWORD(None, "The key of that certificate, as text in PEM.", **_FIXED)
    ssl_truststore_location: str | None = STRING(None, "The file with the certificates that clients, and other brokers, are trusted by.", **_FIXED)
    ssl_truststore_type: str | None = STRING(None, "The format of that file, PEM or PKCS12; as with ssl.keystore.type if not set.", **_FIXED)
    ssl_truststore_password: str | None = PASSWORD(None, "The password of that file.", **_FIXED)
    ssl_truststore_certificates: str | None = PASSWORD(None, "The certificates that clients, and other brokers, are trusted by, as text in PEM, instead of a file.", **_FIXED)
    ssl_endpoint_identification_algorithm: str = STRING("https", "https: the certificate of another broker that this one connects to must name its host. Empty: it need not.", **_FIXED)
    ssl_allow_dn_changes: bool = BOOLEAN(False, "Whether a listener's new certificate may have another distinguished name than the one it replaces.", **_FIXED)
    ssl_allow_san_changes: bool = BOOLEAN(False, "Whether a listener's new certificate may lack a host name or address of the one it replaces.", **_FIXED)
    ssl_principal_mapping_rules: str = STRING("DEFAULT", "How the name in a client's certificate becomes the name of its principal: rules RULE:pattern/replacement/ (with L or U at the end for lower or upper case) and DEFAULT, separated by commas; the first that matches decides, and a client that none matches is refused.", **_FIXED)
    ssl_enabled_protocols: tuple[str, ...] = LIST(("TLSv1.2", "TLSv1.3"), "The versions of TLS that may be used; none is older than TLSv1.2.", **_FIXED)
    ssl_cipher_suites: tuple[str, ...] | None = LIST(None, "The cipher suites of TLS 1.2 that may be used, by Java's names or OpenSSL's; all that Python allows if not set. If all of them are of TLS 1.3, TLS 1.2 is not spoken.", **_FIXED)
# fmt: on


@dataclass(frozen=True)
class OfListeners:
    """The values that single listeners have for themselves: listener's name -> field -> value. Those of one mechanism
    of SASL are under LISTENER/MECHANISM."""

    own_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False, hash=False)


SECURITY: dict[str, Setting] = settings_of(ProtectionSettings) | SASL
_LIMITS = {
    name: Setting(name, SettingType.INT, INT_MAX, "", low=0)
    for name in ("max.connections", "max.connection.creation.rate")
}
"""Limits that a listener may have besides those of the broker."""


def overrides(
    given: Mapping[str, str], is_known: Callable[[str], bool], listeners: Collection[str], controllers: Collection[str]
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """`given` are settings whose names begin with `listener.name.`. Returns the values of each of these listeners, and
    the names of settings that have no effect: those of Kafka's controllers, and others that Kafka has (`is_known`).
    Raises `ConfigError`."""
    values: dict[str, dict[str, Any]] = {}
    absent = []
    for full, text in given.items():
        rest = full.removeprefix(OF_LISTENER)
        listener = next((one for one in listeners if rest.startswith(f"{one.lower()}.")), None)
        if listener is None:
            if any(rest.startswith(f"{one.lower()}.") for one in controllers):
                absent.append(full)
                continue
            raise ConfigError(
                f"{full} is for a listener that listeners does not name; a listener's name is in lower case there "
                f"({', '.join(OF_LISTENER + one.lower() for one in listeners)})"
            )
        name = rest[len(listener) + 1 :]
        setting = SECURITY.get(name) or _LIMITS.get(name)
        if f".{name}".endswith(f".{CALLBACK}"):
            _check_callback(full, text)
        elif setting is not None:
            values.setdefault(listener, {})[setting.field] = setting.parse(text)
        elif (of_mechanism := _of_mechanism(name)) is not None:
            mechanism, setting = of_mechanism
            values.setdefault(f"{listener}/{mechanism}", {})[setting.field] = setting.parse(text)
        elif is_known(name) or is_known(name.partition(".")[2]):  # gssapi.sasl.jaas.config
            absent.append(full)
        else:
            raise ConfigError(f"unknown setting {name!r} of the listener {listener}{guess(name, SECURITY)}")
    return values, absent


def changed(
    own: Mapping[str, Mapping[str, Any]], changes: Mapping[str, str], listeners: Collection[str]
) -> dict[str, dict[str, Any]]:
    """The values of single listeners after their files or limits were changed; others have no effect. Raises
    `ConfigError`."""
    values = {listener: dict(settings) for listener, settings in own.items()}
    for listener in listeners:
        for name in (*FILES, *_LIMITS):
            text = changes.get(f"{OF_LISTENER}{listener.lower()}.{name}")
            if text is not None:
                setting = _LIMITS.get(name) or SECURITY[name]
                values.setdefault(listener, {})[setting.field] = setting.parse(text)
    return values


def of_single_listeners(own: Mapping[str, Mapping[str, Any]]) -> list[tuple[Setting, Any]]:
    """The settings of single listeners, by their whole names, and their values."""
    by_field = {setting.field: setting for setting in (SECURITY | _LIMITS).values()}
    found = []
    for owner, settings in own.items():
        prefix = f"{OF_LISTENER}{owner.lower().replace('/', '.')}."
        for one, value in settings.items():
            setting = by_field[one]
            fixed = setting.name not in FILES and setting.name not in _LIMITS
            found.append((replace(setting, name=prefix + setting.name, read_only=fixed), value))
    return found


def names_file(name: str) -> bool:
    """Whether this is a setting of `FILES` for one listener."""
    return name.startswith(OF_LISTENER) and name.endswith(tuple(f".{one}" for one in FILES))


def changes_listener(name: str) -> bool:
    """Whether this is a setting of one listener that can be changed while the broker runs."""
    return names_file(name) or (name.startswith(OF_LISTENER) and name.endswith(tuple(f".{one}" for one in _LIMITS)))


def _check_callback(full: str, text: str) -> None:
    if text.strip() not in ("", VALIDATOR):
        raise ConfigError(f"this broker cannot load a class that checks passwords or tokens; remove {full}")


def _of_mechanism(name: str) -> tuple[str, Setting] | None:
    """The mechanism and the setting of `plain.sasl.jaas.config`."""
    mechanism, _, of_it = name.partition(".")
    is_one = mechanism.upper() in MECHANISMS and of_it in OF_MECHANISM
    return (mechanism.upper(), OF_MECHANISM[of_it]) if is_one else None
