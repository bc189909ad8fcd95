"""Describes and changes the settings of topics, brokers, brokers' loggers, and groups.

Requests about one broker or its loggers go to that broker, all others to any broker. If the broker refuses a change,
`KafkaError` is raised with the broker's message.
"""

import enum
from collections.abc import Mapping
from typing import Any, NamedTuple

from moldau.client.background import LoopThread
from moldau.client.failures import Missing, check, error_of
from moldau.client.routing import Router
from moldau.errors import ErrorCode
from moldau.peers.link import Link
from moldau.protocol.apis import DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS, Api
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
    8: "group",
}
"""Names of Kafka's codes for the source of a value; `file` includes the command line."""


class Resource(enum.IntEnum):
    """Kafka's codes for the types of resources that have settings."""

    TOPIC = 2
    BROKER = 4
    LOGGER = 8
    GROUP = 32


class ConfigEntry(NamedTuple):
    """One setting. `is_default` is true if the value is not set on this resource; `source` says where it is set."""

    name: str
    value: str | None
    is_default: bool
    is_sensitive: bool
    source: str = DEFAULT
    is_read_only: bool = False


_OWN = {Resource.TOPIC: 1, Resource.BROKER: 2, Resource.LOGGER: 6, Resource.GROUP: 8}
_ALL_BROKERS = 3


class AsyncConfigs:
    """Reads and changes settings. `router` finds the broker for each request; `timeout_ms` limits one request."""

    def __init__(self, router: Router, timeout_ms: int):
        self._router = router
        self._timeout_ms = timeout_ms

    async def describe(self, kind: Resource, name: str) -> list[ConfigEntry]:
        """All settings of a resource, sorted by name. An empty name stands for the defaults set for all brokers."""
        resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        result = await self._ask(DESCRIBE_CONFIGS, kind, name, DescribeConfigsRequest(resources=[resource]), "results")
        own = _ALL_BROKERS if kind is Resource.BROKER and not name else _OWN[kind]
        return sorted(
            ConfigEntry(
                one.name,
                one.value,
                one.config_source != own,
                one.is_sensitive,
                SOURCES.get(one.config_source, "unknown"),
                one.read_only,
            )
            for one in result.configs
        )

    async def alter(self, kind: Resource, name: str, changes: Mapping[str, str | None]) -> None:
        """Change settings; None resets a setting to its default."""
        configs = [
            AlterableConfig(name=setting, config_operation=DELETE if value is None else SET, value=value)
            for setting, value in changes.items()
        ]
        resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
        request = IncrementalAlterConfigsRequest(resources=[resource])
        await self._ask(INCREMENTAL_ALTER_CONFIGS, kind, name, request, "responses")

    async def _ask(self, api: Api, kind: Resource, name: str, request: Any, results: str) -> Any:
        """Send the request and return the result of its only resource."""
        about = f"{kind.name.lower()} {name}" if name else "all brokers"

        async def attempt() -> Any:
            link = await self._link(kind, name)
            (result,) = getattr(await link.call(api, request, self._timeout_ms), results)
            if error_of(result.error_code) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise Missing(about)
            check(result.error_code, about, result.error_message)
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


class Configs:
    """The synchronous form of `AsyncConfigs`."""

    def __init__(self, core: AsyncConfigs, thread: LoopThread):
        self._core = core
        self._thread = thread

    def describe(self, kind: Resource, name: str) -> list[ConfigEntry]:
        return self._thread.run(self._core.describe(kind, name))

    def alter(self, kind: Resource, name: str, changes: Mapping[str, str | None]) -> None:
        self._thread.run(self._core.alter(kind, name, changes))
