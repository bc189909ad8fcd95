"""`Cluster`: several brokers of one cluster in the process of a test, each a `Broker` with a thread of its own.

Their metadata are in one embedded store, in which each broker has a session. A killed broker's session ends at once, so
another broker is elected as controller within milliseconds.
"""

import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from moldau.cluster.membership import SharedStore
from moldau.config import BrokerConfig
from moldau.config.internal_topics import internal_topics_of
from moldau.errors import ErrorCode, KafkaError, MoldauError
from moldau.metadata_store.embedded import EmbeddedStore
from moldau.metadata_store.embedded_session import EmbeddedSession
from moldau.metadata_store.store import SessionOver
from moldau.monotonic import monotonic_s
from moldau.runtime import Runtime
from moldau.testing.broker import AUTHORIZER, Broker, client_settings, named_settings, protection_of
from moldau.testing.contexts import StartedInWith
from moldau.testing.running import Life

if TYPE_CHECKING:
    from moldau.client.administration.acls import Acl
    from moldau.testing.security import BrokerSecurity

T = TypeVar("T")
WAIT_S = 30.0
"""The most for the brokers to know each other, and for a controller to be there."""
SESSION_S = 5.0
LOOK_S = 0.005


class Cluster(StartedInWith):
    """Brokers with the ids 1, 2, ... on 127.0.0.1, on free ports. Use it in `with`, or call `start` and `stop`.

    `settings` and keywords are those of `Broker`, for all of them; `data_dir` has a folder for each broker. A topic's
    partitions are spread over the brokers, with `default_replication_factor` replicas each, 1 by default. Clients
    cannot use a partition while all brokers that have a replica of it are down. The topics of groups and transactions
    have three replicas, or one on each broker if there are fewer. `tls`, `users` and `acls` are those of `Broker`;
    brokers then reach each other as clients do. Raises `ConfigError` for unknown names and invalid values.
    """

    def __init__(
        self,
        brokers: int = 3,
        settings: Mapping[str, object] | None = None,
        *,
        data_dir: Path | None = None,
        tls: bool = False,
        users: Mapping[str, str] | None = None,
        acls: "Sequence[Acl] | None" = None,
        **named: object,
    ):
        if brokers < 1:
            raise ValueError("a cluster has at least one broker")
        self._data_dir = data_dir
        self._folder: Path | None = None
        self._sessions = _Sessions()
        folders = [None if data_dir is None else data_dir / f"broker-{number + 1}" for number in range(brokers)]
        given = {**internal_topics_of(brokers), **(settings or {}), **named_settings(named)}
        self._protection = protection_of(tls, users, acls)
        if acls is not None:
            given.setdefault("authorizer.class.name", AUTHORIZER)
        if self._protection is not None and given.get("authorizer.class.name"):
            others = given.get("super.users")
            given["super.users"] = ";".join([*([str(others)] if others else []), *self._protection.brokers])
        self.brokers = tuple(
            _Member(self._sessions, {**given, "node.id": number}, folder, self._protection)
            for number, folder in enumerate(folders, 1)
        )
        """The brokers by id; `kill`, `start`, `restart`, faults and clocks are those of `Broker`."""

    def __repr__(self) -> str:
        running = sum(broker.running for broker in self.brokers)
        return f"<moldau.testing.Cluster of {len(self.brokers)} brokers, {running} running>"

    @property
    def address(self) -> str:
        """`127.0.0.1:PORT,127.0.0.1:PORT,...` of all brokers."""
        return ",".join(broker.address for broker in self.brokers)

    bootstrap_servers = address
    """The same, under the name that clients have for it."""

    @property
    def controller(self) -> "_Member":
        """The broker that is the controller now; waits until there is one. Raises `TimeoutError`."""
        end_s = monotonic_s() + WAIT_S
        while True:
            for broker in self.brokers:
                if broker.controls:
                    return broker
            if monotonic_s() > end_s:
                raise TimeoutError("no broker has become the controller")
            time.sleep(LOOK_S)

    def start(self) -> Self:
        """Returns itself when all brokers listen and know each other. Raises what `Broker.start` raises."""
        if self._sessions.store is not None:
            raise MoldauError("this cluster runs already")
        self._folder = self._data_dir or Path(tempfile.mkdtemp(prefix="moldau-testing-"))
        (self._folder / "metadata").mkdir(parents=True, exist_ok=True)
        self._sessions.store = EmbeddedStore(self._folder / "metadata", is_durable=self._data_dir is not None)
        try:
            with ThreadPoolExecutor(len(self.brokers)) as starting:
                list(starting.map(lambda broker: broker.start(), self.brokers))
            for broker in self.brokers:
                broker.until_known(len(self.brokers))
            self._secure()
        except BaseException:
            self.stop()
            raise
        return self

    def _secure(self) -> None:
        protection = self._protection
        if protection is not None:
            self._by_controller(lambda controller: controller.secure(protection))
            for broker in self.brokers:
                broker.until_secured(protection)

    def client_settings(self, user: str | None = None, mechanism: str = "SCRAM-SHA-512") -> dict[str, str]:
        """As `Broker.client_settings`."""
        return client_settings(self.address, self._protection, user, mechanism)

    def stop(self) -> None:
        """End all brokers, and remove their temporary folders. Raises `BrokerFailed`."""
        store, self._sessions.store = self._sessions.store, None
        with contextlib.ExitStack() as ends:  # one that has failed leaves no other one running
            ends.callback(self._forget, store)
            for broker in reversed(self.brokers):
                ends.callback(broker.stop)

    def _forget(self, store: EmbeddedStore | None) -> None:
        if store is not None:
            store.close()
        if self._data_dir is None and self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
        if self._protection is not None:
            self._protection.close()

    def create_topic(self, name: str, partitions: int = -1, replication_factor: int = -1, **configs: object) -> str:
        """As `Broker.create_topic`; all brokers know the topic then. Raises `KafkaError`."""
        return self._by_controller(
            lambda controller: controller.create_topic(name, partitions, replication_factor, **configs)
        )

    def _by_controller(self, work: "Callable[[_Member], T]") -> T:
        """Have the controller do this, another one if it is that no more. Raises `KafkaError`."""
        end_s = monotonic_s() + WAIT_S
        while True:
            try:
                return work(self.controller)
            except KafkaError as error:
                if error.code is not ErrorCode.NOT_CONTROLLER or monotonic_s() > end_s:
                    raise
            time.sleep(LOOK_S)


class _Sessions:
    """The sessions of the brokers in the store, which is None while the cluster does not run."""

    def __init__(self) -> None:
        self.store: EmbeddedStore | None = None

    def opened(self) -> EmbeddedSession:
        if self.store is None:
            raise SessionOver("the cluster is stopped")
        return EmbeddedSession(self.store, Runtime())

    def end(self, session_id: int) -> None:
        if self.store is not None:
            self.store.end_session(session_id)


class _Member(Broker):
    """One broker of the cluster."""

    def __init__(
        self,
        sessions: _Sessions,
        settings: Mapping[str, object],
        data_dir: Path | None,
        protection: "BrokerSecurity | None",
    ):
        super().__init__(settings, data_dir=data_dir)
        self._protection = protection
        self._sessions = sessions
        self._session_id = 0

    @property
    def controls(self) -> bool:
        """Whether it is the controller now."""
        return self._life is not None and self._life.running and self._life.controls

    def until_known(self, brokers: int) -> None:
        """Wait until this broker knows so many, itself among them."""
        self._running().until(lambda image: len(image.brokers) == brokers, WAIT_S)

    def _close_protection(self) -> None:
        """It is the cluster's."""

    def secure(self, protection: "BrokerSecurity") -> None:
        """Make the users and ACLs of the cluster; this is the controller. Raises `KafkaError`, `ConfigError`."""
        self._running().run(protection.apply)

    def until_secured(self, protection: "BrokerSecurity") -> None:
        """Wait until this broker applies the ACLs."""
        self._running().until(protection.is_known_to, WAIT_S)

    def _life_with(self, config: BrokerConfig) -> Life:
        async def opened() -> EmbeddedSession:
            session = self._sessions.opened()
            self._session_id = session.session_id
            return session

        return Life(config, self.clock, self._gate, self._is_temporary, SharedStore(opened, SESSION_S))

    def _end(self, is_killed: bool) -> None:
        try:
            super()._end(is_killed)
        finally:
            self._sessions.end(self._session_id)
