"""TLS to ZooKeeper, by the settings `zookeeper.ssl.*`. Changed files are used from the next connection on."""

from moldau.config import BrokerConfig
from moldau.errors import ConfigError
from moldau.transport.client_tls import ClientTls, TlsSettings
from moldau.transport.key_stores import Store

_PREFIX = "zookeeper.ssl"


def tls_to_zookeeper(config: BrokerConfig) -> ClientTls | None:
    """None without `zookeeper.ssl.client.enable`. Raises `ConfigError`."""
    if not config.zookeeper_ssl_client_enable:
        return None
    socket_class = config.zookeeper_clientCnxnSocket or ""
    if socket_class.endswith("ClientCnxnSocketNIO"):
        raise ConfigError(
            f"zookeeper.clientCnxnSocket is {socket_class}, which has no TLS: remove it, or {_PREFIX}.client.enable"
        )
    trusted = identity = None
    if config.zookeeper_ssl_truststore_location:
        kind, password = config.zookeeper_ssl_truststore_type, config.zookeeper_ssl_truststore_password
        trusted = Store(config.zookeeper_ssl_truststore_location, kind, password, f"{_PREFIX}.truststore")
    if config.zookeeper_ssl_keystore_location:
        kind, password = config.zookeeper_ssl_keystore_type, config.zookeeper_ssl_keystore_password
        identity = Store(config.zookeeper_ssl_keystore_location, kind, password, f"{_PREFIX}.keystore")
    return ClientTls(
        TlsSettings(
            trusted,
            identity,
            algorithm=config.zookeeper_ssl_endpoint_identification_algorithm,
            protocols=config.zookeeper_ssl_enabled_protocols or (config.zookeeper_ssl_protocol,),
            suites=config.zookeeper_ssl_cipher_suites or (),
            prefix=_PREFIX,
        )
    )
