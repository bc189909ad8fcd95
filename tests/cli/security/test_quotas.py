"""`moldau quotas`: what is set is listed, what is removed is gone, and mistakes are one sentence."""

import pytest

from tests.cli.conftest import Moldau


def test_quotas_are_set_listed_and_removed(moldau: Moldau) -> None:
    assert moldau("quotas", "set", "producer_byte_rate=1e7", "request_percentage=12.5", "--user", "ann").lines == [
        "set 2 quotas of user ann"
    ]
    both = ("--user", "ann", "--client-defaults")
    assert moldau("quotas", "set", "consumer_byte_rate=5", *both, "--json").json == {
        "user": "ann",
        "client_id": "<default>",
        "quotas": {"consumer_byte_rate": 5.0},
    }
    assert moldau("quotas", "set", "connection_creation_rate=7", "--ip", "10.0.0.1").code == 0
    assert [line.split() for line in moldau("quotas", "list").lines] == [
        ["USER", "CLIENT", "ID", "IP", "QUOTA", "VALUE"],
        ["ann", "-", "-", "producer_byte_rate", "10000000"],
        ["ann", "-", "-", "request_percentage", "12.5"],
        ["ann", "<default>", "-", "consumer_byte_rate", "5"],
        ["-", "-", "10.0.0.1", "connection_creation_rate", "7"],
    ]
    assert moldau("quotas", "list", "--ip", "10.0.0.1", "--json").json == [
        {"ip": "10.0.0.1", "quotas": {"connection_creation_rate": 7.0}}
    ]
    assert moldau("quotas", "remove", "request_percentage", "--user", "ann").lines == ["removed 1 quota of user ann"]
    assert moldau("quotas", "remove", *both, "--json").json == {
        "user": "ann", "client_id": "<default>", "removed": ["consumer_byte_rate"],
    }  # fmt: skip
    assert len(moldau("quotas", "list", "--user", "ann").lines) == 2
    assert moldau("quotas", "remove", "--user", "ann").code == moldau("quotas", "remove", "--ip", "10.0.0.1").code == 0
    assert moldau("quotas", "list", "--json").json == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("set", "producer_byte_rate=5"), "give a user, a client id or an IP address"),
        (("set", "producer_byte_rate", "--user", "ann"), "not of the form NAME=VALUE"),
        (("set", "producer_byte_rate=fast", "--user", "ann"), "must be a number, not 'fast'"),
        (("set", "nonsense=5", "--user", "ann"), "Invalid configuration key nonsense"),
        (("set", "producer_byte_rate=0", "--user", "ann"), "producer_byte_rate must be above 0"),
        (("set", "producer_byte_rate=5", "--user", "ann", "--user-defaults"), "are both given"),
        (("set", "connection_creation_rate=5", "--ip", "a.host"), "is not an IP address"),
        (("remove", "--user", "nobody"), "user nobody has no quota"),
        (("remove", "producer_byte_rate", "--user", "nobody"), "user nobody has no quota producer_byte_rate"),
    ],
)
def test_mistakes_are_one_sentence(moldau: Moldau, arguments: tuple[str, ...], sentence: str) -> None:
    assert sentence in moldau("quotas", *arguments).error
