"""`RegistryServer`: a registry on a loop of its own caller: it reads the topic, then listens with uvicorn."""

import socket
from dataclasses import dataclass, field
from pathlib import Path

from moldau.http.serving import HttpServer, TlsFiles
from moldau.registry.api import RegistryApi
from moldau.registry.asgi import RegistryApp
from moldau.registry.election import WriterElection
from moldau.registry.forwarding import WriterRoute
from moldau.registry.state import RegistryState
from moldau.registry.topic import SchemasTopic, SchemasTopicSettings

DEFAULT_PORT = 8081
FORWARD_MORE_S = 2
"""A forwarded change may take this much longer than the writer itself may take."""
EVERYWHERE = ("", "0.0.0.0", "::")


@dataclass(frozen=True)
class RegistrySettings:
    """Where a registry listens and where it keeps its schemas; port 0 is a free one. `advertised` is where other
    instances reach it, `http://HOST:PORT`."""

    host: str = "localhost"
    port: int = DEFAULT_PORT
    topic: SchemasTopicSettings = field(default_factory=SchemasTopicSettings)
    advertised: str = ""
    users_file: Path | None = None
    """The users and their rights; None lets everybody do everything."""
    certificate: Path | None = None
    key: Path | None = None
    """PEM files for TLS; the key may be in the certificate's file. They are read again when they change."""
    key_password: str = field(default="", repr=False)


class RegistryServer:
    """One instance of the registry. It is bound to its port at once, which raises `CannotListen`; `start` returns when
    it serves; `stop` ends it."""

    def __init__(self, brokers: str, settings: RegistrySettings):
        self._settings = settings
        state = RegistryState()
        guard = None
        if settings.users_file is not None:
            from moldau.registry.authentication import RegistryGuard  # it imports all settings of a broker

            guard = RegistryGuard(settings.users_file, state)
        self._server = HttpServer(
            settings.host, settings.port, TlsFiles(settings.certificate, settings.key, settings.key_password)
        )
        self._topic = SchemasTopic(state, brokers, settings.topic)
        self._election = WriterElection(brokers, settings.topic.name, settings.advertised or self._reachable())
        to_writer = None if self._server.tls is None else self._server.tls.to_instances
        timeout_s = settings.topic.timeout_ms / 1000 + FORWARD_MORE_S
        changes = WriterRoute(self._topic, self._election, timeout_s, to_writer)
        self._server.use(RegistryApp(RegistryApi(state), changes, guard))

    @property
    def addresses(self) -> list[str]:
        """`http://HOST:PORT`, or https."""
        return [self._server.address()]

    def _reachable(self) -> str:
        """Where other instances reach this one, if nothing else is said: its host, or that of the machine."""
        return self._server.address(socket.gethostname() if self._settings.host in EVERYWHERE else "")

    async def start(self) -> None:
        """Read the topic, stand for election, then serve. Raises `ConfigError`, `KafkaError` and `CannotListen`."""
        try:
            await self._topic.start()
            await self._election.start()
            await self._server.start()
        except BaseException:
            await self._election.stop()
            await self._topic.close()
            self._server.close()
            raise

    async def keep(self) -> None:
        """Serve until it is stopped or fails."""
        await self._server.keep()

    async def stop(self) -> None:
        """Answer what has begun, then end."""
        await self._server.stop()
        await self._election.stop()
        await self._topic.close()
        self._server.close()
