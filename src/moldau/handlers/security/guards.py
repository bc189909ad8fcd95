"""What protects a broker, built from its settings in one place; imported only where any of it is configured.

tls      of the listeners                                              (`transport/listeners.py`)
logins   of the listeners with SASL                                    (`requests/logins.py`)
gate     rights on whole requests, and the authorizer of all others    (`requests/gate.py`, `security/authorizer.py`)
audit    a line for each denial                                        (`security/audit.py`)
"""

import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from moldau.cluster.cluster import Cluster
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.config import BrokerConfig
from moldau.config.listeners import SASL
from moldau.errors import KafkaError, StorageError
from moldau.metadata_store.store import StoreConflict
from moldau.net.ports import Connected
from moldau.peers.link import Link
from moldau.replication.upkeep import Job
from moldau.requests.dispatch import Dispatch
from moldau.requests.gate import Gate
from moldau.runtime import Runtime
from moldau.transport.listeners import ListenerTls

if TYPE_CHECKING:
    from moldau.handlers.security.certificates import Certificates
    from moldau.requests.logins import ListenerLogins
    from moldau.security.audit import Audit

_WITH_TLS = ("SSL", "SASL_SSL")


class Guards:
    """`tls`: the TLS of the listeners that have it, by name. Reads files, so it blocks. Raises `ConfigError`."""

    def __init__(self, config: BrokerConfig, runtime: Runtime, is_alone: bool):
        self._config = config
        self._runtime = runtime
        with_tls = {one.name: one.protocol for one in config.client_listeners if one.protocol in _WITH_TLS}
        among = config.inter_broker_listener
        dialling = among if among in with_tls else next(iter(with_tls), None)  # others may have TLS there already
        now_ms = runtime.clock.now_ms
        self.tls = {
            name: ListenerTls(name, protocol, config, name == dialling, now_ms) for name, protocol in with_tls.items()
        }
        self._audit: Audit | None
        self._end_audit: Callable[[], None]
        self._audit, self._end_audit = _audit(config, runtime) if config.authorizer_class_name else (None, _nothing)
        with_sasl = [one.name for one in config.client_listeners if one.protocol in SASL]
        self._logins = _logins(with_sasl, config, runtime) if with_sasl else {}
        dials = not is_alone and config.inter_broker_listener in with_sasl
        self.log_in = _log_in(config, runtime) if dials else None
        """Logs in at another broker, on a link to it; None if the listener for brokers has no SASL."""

    def to_brokers(self) -> ssl.SSLContext | None:
        """The TLS by which this broker connects to others; None if its settings have none."""
        contexts = (tls.to_brokers() for tls in self.tls.values())
        return next((context for context in contexts if context is not None), None)

    def watch(self, metadata: MetadataCache) -> "Certificates":
        """What keeps the certificates of the listeners up to date, to be started."""
        from moldau.handlers.security.certificates import Certificates

        return Certificates(self.tls, self._config, metadata, self._runtime)

    def protect(self, gate: Gate, metadata: MetadataCache) -> None:
        """Every request passes the gate; `metadata` is what the broker serves by."""
        config = self._config
        if self._audit is None:
            return
        from moldau.handlers.rights import RIGHTS
        from moldau.requests.requirements import Requirements
        from moldau.security.authorizer import AclAuthorizer

        authorizer = AclAuthorizer(
            metadata.image,
            config.privileged,
            config.allow_everyone_if_no_acl_found,
            self._audit.denied,
        )
        metadata.subscribe(authorizer.follow)
        gate.protect(Requirements(RIGHTS).by_key(), authorizer)

    def jobs(self, cluster: Cluster) -> Sequence[Job]:
        """What is to be done now and then."""
        config, ends = self._config, self._ends_of_certificates()
        if not config.delegation_token_secret_key:
            return ends
        from moldau.cluster.users.token_changes import TokenChanges

        changes = TokenChanges(cluster.queue, lambda: config, self._runtime)

        async def remove_ended() -> None:
            if cluster.decided_on is not None:
                # The log says what has failed; the next time may do.
                with suppress(StorageError, StoreConflict, KafkaError):
                    await changes.sweep()

        every_ms = config.delegation_token_expiry_check_interval_ms
        return (*ends, Job("removal of tokens that are over", every_ms, every_ms, remove_ended))

    def _ends_of_certificates(self) -> Sequence[Job]:
        if not self.tls:
            return ()
        from moldau.handlers.security.certificates import LOOKED_AT_MS, tell_of_ends

        async def look() -> None:
            tell_of_ends(self.tls.values(), self._runtime.clock.now_ms())

        return (Job("certificates that end", 0, LOOKED_AT_MS, look),)

    async def close(self) -> None:
        """Write what waits to be written."""
        if self._audit is not None:
            await self._audit.close()
        self._end_audit()

    async def connected(self, dispatch: Dispatch, cluster: Cluster) -> Connected:
        """What answers the frames of a new connection. Raises `StorageError`."""
        if not self._logins:
            return dispatch.connected
        from moldau.cluster.secret import stored_secret
        from moldau.cluster.users.credentials import read_credential
        from moldau.cluster.users.token_credentials import TokenCredentials
        from moldau.requests.authentication import guarded

        secret = await stored_secret(cluster.store, self._runtime)
        tokens = TokenCredentials(cluster, self._config.delegation_token_secret_key, secret, self._runtime)
        for logins in self._logins.values():
            logins.open(
                lambda user, mechanism: cluster.store.read(read_credential(user, mechanism)), tokens.find, secret
            )
        return guarded(dispatch, self._logins, dispatch.connected)


def _nothing() -> None:
    """There is no audit log to end."""


def _audit(config: BrokerConfig, runtime: Runtime) -> "tuple[Audit, Callable[[], None]]":
    from moldau.security.audit import Audit, audit_writer  # a broker without access rights needs none of it

    write, end = audit_writer(config.audit_log_file)
    return Audit(runtime, write), end


def _logins(listeners: Sequence[str], config: BrokerConfig, runtime: Runtime) -> "dict[str, ListenerLogins]":
    from moldau.requests.logins import ListenerLogins  # a broker without SASL needs none of it

    return {name: ListenerLogins(name, config, runtime) for name in listeners}


def _log_in(config: BrokerConfig, runtime: Runtime) -> Callable[[Link, int], Awaitable[None]]:
    from moldau.peers.sessions import LinkSession
    from moldau.requests.own_login import login_at_brokers

    login = login_at_brokers(config)

    async def log_in(link: Link, timeout_ms: int) -> None:
        await LinkSession(link, login, runtime.random, timeout_ms).begin()

    return log_in
