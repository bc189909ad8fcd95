"""TLS of the side that dials: a context made of settings and files, and made again when the files have changed.

A file is looked at whenever a connection is dialled, so a new certificate is used from the next connection on. If the
new files are of no use, for example because they are half written, the context before stays in use, and a line of the
log says why.
"""

import logging
import socket
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from moldau.errors import ConfigError
from moldau.notices import Notices
from moldau.transport.key_stores import Pem, Store, identify, trust
from moldau.transport.reloading import signature
from moldau.transport.tls import client_context

PREFIX = "ssl"
_notices = Notices(logging.getLogger(__name__))


class TlsSettings(NamedTuple):
    """Certificates that servers are trusted by are in `trusted`; without it the system's are. This side's own
    certificate is in `identity`; the key of a store in PEM may be in the file `key_location`. The server's name is
    checked if the `algorithm` is https, its certificate if `verifies`. A `context` takes the place of all others. The
    names of the settings begin with `prefix`."""

    trusted: Store | Pem | None = None
    identity: Store | Pem | None = None
    key_location: str | None = None
    algorithm: str = "https"
    verifies: bool = True
    protocols: Sequence[str] = ("TLS",)
    suites: Sequence[str] = ()
    context: ssl.SSLContext | None = None
    prefix: str = PREFIX

    def __repr__(self) -> str:
        return f"TlsSettings({self.trusted!r}, {self.identity!r})"

    @property
    def files(self) -> list[Path]:
        """The files that the context depends on."""
        stores = [store.location for store in (self.trusted, self.identity) if isinstance(store, Store)]
        return [Path(path) for path in (*stores, *filter(None, [self.key_location]))]


class ClientTls:
    """The context for the next connection. Making the first one raises `ConfigError` if a file is of no use."""

    def __init__(self, settings: TlsSettings):
        self._settings = settings
        self._seen = signature(settings.files)
        self._context = settings.context or made(settings)

    def context(self) -> ssl.SSLContext:
        """The context, made again if a file has changed."""
        seen = signature(self._settings.files)
        if seen != self._seen:
            self._seen = seen
            try:
                self._context = made(self._settings)
            except ConfigError as error:
                _notices.warning(
                    "files", "%s. The certificates before stay in use until the file is changed again", error
                )
        return self._context

    def wrapped(self, plain: socket.socket, host: str) -> ssl.SSLSocket:
        """A blocking socket with TLS in place of the plain one, which is closed if that fails. Raises `OSError`."""
        try:
            return self.context().wrap_socket(plain, server_hostname=host)
        except BaseException:
            plain.close()
            raise


def made(settings: TlsSettings) -> ssl.SSLContext:
    """A context by these settings. Raises `ConfigError`."""
    context = client_context(settings.protocols, settings.suites, settings.algorithm, settings.prefix)
    if not settings.verifies:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif settings.trusted is not None:
        trust(context, settings.trusted)
    else:
        context.load_default_certs()
    if settings.identity is not None:
        identify(context, settings.identity, settings.key_location)
    return context
