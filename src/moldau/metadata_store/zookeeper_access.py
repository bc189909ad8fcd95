"""How a broker opens its session in ZooKeeper: everything that the settings `zookeeper.*` say, and who it is there.

The user comes from a JAAS file. As for Kafka's scripts, `KAFKA_OPTS` in the environment names it, with
`-Djava.security.auth.login.config=FILE`; the section is `Client`, or that of `-Dzookeeper.sasl.clientconfig`, and
`-Dzookeeper.sasl.client=false` leaves it out.

With `zookeeper.set.acl` the nodes that a broker creates are its user's alone to change, and everybody's to read, as
Kafka has them. Nodes with settings that may be secret, and the cluster's secret, are not for everybody. Clients of
Kafka 0.8 write below `/consumers`, so that stays open.
"""

import enum
import shlex
from collections.abc import Mapping
from typing import NamedTuple

from moldau.config import BrokerConfig
from moldau.errors import ConfigError
from moldau.metadata_store.store import checked
from moldau.metadata_store.zookeeper_tls import tls_to_zookeeper
from moldau.transport.client_tls import ClientTls
from moldau.transport.jaas import Login, login_of

IN_FLIGHT = 1000
"""The most questions that wait for answers together, if the setting does not say another number. Kafka's 10 make
reading a cluster of 10,000 partitions several times slower."""
_OPEN = ("/consumers",)
_PRIVATE = ("/config/users", "/config/brokers", "/delegation_token/tokens", "/moldau/secret")
_FILE, _ENABLED, _SECTION = "java.security.auth.login.config", "zookeeper.sasl.client", "zookeeper.sasl.clientconfig"


class Access(enum.Enum):
    """Who may do what with a node that the broker creates."""

    OPEN = "everybody may do everything"
    READABLE = "its creator may do everything, everybody may read it"
    PRIVATE = "its creator may do everything, and nobody else anything"


class Credentials(NamedTuple):
    """What a client needs to go on with a session, or to end it."""

    session_id: int
    password: bytes


class ZooKeeperAccess(NamedTuple):
    """The arguments of a session. `connect` has the servers and the chroot."""

    connect: str
    timeout_s: float
    connection_timeout_s: float | None = None
    in_flight: int = IN_FLIGHT
    tls: ClientTls | None = None
    login: Login | None = None
    protects: bool = False

    @property
    def connection_limit_s(self) -> float:
        """The longest time in which a session must have begun."""
        return self.timeout_s if self.connection_timeout_s is None else self.connection_timeout_s

    def access_to(self, path: str) -> Access:
        """For a node below the chroot."""
        if not self.protects or path in _OPEN:
            return Access.OPEN
        return Access.PRIVATE if path.startswith(_PRIVATE) else Access.READABLE


def access_of(config: BrokerConfig, environment: Mapping[str, str]) -> ZooKeeperAccess:
    """Raises `ConfigError`; `zookeeper.connect` is set."""
    tls, login = tls_to_zookeeper(config), _login(environment)
    if config.zookeeper_set_acl and login is None and not (tls and config.zookeeper_ssl_keystore_location):
        raise ConfigError(
            "zookeeper.set.acl is true, but ZooKeeper does not know this broker as a user: give it a certificate "
            "(zookeeper.ssl.client.enable, zookeeper.ssl.keystore.location), or a JAAS file with a section Client "
            f"(KAFKA_OPTS=-D{_FILE}=FILE in the environment)"
        )
    limit_ms = config.zookeeper_connection_timeout_ms
    return ZooKeeperAccess(
        config.zookeeper_connect or "",
        config.zookeeper_session_timeout_ms / 1000,
        None if limit_ms is None else limit_ms / 1000,
        config.zookeeper_max_in_flight_requests if "zookeeper.max.in.flight.requests" in config.given else IN_FLIGHT,
        tls,
        login,
        config.zookeeper_set_acl,
    )


def _login(environment: Mapping[str, str]) -> Login | None:
    try:
        words = shlex.split(environment.get("KAFKA_OPTS", ""))
    except ValueError as error:
        raise ConfigError(f"KAFKA_OPTS in the environment cannot be split into words: {error}") from None
    options = dict(word.removeprefix("-D").partition("=")[::2] for word in words if word.startswith("-D"))
    if not options.get(_FILE) or options.get(_ENABLED, "true").lower() != "true":
        return None
    return login_of(options[_FILE], options.get(_SECTION, "Client"))


def split_connect(connect: str) -> tuple[str, str]:
    """The servers and the chroot ("" for none) of a `zookeeper.connect`. Raises `ConfigError`."""
    hosts, slash, below = connect.strip().partition("/")
    root = (slash + below).rstrip("/")
    if not all(host.strip() for host in hosts.split(",")):
        raise ConfigError(f"{connect!r} is not of the form HOST:PORT,HOST:PORT/PATH")
    for host in hosts.split(","):
        port = host.strip().rpartition(":")[2] if ":" in host and not host.endswith("]") else "2181"
        if not port.isdecimal() or not 0 < int(port) < 65_536:
            raise ConfigError(f"{connect!r} is not of the form HOST:PORT,HOST:PORT/PATH")
    try:
        checked(root or "/")
    except ValueError:
        raise ConfigError(f"{connect!r} is not of the form HOST:PORT,HOST:PORT/PATH") from None
    return hosts, root
