"""Certificates for development: both ends of TLS accept them, for the right names only."""

import ssl
from pathlib import Path

import pytest

from moldau.transport.authority import CertificateAuthority, Certified
from moldau.transport.key_stores import Pem, Store, identify, trust
from moldau.transport.tls import client_context, server_context


@pytest.fixture(scope="module")
def authority() -> CertificateAuthority:
    return CertificateAuthority.new()


def server(one: Certified, authority: CertificateAuthority) -> ssl.SSLContext:
    context = server_context(("TLS",), (), "ssl")
    identify(context, Pem((one.certificate + one.authority).decode(), one.key.decode(), None, "ssl.keystore"))
    trust(context, Pem(authority.certificate.decode(), "", None, "ssl.truststore"))
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def client(one: Certified, authority: CertificateAuthority) -> ssl.SSLContext:
    context = client_context(("TLS",), (), "HTTPS", "ssl")
    identify(context, Pem(one.certificate.decode(), one.key.decode(), None, "ssl.keystore"))
    trust(context, Pem(authority.certificate.decode(), "", None, "ssl.truststore"))
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


def shaken(host: str, ours: ssl.SSLContext, theirs: ssl.SSLContext) -> str:
    """Shakes hands in memory; returns the name that the server sees."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = ours.wrap_bio(to_client, to_server, server_hostname=host)
    far = theirs.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(3):
        for side in (near, far):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                pass
    certificate = far.getpeercert()
    assert certificate is not None
    return str(certificate["subject"][0][0][1])


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1", "broker1", "10.0.0.5"])
def test_a_host_is_known_by_each_of_its_names_and_a_user_by_its_own(authority: CertificateAuthority, host: str) -> None:
    broker = server(authority.for_host(["broker1", "localhost", "10.0.0.5"]), authority)
    assert shaken(host, client(authority.for_user("alice"), authority), broker) == "alice"
    assert shaken(host, client(authority.for_host(["broker2"]), authority), broker) == "broker2", "brokers dial brokers"


def test_another_host_another_authority_and_a_users_certificate_for_a_server_are_refused(
    authority: CertificateAuthority,
) -> None:
    broker, alice = server(authority.for_host(["broker1"]), authority), authority.for_user("alice")
    with pytest.raises(ssl.SSLCertVerificationError, match="match"):
        shaken("broker2", client(alice, authority), broker)
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken("broker1", client(alice, CertificateAuthority.new()), broker)
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken("alice", client(alice, authority), server(alice, authority))


def test_an_authority_goes_on_from_its_files(authority: CertificateAuthority) -> None:
    again = CertificateAuthority.loaded(authority.key, authority.certificate)
    assert shaken("b", client(again.for_user("eve"), authority), server(authority.for_host(["b"]), again)) == "eve"
    with pytest.raises(ValueError, match="the key does not belong to the certificate"):
        CertificateAuthority.loaded(CertificateAuthority.new().key, authority.certificate)


def test_pkcs12_files_have_the_same(authority: CertificateAuthority, tmp_path: Path) -> None:
    broker, alice = authority.for_host(["localhost"]), authority.for_user("alice")
    (tmp_path / "broker.p12").write_bytes(broker.bundle("secret"))
    (tmp_path / "ca.p12").write_bytes(authority.trust_store)
    context = server_context(("TLS",), (), "ssl")
    identify(context, Store(str(tmp_path / "broker.p12"), None, "secret", "ssl.keystore"))
    trust(context, Store(str(tmp_path / "ca.p12"), None, None, "ssl.truststore"))
    context.verify_mode = ssl.CERT_REQUIRED
    assert shaken("localhost", client(alice, authority), context) == "alice"


def test_keys_are_not_in_what_is_printed(authority: CertificateAuthority) -> None:
    assert "PRIVATE" not in repr(authority.for_user("alice"))
