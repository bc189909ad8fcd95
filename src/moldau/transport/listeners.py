"""The TLS of one listener: the contexts of its handshakes, and who its clients are by their certificates.

It is made from settings and files, and made again from changed ones: what cannot be used, or names other hosts than
before, leaves the former in use.
"""

import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from moldau.config import BrokerConfig
from moldau.errors import ConfigError
from moldau.transport.certificates import (
    check_alike,
    context_of_listener,
    context_to_brokers,
    key_store,
    trust_store,
)
from moldau.transport.distinguished_names import alternative_names, distinguished_name, validity
from moldau.transport.key_stores import Store, own_certificate
from moldau.transport.principals import MappingRule, parsed_rules, principal_of
from moldau.transport.reloading import Signature, signature

_FIELD = "ssl_client_auth"


class _Made(NamedTuple):
    """`certificate` is the listener's own, in DER; `to_brokers` is None unless it dials. `seen`: the signature of the
    files from before they were read."""

    context: ssl.SSLContext
    to_brokers: ssl.SSLContext | None
    certificate: bytes
    files: Sequence[Path]
    seen: Signature


class ListenerTls:
    """Made from the settings that hold for the listener. Making it, `check` and `reload` read files, so they block;
    they raise `ConfigError`."""

    def __init__(
        self, name: str, protocol: str, config: BrokerConfig, dials: bool = False, now_ms: Callable[[], int] = lambda: 0
    ):
        """`dials`: its certificates are also those by which this broker connects to others. `now_ms` is the time since
        1970."""
        self.name = name
        self._dials = dials
        self._now_ms = now_ms
        own = config.own_settings.get(name, {})
        settings = config.of_listener(name)
        self.client_auth: str = settings.ssl_client_auth
        self._names_clients = protocol == "SSL"
        if not self._names_clients:  # they prove by SASL who they are
            self.client_auth = own.get(_FIELD, "none")
        try:
            self._rules: Sequence[MappingRule] = parsed_rules(settings.ssl_principal_mapping_rules)
            self._made = self._make(config)
        except ConfigError as error:
            raise ConfigError(f"the listener {name} cannot use TLS: {error}") from None

    @property
    def files(self) -> Sequence[Path]:
        """The files that its contexts are made of."""
        return self._made.files

    @property
    def seen(self) -> Signature:
        """What these files were like: for a `FileWatch` that begins long after they were read."""
        return self._made.seen

    @property
    def valid_until_s(self) -> int:
        """When the listener's own certificate ends, in seconds since 1970."""
        return validity(self._made.certificate)[1]

    def context(self) -> ssl.SSLContext:
        """The context for the next handshake."""
        return self._made.context

    def to_brokers(self) -> ssl.SSLContext | None:
        """The context for the next connection to another broker; None unless it dials."""
        return self._made.to_brokers

    def principal(self, certificate: bytes | None) -> str | None:
        """The principal of a client with this certificate, None for one without. Raises `ValueError` if it may not
        connect."""
        return principal_of(certificate, self._rules) if certificate and self._names_clients else None

    def check(self, config: BrokerConfig) -> None:
        """Whether `reload` would do."""
        self._remade(config)

    def reload(self, config: BrokerConfig, *, is_start: bool = False) -> None:
        """Use the files, as they are now, that these settings name, from the next handshake on. If it raises, those
        before stay in use. At the start names may differ."""
        self._made = self._remade(config, is_start)

    def _remade(self, config: BrokerConfig, is_start: bool = False) -> _Made:
        try:
            made, settings = self._make(config), config.of_listener(self.name)
            before, now = self._made.certificate, made.certificate
            old, new = distinguished_name(before), distinguished_name(now)
            if old != new and not (is_start or settings.ssl_allow_dn_changes):
                raise ConfigError(
                    f"the new certificate is for {new!r}, not for {old!r}; ssl.allow.dn.changes=true would allow that"
                )
            if self._is_valid(before) and not self._is_valid(now):
                raise ConfigError("the new certificate has expired, or is not valid yet, and the one before is valid")
            has_all = alternative_names(before) <= alternative_names(now)
            if not (has_all or is_start or settings.ssl_allow_san_changes):
                raise ConfigError(
                    "the new certificate lacks a host name or address that the one before has; "
                    "ssl.allow.san.changes=true would allow that"
                )
        except (ConfigError, ValueError) as error:
            raise ConfigError(f"the listener {self.name} cannot use its new certificates: {error}") from None
        return made

    def _is_valid(self, certificate: bytes) -> bool:
        begins_s, ends_s = validity(certificate)
        return begins_s * 1000 <= self._now_ms() <= ends_s * 1000

    def _make(self, config: BrokerConfig) -> _Made:
        settings = config.of_listener(self.name)
        own, trusted = key_store(settings), trust_store(settings)
        files = [Path(store.location) for store in (own, trusted) if isinstance(store, Store)]
        seen = signature(files)
        context = context_of_listener(settings, self.client_auth)
        to_brokers = context_to_brokers(settings) if self._dials else None
        if to_brokers is not None and config.zookeeper_connect and self.name == config.inter_broker_listener:
            check_alike(to_brokers, context)
        assert own is not None, "the context would have been refused"
        return _Made(context, to_brokers, own_certificate(own), files, seen)
