"""A broker process with a TLS listener beside a plain one."""

import ssl
from pathlib import Path

import pytest

from harness.brokers import Broker, NotReady
from harness.certificates import PASSWORD, Authority
from moldau.protocol.apis import METADATA
from moldau.protocol.messages.metadata import MetadataRequest
from tests.end_to_end.raw import Raw
from tests.handlers.living import batch

SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SECURE://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURE:SSL",
}


def test_what_is_produced_over_tls_is_fetched_over_both_listeners(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    own = {
        "listener.name.secure.ssl.keystore.location": str(authority.signed("broker", "127.0.0.1")),
        "listener.name.secure.ssl.key.password": PASSWORD,
    }
    broker = Broker(tmp_path, SETTINGS | own)
    broker.start()
    try:
        plain, secure = broker.addresses
        records = batch(bytes(range(256)) * 4000)
        trusting = ssl.create_default_context(cafile=str(authority.trusted))
        with Raw(secure, context=trusting) as raw:
            assert [node.port for node in raw.ask(METADATA, 5, MetadataRequest(topics=[])).brokers] == [
                int(secure.rpartition(":")[2])
            ]
            raw.create_topic("both")
            assert raw.produce("both", bytes(records)) == (0, 0)
            over_tls = raw.fetch("both", 0)
        with Raw(plain) as raw:
            assert raw.fetch("both", 0) == over_tls
    finally:
        broker.stop()
    assert PASSWORD not in broker.log()
    assert "Traceback" not in broker.log()


def test_a_broker_that_cannot_use_its_certificate_does_not_start(tmp_path: Path) -> None:
    broker = Broker(tmp_path, SETTINGS)
    with pytest.raises(NotReady, match="the listener SECURE cannot use TLS: it has no certificate") as refused:
        broker.start()
    assert refused.value.code
    assert "Traceback" not in broker.log()
