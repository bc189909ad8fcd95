import pytest

from moldau.errors import ConfigError
from moldau.peers.address import Address, bootstrap_addresses


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("localhost:9092", [Address("localhost", 9092)]),
        ("localhost", [Address("localhost", 9092)]),
        (" a:1 , b:2,", [Address("a", 1), Address("b", 2)]),
        ("[::1]:9093", [Address("::1", 9093)]),
        ("[::1]", [Address("::1", 9092)]),
    ],
)
def test_bootstrap_servers_are_hosts_and_ports(text: str, addresses: list[Address]) -> None:
    assert bootstrap_addresses(text) == addresses


REFUSED = [
    ",",
    "a:b",
    "a:0",
    "a:70000",
    "a:-1",
    ":9092",
    "::1:9092",
    "a:9092:1",
    "[::1",
    "::1]",
    "[a]:9092",
    "[::1]:9092x",
    "a;b:9092",
    "a..b:9092",
    "PLAINTEXT://a:9092",
    "http://a:9092",
]


@pytest.mark.parametrize("text", ["", "local host:9092", "a" * 64 + ":9092", "a:" + "9" * 5000, *REFUSED])
def test_what_is_no_address_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(ConfigError):
        bootstrap_addresses(text)


def test_an_address_with_the_scheme_of_a_listener_is_refused_with_the_text_to_write() -> None:
    with pytest.raises(ConfigError, match="is not HOST:PORT: write 'a:9092', without 'PLAINTEXT://'"):
        bootstrap_addresses("PLAINTEXT://a:9092")
