"""DescribeConfigs (key 32, versions 1 to 4) and IncrementalAlterConfigs (44, 0 to 1): of topics and of this broker.

A broker is named by its number, and all of them by the empty name. No keys, null or empty, means all of them. Each
resource of an alteration stands alone: one that is refused does not hold up the others. Other kinds of resources
(loggers, client metrics, groups) are not there, and refused as INVALID_REQUEST.
"""

import enum
from collections import Counter
from collections.abc import Sequence

from moldau.cluster.alterations import Alteration
from moldau.cluster.cluster import Cluster
from moldau.cluster.controller import Refusal, name_refusal
from moldau.cluster.descriptions import Described
from moldau.cluster.layout import DEFAULT_BROKER
from moldau.errors import ErrorCode, KafkaError, StorageError
from moldau.handlers.context import Context
from moldau.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from moldau.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
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

    async def alter(self, request: IncrementalAlterConfigsRequest, context: Context) -> IncrementalAlterConfigsResponse:
        counts = Counter((one.resource_type, one.resource_name) for one in request.resources)
        responses = []
        for one in request.resources:
            refusal: Refusal | None
            if counts[one.resource_type, one.resource_name] > 1:
                refusal = Refusal(ErrorCode.INVALID_REQUEST, "the request names this resource more than once")
            else:
                try:
                    refusal = await self._alter(one, validate_only=request.validate_only)
                except (StorageError, KafkaError) as error:
                    refusal = Refusal(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
            code, message = refusal or (ErrorCode.NONE, None)
            responses.append(
                AlterConfigsResourceResponse(
                    error_code=code,
                    error_message=message,
                    resource_type=one.resource_type,
                    resource_name=one.resource_name,
                )
            )
        return IncrementalAlterConfigsResponse(responses=responses)

    async def _alter(self, resource: AlterConfigsResource, *, validate_only: bool) -> Refusal | None:
        name = resource.resource_name
        wanted: Sequence[Alteration] = [
            Alteration(one.name, one.config_operation, one.value) for one in resource.configs
        ]
        if resource.resource_type == Resource.TOPIC:
            if not name:
                return Refusal(ErrorCode.INVALID_REQUEST, "there are no settings of all topics")
            return await self._cluster.alter_topic_configs(name, wanted, validate_only=validate_only)
        if resource.resource_type == Resource.BROKER:
            refusal = self._broker_refusal(name)
            return refusal or await self._cluster.alter_broker_configs(
                name or DEFAULT_BROKER, wanted, validate_only=validate_only
            )
        return _no_kind(resource.resource_type)


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
