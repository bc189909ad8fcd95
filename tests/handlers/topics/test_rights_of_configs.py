"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs for clients that may not do everything."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.cluster.cluster import Cluster
from moldau.cluster.controlling.controller import NewTopic
from moldau.errors import ErrorCode
from moldau.handlers.repetitions import NAMED_MAX
from moldau.handlers.rights import RIGHTS
from moldau.protocol.apis import ALTER_CONFIGS, DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS, Api
from moldau.protocol.messages import alter_configs
from moldau.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.requests.access import (
    ALTER_CLUSTER_CONFIGS,
    ALTER_GROUP_CONFIGS,
    ALTER_TOPIC_CONFIGS,
    CLUSTER_NAME,
    DESCRIBE_CLUSTER_CONFIGS,
    DESCRIBE_GROUP_CONFIGS,
    DESCRIBE_TOPIC_CONFIGS,
)
from tests.cluster.opening import open_cluster
from tests.handlers.asking import Asker
from tests.requests.calling import Denying

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP, UNKNOWN_KIND = 2, 4, 8, 16, 32, 3
NO_TOPIC, NO_GROUP, NO_CLUSTER = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
)
WRONG = ErrorCode.INVALID_REQUEST
LOGGER_NAME = "moldau.tests.rights"
SETTINGS = {
    TOPIC: ("retention.ms", "9"),
    BROKER: ("log.cleaner.threads", "3"),
    LOGGER: (LOGGER_NAME, "DEBUG"),
    CLIENT_METRICS: ("interval.ms", "9"),
    GROUP: ("consumer.session.timeout.ms", "50000"),
    UNKNOWN_KIND: ("x", "1"),
}
RESOURCES = [
    (TOPIC, "b"), (TOPIC, "gone"), (TOPIC, "a"), (GROUP, "h"), (GROUP, "g"), (BROKER, "1"), (BROKER, ""),
    (LOGGER, "1"), (CLIENT_METRICS, "m"), (UNKNOWN_KIND, "x"),
]  # fmt: skip
Scenario = Callable[[Cluster, Asker], Awaitable[Any]]


@pytest.fixture(autouse=True)
def logger() -> Iterator[logging.Logger]:
    """The logger whose level the requests would change."""
    found = logging.getLogger(LOGGER_NAME)
    yield found
    found.setLevel(logging.NOTSET)


def play(folder: Path, scenario: Scenario) -> Any:
    async def whole() -> Any:
        cluster = await open_cluster(folder)
        await cluster.topics.create([NewTopic("a"), NewTopic("b")])
        try:
            return await scenario(cluster, Asker(cluster))
        finally:
            await cluster.close()

    return asyncio.run(whole())


def description(*resources: tuple[int, str]) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=kind, resource_name=name) for kind, name in resources]
    )


def alteration(api: Api, *resources: tuple[int, str]) -> Any:
    if api is ALTER_CONFIGS:
        return alter_configs.AlterConfigsRequest(
            resources=[
                alter_configs.AlterConfigsResource(
                    resource_type=kind,
                    resource_name=name,
                    configs=[alter_configs.AlterableConfig(name=SETTINGS[kind][0], value=SETTINGS[kind][1])],
                )
                for kind, name in resources
            ]
        )
    return IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[AlterableConfig(name=SETTINGS[kind][0], value=SETTINGS[kind][1])],
            )
            for kind, name in resources
        ]
    )


def outcomes(results: Any) -> dict[tuple[int, str], int]:
    return {(one.resource_type, one.resource_name): one.error_code for one in results}


@pytest.mark.parametrize("version", [DESCRIBE_CONFIGS.low, 3, DESCRIBE_CONFIGS.high])
def test_settings_that_may_not_be_described_come_last_whether_their_topic_exists_or_not(
    tmp_path: Path, version: int
) -> None:
    client = Denying(
        *((DESCRIBE_TOPIC_CONFIGS, name) for name in ("b", "gone")),
        (DESCRIBE_GROUP_CONFIGS, "h"),
        (DESCRIBE_CLUSTER_CONFIGS, CLUSTER_NAME),
    )

    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        return await asker.ask(DESCRIBE_CONFIGS, version, description(*RESOURCES), authorizer=client)

    results = play(tmp_path, scenario).results
    assert list(outcomes(results).items()) == [
        ((TOPIC, "a"), 0), ((GROUP, "g"), 0), ((UNKNOWN_KIND, "x"), WRONG),
        ((TOPIC, "b"), NO_TOPIC), ((TOPIC, "gone"), NO_TOPIC), ((GROUP, "h"), NO_GROUP),
        ((BROKER, "1"), NO_CLUSTER), ((BROKER, ""), NO_CLUSTER), ((LOGGER, "1"), NO_CLUSTER),
        ((CLIENT_METRICS, "m"), NO_CLUSTER),
    ]  # fmt: skip
    for one in results[3:]:
        assert (one.error_message, one.configs) == (ErrorCode(one.error_code).sentence, [])
    assert client.logged == [
        *((DESCRIBE_TOPIC_CONFIGS, name) for name in ("b", "gone")), (DESCRIBE_GROUP_CONFIGS, "h"),
        *[(DESCRIBE_CLUSTER_CONFIGS, CLUSTER_NAME)] * 4,
    ]  # fmt: skip
    assert {right for right, _ in client.asked} == {*RIGHTS[DESCRIBE_CONFIGS].parts}
    assert len(client.asked) == len(RESOURCES) - 1, "each once, and not for the unknown type"


def test_a_resource_that_is_named_too_often_is_not_asked_for_again(tmp_path: Path) -> None:
    client = Denying((DESCRIBE_TOPIC_CONFIGS, "*"))

    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        request = description(*[(TOPIC, "a")] * (NAMED_MAX + 2))
        return await asker.ask(DESCRIBE_CONFIGS, 4, request, authorizer=client)

    results = play(tmp_path, scenario).results
    assert [one.error_code for one in results] == [WRONG] * 2 + [NO_TOPIC] * NAMED_MAX
    assert len(client.asked) == NAMED_MAX


ALTERATIONS = [
    (api, version)
    for api, versions in ((ALTER_CONFIGS, (0, 1, 2)), (INCREMENTAL_ALTER_CONFIGS, (0, 1)))
    for version in versions
]


@pytest.mark.parametrize(("api", "version"), ALTERATIONS, ids=str)
def test_what_may_not_be_altered_stays_and_the_rest_is_altered(
    tmp_path: Path, api: Api, version: int, logger: logging.Logger
) -> None:
    client = Denying(
        *((ALTER_TOPIC_CONFIGS, name) for name in ("b", "gone")),
        (ALTER_GROUP_CONFIGS, "h"),
        (ALTER_CLUSTER_CONFIGS, CLUSTER_NAME),
    )

    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        response = await asker.ask(api, version, alteration(api, *RESOURCES), authorizer=client)
        image = cluster.image
        assert {name: topic.overrides for name, topic in image.topics.items()} == {"a": {"retention.ms": "9"}, "b": {}}
        assert (list(image.group_overrides), dict(image.broker_overrides)) == (["g"], {})
        return response.responses

    results = play(tmp_path, scenario)
    of_logger = NO_CLUSTER if api is INCREMENTAL_ALTER_CONFIGS else WRONG  # AlterConfigs has no loggers
    assert list(outcomes(results).items()) == [
        ((TOPIC, "b"), NO_TOPIC), ((TOPIC, "gone"), NO_TOPIC), ((TOPIC, "a"), 0), ((GROUP, "h"), NO_GROUP),
        ((GROUP, "g"), 0), ((BROKER, "1"), NO_CLUSTER), ((BROKER, ""), NO_CLUSTER), ((LOGGER, "1"), of_logger),
        ((CLIENT_METRICS, "m"), NO_CLUSTER), ((UNKNOWN_KIND, "x"), WRONG),
    ]  # fmt: skip
    for one in results:
        if one.error_code in (NO_TOPIC, NO_GROUP, NO_CLUSTER):
            text = None if one.resource_type == LOGGER else ErrorCode(one.error_code).sentence
            assert one.error_message == text
    assert logger.level == logging.NOTSET
    assert {right for right, _ in client.asked} == {*RIGHTS[api].parts}
    unasked = 1 if api is INCREMENTAL_ALTER_CONFIGS else 2
    assert len(client.asked) == len(RESOURCES) - unasked, "each once, and not for the unknown type"
    assert len(client.logged) == 8 - unasked


@pytest.mark.parametrize(("api", "version"), ALTERATIONS, ids=str)
def test_a_resource_that_is_named_twice_is_refused_before_rights(tmp_path: Path, api: Api, version: int) -> None:
    client = Denying((ALTER_TOPIC_CONFIGS, "*"))

    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        return await asker.ask(api, version, alteration(api, (TOPIC, "a"), (TOPIC, "a")), authorizer=client)

    assert [one.error_code for one in play(tmp_path, scenario).responses] == [WRONG, WRONG]
    assert client.asked == []
