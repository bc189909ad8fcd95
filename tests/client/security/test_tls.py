"""Our clients over TLS: what they trust, what they show, and what they say if that fails."""

import asyncio
import contextlib
import logging
import os
import shutil
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import moldau
from harness.certificates import PASSWORD, Authority
from harness.proxy import Proxy
from moldau import aio, errors, testing
from moldau.client.administration.admin import AdminSettings
from moldau.client.blocking import Caller
from moldau.client.security.protection import protection_of
from moldau.client.settings import read_settings


def ca(authority: Authority) -> dict[str, str]:
    return {"security_protocol": "SSL", "ssl_ca_location": str(authority.trusted)}


def test_a_producer_a_consumer_and_an_admin_speak_tls(secured: str, authority: Authority) -> None:
    trusting = ca(authority)
    large = os.urandom(900_000)  # a reply that is received into memory of its own
    with moldau.Producer(secured, **trusting) as producer:
        for value in (b"small", large, b"last"):
            producer.send("spoken", value)
    with moldau.Consumer(secured, **trusting) as consumer:
        consumer.assign([("spoken", 0)])
        consumer.seek_to_beginning()
        values: list[bytes | None] = []
        while len(values) < 3:
            values += [record.value for record in consumer.poll(20_000)]
    assert values == [b"small", large, b"last"]
    with moldau.Admin(secured, **trusting) as admin:
        assert "spoken" in admin.list_topics()


def test_a_client_of_asyncio_speaks_tls(secured: str, authority: Authority) -> None:
    async def run() -> None:
        async with aio.Admin(secured, **ca(authority)) as admin:
            assert await admin.describe_cluster()

    asyncio.run(run())


def test_the_blocking_client_speaks_tls(secured: str, authority: Authority) -> None:
    settings = read_settings(AdminSettings, "Admin", (secured,), ca(authority))
    with Caller(secured, protection=protection_of(settings)) as caller:
        caller.refresh([])
        assert caller.view.brokers
    untrusting = protection_of(read_settings(AdminSettings, "Admin", (secured,), {"security_protocol": "SSL"}))
    with Caller(secured, protection=untrusting) as caller, pytest.raises(errors.SslHandshakeFailed, match="not trust"):
        caller.retrying(lambda: caller.refresh([]))


@pytest.mark.parametrize(
    "named",
    [
        {"ssl.truststore.location": "pem"},
        {"ssl.truststore.location": "p12", "ssl.truststore.type": "PKCS12"},
        {"ssl.truststore.certificates": "text"},
        {"ssl.ca.pem": "text"},
        {"ssl_cafile": "pem"},
        {"enable.ssl.certificate.verification": "false"},
    ],
)
def test_the_authority_is_named_as_other_clients_name_it(
    secured: str, authority: Authority, named: dict[str, str]
) -> None:
    values = {
        "pem": str(authority.trusted),
        "p12": str(authority.trusted_in_pkcs12()),
        "text": authority.trusted.read_text(),
    }
    given = {name: values.get(value, value) for name, value in named.items()}
    with moldau.Admin({"bootstrap.servers": secured, "security.protocol": "SSL", **given}) as admin:
        admin.list_topics()


def test_a_server_that_nobody_vouches_for_is_refused_at_once(secured: str, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other")
    with moldau.Admin(secured, **ca(other)) as admin, pytest.raises(errors.SslHandshakeFailed) as refused:
        admin.list_topics()
    assert str(refused.value) == (
        f"{secured} is not trusted: its certificate is not signed by an authority that this client knows: name the"
        " authority's certificate by ssl.ca.location or ssl.truststore.location"
    )
    assert isinstance(refused.value, errors.AuthenticationFailed) and not refused.value.retriable
    with moldau.Producer(secured, **ca(other)) as producer:
        with pytest.raises(errors.SslHandshakeFailed, match="is not trusted"):
            producer.send("spoken", b"never").result(20)
    with moldau.Consumer(secured, group_id="g", **ca(other)) as consumer:
        consumer.subscribe(["spoken"])
        with pytest.raises(errors.SslHandshakeFailed, match="is not trusted"):
            consumer.poll(20_000)


def test_a_certificate_must_name_the_host_unless_told_otherwise(
    authority: Authority, secured: str, tmp_path: Path
) -> None:
    named_otherwise = authority.signed("elsewhere", "elsewhere.example")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(named_otherwise, password=PASSWORD)
    with Proxy(tls=context) as proxy, testing.Broker() as broker:
        proxy.target = broker.address
        with moldau.Admin(proxy.address, **ca(authority)) as admin:
            with pytest.raises(errors.SslHandshakeFailed, match="its certificate is for another host"):
                admin.list_topics()
        for algorithm in ("", "none"):
            settings = {**ca(authority), "ssl_endpoint_identification_algorithm": algorithm}
            made = protection_of(read_settings(AdminSettings, "Admin", (proxy.address,), settings))
            with Caller(proxy.address, protection=made) as caller:
                caller.any()


def test_a_port_without_tls_and_a_client_without_it_are_told_apart(authority: Authority, secured: str) -> None:
    with testing.Broker() as broker, moldau.Admin(broker.address, default_api_timeout_ms=100, **ca(authority)) as admin:
        with pytest.raises(errors.KafkaError, match="TLS"):
            admin.list_topics()
    with moldau.Admin(secured, default_api_timeout_ms=100) as admin:
        with pytest.raises(errors.NetworkException):
            admin.list_topics()


@contextmanager
def demanding(context: ssl.SSLContext) -> Iterator[str]:
    """A server that ends each connection after the handshake, as OpenSSL does if that fails."""

    def serve() -> None:
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return
            with plain.dup() as same:
                try:
                    context.wrap_socket(plain, server_side=True).close()
                except OSError:
                    same.settimeout(5)
                    with contextlib.suppress(OSError):
                        while same.recv(65536):  # what is left unread would take the alert along
                            pass

    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_broker_that_wants_a_certificate_says_so(
    served: Callable[[], ssl.SSLContext], authority: Authority, version: ssl.TLSVersion
) -> None:
    context = served()
    context.maximum_version = version
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.trusted)
    with demanding(context) as address:
        with moldau.Admin(address, **ca(authority)) as admin, pytest.raises(errors.SslHandshakeFailed) as refused:
            admin.list_topics()
    assert "ssl.certificate.location or ssl.keystore.location" in str(refused.value)


@pytest.mark.parametrize(
    "form", ["one file", "two files", "text", "text in a line", "PKCS12", "PKCS12 in a file called jks"]
)
def test_a_client_shows_its_certificate_in_every_form(
    mutual: str, authority: Authority, tmp_path: Path, form: str
) -> None:
    mine = authority.signed("client")
    key, dashes, rest = mine.read_text().partition("-----BEGIN CERTIFICATE-----")
    certificate = dashes + rest
    (tmp_path / "key.pem").write_text(key)
    (tmp_path / "certificate.crt").write_text(certificate)
    shutil.copy(mine.with_suffix(".p12"), tmp_path / "store.jks")
    forms = {
        "one file": {"ssl.certificate.location": str(mine), "ssl.key.password": PASSWORD},
        "two files": {
            "ssl.certificate.location": str(tmp_path / "certificate.crt"),
            "ssl.key.location": str(tmp_path / "key.pem"),
            "ssl.key.password": PASSWORD,
        },
        "text": {
            "ssl.keystore.certificate.chain": certificate,
            "ssl.keystore.key": key,
            "ssl.key.password": PASSWORD,
        },
        "text in a line": {
            "ssl.keystore.certificate.chain": certificate.replace("\n", " "),
            "ssl.keystore.key": key.replace("\n", " "),
            "ssl.key.password": PASSWORD,
        },
        "PKCS12": {"ssl.keystore.location": str(mine.with_suffix(".p12")), "ssl.keystore.password": PASSWORD},
        "PKCS12 in a file called jks": {
            "ssl.keystore.location": str(tmp_path / "store.jks"),
            "ssl.keystore.password": PASSWORD,
        },
    }
    trusting = {"bootstrap.servers": mutual, "security.protocol": "ssl", "ssl.ca.location": str(authority.trusted)}
    with moldau.Admin({**trusting, **forms[form]}) as admin:
        admin.list_topics()


def test_a_changed_file_counts_from_the_next_connection_on(
    secured: str, authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "ca.pem"
    shutil.copy(authority.trusted, file)
    settings = {"security_protocol": "SSL", "ssl_ca_location": str(file)}
    protection = protection_of(read_settings(AdminSettings, "Admin", (secured,), settings))

    def dial() -> None:
        with Caller(secured, protection=protection) as caller:
            caller.any()

    dial()
    file.write_text("-----BEGIN CERTIFICATE-----\nhalf of it")
    with caplog.at_level(logging.WARNING, "moldau.transport.client_tls"):
        dial()
    assert f"cannot use {file}" in caplog.text and "stay in use until the file is changed again" in caplog.text
    file.write_text(Authority(tmp_path, "other").trusted.read_text())
    with pytest.raises(errors.SslHandshakeFailed, match="is not trusted"):
        dial()
    shutil.copy(authority.trusted, file)
    dial()


def test_a_context_of_ones_own_takes_the_place_of_the_other_settings(secured: str, authority: Authority) -> None:
    context = ssl.create_default_context(cafile=str(authority.trusted))
    with moldau.Admin(secured, security_protocol="SSL", ssl_context=context) as admin:
        admin.list_topics()
