"""An authority of certificates of its own, and what it signs, as files, for servers and clients of tests with TLS."""

import asyncio
import contextlib
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from moldau.transport.authority import CertificateAuthority

PASSWORD = "keystore-secret"


class Authority:
    """`trusted` is the file with its own certificate, in PEM; it has signed that itself, or another authority has."""

    def __init__(self, folder: Path, name: str = "authority", signed_by: "Authority | None" = None):
        self._folder = folder
        self._made = CertificateAuthority.new(name)
        if signed_by is not None:
            self._made = signed_by.approved(self._made)
        self.trusted = folder / f"{name}.pem"
        self.trusted.write_bytes(self._made.certificate)

    def approved(self, other: CertificateAuthority) -> CertificateAuthority:
        """The other authority with a certificate that this one has signed."""
        own, theirs = (x509.load_pem_x509_certificate(one.certificate) for one in (self._made, other))
        builder = x509.CertificateBuilder(
            own.subject,
            theirs.subject,
            theirs.public_key(),
            x509.random_serial_number(),
            theirs.not_valid_before_utc,
            theirs.not_valid_after_utc,
            list(theirs.extensions),
        )
        key = load_pem_private_key(self._made.key, None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        made = builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)
        return CertificateAuthority.loaded(other.key, made)

    def signed(self, name: str, *hosts: str, days: int = 365) -> Path:
        """A PEM file with a new key, locked with `PASSWORD`, and its certificate, which names these hosts. A PKCS12
        file beside it has the same."""
        made = self._made.for_host(hosts, days, called=name) if hosts else self._made.for_user(name)
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
