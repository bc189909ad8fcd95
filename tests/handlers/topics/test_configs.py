"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs over the wire, in every version."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from moldau.cluster.cluster import Cluster
from moldau.cluster.controlling.alterations import Replacement
from moldau.cluster.controlling.controller import NewTopic
from moldau.config import CLIENT_METRICS_SETTINGS, GROUP_SETTINGS, OURS, SETTINGS, TOPIC_SETTINGS
from moldau.errors import ErrorCode
from moldau.handlers.repetitions import NAMED_MAX
from moldau.protocol.apis import ALTER_CONFIGS, DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS, LIST_CONFIG_RESOURCES
from moldau.protocol.messages import alter_configs
from moldau.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.messages.list_config_resources import ListConfigResourcesRequest
from tests.cluster.opening import open_cluster
from tests.handlers.asking import Asker

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET = 0
KAFKAS = {name: setting for name, setting in TOPIC_SETTINGS.items() if name not in OURS}
SOURCE = "gZW1xyrxToKXBiAjZfFIVg/AAAAAAAAAAAAAAAAAAAAAQ"
Scenario = Callable[[Cluster, Asker], Awaitable[Any]]


def play(folder: Path, scenario: Scenario) -> Any:
    async def whole() -> Any:
        cluster = await open_cluster(folder)
        await cluster.topics.create([NewTopic("a"), NewTopic("b")])
        try:
            return await scenario(cluster, Asker(cluster))
        finally:
            await cluster.close()

    return asyncio.run(whole())


def description(kind: int, name: str, keys: list[str] | None = None, **more: Any) -> DescribeConfigsRequest:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    return DescribeConfigsRequest(resources=[resource], **more)


def alteration(*resources: tuple[int, str, list[tuple[str, int, str | None]]], check: bool = False) -> Any:
    asked = [
        AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[AlterableConfig(name=key, config_operation=what, value=value) for key, what, value in configs],
        )
        for kind, name, configs in resources
    ]
    return IncrementalAlterConfigsRequest(resources=asked, validate_only=check)


@pytest.mark.parametrize("version", range(DESCRIBE_CONFIGS.low, DESCRIBE_CONFIGS.high + 1))
@pytest.mark.parametrize(
    ("kind", "name", "names"),
    [
        (TOPIC, "a", KAFKAS),
        (BROKER, "1", SETTINGS),
        (GROUP, "g", GROUP_SETTINGS),
        (CLIENT_METRICS, "m", CLIENT_METRICS_SETTINGS),
    ],
)
def test_every_setting_is_described_in_every_version(
    tmp_path: Path, version: int, kind: int, name: str, names: dict[str, Any]
) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        request = description(kind, name, include_synonyms=True, include_documentation=True)
        return await asker.ask(DESCRIBE_CONFIGS, version, request)

    (result,) = play(tmp_path, scenario).results
    assert (result.error_code, result.resource_type, result.resource_name) == (0, kind, name)
    assert [one.name for one in result.configs] == sorted(names)
    for one in result.configs:
        setting = names[one.name]
        assert (one.read_only, one.is_sensitive) == (setting.read_only, setting.sensitive)
        if version >= 3:
            assert (one.config_type, one.documentation) == (setting.kind, setting.sentence)
        if one.synonyms:
            assert one.config_source == one.synonyms[0].source


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        (None, len(KAFKAS)),
        ([], len(KAFKAS)),
        (["retention.ms", "nothing.known"], 1),
        (["retention.ms", "retention.ms"], 1),
    ],
)
def test_only_the_keys_that_are_asked_for_are_described(tmp_path: Path, keys: list[str] | None, told: int) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        return await asker.ask(DESCRIBE_CONFIGS, 4, description(TOPIC, "a", keys))

    (result,) = play(tmp_path, scenario).results
    assert len(result.configs) == told
    assert all(one.synonyms == [] and one.documentation is None for one in result.configs)


def test_a_resource_is_described_as_often_as_kafka_does_it_up_to_a_bound(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        names = [(TOPIC, "a"), (BROKER, "1"), (LOGGER, "1"), (GROUP, "g")]
        resources = [DescribeConfigsResource(resource_type=kind, resource_name=name) for kind, name in names]
        request = DescribeConfigsRequest(resources=resources * (NAMED_MAX + 1))
        return names, await asker.ask(DESCRIBE_CONFIGS, 4, request)

    names, response = play(tmp_path, scenario)
    answered, refused = response.results[: -len(names)], response.results[-len(names) :]
    assert all(one.configs and one.error_code == ErrorCode.NONE for one in answered)
    assert [(one.resource_type, one.resource_name) for one in refused] == names
    assert all(not one.configs and one.error_code == ErrorCode.INVALID_REQUEST for one in refused)


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "c", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "9", ErrorCode.INVALID_REQUEST),
        (BROKER, "x", ErrorCode.INVALID_REQUEST),
        (LOGGER, "9", ErrorCode.INVALID_REQUEST),
        (LOGGER, "", ErrorCode.INVALID_REQUEST),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
        (CLIENT_METRICS, "", ErrorCode.INVALID_REQUEST),
        (0, "a", ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_is_not_there_is_not_described(tmp_path: Path, kind: int, name: str, code: ErrorCode) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        return await asker.ask(DESCRIBE_CONFIGS, 4, description(kind, name))

    (result,) = play(tmp_path, scenario).results
    assert (result.error_code, result.configs) == (code, [])
    assert result.error_message


@pytest.mark.parametrize("version", range(INCREMENTAL_ALTER_CONFIGS.low, INCREMENTAL_ALTER_CONFIGS.high + 1))
def test_each_resource_is_altered_or_refused_by_itself(tmp_path: Path, version: int) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        request = alteration(
            (TOPIC, "a", [("retention.ms", 0, "5"), ("cleanup.policy", 2, "compact")]),
            (TOPIC, "b", [("retention.ms", 0, "5"), ("segment.bytes", 0, "1")]),
            (TOPIC, "c", [("retention.ms", 0, "5")]),
            (TOPIC, "", [("retention.ms", 0, "5")]),
            (TOPIC, "a b", [("retention.ms", 0, "5")]),
            (BROKER, "1", [("log.segment.bytes", 0, "2000000")]),
            (BROKER, "", [("log.segment.bytes", 0, "3000000")]),
            (BROKER, "9", []),
            (LOGGER, "9", []),
            (CLIENT_METRICS, "m", [("interval.ms", 0, "5000"), ("metrics", 0, "org.")]),
            (CLIENT_METRICS, "n", [("interval.ms", 0, "5")]),
            (CLIENT_METRICS, "o", [("match", 0, "client_id=[")]),
            (CLIENT_METRICS, "p", [("metrics", 2, "org.")]),
            (CLIENT_METRICS, "", []),
            (GROUP, "g", [("consumer.session.timeout.ms", 0, "50000")]),
            (GROUP, "h", [("consumer.session.timeout.ms", 0, "5")]),
            (GROUP, "", []),
        )
        return cluster, await asker.ask(INCREMENTAL_ALTER_CONFIGS, version, request)

    cluster, response = play(tmp_path, scenario)
    assert [ErrorCode(one.error_code) for one in response.responses] == [
        ErrorCode.NONE,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NONE,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NONE,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.INVALID_REQUEST,
    ]
    assert cluster.image.group_overrides == {"g": {"consumer.session.timeout.ms": "50000"}}
    assert cluster.image.client_metrics == {"m": {"interval.ms": "5000", "metrics": "org."}}
    assert all((one.error_message is None) == (one.error_code == 0) for one in response.responses)
    assert cluster.image.topics["a"].overrides == {"retention.ms": "5", "cleanup.policy": "delete,compact"}
    assert cluster.image.topics["b"].overrides == {}
    assert cluster.metadata.config.log_segment_bytes == 2_000_000


def replacement(*resources: tuple[int, str, dict[str, str | None]], check: bool = False) -> Any:
    asked = [
        alter_configs.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[alter_configs.AlterableConfig(name=key, value=value) for key, value in settings.items()],
        )
        for kind, name, settings in resources
    ]
    return alter_configs.AlterConfigsRequest(resources=asked, validate_only=check)


@pytest.mark.parametrize("version", range(ALTER_CONFIGS.low, ALTER_CONFIGS.high + 1))
def test_each_resource_is_replaced_or_refused_by_itself(tmp_path: Path, version: int) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        await cluster.configs.alter_topics([("a", Replacement([("segment.ms", "5"), ("retention.ms", "6")]))])
        request = replacement(
            (TOPIC, "a", {"retention.ms": "7"}),
            (TOPIC, "b", {"retention.ms": "7", "segment.bytes": "1"}),
            (TOPIC, "c", {}),
            (BROKER, "1", {"log.segment.bytes": "2000000"}),
            (BROKER, "9", {}),
            (LOGGER, "1", {}),
        )
        return cluster, await asker.ask(ALTER_CONFIGS, version, request)

    cluster, response = play(tmp_path, scenario)
    assert [(one.resource_name, ErrorCode(one.error_code)) for one in response.responses] == [
        ("a", ErrorCode.NONE),
        ("b", ErrorCode.INVALID_CONFIG),
        ("c", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("1", ErrorCode.NONE),
        ("9", ErrorCode.INVALID_REQUEST),
        ("1", ErrorCode.INVALID_REQUEST),
    ]
    assert cluster.image.topics["a"].overrides == {"retention.ms": "7"}
    assert cluster.image.topics["b"].overrides == {}
    assert cluster.metadata.config.log_segment_bytes == 2_000_000


def test_a_replacement_that_is_only_validated_does_not_change(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        before = cluster.image
        response = await asker.ask(ALTER_CONFIGS, 2, replacement((TOPIC, "a", {"retention.ms": "5"}), check=True))
        assert cluster.image is before
        return response

    assert [one.error_code for one in play(tmp_path, scenario).responses] == [0]


def test_what_is_only_validated_does_not_change(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        before = cluster.image
        request = alteration(
            (TOPIC, "a", [("retention.ms", 0, "5")]), (BROKER, "1", [("message.max.bytes", 0, "5")]), check=True
        )
        response = await asker.ask(INCREMENTAL_ALTER_CONFIGS, 1, request)
        assert cluster.image is before
        return response

    assert [one.error_code for one in play(tmp_path, scenario).responses] == [0, 0]


def test_a_resource_that_is_named_twice_is_refused_each_time(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        twice = alteration((TOPIC, "a", [("retention.ms", 0, "5")]), (TOPIC, "a", [("segment.ms", 0, "5")]))
        return cluster, await asker.ask(INCREMENTAL_ALTER_CONFIGS, 1, twice)

    cluster, response = play(tmp_path, scenario)
    assert [ErrorCode(one.error_code) for one in response.responses] == [ErrorCode.INVALID_REQUEST] * 2
    assert cluster.image.topics["a"].overrides == {}


def test_an_alteration_is_described_at_once_with_its_source(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        await asker.ask(
            INCREMENTAL_ALTER_CONFIGS,
            1,
            alteration(
                (TOPIC, "a", [("segment.bytes", 0, "1500000")]), (BROKER, "", [("log.segment.bytes", 0, "3000000")])
            ),
        )
        request = description(TOPIC, "a", ["segment.bytes"], include_synonyms=True)
        everyone = await asker.ask(DESCRIBE_CONFIGS, 4, description(BROKER, ""))
        return everyone, await asker.ask(DESCRIBE_CONFIGS, 4, request)

    everyone, described = play(tmp_path, scenario)
    (one,) = described.results[0].configs
    assert (one.value, one.config_source) == ("1500000", 1)
    assert [(each.name, each.value, each.source) for each in one.synonyms] == [
        ("segment.bytes", "1500000", 1),
        ("log.segment.bytes", "3000000", 3),
        ("log.segment.bytes", "1073741824", 5),
    ]
    assert [(each.name, each.value) for each in everyone.results[0].configs] == [
        ("log.segment.bytes", "3000000"),
        ("min.insync.replicas", "1"),
    ]


def test_loggers_are_described_with_their_levels(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        return await asker.ask(DESCRIBE_CONFIGS, 3, description(LOGGER, "1", ["root", "moldau", "no.such"]))

    (result,) = play(tmp_path, scenario).results
    assert [(one.name, one.config_source, one.read_only) for one in result.configs] == [
        ("root", 6, False),
        ("moldau", 6, False),
    ]


@pytest.mark.parametrize(
    ("version", "kinds", "told"),
    [
        (0, [], [("m", 16)]),
        (1, [], [("a", 2), ("b", 2), ("1", 4), ("1", 8), ("m", 16), ("g", 32)]),
        (1, [GROUP, TOPIC, GROUP], [("g", 32), ("a", 2), ("b", 2)]),
        (1, [CLIENT_METRICS], [("m", 16)]),
    ],
)
def test_what_has_settings_is_listed(
    tmp_path: Path, version: int, kinds: list[int], told: list[tuple[str, int]]
) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        await cluster.configs.alter_groups([("g", Replacement([("consumer.session.timeout.ms", "50000")]))])
        await cluster.configs.alter_client_metrics([("m", Replacement([("metrics", "*")]))])
        return await asker.ask(LIST_CONFIG_RESOURCES, version, ListConfigResourcesRequest(resource_types=kinds))

    response = play(tmp_path, scenario)
    assert response.error_code == 0
    assert [(one.resource_name, one.resource_type) for one in response.config_resources] == told


@pytest.mark.parametrize("kinds", [[0], [GROUP, 99], [-1]])
def test_types_that_nobody_knows_are_not_listed(tmp_path: Path, kinds: list[int]) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        return await asker.ask(LIST_CONFIG_RESOURCES, 1, ListConfigResourcesRequest(resource_types=kinds))

    response = play(tmp_path, scenario)
    assert (response.error_code, response.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])


def test_a_setting_of_ours_is_described_where_it_is_set_and_stays_when_all_others_are_reset(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster, asker: Asker) -> Any:
        change = alteration((TOPIC, "a", [("mirror.source", SET, SOURCE), ("retention.ms", SET, "5")]))
        altered = await asker.ask(INCREMENTAL_ALTER_CONFIGS, 1, change)
        assert [one.error_code for one in altered.responses] == [0]
        replaced = alter_configs.AlterConfigsResource(resource_type=TOPIC, resource_name="a", configs=[])
        await asker.ask(ALTER_CONFIGS, 2, alter_configs.AlterConfigsRequest(resources=[replaced]))
        return await asker.ask(DESCRIBE_CONFIGS, 4, description(TOPIC, "a"))

    (result,) = play(tmp_path, scenario).results
    told = {one.name: one.value for one in result.configs}
    assert told["mirror.source"] == SOURCE
    assert told["retention.ms"] == "604800000"
    assert told.keys() == KAFKAS.keys() | {"mirror.source"}
