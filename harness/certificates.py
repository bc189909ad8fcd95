"""An authority of certificates of its own, and what it signs, as files, for servers and clients of tests with TLS."""

import asyncio
import contextlib
import ssl
from pathlib import Path

from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from moldau.transport.authority import CertificateAuthority

PASSWORD = "keystore-secret"


class Authority:
    """`trusted` is the file with its own certificate, in PEM."""

    def __init__(self, folder: Path, name: str = "authority"):
        self._folder = folder
        self._made = CertificateAuthority.new(name)
        self.trusted = folder / f"{name}.pem"
        self.trusted.write_bytes(self._made.certificate)

    def signed(self, name: str, *hosts: str) -> Path:
        """A PEM file with a new key, locked with `PASSWORD`, and its certificate, which names these hosts. A PKCS12
        file beside it has the same."""
        made = self._made.for_host(hosts, called=name) if hosts else self._made.for_user(name)
        lock = BestAvailableEncryption(PASSWORD.encode())
        key = load_pem_private_key(made.key, None).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock)
        path = self._folder / f"{name}.pem"
        path.write_bytes(key + made.certificate)
        path.with_suffix(".p12").write_bytes(made.bundle(PASSWORD))
        return path

    def trusted_in_pkcs12(self) -> Path:
        """Its certificate in a PKCS12 file, without a password."""
        path = self.trusted.with_suffix(".p12")
        path.write_bytes(self._made.trust_store)
        return path

    async def serial_shown(self, host: str, port: int) -> int:
        """The serial number of the certificate that a server shows in the next handshake."""
        context = ssl.create_default_context(cafile=str(self.trusted))
        _, writer = await asyncio.open_connection(host, port, ssl=context)
        serial = writer.get_extra_info("peercert")["serialNumber"]
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        return int(serial, 16)
