"""DescribeConfigs (key 32, versions 1 to 4), AlterConfigs (33, 0 to 2), IncrementalAlterConfigs (44, 0 to 1) and
ListConfigResources (74, 0 to 1): the settings of topics, of this broker and its loggers, of groups, and of
subscriptions to metrics of clients (KIP-714).

A broker is named by its number, and all of them by the empty name; a group by its id, whether it exists or not. A
subscription exists while it has settings; version 0 of ListConfigResources lists nothing else. Any broker alters the
settings of any broker that is up; each describes its own, as in Kafka. A null or empty list of keys means all of them.
Each resource of an alteration is independent: a refused one does not affect the others. Only if the metadata cannot be
written do up to `OF_A_PORTION` resources fail together. AlterConfigs sets the named settings and resets all others to
their defaults; older clients have no other request.

A resource whose settings the client may not describe or alter has the error of its type: those of brokers, loggers and
client metrics belong to the cluster. Descriptions that are denied come last.
"""

import enum
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any

from moldau.cluster.controlling.alterations import Alteration, ConfigChange, Replacement
from moldau.cluster.controlling.config_changes import ConfigChanges
from moldau.cluster.controlling.controller import Refusal, name_refusal
from moldau.cluster.state.descriptions import ConfigSource, DescribedConfig
from moldau.cluster.state.layout import DEFAULT_BROKER
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.errors import ErrorCode, KafkaError, StorageError
from moldau.handlers.repetitions import TOO_OFTEN, Repetitions
from moldau.handlers.responding import not_made
from moldau.handlers.topics import broker_loggers
from moldau.protocol.apis import INCREMENTAL_ALTER_CONFIGS
from moldau.protocol.messages import alter_configs, incremental_alter_configs
from moldau.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from moldau.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from moldau.requests.access import CLUSTER_NAME, Operation, ResourceType, Right
from moldau.requests.session import Call
from moldau.turns import Steps, in_turns

OF_A_TURN = 100
"""Resources of other types that are altered in one turn of the loop."""
OF_A_PORTION = 2000
"""Resources, with their settings, that are altered together."""
DOUBLED = Refusal(ErrorCode.INVALID_REQUEST, "the request names this resource more than once")


class ConfigResourceType(enum.IntEnum):
    """Kafka's codes for the types of resources that have settings."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


_NAMELESS = {
    ConfigResourceType.TOPIC: "topics have no common settings: name a topic",
    ConfigResourceType.CLIENT_METRICS: "client metrics have no common settings: name a subscription",
    ConfigResourceType.GROUP: "settings of a group need the group's id",
}
"""Why a resource of that type is refused without a name."""
_PROTECTED_AS: Mapping[int, ResourceType] = {
    ConfigResourceType.TOPIC: ResourceType.TOPIC,
    ConfigResourceType.BROKER: ResourceType.CLUSTER,
    ConfigResourceType.BROKER_LOGGER: ResourceType.CLUSTER,
    ConfigResourceType.CLIENT_METRICS: ResourceType.CLUSTER,
    ConfigResourceType.GROUP: ResourceType.GROUP,
}
"""The type of the resource that the rights on settings are about."""


class ConfigAdministration:
    def __init__(self, metadata: MetadataCache, changes: ConfigChanges):
        self._metadata = metadata
        self._changes = changes

    def describe(self, request: DescribeConfigsRequest, call: Call) -> Steps[DescribeConfigsResponse]:
        results: list[DescribeConfigsResult] = []
        denied: list[DescribeConfigsResult] = []
        named = Repetitions()
        for one in request.resources:
            kind, name = one.resource_type, one.resource_name
            if named.exceed((kind, name)):
                results.append(_not_described(one, Refusal(ErrorCode.INVALID_REQUEST, TOO_OFTEN)))
            elif (denial := _denial(call, Operation.DESCRIBE_CONFIGS, kind, name)) is not None:
                denied.append(_not_described(one, denial))
            else:
                results.append((yield from self._described(one, request)))
            yield
        return DescribeConfigsResponse(results=results + denied)

    def _described(
        self, resource: DescribeConfigsResource, request: DescribeConfigsRequest
    ) -> Steps[DescribeConfigsResult]:
        result = DescribeConfigsResult(
            error_message="", resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        keys = frozenset(resource.configuration_keys or ())
        refusal: Refusal | None
        if resource.resource_type == ConfigResourceType.BROKER_LOGGER:
            refusal = self._broker_refusal(resource.resource_name, only_one=True)
            levels = {} if refusal else broker_loggers.levels()
            result.configs = [_level(name, level) for name, level in levels.items() if not keys or name in keys]
        else:
            sources = self._find(resource.resource_type, resource.resource_name)
            refusal = sources if isinstance(sources, Refusal) else None
            for one in [] if isinstance(sources, Refusal) else sources:
                if not keys or one.setting.name in keys:
                    result.configs.append(_setting(one, request))
                yield
        if refusal:
            result.error_code, result.error_message = refusal
        return result

    def _find(self, kind: int, name: str) -> list[DescribedConfig] | Refusal:
        sources = self._metadata.config_sources
        if kind == ConfigResourceType.TOPIC:
            topic = self._metadata.image.topics.get(name)
            if topic is not None:
                return sources.topic(topic.overrides)
            return name_refusal(name) or Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such topic")
        if kind == ConfigResourceType.BROKER:
            return self._broker_refusal(name) or (sources.broker() if name else sources.all_brokers())
        if kind == ConfigResourceType.GROUP:
            return _nameless(kind, name) or sources.group(self._metadata.image.group_overrides.get(name, {}))
        if kind == ConfigResourceType.CLIENT_METRICS:
            return _nameless(kind, name) or sources.client_metrics(self._metadata.image.client_metrics.get(name, {}))
        return _no_kind(kind)

    def _broker_refusal(self, name: str, *, only_one: bool = False) -> Refusal | None:
        own = str(self._metadata.broker_id)
        if name == own or (name == "" and not only_one):
            return None
        return Refusal(ErrorCode.INVALID_REQUEST, f"this is broker {own}, not {name[:20]}")

    async def alter(
        self, request: incremental_alter_configs.IncrementalAlterConfigsRequest, call: Call
    ) -> incremental_alter_configs.IncrementalAlterConfigsResponse:
        made = incremental_alter_configs.AlterConfigsResourceResponse
        responses = [made(**fields) async for fields in self._each(request, call)]
        return incremental_alter_configs.IncrementalAlterConfigsResponse(responses=responses)

    async def replace(
        self, request: alter_configs.AlterConfigsRequest, call: Call
    ) -> alter_configs.AlterConfigsResponse:
        made = alter_configs.AlterConfigsResourceResponse
        responses = [made(**fields) async for fields in self._each(request, call)]
        return alter_configs.AlterConfigsResponse(responses=responses)

    async def _each(self, request: Any, call: Call) -> AsyncIterator[dict[str, Any]]:
        """Alter the resources, those of one type that follow each other together; the fields of the answer for each."""
        counts: Counter[tuple[int, str]] = Counter()
        async for one in in_turns(request.resources):
            counts[one.resource_type, one.resource_name] += 1
        async for some in in_turns(_portions(request.resources), 1):
            kind = some[0].resource_type
            single = [one for one in some if counts[kind, one.resource_name] == 1]
            # AlterConfigs knows no loggers, whoever asks, as in Kafka.
            is_judged = kind != ConfigResourceType.BROKER_LOGGER or call.key == INCREMENTAL_ALTER_CONFIGS.key
            by_name = _not_alterable(call, kind, single) if is_judged and call.session.authorizer is not None else {}
            wanted = [(one.resource_name, change_of(one)) for one in single if one.resource_name not in by_name]
            try:
                refusals = await self._alter(kind, wanted, validate_only=request.validate_only)
            except (StorageError, KafkaError) as error:
                refusals = [not_made(error)] * len(wanted)
            by_name |= {name: refusal for (name, _), refusal in zip(wanted, refusals, strict=True)}
            for one in some:
                code, message = by_name.get(one.resource_name, DOUBLED) or (ErrorCode.NONE, None)
                yield {
                    "error_code": code,
                    "error_message": message,
                    "resource_type": kind,
                    "resource_name": one.resource_name,
                }

    async def _alter(
        self, kind: int, wanted: Sequence[tuple[str, ConfigChange]], *, validate_only: bool
    ) -> Sequence[Refusal | None]:
        """Alter resources of one type, each of which is named once."""
        match kind:
            case ConfigResourceType.TOPIC:
                alter = self._changes.alter_topics
            case ConfigResourceType.GROUP:
                alter = self._changes.alter_groups
            case ConfigResourceType.CLIENT_METRICS:
                alter = self._changes.alter_client_metrics
            case _:
                each = in_turns(wanted, OF_A_TURN)
                return [await self._alter_one(kind, *one, validate_only=validate_only) async for one in each]
        altered = iter(await alter([one for one in wanted if one[0]], validate_only=validate_only))
        return [next(altered) if name else _nameless(kind, name) for name, _ in wanted]

    async def _alter_one(self, kind: int, name: str, change: ConfigChange, *, validate_only: bool) -> Refusal | None:
        if kind == ConfigResourceType.BROKER:
            if name and name not in map(str, self._metadata.image.brokers):
                return Refusal(ErrorCode.INVALID_REQUEST, f"no broker {name[:20]} is up in this cluster")
            return await self._changes.alter_broker(name or DEFAULT_BROKER, change, validate_only=validate_only)
        if kind == ConfigResourceType.BROKER_LOGGER and not isinstance(change, Replacement):
            return self._broker_refusal(name, only_one=True) or broker_loggers.alter(
                change, validate_only=validate_only
            )
        return _no_kind(kind)

    def list_resources(self, request: ListConfigResourcesRequest, call: Call) -> ListConfigResourcesResponse:
        """All resources that have settings, of these types or (if none are given) of all types."""
        kinds = (
            dict.fromkeys(request.resource_types or ConfigResourceType)
            if call.version
            else [ConfigResourceType.CLIENT_METRICS]
        )
        if any(kind not in list(ConfigResourceType) for kind in kinds):
            return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        image = self._metadata.image
        brokers = [str(number) for number in image.brokers]
        names: Mapping[int, Iterable[str]] = {
            ConfigResourceType.TOPIC: image.topics,
            ConfigResourceType.BROKER: brokers,
            ConfigResourceType.BROKER_LOGGER: brokers,
            ConfigResourceType.CLIENT_METRICS: image.client_metrics,
            ConfigResourceType.GROUP: image.group_overrides,
        }
        return ListConfigResourcesResponse(
            config_resources=[
                ConfigResource(resource_name=name, resource_type=kind) for kind in kinds for name in names[kind]
            ]
        )


def _denial(call: Call, operation: Operation, kind: int, name: str) -> Refusal | None:
    """The refusal of a client without this right. A resource of an unknown type is refused whoever asks."""
    resource_type = _PROTECTED_AS.get(kind)
    if resource_type is None:
        return None
    right = Right(resource_type, operation)
    if call.may(right, CLUSTER_NAME if resource_type is ResourceType.CLUSTER else name):
        return None
    return Refusal(right.denied, right.denied.sentence)


def _not_alterable(call: Call, kind: int, resources: Iterable[Any]) -> dict[str, Refusal | None]:
    """The refusals of resources that the client may not alter, by name; without a message for loggers, as in Kafka."""
    refusals: dict[str, Refusal | None] = {}
    for one in resources:
        denial = _denial(call, Operation.ALTER_CONFIGS, kind, one.resource_name)
        if denial is not None:
            refusals[one.resource_name] = Refusal(denial.code) if kind == ConfigResourceType.BROKER_LOGGER else denial
    return refusals


def _portions(resources: Iterable[Any]) -> Iterator[list[Any]]:
    """The resources in portions of one type, and of at most `OF_A_PORTION` resources and settings."""
    some: list[Any] = []
    size = 0
    for one in resources:
        size += 1 + len(one.configs)
        if some and (size > OF_A_PORTION or one.resource_type != some[0].resource_type):
            yield some
            some, size = [], 1 + len(one.configs)
        some.append(one)
    if some:
        yield some


def change_of(
    resource: incremental_alter_configs.AlterConfigsResource | alter_configs.AlterConfigsResource,
) -> ConfigChange:
    """The changes of one resource that a request asks for."""
    if isinstance(resource, alter_configs.AlterConfigsResource):
        return Replacement([(one.name, one.value) for one in resource.configs])
    return [Alteration(one.name, one.config_operation, one.value) for one in resource.configs]


def _nameless(kind: int, name: str) -> Refusal | None:
    return None if name else Refusal(ErrorCode.INVALID_REQUEST, _NAMELESS[ConfigResourceType(kind)])


def _no_kind(kind: int) -> Refusal:
    if kind == ConfigResourceType.BROKER_LOGGER:
        return Refusal(ErrorCode.INVALID_REQUEST, "levels of loggers are changed by IncrementalAlterConfigs only")
    return Refusal(ErrorCode.INVALID_REQUEST, f"there are no settings of resources of type {kind}")


def _not_described(resource: DescribeConfigsResource, refusal: Refusal) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=refusal.code,
        error_message=refusal.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _level(logger: str, level: str) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(name=logger, value=level, config_source=ConfigSource.LOGGER, documentation="")


def _setting(one: DescribedConfig, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    is_secret = one.setting.sensitive
    synonyms = [
        DescribeConfigsSynonym(name=synonym.name, value=None if is_secret else synonym.value, source=synonym.source)
        for synonym in (one.synonyms if request.include_synonyms else ())
    ]
    return DescribeConfigsResourceResult(
        name=one.setting.name,
        value=None if is_secret else one.value,
        read_only=one.setting.read_only,
        config_source=one.source,
        is_sensitive=is_secret,
        synonyms=synonyms,
        config_type=one.setting.kind,
        documentation=one.setting.sentence if request.include_documentation else None,
    )
