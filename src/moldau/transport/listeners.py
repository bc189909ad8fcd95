"""The TLS of one listener: the context of its handshakes, and who its clients are by their certificates."""

import ssl

from moldau.config import BrokerConfig
from moldau.errors import ConfigError
from moldau.transport.certificates import context_of_listener, context_to_brokers
from moldau.transport.principals import parsed_rules, principal_of

_FIELD = "ssl_client_auth"


class ListenerTls:
    """Made from the settings that hold for the listener; reads files, so it blocks. Raises `ConfigError`."""

    def __init__(self, name: str, protocol: str, config: BrokerConfig):
        own = config.own_settings.get(name, {})
        self.client_auth: str = config.of_listener(name).ssl_client_auth
        self._names_clients = protocol == "SSL"
        if not self._names_clients:  # they prove by SASL who they are
            self.client_auth = own.get(_FIELD, "none")
        self._dials = name == config.inter_broker_listener
        try:
            self._rules = parsed_rules(config.of_listener(name).ssl_principal_mapping_rules)
            self._context = context_of_listener(config.of_listener(name), self.client_auth)
            self._to_brokers = context_to_brokers(config.of_listener(name)) if self._dials else None
        except ConfigError as error:
            raise ConfigError(f"the listener {name} cannot use TLS: {error}") from None

    def context(self) -> ssl.SSLContext:
        """The context for the next handshake."""
        return self._context

    def to_brokers(self) -> ssl.SSLContext | None:
        """The context for the next connection to another broker; None if brokers do not connect to this listener."""
        return self._to_brokers

    def principal(self, certificate: bytes | None) -> str | None:
        """The principal of a client with this certificate, None for one without. Raises `ValueError` if it may not
        connect."""
        return principal_of(certificate, self._rules) if certificate and self._names_clients else None
