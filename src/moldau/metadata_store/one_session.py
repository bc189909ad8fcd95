"""The handler by which the kazoo client of one session connects: over TLS if asked to, and not after the session's end.

kazoo by itself begins a new session when one has expired; see `zookeeper`.
"""

import contextlib
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any

from kazoo.handlers.threading import SequentialThreadingHandler

SILENT = "it accepts connections and does not answer, as without a leader"


class OneSession(SequentialThreadingHandler):  # type: ignore[misc]
    """Connects only as long as its session lives, with TLS if there is a context."""

    is_over = False

    def __init__(self, tls: ssl.SSLContext | None):
        super().__init__()
        self._tls = tls
        self.problem = ""
        """Why it could not connect the last time; `SILENT` if it could, and until the server has answered."""
        self._made: socket.socket | None = None
        self.another_connection: Callable[[], socket.socket]
        """Opens one more connection to the server that it connected to last."""

    def create_connection(self, *args: Any, hostname: str, **kwargs: Any) -> Any:
        if self.is_over:
            raise OSError("the session is over")
        try:
            sock = super().create_connection(*args, **kwargs)
            try:
                made = sock if self._tls is None else self._tls.wrap_socket(sock, server_hostname=hostname)
            except BaseException:
                sock.close()
                raise
        except OSError as error:
            self.problem = _problem(error)
            raise
        self.problem, self._made = SILENT, made
        self.another_connection = partial(self.create_connection, *args, hostname=hostname, **kwargs)
        return made

    def break_off(self) -> None:
        """End a wait for the answer of a server that is silent: kazoo waits for it as long as a session may take."""
        if self._made is not None:
            with contextlib.suppress(OSError):  # it is closed already
                self._made.shutdown(socket.SHUT_RDWR)

    def select(self, readable: Any, writable: Any, failed: Any, timeout: float | None = None) -> Any:
        """One record of TLS may have several answers: those after the first are in no socket any more."""
        held = [one for one in readable if isinstance(one, ssl.SSLSocket) and one.pending()]
        ready, *others = super().select(readable, writable, failed, 0 if held else timeout)
        return [*ready, *(one for one in held if one not in ready)], *others


def tell_granted(connection: Any, granted: Callable[[float], None]) -> None:
    """Tell, in kazoo's thread, the session time-out in seconds that the server has granted, whenever this connection of
    kazoo's has connected."""
    connect = connection._connect

    def connected(*server: Any) -> Any:
        read_ms, connect_ms = connect(*server)
        granted(read_ms * 3 / 2 / 1000)
        return read_ms, connect_ms

    connection._connect = connected


def _problem(error: OSError) -> str:
    """A sentence that says why the connection failed."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    return error.strerror or str(error)
