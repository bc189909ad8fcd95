"""`RegistryServer`: a registry on a loop of its own caller: it reads the topic, then listens with uvicorn."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field

import uvicorn

from moldau.errors import CannotListen
from moldau.registry.api import RegistryApi
from moldau.registry.asgi import RegistryApp
from moldau.registry.state import RegistryState
from moldau.registry.topic import SchemasTopic, SchemasTopicSettings

logger = logging.getLogger(__name__)

DEFAULT_PORT = 8081
CONNECTIONS_MAX = 1_000
STOP_S = 5


@dataclass(frozen=True)
class RegistrySettings:
    """Where a registry listens and where it keeps its schemas; port 0 is a free one."""

    host: str = "localhost"
    port: int = DEFAULT_PORT
    topic: SchemasTopicSettings = field(default_factory=SchemasTopicSettings)


class _HttpServer(uvicorn.Server):
    """uvicorn's server without handlers of signals: those belong to the process that it is in."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class RegistryServer:
    """One instance of the registry. `start` returns when it serves; `stop` ends it."""

    def __init__(self, brokers: str, settings: RegistrySettings):
        self._settings = settings
        state = RegistryState()
        self._topic = SchemasTopic(state, brokers, settings.topic)
        config = uvicorn.Config(
            RegistryApp(RegistryApi(state), self._topic),
            lifespan="off",
            access_log=False,
            log_config=None,
            log_level="warning",
            server_header=False,
            limit_concurrency=CONNECTIONS_MAX,
            timeout_graceful_shutdown=STOP_S,
        )
        self._server = _HttpServer(config)
        self._serving: asyncio.Task[None] | None = None
        self._socket: socket.socket | None = None

    @property
    def addresses(self) -> list[str]:
        """`http://HOST:PORT`."""
        port = self._settings.port if self._socket is None else self._socket.getsockname()[1]
        host = self._settings.host
        return [f"http://{f'[{host}]' if ':' in host else host}:{port}"]

    async def start(self) -> None:
        """Listen, read the topic, become the writer, then serve. Raises `ConfigError`, `KafkaError`, `CannotListen`."""
        self._socket = bound(self._settings.host, self._settings.port)
        try:
            await self._topic.start()
            await self._topic.take_over()
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
        await self._topic.close()
        if self._socket is not None:
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
