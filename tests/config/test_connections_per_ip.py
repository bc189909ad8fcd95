"""Limits of connections of single addresses, as text."""

import pytest

from moldau.config import broker_config
from moldau.config.connections_per_ip import connections_per_ip
from moldau.errors import ConfigError
from moldau.net.limits import ListenerLimits, limits_of


def test_addresses_of_both_kinds_and_localhost_have_limits() -> None:
    assert connections_per_ip("10.0.0.1:5, ::2:6,[0:0::3]:7,localhost:8") == {
        "10.0.0.1": 5, "::2": 6, "::3": 7, "127.0.0.1": 8, "::1": 8,
    }  # fmt: skip
    assert connections_per_ip("") == {}


@pytest.mark.parametrize("text", ["10.0.0.1", "10.0.0.1:many", ":5", "10.0.0.1:-1", "broker.example:5", "1.2.3:4"])
def test_anything_else_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^max.connections.per.ip.overrides "):
        broker_config({"max.connections.per.ip.overrides": text})


def test_a_listener_has_limits_of_its_own() -> None:
    config, warnings = broker_config(
        {
            "listeners": "PLAINTEXT://:9092,OUTSIDE://:9093",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:PLAINTEXT",
            "listener.name.outside.max.connections": "5",
            "listener.name.outside.max.connection.creation.rate": "6",
            "max.connections": "7",
            "max.connection.creation.rate": "8",
        }
    )
    limits = limits_of(config, 100)
    assert not warnings
    assert limits.of_listeners == {"OUTSIDE": ListenerLimits(5, 6)}
    assert (limits.max_connections, limits.connection_rate, limits.room) == (7, 8, 100)
    assert limits.protected_listener == "PLAINTEXT"
    with pytest.raises(ConfigError, match=r"max\.connections"):
        broker_config({"listener.name.plaintext.max.connections": "-1"})
