"""Describes and changes the settings of topics, brokers, brokers' loggers, groups, and client metrics.

Requests about one broker or its loggers go to that broker, all others to any broker. If the broker refuses a change,
`KafkaError` is raised with the broker's message.
"""

import enum
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from moldau.client.administration.arguments import checked
from moldau.client.administration.asking import AdminPart, check_answer, texts_of
from moldau.client.faces import Face, blocking
from moldau.client.failures import error_of, missing, only_one
from moldau.client.own_loop import of_one_loop
from moldau.client.routing import Router
from moldau.errors import ConfigError, ErrorCode
from moldau.peers.link import Link
from moldau.protocol.apis import DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS, LIST_CONFIG_RESOURCES, Api
from moldau.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

SET, DELETE = 0, 1
DEFAULT = "default"
SOURCES = {
    1: "topic",
    2: "broker",
    3: "all brokers",
    4: "file",
    5: DEFAULT,
    6: "logger",
    7: "client metrics",
    8: "group",
}
"""Names of Kafka's codes for the source of a value; `file` includes the command line."""


class Resource(enum.IntEnum):
    """Kafka's codes for the types of resources that have settings."""

    TOPIC = 2
    BROKER = 4
    LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


Kind = Resource | Literal["topic", "broker", "logger", "client_metrics", "group"]


class ConfigEntry(NamedTuple):
    """One setting. `is_default` is true if the value is not set on this resource; `source` says where it is set."""

    name: str
    value: str | None
    is_default: bool
    is_sensitive: bool
    source: str = DEFAULT
    is_read_only: bool = False


Entries = list[ConfigEntry]
_OWN = {Resource.TOPIC: 1, Resource.BROKER: 2, Resource.LOGGER: 6, Resource.CLIENT_METRICS: 7, Resource.GROUP: 8}
_ALL_BROKERS = 3


@of_one_loop()
@checked("configs.")
class AsyncConfigs(AdminPart):
    """The settings of topics, brokers, brokers' loggers, groups and client metrics: `admin.configs`."""

    def __init__(self, router: Router, timeout_ms: int):
        self._router = router
        self.own_loop = router.own_loop
        self._timeout_ms = timeout_ms

    async def describe(self, kind: Kind, name: str) -> list[ConfigEntry]:
        """All settings of a resource, sorted by name. An empty name stands for the defaults set for all brokers. Raises
        `UnknownTopicOrPartition`, `InvalidRequest` for a broker that does not exist, and others."""
        [entries] = (await self.describe_all([(kind, name)])).values()
        return entries

    async def describe_all(self, resources: Iterable[tuple[Kind, str]]) -> dict[tuple[Resource, str], Entries]:
        """All settings of several resources, each as `describe` returns it."""
        entries: dict[tuple[Resource, str], Entries] = {}
        for kind, name in dict.fromkeys((_kind(kind), name) for kind, name in resources):
            resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
            request = DescribeConfigsRequest(resources=[resource])
            result = await self._ask_about(DESCRIBE_CONFIGS, kind, name, request, "results")
            own = _ALL_BROKERS if kind is Resource.BROKER and not name else _OWN[kind]
            entries[kind, name] = [
                ConfigEntry(
                    one.name,
                    one.value,
                    one.config_source != own,
                    one.is_sensitive,
                    SOURCES.get(one.config_source, "unknown"),
                    one.read_only,
                )
                for one in sorted(result.configs, key=lambda config: str(config.name))
            ]
        return entries

    async def alter(self, kind: Kind, name: str, changes: Mapping[str, object], *, validate_only: bool = False) -> None:
        """Change settings, and leave the others as they are; None resets a setting to its default. With `validate_only`
        the change is only checked. Raises `InvalidConfig` and others."""
        configs = [
            AlterableConfig(name=setting, config_operation=DELETE if value is None else SET, value=value)
            for setting, value in texts_of(changes).items()
        ]
        resource = AlterConfigsResource(resource_type=_kind(kind), resource_name=name, configs=configs)
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
        await self._ask_about(INCREMENTAL_ALTER_CONFIGS, _kind(kind), name, request, "responses")

    async def list_resources(self, kind: Kind) -> list[str]:
        """The names of the resources of this kind that have settings of their own (KIP-1142), sorted."""
        wanted = _kind(kind)
        request = LIST_CONFIG_RESOURCES.request(resource_types=[wanted])
        reply = await self._ask(LIST_CONFIG_RESOURCES, request, "listing resources")
        return sorted(one.resource_name for one in reply.config_resources if one.resource_type == wanted)

    async def _ask_about(self, api: Api, kind: Resource, name: str, request: Any, results: str) -> Any:
        """Send the request and return the result of its only resource."""
        about = f"{kind.name.lower().replace('_', ' ')} {name}" if name else "all brokers"

        async def attempt() -> Any:
            link = await self._link(kind, name)
            result: Any = only_one(getattr(await link.call(api, request, self._timeout_ms), results), about)
            if error_of(result.error_code) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise missing(about)
            check_answer(result.error_code, about, result.error_message)
            return result

        return await self._router.retrying(attempt)

    async def _link(self, kind: Resource, name: str) -> Link:
        """The link to the broker that the resource belongs to. If the cluster lacks that broker, any other one replies
        with the error."""
        if kind in (Resource.BROKER, Resource.LOGGER) and name.isdecimal():
            await self._router.refresh([])
            if int(name) in self._router.view.brokers:
                return await self._router.broker(int(name))
        return await self._router.any()


def _kind(kind: Kind) -> Resource:
    if isinstance(kind, Resource):
        return kind
    if kind.upper() not in Resource.__members__:
        raise ConfigError(f"{kind!r} is not one of {', '.join(Resource.__members__).lower()}")
    return Resource[kind.upper()]


class Configs(Face[AsyncConfigs]):
    """The synchronous face of `AsyncConfigs`, with the same methods."""

    describe = blocking(AsyncConfigs.describe)
    describe_all = blocking(AsyncConfigs.describe_all)
    alter = blocking(AsyncConfigs.alter)
    list_resources = blocking(AsyncConfigs.list_resources)
