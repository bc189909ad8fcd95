"""ApiVersions and InitProducerId: what a client asks first."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from moldau.cluster.state.image import Image
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.config.broker import broker_config
from moldau.errors import ErrorCode, StorageError
from moldau.handlers.cluster.api_versions import ApiVersions
from moldau.handlers.table import TABLE
from moldau.metadata_store.embedded import EmbeddedStore
from moldau.protocol.apis import (
    API_VERSIONS,
    APIS,
    GET_TELEMETRY_SUBSCRIPTIONS,
    INIT_PRODUCER_ID,
    PUSH_TELEMETRY,
    SERVED,
)
from moldau.protocol.messages.api_versions import ApiVersionsRequest
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.cluster.opening import open_cluster
from tests.handlers.asking import Asker
from tests.requests.calling import call


def ask(folder: Path, version: int, *requests: InitProducerIdRequest) -> list[Any]:
    async def scenario() -> list[Any]:
        cluster = await open_cluster(folder)
        asker = Asker(cluster)
        replies = [await asker.ask(INIT_PRODUCER_ID, version, request) for request in requests]
        await cluster.close()
        return replies

    return asyncio.run(scenario())


OF_PUSHING = {GET_TELEMETRY_SUBSCRIPTIONS.key, PUSH_TELEMETRY.key}
"""Told only while there is a topic for what clients push."""
CLUSTER, NODE = "gZW1xyrxToKXBiAjZfFIVg", 1


def versions(version: int, name: str = "some-client", software: str = "1.2.3", topic: str = "", **meant: Any) -> Any:
    """The answer of broker 1 of the cluster. `topic`: for metrics that clients push."""
    config = broker_config({"node.id": str(NODE), "client.metrics.topic": topic})[0]
    handler = ApiVersions(MetadataCache(config, Image(CLUSTER)))
    request = ApiVersionsRequest(client_software_name=name, client_software_version=software, **meant)
    return handler(request, call(API_VERSIONS, version))


def test_every_api_that_is_advertised_has_a_handler() -> None:
    assert TABLE.keys() == set(SERVED.values())


def test_only_our_own_programs_are_told_of_apis_that_kafka_does_not_have() -> None:
    for version, name, are_told in ((3, "moldau", True), (5, "moldau", True), (2, "moldau", False), (5, "x", False)):
        keys = {one.api_key for one in versions(version, name).api_keys}
        assert keys == set(SERVED if are_told else APIS) - OF_PUSHING


@pytest.mark.parametrize("topic", ["", "metrics"])
@pytest.mark.parametrize("version", range(API_VERSIONS.low, API_VERSIONS.high + 1))
def test_every_api_is_told_with_the_range_it_is_served_in(version: int, topic: str) -> None:
    response = versions(version, topic=topic)
    assert response.error_code == 0
    assert [(one.api_key, one.min_version, one.max_version) for one in response.api_keys] == [
        (key, APIS[key].low, APIS[key].high) for key in sorted(APIS) if topic or key not in OF_PUSHING
    ]
    features = {one.name: one.max_version_level for one in response.finalized_features}
    assert features == {"group.version": 1, "transaction.version": 2}
    assert {one.name for one in response.supported_features} == (set(features) if version >= 4 else set())
    assert not response.zk_migration_ready


@pytest.mark.parametrize("version", [-1, 6, 99])
def test_an_unknown_version_is_told_the_range_of_this_api_alone(version: int) -> None:
    response = versions(version)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(one.api_key, one.min_version, one.max_version) for one in response.api_keys] == [(18, 0, 5)]


@pytest.mark.parametrize(
    "said", ["", "a b", "-a", "a-", ".a", "a_b", "ä", "a\n", pytest.param("a" * 0x8000, id="long")]
)
def test_a_client_must_say_plainly_what_it_is_from_version_3(said: str) -> None:
    assert versions(3, name=said).error_code == ErrorCode.INVALID_REQUEST
    assert versions(4, software=said).error_code == ErrorCode.INVALID_REQUEST
    assert versions(2, name=said).error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "code"),
    [
        (None, -1, ErrorCode.NONE),
        (CLUSTER, NODE, ErrorCode.NONE),
        (CLUSTER, 2, ErrorCode.REBOOTSTRAP_REQUIRED),
        (CLUSTER, 0, ErrorCode.REBOOTSTRAP_REQUIRED),
        (CLUSTER, -2, ErrorCode.REBOOTSTRAP_REQUIRED),
        (CLUSTER, 0x7FFFFFFF - NODE, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("another", NODE, ErrorCode.REBOOTSTRAP_REQUIRED),
        (CLUSTER.lower(), NODE, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("", NODE, ErrorCode.REBOOTSTRAP_REQUIRED),
        (CLUSTER, -1, ErrorCode.INVALID_REQUEST),
        ("another", -1, ErrorCode.INVALID_REQUEST),
        ("", -1, ErrorCode.INVALID_REQUEST),
        (None, NODE, ErrorCode.INVALID_REQUEST),
        (None, 2, ErrorCode.INVALID_REQUEST),
        (None, -2, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_client_that_means_another_broker_is_sent_back_to_its_bootstrap_servers(
    cluster_id: str | None, node_id: int, code: ErrorCode
) -> None:
    """KIP-1242, as Apache Kafka 4.4.0 answered each of these."""
    response = versions(5, cluster_id=cluster_id, node_id=node_id)
    assert response.error_code == code
    assert bool(response.api_keys) is (code is ErrorCode.NONE)
    assert response.finalized_features_epoch == (0 if code is ErrorCode.NONE else -1)


def test_a_client_without_a_plain_name_is_told_that_first() -> None:
    assert versions(5, name="a b", cluster_id="another", node_id=NODE).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("said", ["a", "a.b-c", "1", "x" * 1000])
def test_letters_digits_dots_and_dashes_are_plain(said: str) -> None:
    assert versions(3, said, said).error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", range(INIT_PRODUCER_ID.low, INIT_PRODUCER_ID.high + 1))
def test_every_idempotent_producer_gets_a_number_of_its_own(tmp_path: Path, version: int) -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    replies = ask(tmp_path, version, request, request)
    assert [(r.error_code, r.producer_id, r.producer_epoch) for r in replies] == [(0, 0, 0), (0, 1, 0)]


@pytest.mark.parametrize(
    ("producer_id", "epoch", "code"),
    [(5, 3, ErrorCode.NONE), (5, -1, ErrorCode.INVALID_REQUEST), (-1, 3, ErrorCode.INVALID_REQUEST)],
)
def test_a_producer_that_has_a_number_gets_another(
    tmp_path: Path, producer_id: int, epoch: int, code: ErrorCode
) -> None:
    request = InitProducerIdRequest(transactional_id=None, producer_id=producer_id, producer_epoch=epoch)
    (reply,) = ask(tmp_path, 5, request)
    assert reply.error_code == code
    assert (reply.producer_id, reply.producer_epoch) == ((-1, -1) if code else (0, 0))


def test_an_empty_transactional_id_is_finally_refused(tmp_path: Path) -> None:
    (reply,) = ask(tmp_path, 5, InitProducerIdRequest(transactional_id="", transaction_timeout_ms=60_000))
    assert (reply.error_code, reply.producer_id, reply.producer_epoch) == (ErrorCode.INVALID_REQUEST, -1, -1)


def test_a_store_that_cannot_write_is_no_coordinator_for_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> Any:
        cluster = await open_cluster(tmp_path)

        def full(*_: object) -> None:
            raise StorageError("the disk is full")

        monkeypatch.setattr(EmbeddedStore, "multi", full)
        reply = await Asker(cluster).ask(INIT_PRODUCER_ID, 5, InitProducerIdRequest(transactional_id=None))
        await cluster.close()
        return reply

    assert asyncio.run(scenario()).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
