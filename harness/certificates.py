"""An authority of certificates of its own, and what it signs: for servers and clients of tests that use TLS."""

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)

PASSWORD = "keystore-secret"
_DAY = datetime.timedelta(days=1)


class Authority:
    """`trusted` is the file with its own certificate, in PEM."""

    def __init__(self, folder: Path, name: str = "authority"):
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = _name(name)
        signed = _builder(self._subject, self._subject, self._key.public_key())
        signed = signed.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self._certificate = signed.sign(self._key, hashes.SHA256())
        self.trusted = folder / f"{name}.pem"
        self.trusted.write_bytes(self._certificate.public_bytes(Encoding.PEM))

    def signed(self, name: str, *hosts: str) -> Path:
        """A PEM file with a new key, locked with `PASSWORD`, and its certificate, which names these hosts. A PKCS12
        file beside it has the same."""
        key = ec.generate_private_key(ec.SECP256R1())
        signed = _builder(_name(name), self._subject, key.public_key())
        if hosts:
            signed = signed.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
        certificate = signed.sign(self._key, hashes.SHA256())
        lock: KeySerializationEncryption = BestAvailableEncryption(PASSWORD.encode())
        path = self._folder / f"{name}.pem"
        path.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock) + certificate.public_bytes(Encoding.PEM)
        )
        bundle = pkcs12.serialize_key_and_certificates(name.encode(), key, certificate, [self._certificate], lock)
        path.with_suffix(".p12").write_bytes(bundle)
        return path

    def trusted_in_pkcs12(self) -> Path:
        """Its certificate in a PKCS12 file, without a password."""
        path = self.trusted.with_suffix(".p12")
        path.write_bytes(pkcs12.serialize_key_and_certificates(None, None, None, [self._certificate], NoEncryption()))
        return path


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + 30 * _DAY)
    )
