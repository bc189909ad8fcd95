"""An authority of certificates for development and tests: it signs the certificates of hosts and users.

Keys are on the curve P-256, so a certificate is made in less than a millisecond. Needs the library cryptography.
"""

import datetime
import ipaddress
from collections.abc import Iterable
from typing import NamedTuple

from moldau.errors import ConfigError
from moldau.names import how_to_install

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        NoEncryption,
        PrivateFormat,
        load_pem_private_key,
        pkcs12,
    )
    from cryptography.x509.oid import ExtendedKeyUsageOID
except ImportError:
    raise ConfigError(f"certificates need the library cryptography: {how_to_install('security')}") from None

_OWN_DAYS = 3650
_CLOCKS_DIFFER = datetime.timedelta(hours=1)
_ALSO_LOCAL = ("127.0.0.1", "::1")


class Certified(NamedTuple):
    """A key and its certificate, both in PEM; `authority` is the certificate of who signed it."""

    name: str
    key: bytes
    certificate: bytes
    authority: bytes

    def __repr__(self) -> str:
        return f"Certified({self.name!r})"

    @property
    def chain(self) -> bytes:
        """What `ssl.keystore.location` names, and librdkafka's `ssl.certificate.location` with its key."""
        return self.key + self.certificate + self.authority

    def bundle(self, password: str) -> bytes:
        """The same as a PKCS12 file, as Java reads it."""
        key = load_pem_private_key(self.key, None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        certificate, authority = x509.load_pem_x509_certificate(self.certificate), self.authority
        signed_by = [x509.load_pem_x509_certificate(authority)]
        lock = BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(self.name.encode(), key, certificate, signed_by, lock)


class CertificateAuthority:
    """`certificate` is its own, in PEM: what those trust who trust it."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate):
        self._key = key
        self._own = certificate
        self.certificate = certificate.public_bytes(Encoding.PEM)

    @classmethod
    def new(cls, name: str = "Moldau development CA") -> "CertificateAuthority":
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _subject(name)
        builder = _builder(subject, subject, key.public_key(), _OWN_DAYS)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
        return cls(key, builder.sign(key, hashes.SHA256()))

    @classmethod
    def loaded(cls, key: bytes, certificate: bytes) -> "CertificateAuthority":
        """From `key` and `certificate` in PEM. Raises `ValueError`."""
        loaded, own = load_pem_private_key(key, None), x509.load_pem_x509_certificate(certificate)
        if not isinstance(loaded, ec.EllipticCurvePrivateKey) or loaded.public_key() != own.public_key():
            raise ValueError("the key does not belong to the certificate")
        return cls(loaded, own)

    @property
    def key(self) -> bytes:
        """In PEM, not encrypted."""
        return _pem(self._key)

    @property
    def trust_store(self) -> bytes:
        """Its certificate as a PKCS12 file that Java takes for a trust store, without a password."""
        entry = pkcs12.PKCS12Certificate(self._own, b"ca")
        return pkcs12.serialize_java_truststore([entry], NoEncryption())

    def for_host(self, names: Iterable[str], days: int = 365, called: str | None = None) -> Certified:
        """For a broker: `names` are the host names and addresses that clients connect to; `localhost` is also the
        addresses of this machine. It may dial other brokers with it, under its subject: the first host, unless it is
        `called` otherwise. Raises `ValueError` for no host name."""
        hosts = list(dict.fromkeys(names))
        if "localhost" in hosts:
            hosts = list(dict.fromkeys([*hosts, *_ALSO_LOCAL]))
        alternatives = x509.SubjectAlternativeName([_host(host) for host in hosts])
        purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        return self._signed(called or hosts[0], purposes, days, alternatives)

    def for_user(self, name: str, days: int = 365) -> Certified:
        """For a client, whose principal is `User:CN=name` unless rules make another of it."""
        return self._signed(name, [ExtendedKeyUsageOID.CLIENT_AUTH], days, None)

    def _signed(
        self,
        name: str,
        purposes: list[x509.ObjectIdentifier],
        days: int,
        alternatives: x509.SubjectAlternativeName | None,
    ) -> Certified:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_subject(name), self._own.subject, key.public_key(), days)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(identifier, critical=False)
        if alternatives is not None:
            builder = builder.add_extension(alternatives, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return Certified(name, _pem(key), certificate.public_bytes(Encoding.PEM), self.certificate)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _subject(name: str) -> x509.Name:
    """Raises `ValueError` if the name is empty or longer than 64 characters."""
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCKS_DIFFER)
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )
