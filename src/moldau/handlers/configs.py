"""DescribeConfigs (key 32, versions 1 to 4), AlterConfigs (33, 0 to 2) and IncrementalAlterConfigs (44, 0 to 1): of
topics and of this broker.

A broker is named by its number, and all of them by the empty name. No keys, null or empty, means all of them. Each
resource of an alteration stands alone: one that is refused does not hold up the others. AlterConfigs sets what it
names and takes everything else back to its default; older clients have nothing else. Other kinds of resources
(loggers, client metrics, groups) are not there, and refused as INVALID_REQUEST.
"""

import enum
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from moldau.cluster.alterations import Alteration, Replacement, Wish
from moldau.cluster.cluster import Cluster
from moldau.cluster.controller import Refusal, name_refusal
from moldau.cluster.descriptions import Described
from moldau.cluster.layout import DEFAULT_BROKER
from moldau.errors import ErrorCode, KafkaError, StorageError
from moldau.handlers.context import Context
from moldau.protocol.messages import alter_configs, incremental_alter_configs
from moldau.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)


class Resource(enum.IntEnum):
    """Kafka's numbers for what has settings."""

    TOPIC = 2
    BROKER = 4


class Configs:
    def __init__(self, cluster: Cluster):
        self._cluster = cluster

    def describe(self, request: DescribeConfigsRequest, context: Context) -> DescribeConfigsResponse:
        return DescribeConfigsResponse(results=[self._described(one, request) for one in request.resources])

    def _described(self, resource: DescribeConfigsResource, request: DescribeConfigsRequest) -> DescribeConfigsResult:
        result = DescribeConfigsResult(
            error_message="", resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        found = self._find(resource.resource_type, resource.resource_name)
        if isinstance(found, Refusal):
            result.error_code, result.error_message = found
            return result
        keys = resource.configuration_keys
        result.configs = [_setting(one, request) for one in found if not keys or one.setting.name in keys]
        return result

    def _find(self, kind: int, name: str) -> list[Described] | Refusal:
        sources = self._cluster.sources
        if kind == Resource.TOPIC:
            topic = self._cluster.image.topics.get(name)
            if topic is not None:
                return sources.topic(topic.overrides)
            return name_refusal(name) or Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such topic")
        if kind == Resource.BROKER:
            return self._broker_refusal(name) or (sources.broker() if name else sources.all_brokers())
        return _no_kind(kind)

    def _broker_refusal(self, name: str) -> Refusal | None:
        own = str(self._cluster.broker_id)
        if name in ("", own):
            return None
        return Refusal(ErrorCode.INVALID_REQUEST, f"this is broker {own}, not {name[:20]}")

    async def alter(
        self, request: incremental_alter_configs.IncrementalAlterConfigsRequest, context: Context
    ) -> incremental_alter_configs.IncrementalAlterConfigsResponse:
        made = incremental_alter_configs.AlterConfigsResourceResponse
        responses = [made(**fields) async for fields in self._each(request, _alterations)]
        return incremental_alter_configs.IncrementalAlterConfigsResponse(responses=responses)

    async def replace(
        self, request: alter_configs.AlterConfigsRequest, context: Context
    ) -> alter_configs.AlterConfigsResponse:
        made = alter_configs.AlterConfigsResourceResponse
        responses = [made(**fields) async for fields in self._each(request, _replacement)]
        return alter_configs.AlterConfigsResponse(responses=responses)

    async def _each(self, request: Any, wish_of: Callable[[Any], Wish]) -> AsyncIterator[dict[str, Any]]:
        """Alter one resource after the other; the fields of the answer for each."""
        counts = Counter((one.resource_type, one.resource_name) for one in request.resources)
        for one in request.resources:
            refusal: Refusal | None
            if counts[one.resource_type, one.resource_name] > 1:
                refusal = Refusal(ErrorCode.INVALID_REQUEST, "the request names this resource more than once")
            else:
                try:
                    refusal = await self._alter(
                        one.resource_type, one.resource_name, wish_of(one), validate_only=request.validate_only
                    )
                except (StorageError, KafkaError) as error:
                    refusal = Refusal(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
            code, message = refusal or (ErrorCode.NONE, None)
            yield {
                "error_code": code,
                "error_message": message,
                "resource_type": one.resource_type,
                "resource_name": one.resource_name,
            }

    async def _alter(self, kind: int, name: str, wish: Wish, *, validate_only: bool) -> Refusal | None:
        if kind == Resource.TOPIC:
            if not name:
                return Refusal(ErrorCode.INVALID_REQUEST, "there are no settings of all topics")
            return await self._cluster.alter_topic_configs(name, wish, validate_only=validate_only)
        if kind == Resource.BROKER:
            refusal = self._broker_refusal(name)
            return refusal or await self._cluster.alter_broker_configs(
                name or DEFAULT_BROKER, wish, validate_only=validate_only
            )
        return _no_kind(kind)


def _alterations(resource: incremental_alter_configs.AlterConfigsResource) -> Sequence[Alteration]:
    return [Alteration(one.name, one.config_operation, one.value) for one in resource.configs]


def _replacement(resource: alter_configs.AlterConfigsResource) -> Replacement:
    return Replacement([(one.name, one.value) for one in resource.configs])


def _no_kind(kind: int) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, f"there are no settings of resources of type {kind}")


def _setting(one: Described, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = [
        DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
        for synonym in (one.synonyms if request.include_synonyms else ())
    ]
    return DescribeConfigsResourceResult(
        name=one.setting.name,
        value=None if one.setting.sensitive else one.value,
        read_only=one.setting.read_only,
        config_source=one.source,
        is_sensitive=one.setting.sensitive,
        synonyms=synonyms,
        config_type=one.setting.kind,
        documentation=one.setting.sentence if request.include_documentation else None,
    )
