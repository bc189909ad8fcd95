"""The examples of docs/secure-clients.md, run against brokers with TLS, in a folder with the files that they name."""

import re
from pathlib import Path

import pytest

from harness.certificates import PASSWORD, Authority

PAGE = Path(__file__).parents[3] / "docs" / "secure-clients.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


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
