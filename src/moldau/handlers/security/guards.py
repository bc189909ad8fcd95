"""What protects a broker, built from its settings in one place; imported only where any of it is configured."""

from moldau.config import BrokerConfig
from moldau.transport.listeners import ListenerTls

_WITH_TLS = ("SSL", "SASL_SSL")


class Guards:
    """`tls`: the TLS of the listeners that have it, by name. Reads files, so it blocks. Raises `ConfigError`."""

    def __init__(self, config: BrokerConfig):
        self.tls = {
            one.name: ListenerTls(one.name, one.protocol, config)
            for one in config.client_listeners
            if one.protocol in _WITH_TLS
        }
