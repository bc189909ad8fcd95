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


@pytest.mark.parametrize("text", ["", ",", "a:b", "a:0", "a:70000", ":9092", "::1:9092", "a:9092:1"])
def test_what_is_no_address_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(ConfigError):
        bootstrap_addresses(text)
