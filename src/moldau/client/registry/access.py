"""How a schema registry is reached: its settings, with the names of Confluent's clients in Python and in Java.

Java's clients put `schema.registry.` before the names of most of them, because they are among a client's own.
"""

import base64
from collections.abc import Mapping
from typing import Any, NamedTuple

from moldau.client.registry.http import Addresses, split_url
from moldau.client.registry.names_of_settings import truth
from moldau.errors import ConfigError
from moldau.transport.client_tls import ClientTls, TlsSettings
from moldau.transport.key_stores import Store

PREFIX = "schema.registry."
OF_REGISTRY = (PREFIX, "basic.auth.", "bearer.auth.")
"""What the names of a registry's settings begin with, among those of a client."""
SETTINGS = (
    "url", "basic_auth_user_info", "basic_auth_credentials_source", "bearer_auth_token",
    "bearer_auth_credentials_source", "ssl_ca_location", "ssl_certificate_location", "ssl_key_location",
    "ssl_key_password", "ssl_truststore_location", "ssl_truststore_type", "ssl_truststore_password",
    "ssl_keystore_location", "ssl_keystore_type", "ssl_keystore_password", "ssl_endpoint_identification_algorithm",
    "ssl_verify", "request_timeout_ms",
)  # fmt: skip


class _Source(NamedTuple):
    """A setting that says where credentials come from, and what each of its values needs."""

    name: str
    values: Mapping[str, str]


_SOURCES = (
    _Source("basic_auth_credentials_source", {"URL": "", "USER_INFO": "basic_auth_user_info"}),
    _Source("bearer_auth_credentials_source", {"STATIC_TOKEN": "bearer_auth_token"}),
)


def of_registry(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a registry among those of a client, such as a Java program's."""
    return {name.removeprefix(PREFIX): value for name, value in settings.items() if name.startswith(OF_REGISTRY)}


def addresses(given: Mapping[str, Any]) -> Addresses:
    """What the settings say; `given` has Python's names. Raises `ConfigError`."""
    urls = given.get("url")
    texts = urls.split(",") if isinstance(urls, str) else list(urls or ())
    pairs = [split_url(str(text).strip()) for text in texts if str(text).strip()]
    if not pairs:
        raise ConfigError("SchemaRegistry needs the address of a schema registry, for example http://localhost:8081")
    in_url = next((one for _, one in pairs if one is not None), None)
    headers = _headers(given, in_url)
    try:
        timeout_ms = int(given.get("request_timeout_ms", 30_000))
    except (TypeError, ValueError):
        timeout_ms = 0
    if timeout_ms <= 0:
        raise ConfigError(f"request.timeout.ms={given['request_timeout_ms']!r} is not a number of ms above 0")
    return Addresses([url for url, _ in pairs], headers, _tls(given), timeout_ms)


def _headers(given: Mapping[str, Any], in_url: str | None) -> dict[str, str]:
    for name, needed in _SOURCES:
        source = given.get(name)
        dotted = name.replace("_", ".")
        if source is None:
            continue
        if str(source).upper() not in needed:
            raise ConfigError(f"{dotted}={source!r} is not supported; {' and '.join(needed)} are")
        other = needed[str(source).upper()]
        if other and not given.get(other):
            raise ConfigError(f"{dotted}={source} needs {other.replace('_', '.')}")
    user, token = given.get("basic_auth_user_info") or in_url, given.get("bearer_auth_token")
    if user and token:
        raise ConfigError("basic.auth.user.info and bearer.auth.token cannot both be given")
    if user and ":" not in user:
        raise ConfigError("basic.auth.user.info is not user:password")
    headers = {}
    if user:
        headers["Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
    elif token:
        headers["Authorization"] = f"Bearer {token}"
    if any(ord(sign) < 32 for value in headers.values() for sign in value):
        raise ConfigError("bearer.auth.token has characters that a token cannot have")
    return headers


def _tls(given: Mapping[str, Any]) -> ClientTls | None:
    """TLS other than the system's; None where nothing is said. Raises `ConfigError`."""
    verifies = truth("ssl_verify", given.get("ssl_verify", True))
    algorithm = given.get("ssl_endpoint_identification_algorithm")
    trusted = _store(given, "ca", None) or _store(given, "truststore", given.get("ssl_truststore_password"))
    key_password = given.get("ssl_key_password")
    keystore_password = given.get("ssl_keystore_password") or key_password
    identity = _store(given, "certificate", key_password) or _store(given, "keystore", keystore_password)
    if verifies and trusted is None and identity is None and algorithm is None:
        return None
    return ClientTls(
        TlsSettings(
            trusted=trusted,
            identity=identity,
            key_location=given.get("ssl_key_location") or None,
            algorithm="https" if algorithm is None else algorithm,
            verifies=verifies,
        )
    )


def _store(given: Mapping[str, Any], name: str, password: str | None) -> Store | None:
    location = given.get(f"ssl_{name}_location")
    if not location:
        return None
    is_javas = name in ("truststore", "keystore")
    kind = given.get(f"ssl_{name}_type") if is_javas else "PEM"
    return Store(str(location), kind, password, f"ssl.{name}")
