"""A broker that clients reach by TLS alone, and the authority that they trust it by."""

import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.certificates import PASSWORD, Authority
from harness.proxy import Proxy
from moldau import testing
from tests.client.security.sasl_front import Front, scram


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def server_certificate(authority: Authority) -> Path:
    return authority.signed("server", "127.0.0.1")


@pytest.fixture(scope="module")
def served(server_certificate: Path) -> Callable[[], ssl.SSLContext]:
    """Makes the context of a server."""

    def make() -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(server_certificate, password=PASSWORD)
        return context

    return make


def behind(tls: ssl.SSLContext) -> Iterator[str]:
    """The address of a broker that is reached through this context."""
    with Proxy(tls=tls) as proxy:
        with testing.Broker({"advertised.listeners": f"PLAINTEXT://{proxy.address}"}) as broker:
            proxy.target = broker.address
            yield proxy.address


@pytest.fixture(scope="module")
def secured(served: Callable[[], ssl.SSLContext]) -> Iterator[str]:
    """The address of a broker behind TLS."""
    yield from behind(served())


@pytest.fixture(scope="module")
def mutual(served: Callable[[], ssl.SSLContext], authority: Authority) -> Iterator[str]:
    """The address of a broker that only a client with a certificate reaches."""
    context = served()
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.trusted)
    yield from behind(context)


@pytest.fixture(scope="module")
def login(served: Callable[[], ssl.SSLContext]) -> Iterator[str]:
    """The address of a broker behind TLS and the login of alice."""
    with Proxy(tls=served()) as proxy:
        with testing.Broker({"advertised.listeners": f"PLAINTEXT://{proxy.address}"}) as broker:
            with Front(broker.address, scram("SCRAM-SHA-512", "alice-secret"), "SCRAM-SHA-512") as front:
                proxy.target = front.address
                yield proxy.address
