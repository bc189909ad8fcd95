"""The settings of clients that find their brokers in ZooKeeper: names and defaults of Kafka 0.8, names of 0.7 too.

TLS to ZooKeeper has the names that it has for brokers, and the user comes from the same JAAS file (`KAFKA_OPTS` in the
environment). Kafka's own old clients were told of both by properties of Java.
"""

import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any

from moldau.client.settings import ClientSettings, kafka_name, setting, settings
from moldau.errors import ConfigError


@settings
class ZooKeeperTls(ClientSettings):
    """What producers and consumers can be told of TLS to ZooKeeper."""

    zookeeper_ssl_client_enable: bool = setting(default=False, about="Whether connections to ZooKeeper use TLS.")
    zookeeper_ssl_truststore_location: str | None = setting(
        default=None, about="The file with the certificates that ZooKeeper's servers are trusted by; else the system's."
    )
    zookeeper_ssl_truststore_password: str | None = setting(
        default=None, secret=True, about="The password of that file."
    )
    zookeeper_ssl_truststore_type: str | None = setting(
        default=None, about="The format of that file, PEM or PKCS12; by default by the end of its name."
    )
    zookeeper_ssl_keystore_location: str | None = setting(
        default=None, about="The file with this client's certificate and key, for ZooKeeper."
    )
    zookeeper_ssl_keystore_password: str | None = setting(default=None, secret=True, about="The password of that file.")
    zookeeper_ssl_keystore_type: str | None = setting(
        default=None, about="The format of that file, PEM or PKCS12; by default by the end of its name."
    )
    zookeeper_ssl_protocol: str = setting(
        default="TLSv1.2", about="The version of TLS, if zookeeper_ssl_enabled_protocols is not set."
    )
    zookeeper_ssl_enabled_protocols: str | None = setting(
        default=None, about="The versions of TLS that may be used, separated by commas."
    )
    zookeeper_ssl_cipher_suites: str | None = setting(
        default=None, about="The cipher suites of TLS 1.2 that may be used, by Java's names or OpenSSL's."
    )
    zookeeper_ssl_endpoint_identification_algorithm: str = setting(
        default="HTTPS", about="HTTPS: the certificate of a ZooKeeper server must name its host. Empty: it need not."
    )

    def zookeeper_tls(self) -> dict[str, str]:
        """The settings of TLS to ZooKeeper that are not the defaults, with the names that brokers have. Raises
        `ConfigError` if there are some, but no TLS."""
        changed = [one for one in dataclasses.fields(ZooKeeperTls) if one.name.startswith("zookeeper_")]
        given = {one.name: getattr(self, one.name) for one in changed if getattr(self, one.name) != one.default}
        if given and not self.zookeeper_ssl_client_enable:
            raise ConfigError(
                f"{next(iter(given))} is given without zookeeper_ssl_client_enable, and would protect nothing: add"
                " zookeeper_ssl_client_enable=True"
            )
        return {kafka_name(name): str(value).lower() if value is True else value for name, value in given.items()}


@settings
class ZooKeeperSettings(ZooKeeperTls):
    """What producers and consumers can be told of ZooKeeper."""

    zookeeper_connect: str | None = setting(
        default=None,
        aliases=("zk_connect",),
        about="HOST:PORT,HOST:PORT/CHROOT of the ZooKeeper that the brokers are registered in, instead of"
        " bootstrap_servers; or file:PATH, as the brokers have it. A consumer's group is kept there, too.",
    )
    zookeeper_session_timeout_ms: int = setting(
        default=6_000,
        low=1,
        aliases=("zk_sessiontimeout_ms",),
        about="ZooKeeper ends the session of a client that it has not heard from for this long.",
    )
    zookeeper_connection_timeout_ms: int = setting(
        default=6_000, low=1, aliases=("zk_connectiontimeout_ms",), about="Wait this long for a session in ZooKeeper."
    )
    zookeeper_session: Callable[[], Awaitable[Any]] | None = setting(
        default=None, internal=True, about="Opens a session in the store; simulations hand in their own."
    )

    def reaching_brokers(self) -> dict[str, Any]:
        """The settings that say how a client reaches the brokers, for another client of the same program."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(ZooKeeperSettings)}

    @property
    def brokers_text(self) -> str:
        connect = self.zookeeper_connect
        return super().brokers_text if connect is None else f"ZooKeeper {connect}"

    def check(self) -> None:
        super().check()
        if self.zookeeper_connect is not None and self.zookeeper_session is None:
            from moldau.metadata_store.opening import access_in

            access_in(self.zookeeper_connect, self.zookeeper_tls())
