"""The examples of docs/secure-clients.md, run against brokers with TLS, in a folder with the files that they name."""

import re
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.certificates import PASSWORD, Authority
from harness.proxy import Proxy
from moldau import testing
from tests.client.security.sasl_front import Front
from tests.client.security.test_sasl import scram

PAGE = Path(__file__).parents[3] / "docs" / "secure-clients.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture
def login(served: Callable[[], ssl.SSLContext]) -> Iterator[str]:
    """A broker behind TLS and a login."""
    with Proxy(tls=served()) as proxy:
        with testing.Broker({"advertised.listeners": f"PLAINTEXT://{proxy.address}"}) as broker:
            with Front(broker.address, scram("SCRAM-SHA-512", "alice-secret"), "SCRAM-SHA-512") as front:
                proxy.target = front.address
                yield proxy.address


def test_every_example_of_the_page_runs(
    secured: str, mutual: str, login: str, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    key, dashes, certificate = authority.signed("client").read_text().partition("-----BEGIN CERTIFICATE-----")
    Path("ca.pem").write_bytes(authority.trusted.read_bytes())
    Path("client-key.pem").write_text(key)
    Path("client.pem").write_text(dashes + certificate)
    real = {"localhost:9093": secured, "localhost:9094": mutual, "localhost:9095": login, "key-secret": PASSWORD}
    for example in EXAMPLES:
        for word, value in real.items():
            example = example.replace(word, value)
        exec(compile(example, str(PAGE), "exec"), {"__name__": "example"})
