"""TLS to ZooKeeper, by the settings `zookeeper.ssl.*`."""

import ssl

from moldau.config import BrokerConfig
from moldau.errors import ConfigError
from moldau.transport.key_stores import Store, identify, trust
from moldau.transport.tls import client_context

_PREFIX = "zookeeper.ssl"


def tls_context(config: BrokerConfig) -> ssl.SSLContext | None:
    """None without `zookeeper.ssl.client.enable`. Raises `ConfigError`."""
    if not config.zookeeper_ssl_client_enable:
        return None
    socket_class = config.zookeeper_clientCnxnSocket or ""
    if socket_class.endswith("ClientCnxnSocketNIO"):
        raise ConfigError(
            f"zookeeper.clientCnxnSocket is {socket_class}, which has no TLS: remove it, or {_PREFIX}.client.enable"
        )
    context = client_context(
        config.zookeeper_ssl_enabled_protocols or (config.zookeeper_ssl_protocol,),
        config.zookeeper_ssl_cipher_suites or (),
        config.zookeeper_ssl_endpoint_identification_algorithm,
        _PREFIX,
    )
    if config.zookeeper_ssl_truststore_location:
        kind, password = config.zookeeper_ssl_truststore_type, config.zookeeper_ssl_truststore_password
        trust(context, Store(config.zookeeper_ssl_truststore_location, kind, password, f"{_PREFIX}.truststore"))
    else:
        context.load_default_certs()
    if config.zookeeper_ssl_keystore_location:
        kind, password = config.zookeeper_ssl_keystore_type, config.zookeeper_ssl_keystore_password
        identify(context, Store(config.zookeeper_ssl_keystore_location, kind, password, f"{_PREFIX}.keystore"))
    return context
