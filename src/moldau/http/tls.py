"""TLS of an HTTP server: the certificate that it shows, and whom it trusts when it asks another instance of itself. It
looks at its files again and again, and uses what is new.

uvicorn's listener keeps one context for good. This one has no certificate: at the beginning of each handshake it hands
over to the context that was made last, which is replaced as a whole and never changed.
"""

import logging
import ssl
from pathlib import Path
from typing import Any, NamedTuple

from moldau.errors import ConfigError
from moldau.runtime import Runtime
from moldau.transport.reloading import FileWatch
from moldau.transport.tls import server_context

logger = logging.getLogger(__name__)
_VERSIONS = ("TLSv1.2", "TLSv1.3")


class _Made(NamedTuple):
    shown: ssl.SSLContext
    to_instances: ssl.SSLContext


class HttpTls:
    """`certificate` and `key` are PEM files; the key may be in the certificate's file. Making it reads them, and raises
    `ConfigError`."""

    def __init__(self, certificate: Path, key: Path | None, key_password: str):
        self._certificate = certificate
        self._key = key
        self._password = key_password
        self._text = ""
        files = [certificate] if key is None else [certificate, key]
        self._watch = FileWatch(lambda: files, self.reload, Runtime())  # before they are read: no change is missed
        self._made = self._make()
        self.context = _server_context()
        """What listens."""
        self.context.sni_callback = self._hand_over

    def to_instances(self) -> ssl.SSLContext:
        """For the next connection to another instance: it trusts the machine's authorities and this instance's own
        certificates, which other instances share. Those before the last change are among them: another instance may
        not have looked at its files yet."""
        return self._made.to_instances

    def start(self) -> None:
        """Look for changes from now on, on the running loop."""
        self._watch.start()

    async def stop(self) -> None:
        await self._watch.stop()

    def reload(self) -> None:
        """Use the files as they are now, from the next handshake on. It blocks."""
        try:
            self._made = self._make()
        except ConfigError as error:
            logger.warning("%s. The one before stays in use until the files are changed again", error)
        else:
            logger.info("HTTP is served with the certificate in %s as it is now", self._certificate)

    def _hand_over(self, handshake: Any, *_: Any) -> None:
        handshake.context = self._made.shown

    def _make(self) -> _Made:
        try:
            shown = _server_context()
            # A function: OpenSSL would ask at the terminal for the password of a locked key that has none here.
            shown.load_cert_chain(self._certificate, self._key, password=lambda: self._password)
            to_instances = ssl.create_default_context()
            to_instances.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            text = self._certificate.read_text("ascii", errors="ignore")
            for trusted in filter(None, (text, self._text)):
                to_instances.load_verify_locations(cadata=trusted)
        except (OSError, ValueError) as wrong:  # an SSLError is an OSError
            why = getattr(wrong, "strerror", None) or str(wrong)
            raise ConfigError(f"the certificate {self._certificate} cannot be used: {why}") from None
        self._text = text
        return _Made(shown, to_instances)


def _server_context() -> ssl.SSLContext:
    return server_context(_VERSIONS, (), "ssl")
