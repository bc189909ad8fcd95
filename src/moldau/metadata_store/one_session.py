"""The handler by which the kazoo client of one session connects: over TLS if asked to, and not after the session's end.

kazoo by itself begins a new session when one has expired; see `zookeeper`. It would also dial a machine that is
off for as long as a session lasts, which would then be over: here the servers share that time, as with ZooKeeper's own
client.
"""

import contextlib
import errno
import os
import select
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any

from kazoo.handlers.threading import SequentialThreadingHandler

from moldau.runtime import elapsed_s
from moldau.transport.client_tls import ClientTls

LOOK_S = 0.1
"""How often a dial looks whether the session is over."""
DARK = "it does not answer, as a machine that is off or behind a firewall"
SILENT = "it accepts connections and does not answer, as without a leader"


class OneSession(SequentialThreadingHandler):  # type: ignore[misc]
    """Connects only as long as its session lives, with TLS if there is some. `servers` is how many there are."""

    is_over = False

    def __init__(self, tls: ClientTls | None, servers: int = 1):
        super().__init__()
        self._tls = tls
        self._servers = servers
        self.problem = ""
        """Why it could not connect the last time; `SILENT` if it could, and until the server has answered."""
        self._made: socket.socket | None = None
        self.another_connection: Callable[[], socket.socket]
        """Opens one more connection to the server that it connected to last."""

    def create_connection(self, address: tuple[str, int], hostname: str, timeout: float, **_: Any) -> Any:
        """kazoo's arguments: `timeout` is that of the session, in seconds. Raises `OSError`."""
        try:
            sock = self._dialled(address, timeout / self._servers)
            try:
                sock.settimeout(timeout / self._servers)
                self._made = sock
                made = sock if self._tls is None else self._tls.wrapped(sock, hostname)
            except BaseException:
                sock.close()
                raise
        except OSError as error:
            if not self.is_over:
                self.problem = _problem(error)
            raise
        self.problem, self._made = SILENT, made
        self.another_connection = partial(self.create_connection, address, hostname, timeout)
        return made

    def _dialled(self, address: tuple[str, int], limit_s: float) -> socket.socket:
        """Connect, in steps: a call that waits as long as a machine that is dark takes could not be ended. Raises
        `OSError`."""
        end_s = elapsed_s() + limit_s
        sock = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setblocking(False)
            code = sock.connect_ex(address)
            while code == errno.EINPROGRESS:
                left_s = end_s - elapsed_s()
                if left_s <= 0 or self.is_over:
                    raise TimeoutError(DARK)
                if _is_connected(sock, min(left_s, LOOK_S)):
                    code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                else:
                    self.problem = DARK
            if code:
                raise OSError(code, os.strerror(code))
            if self.is_over:
                raise OSError("the session is over")
            return sock
        except BaseException:
            sock.close()
            raise

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


def _is_connected(sock: socket.socket, wait_s: float) -> bool:
    """Wait until the socket is connected, or has failed to; False after `wait_s`."""
    poll = select.poll()
    poll.register(sock, select.POLLOUT)
    return bool(poll.poll(wait_s * 1000))


def _problem(error: OSError) -> str:
    """A sentence that says why the connection failed."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    return error.strerror or str(error)
