"""How a broker connects to another one, by what that one's listener for brokers has."""

import asyncio
import ssl

import pytest

from moldau.cluster.dialling import dialled
from moldau.cluster.state.image import BrokerImage, Endpoint
from moldau.errors import KafkaError
from moldau.peers.introduction import Identity


def broker(protocol: str) -> BrokerImage:
    return BrokerImage(7, (Endpoint("BROKERS", protocol, "127.0.0.1", 1),), None, (), 1)


def why(protocol: str, tls: ssl.SSLContext | None, expects_tls: bool = False) -> str:
    identity = Identity("c", 1, lambda: 1, lambda: b"", lambda: tls, expects_tls=expects_tls)
    with pytest.raises(KafkaError) as refused:
        asyncio.run(dialled(broker(protocol), identity, 5000))
    return str(refused.value)


def test_a_broker_without_tls_says_why_it_cannot_connect_to_one_with() -> None:
    sentence = why("SSL", None)
    assert "broker 7 answers brokers with SSL, and no listener here has TLS" in sentence


def test_a_broker_that_is_reached_without_tls_is_named(caplog: pytest.LogCaptureFixture) -> None:
    assert "cannot connect to 127.0.0.1:1" in why("PLAINTEXT", ssl.create_default_context(), True)
    assert (
        "broker 7 is reached without TLS: its listener for brokers, BROKERS, has the protocol PLAINTEXT" in caplog.text
    )
    caplog.clear()
    why("PLAINTEXT", ssl.create_default_context())
    assert caplog.text == ""


def test_a_broker_without_a_login_says_why_it_cannot_connect_to_one_that_wants_one() -> None:
    sentence = why("SASL_PLAINTEXT", None)
    assert "broker 7 answers brokers with SASL_PLAINTEXT, and the listener for brokers here has no SASL" in sentence
