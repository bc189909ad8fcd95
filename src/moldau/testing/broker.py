"""`Broker`: a whole broker in the process of a test, with the test's own handles on it.

It is the broker that `moldau server start` runs, with the same settings, files and answers; only its process is that of
the test. Several brokers in one process do not share anything.
"""

import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from moldau.cluster.controlling.controller import NewTopic
from moldau.config import SETTINGS, BrokerConfig, broker_config
from moldau.errors import BrokerFailed, ConfigError, MoldauError
from moldau.testing.clock import Clock
from moldau.testing.contexts import StartedInWith
from moldau.testing.faults import Fault, FaultyGate, what
from moldau.testing.running import Life

if TYPE_CHECKING:
    from moldau.client.administration.acls import Acl
    from moldau.testing.security import BrokerSecurity

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
HOST = "127.0.0.1"
DEFAULTS = {
    "connections.max.idle.ms": "-1",
    "log.initial.task.delay.ms": "1000",
    "log.retention.check.interval.ms": "1000",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
"""Where a broker under test differs from Kafka's defaults. Expired segments are
found within a second, one partition holds all groups, and moving the clock closes no connection."""
_NAMES = {setting.field: name for name, setting in SETTINGS.items()}


class Broker(StartedInWith):
    """A broker on 127.0.0.1, on a free port. Use it in `with` or `async with`, or call `start` and `stop`.

    `settings` has Kafka's names (`{"num.partitions": 4}`), keywords have underscores (`num_partitions=4`); both may be
    given. Values are strings, numbers, booleans or lists. `data_dir` is where its files are: without one they are in a
    temporary folder, which `stop` removes.

    With `tls` clients need TLS, with `users` (name -> password) a login by SASL; `client_settings` returns what they
    need. With `acls`, which may be empty, clients may do what these say, and nothing else.

    Raises `ConfigError` for unknown names and invalid values.
    """

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        *,
        data_dir: str | os.PathLike[str] | None = None,
        tls: bool = False,
        users: Mapping[str, str] | None = None,
        acls: "Sequence[Acl] | None" = None,
        **named: object,
    ):
        self._protection = protection_of(tls, users, acls)
        given = {**(settings or {}), **named_settings(named)}
        if acls is not None:
            given.setdefault("authorizer.class.name", AUTHORIZER)
        self.settings = {**DEFAULTS, **{name: _as_text(value) for name, value in given.items()}}
        """All settings that differ from Kafka's defaults, by Kafka's names."""
        broker_config(self.settings)
        self.clock = Clock()
        self._gate = FaultyGate()
        self._is_temporary = data_dir is None
        self._data_dir = None if data_dir is None else Path(data_dir)
        self._port_holder: socket.socket | None = None
        self._life: Life | None = None
        self.port = 0
        """The port of the broker: a free one, which it keeps when it is started again. 0 before the first start."""

    def __repr__(self) -> str:
        state = "running" if self.running else "stopped"
        return (
            f"<moldau.testing.Broker {self.address} {state}>" if self.port else "<moldau.testing.Broker, not started>"
        )

    @property
    def address(self) -> str:
        """`127.0.0.1:PORT`. Also while the broker is killed; an error before its first start."""
        if not self.port:
            raise MoldauError("this broker has no address yet: use it in `with`, or call start()")
        return f"{HOST}:{self.port}"

    bootstrap_servers = address
    """The same, under the name that clients have for it."""

    @property
    def metrics_url(self) -> str:
        """The URL of the broker's metrics. Raises `MoldauError` if the broker has no `metrics_port` (0 is a free port)
        or is not running."""
        if not (port := self._running().metrics_port):
            raise MoldauError("this broker has no metrics: give it metrics_port=0")
        return f"http://{HOST}:{port}/metrics"

    def client_settings(self, user: str | None = None, mechanism: str = "SCRAM-SHA-512") -> dict[str, str]:
        """The settings with which a client reaches the broker, in Kafka's names; `user` is one of its users, the first
        by default. A broker with TLS and without users knows clients by certificates: one for `User:CN=user` is made.
        Files that the settings name stay until `stop`. Raises `ConfigError`."""
        return client_settings(self.address, self._protection, user, mechanism)

    @property
    def data_dir(self) -> Path:
        """The folder of the broker's files."""
        if self._data_dir is None:
            raise MoldauError("this broker has no data folder yet: use it in `with`, or call start()")
        return self._data_dir

    @property
    def running(self) -> bool:
        return self._life is not None and self._life.running

    def start(self) -> Self:
        """Start the broker; returns itself once it listens. After `kill` it has the same port, and the files
        that were left. Raises `StorageError`, `ConfigError`, `OSError`."""
        if self.running:
            raise MoldauError("this broker runs already")
        if self._data_dir is None:
            self._data_dir = Path(tempfile.mkdtemp(prefix="moldau-testing-"))
        protection = self._protection
        protocol = "PLAINTEXT" if protection is None else protection.protocol
        secured = {} if protection is None else protection.settings()
        listener = {"listeners": f"{protocol}://{HOST}:{self._hold_port()}", **secured}
        config, _ = broker_config({**listener, "log.dirs": str(self._data_dir), "node.id": "1", **self.settings})
        life = self._life_with(config)
        try:
            life.start()
        except BaseException:
            if not self.port:
                self._forget()
            raise
        self._life, self.port = life, life.port
        return self

    def _life_with(self, config: BrokerConfig) -> Life:
        prepare = None if self._protection is None else self._protection.apply
        return Life(config, self.clock, self._gate, self._is_temporary, prepare=prepare)

    def stop(self) -> None:
        """End the broker, and remove its temporary folder. Nothing happens if it has ended. Raises `BrokerFailed` if
        something went wrong in its thread, with that error as the cause."""
        try:
            if self._life is not None:
                self._end(is_killed=self._is_temporary)
        finally:
            self._forget()

    def kill(self) -> None:
        """End the broker as a crash of its process would: connections break, requests are not answered, files stay as
        they are. `start` recovers from them. Raises `BrokerFailed`."""
        self._end(is_killed=True)

    def restart(self) -> None:
        """Stop cleanly, as by SIGTERM, and start again on the same port and files. Raises `BrokerFailed`."""
        self._end(is_killed=False)
        self.start()

    def put_clock_back(self) -> None:
        """Stop cleanly and start again on the same port and files, with the machine's time. Raises `BrokerFailed`."""
        self._running()
        try:
            self._end(is_killed=False)
        finally:
            self.clock.put_back()
            self.start()

    def reset(self) -> None:
        """Make the broker what the next test expects: without faults, running, with the machine's time; topics and
        records stay. Raises `BrokerFailed` for what has gone wrong in its thread since the last check."""
        self.clear_faults()
        try:
            self.check()
        finally:
            if not self.running:
                self.start()
            if self.clock.ahead_s:  # records with the machine's time would expire in the tests that follow
                self.put_clock_back()

    def _end(self, is_killed: bool) -> None:
        life, self._life = self._life, None
        if life is None:
            raise MoldauError("this broker does not run")
        if is_killed:
            life.kill()
        else:
            life.stop()
        _check(life)

    def check(self) -> None:
        """Raise `BrokerFailed` if something went wrong in the broker's thread since the last check."""
        if self._life is not None:
            _check(self._life)

    def _hold_port(self) -> int:
        """Returns the port to listen on: 0 is a free one. It is held by a socket that is bound and never listens.
        Otherwise any client's outgoing connection could be given this port while the broker is down."""
        if self._port_holder is None and sys.platform == "linux" and "listeners" not in self.settings:
            holder = self._port_holder = socket.socket()
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            holder.bind((HOST, self.port))
        return self.port if self._port_holder is None else int(self._port_holder.getsockname()[1])

    def _forget(self) -> None:
        """Give back the port and the temporary folder."""
        self.port = 0
        self._close_protection()
        if self._port_holder is not None:
            self._port_holder.close()
            self._port_holder = None
        if self._is_temporary and self._data_dir is not None:
            shutil.rmtree(self._data_dir, ignore_errors=True)
            self._data_dir = None

    def _close_protection(self) -> None:
        if self._protection is not None:
            self._protection.close()

    def create_topic(self, name: str, partitions: int = -1, replication_factor: int = -1, **configs: object) -> str:
        """Create a topic and return its name; without `partitions` it has `num.partitions`, without
        `replication_factor` `default.replication.factor` replicas. `configs` are its settings, in Kafka's names with
        underscores (`retention_ms=1000`). Raises `KafkaError`."""
        overrides = [(key.replace("_", "."), _as_text(value)) for key, value in configs.items()]
        self._running().create_topic(NewTopic(name, partitions, replication_factor, configs=overrides))
        return name

    def fault(
        self,
        api: str,
        *,
        error: str | int | None = None,
        delay_ms: float = 0,
        drop: str | None = None,
        topic: str | None = None,
        times: int | None = None,
    ) -> Fault:
        """Make requests of an API (`"Produce"`, `"Fetch"`, `"JoinGroup"`, ...) fail from now on, until the fault is
        cleared: by its `clear`, or at the end of its `with` block.

        `error` is the name or number of the error code that answers them; they take no effect. `delay_ms` holds them
        up for this many milliseconds of the broker's time. `drop` breaks the connection instead of answering: "before"
        the request takes effect, or "after". `times` ends the fault after this many requests. `topic` restricts it to
        requests that name this topic; a Produce or Fetch that also names others has the error for this topic only.

        Raises `ValueError` for an unknown API or error, or a fault that does nothing.
        """
        return self._gate.add(what(api, error, delay_ms, drop, topic), times)

    def clear_faults(self) -> None:
        """End all faults."""
        self._gate.clear()

    def _running(self) -> Life:
        if self._life is None:
            raise MoldauError("this broker does not run: use it in `with`, or call start()")
        return self._life


def protection_of(tls: bool, users: Mapping[str, str] | None, acls: "Sequence[Acl] | None") -> "BrokerSecurity | None":
    """None if nothing is to be protected. Raises `ConfigError`."""
    if not (tls or users or acls is not None):
        return None
    from moldau.testing.security import BrokerSecurity  # most tests need none

    return BrokerSecurity(tls, users, acls)


def client_settings(
    address: str, protection: "BrokerSecurity | None", user: str | None, mechanism: str
) -> dict[str, str]:
    """See `Broker.client_settings`."""
    settings = {"bootstrap.servers": address}
    if protection is not None:
        return {**settings, **protection.of_client(user, mechanism)}
    if user is not None:
        raise ConfigError("this broker has no users: start it with users={...}, or with tls=True")
    return settings


def named_settings(named: Mapping[str, object]) -> dict[str, object]:
    """Settings by their names in Python, under Kafka's names."""
    return {_NAMES.get(name, name.replace("_", ".")): value for name, value in named.items()}


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(map(_as_text, value))
    return str(value)


def _check(life: Life) -> None:
    failures, life.failures[:] = list(life.failures), []
    if failures:
        raise BrokerFailed(f"the broker under test has failed: {failures[0]!r}") from failures[0]
