"""TLS of the side that dials: a context made of settings and files, and made again when the files have changed.

A file is looked at whenever a connection is dialled, so a new certificate is used from the next connection on. If the
new files are of no use, for example because they are half written, the context before stays in use, and a line of the
log says why.
"""

import logging
import os
import socket
import ssl
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from moldau.errors import ConfigError
from moldau.notices import Notices
from moldau.transport.key_stores import Store, identify, trust
from moldau.transport.reloading import signature
from moldau.transport.tls import client_context

PREFIX = "ssl"
_notices = Notices(logging.getLogger(__name__))


class TlsSettings(NamedTuple):
    """Certificates that servers are trusted by are in the store `trusted` or in the text `trusted_pem`; without both
    the system's are. This side's own certificate is in the store `identity`, whose key may be in the file
    `key_location`, or in the texts `certificate_pem` and `key_pem`. The server's name is checked if the `algorithm` is
    https, its certificate if `verifies`. A `context` takes the place of all others."""

    trusted: Store | None = None
    trusted_pem: str | None = None
    identity: Store | None = None
    key_location: str | None = None
    certificate_pem: str | None = None
    key_pem: str | None = None
    key_password: str | None = None
    algorithm: str = "https"
    verifies: bool = True
    protocols: Sequence[str] = ("TLS",)
    suites: Sequence[str] = ()
    context: ssl.SSLContext | None = None

    def __repr__(self) -> str:
        return f"TlsSettings({self.trusted!r}, {self.identity!r})"

    @property
    def files(self) -> list[Path]:
        """The files that the context depends on."""
        stores = [store.location for store in (self.trusted, self.identity) if store is not None]
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
    context = client_context(settings.protocols, settings.suites, settings.algorithm, PREFIX)
    if not settings.verifies:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif settings.trusted is not None:
        trust(context, settings.trusted)
    elif settings.trusted_pem is not None:
        try:
            context.load_verify_locations(cadata=settings.trusted_pem)
        except (ssl.SSLError, ValueError):
            raise ConfigError("ssl.truststore.certificates is not a certificate in PEM") from None
    else:
        context.load_default_certs()
    if settings.identity is not None:
        identify(context, settings.identity, settings.key_location)
    elif settings.certificate_pem is not None and settings.key_pem is not None:
        _identify_by_text(context, settings.certificate_pem, settings.key_pem, settings.key_password)
    return context


def _identify_by_text(context: ssl.SSLContext, certificate: str, key: str, password: str | None) -> None:
    """OpenSSL takes a key from files only: this one is in memory where the system has such files, else it lives for a
    moment, readable by this user only."""
    data = f"{key.strip()}\n{certificate.strip()}\n".encode()
    try:
        if hasattr(os, "memfd_create"):
            fd = os.memfd_create("key")
            try:
                os.write(fd, data)
                context.load_cert_chain(f"/proc/self/fd/{fd}", password=lambda: password or "")
            finally:
                os.close(fd)
        else:
            with tempfile.NamedTemporaryFile(suffix=".pem") as file:
                file.write(data)
                file.flush()
                context.load_cert_chain(file.name, password=lambda: password or "")
    except (OSError, ValueError):
        raise ConfigError(
            "ssl.keystore.key and ssl.keystore.certificate.chain are not a key and its certificate in PEM, or"
            " ssl.key.password is not the key's"
        ) from None
