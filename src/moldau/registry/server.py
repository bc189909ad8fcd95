"""`RegistryServer`: a registry on a loop of its own caller: it reads the topic, then listens with uvicorn."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn

from moldau.errors import CannotListen, ConfigError
from moldau.registry.api import RegistryApi
from moldau.registry.asgi import RegistryApp
from moldau.registry.authentication import RegistryGuard
from moldau.registry.election import WriterElection
from moldau.registry.forwarding import WriterRoute
from moldau.registry.state import RegistryState
from moldau.registry.topic import SchemasTopic, SchemasTopicSettings

logger = logging.getLogger(__name__)

DEFAULT_PORT = 8081
CONNECTIONS_MAX = 1_000
STOP_S = 5
NO_PASSWORD = "none"
"""Given for a key without a password: OpenSSL would ask at the terminal for that of a locked one."""
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
    """PEM files for TLS; the key may be in the certificate's file."""
    key_password: str = field(default="", repr=False)


class _HttpServer(uvicorn.Server):
    """uvicorn's server without handlers of signals: those belong to the process that it is in."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class RegistryServer:
    """One instance of the registry. It is bound to its port at once, which raises `CannotListen`; `start` returns when
    it serves; `stop` ends it."""

    def __init__(self, brokers: str, settings: RegistrySettings):
        self._settings = settings
        state = RegistryState()
        guard = None if settings.users_file is None else RegistryGuard(settings.users_file, state)
        self._socket = bound(settings.host, settings.port)
        self._topic = SchemasTopic(state, brokers, settings.topic)
        self._election = WriterElection(brokers, settings.topic.name, settings.advertised or self._reachable())
        changes = WriterRoute(
            self._topic, self._election, settings.topic.timeout_ms / 1000 + FORWARD_MORE_S, settings.certificate
        )
        config = uvicorn.Config(
            RegistryApp(RegistryApi(state), changes, guard),
            lifespan="off",
            access_log=False,
            log_config=None,
            log_level="warning",
            server_header=False,
            limit_concurrency=CONNECTIONS_MAX,
            timeout_graceful_shutdown=STOP_S,
            ssl_certfile=settings.certificate,
            ssl_keyfile=settings.key,
            ssl_keyfile_password=settings.key_password or NO_PASSWORD,
        )
        try:
            config.load()
        except OSError as wrong:  # an SSLError, too
            self._socket.close()
            why = wrong.strerror or str(wrong)
            raise ConfigError(f"the certificate {settings.certificate} cannot be used: {why}") from None
        self._server = _HttpServer(config)
        self._serving: asyncio.Task[None] | None = None

    @property
    def addresses(self) -> list[str]:
        """`http://HOST:PORT`, or https."""
        return [self._address(self._settings.host)]

    def _reachable(self) -> str:
        """Where other instances reach this one, if nothing else is said: its host, or that of the machine."""
        return self._address(socket.gethostname() if self._settings.host in EVERYWHERE else self._settings.host)

    def _address(self, host: str) -> str:
        scheme = "http" if self._settings.certificate is None else "https"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self._socket.getsockname()[1]}"

    async def start(self) -> None:
        """Read the topic, stand for election, then serve. Raises `ConfigError` and `KafkaError`."""
        try:
            await self._topic.start()
            await self._election.start()
        except BaseException:
            await self._topic.close()
            self._socket.close()
            raise
        self._serving = asyncio.ensure_future(self._server.serve([self._socket]))
        while not self._server.started and not self._serving.done():
            await asyncio.sleep(0.001)

    async def keep(self) -> None:
        """Serve until it is stopped or fails."""
        assert self._serving is not None
        await asyncio.shield(self._serving)

    async def stop(self) -> None:
        """Answer what has begun, then end."""
        self._server.should_exit = True
        if self._serving is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await self._serving
        await self._election.stop()
        await self._topic.close()
        self._socket.close()


def bound(host: str, port: int) -> socket.socket:
    """A socket that is bound to the first address of the host. Raises `CannotListen`."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        made = socket.socket(family, kind)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
    except OSError as failure:
        raise CannotListen(failure.errno, f"cannot listen on {host}:{port}: {failure.strerror or failure}") from None
    return made
