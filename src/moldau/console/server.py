"""`ConsoleServer`: the console on the loop of its caller."""

import asyncio
import logging
import secrets
import socket
from collections.abc import Mapping
from dataclasses import replace

from moldau.client.settings import ClientSettings, read_settings
from moldau.console.app import ConsoleApp
from moldau.console.asking.cluster_admin import ClusterAdmin
from moldau.console.context import ConsoleContext
from moldau.console.settings import ConsoleSettings
from moldau.console.web.guards import LOCALHOST, FormTokens
from moldau.console.web.sessions import ConsoleSessions
from moldau.errors import ConfigError
from moldau.http.serving import HttpServer
from moldau.monotonic import monotonic_s
from moldau.tasks import ended

logger = logging.getLogger(__name__)

CONNECTIONS_MAX = 200
EXPIRE_EACH_S = 60.0
SECRET_BYTES = 32
OF_ONE_USER = ("sasl.username", "sasl.password", "sasl.jaas.config")
PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class ConsoleServer:
    """A console. It is bound to its port at once, which raises `CannotListen`; `start` returns when it serves; `stop`
    ends it. Where the brokers have logins each user logs in, and what the settings say of one user counts for nobody.
    """

    def __init__(self, settings: ConsoleSettings):
        client = {name: value for name, value in settings.client.items() if name not in OF_ONE_USER}
        has_logins = users_log_in(client)
        self._http = HttpServer(settings.host, settings.port, settings.tls)
        self._shared = None if has_logins else ClusterAdmin(client)
        is_secure = settings.tls.certificate is not None
        self._sessions = ConsoleSessions(self._shared, monotonic_s, self._http.port, secure=is_secure)
        tokens = FormTokens(secrets.token_bytes(SECRET_BYTES))
        self._console = ConsoleContext(replace(settings, client=client), self._sessions, tokens, has_logins=has_logins)
        machine = {LOCALHOST, socket.gethostname().lower(), settings.host.lower()}
        self._app = ConsoleApp(self._console, machine | {name.lower() for name in settings.names})
        self._http.use(self._app, CONNECTIONS_MAX)
        self._expiring: asyncio.Task[None] | None = None

    @property
    def addresses(self) -> list[str]:
        """`http://HOST:PORT`, or https."""
        return [self._http.address()]

    @property
    def streams(self) -> int:
        """How many searches, exports and live tails run."""
        return self._console.searches.used + self._console.tails.used

    async def start(self) -> None:
        """Raises `CannotListen`."""
        try:
            await self._http.start()
        except BaseException:
            await self.stop()
            raise
        if self._shared is None:
            self._expiring = asyncio.ensure_future(self._expire())

    async def _expire(self) -> None:
        """End sessions that nobody uses, with their passwords and connections."""
        while True:
            await asyncio.sleep(EXPIRE_EACH_S)
            try:
                await self._sessions.end_old()
            except Exception:
                logger.exception("a session could not be ended")

    async def keep(self) -> None:
        """Serve until it is stopped or fails."""
        await self._http.keep()

    async def stop(self) -> None:
        """Answer what has begun, except searches, exports and live tails, then end."""
        self._app.end_streams()
        await ended(self._expiring)
        await self._http.stop()
        await self._sessions.close()
        if self._shared is not None:
            await self._shared.close()
        self._http.close()


def users_log_in(client: Mapping[str, object]) -> bool:
    """Whether users log in with a name and a password. Raises `ConfigError` for logins of another kind."""
    protocol = str(client.get("security.protocol") or "").upper()
    if not protocol.startswith("SASL"):
        read_settings(ClientSettings, "the console", (dict(client),), {})
        return False
    mechanism = str(client.get("sasl.mechanism") or "").upper()
    if mechanism not in PASSWORD_MECHANISMS:
        raise ConfigError(
            "users of the console log in with a password: sasl.mechanism must be one of "
            f"{', '.join(PASSWORD_MECHANISMS)}"
        )
    return True
