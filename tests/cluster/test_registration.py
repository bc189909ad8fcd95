"""A broker's registration: what is in `/brokers/ids/N`, and what is read from there."""

import json
from collections.abc import Mapping
from contextlib import closing

import pytest

from moldau.cluster.state import layout
from moldau.cluster.state.documents import MalformedMetadata
from moldau.cluster.state.image import BrokerImage, Endpoint
from moldau.cluster.state.reading import read_image
from moldau.metadata_store.embedded import EmbeddedStore
from moldau.metadata_store.store import Create

INSIDE = Endpoint("INSIDE", "SASL_SSL", "10.0.0.1", 9093)
OUTSIDE = Endpoint("OUTSIDE", "PLAINTEXT", "::1", 9092)


def registered(document: Mapping[str, object]) -> BrokerImage:
    """The broker of an image where this is the registration of broker 7."""
    with closing(EmbeddedStore.in_memory()) as store:
        store.multi([*layout.new_cluster("c"), Create(f"{layout.BROKERS}/7", json.dumps(document).encode())])
        image = store.read(read_image())
    assert image is not None
    return image.brokers[7]


def test_every_listener_is_registered_in_kafkas_document() -> None:
    broker = BrokerImage(7, (INSIDE, OUTSIDE), "r1", ("d1", "d2"))
    operation = layout.broker(broker, 5)
    assert isinstance(operation, Create)
    assert operation.path == "/brokers/ids/7"
    assert operation.ephemeral
    document = json.loads(operation.data)
    assert document["endpoints"] == ["INSIDE://10.0.0.1:9093", "OUTSIDE://[::1]:9092"]
    assert document["listener_security_protocol_map"] == {"INSIDE": "SASL_SSL", "OUTSIDE": "PLAINTEXT"}
    assert (document["version"], document["host"], document["port"]) == (5, "::1", 9092)
    assert registered(document) == broker._replace(epoch=1)


def test_a_broker_without_a_plaintext_listener_has_no_host_for_old_clients() -> None:
    operation = layout.broker(BrokerImage(7, (INSIDE,)), 5)
    assert isinstance(operation, Create)
    document = json.loads(operation.data)
    assert (document["host"], document["port"]) == (None, -1)
    assert registered(document).endpoints == (INSIDE,)


def test_a_listener_is_found_by_its_name() -> None:
    broker = BrokerImage(7, (INSIDE, OUTSIDE))
    assert broker.endpoint("OUTSIDE") == OUTSIDE
    assert broker.endpoint("ELSEWHERE") is None


@pytest.mark.parametrize(
    "document",
    [
        {"version": 1, "host": "old", "port": 9092, "jmx_port": -1},
        {"version": 3, "host": "old", "port": 9092, "endpoints": ["PLAINTEXT://old:9092"]},
    ],
)
def test_older_registrations_are_read(document: Mapping[str, object]) -> None:
    assert registered(document).endpoints == (Endpoint("PLAINTEXT", "PLAINTEXT", "old", 9092),)


@pytest.mark.parametrize("wrong", [{"endpoints": ["PLAINTEXT"]}, {"endpoints": [7]}, {"host": "old"}])
def test_a_registration_that_is_none_is_refused_by_path(wrong: Mapping[str, object]) -> None:
    with pytest.raises(MalformedMetadata, match="/brokers/ids/7"):
        registered({"version": 5, **wrong})
