"""The two clusters of a mirror as its programs reach them, and what must hold of them.

The target is ours, because only its brokers append batches at offsets that they did not choose (MirrorAppend). The two
are different clusters.
"""

import dataclasses
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from moldau.client.administration.admin import AsyncAdmin
from moldau.client.cluster_view import TopicView
from moldau.client.routing import Router, router_of
from moldau.client.settings import ClientSettings, read_settings
from moldau.errors import ConfigError, ErrorCode, KafkaError
from moldau.mirror.topic_settings import MadeSettings, settings_of
from moldau.protocol.apis import FETCH, MIRROR_APPEND

CLIENT_ID = "moldau-mirror"
SETTING = "mirror.source"
"""The setting of a topic that says what it mirrors."""
BY_ID = {FETCH.key: FETCH.high}
"""A mirror fetches by topic ids where it can, so that it takes no topic for an earlier one of the same name."""
NO_ID = uuid.UUID(int=0)
NOT_OURS = "--to {0}: these brokers are not Moldau's, so topics cannot be mirrored into them byte by byte"

ANOTHER = (
    "{0} {1}: the cluster {2} answers there, and it was {3} when this worker started. Nothing is mirrored until {3} is "
    "back; to mirror with {2}, start the worker again"
)


def source_of(cluster_id: str, topic_id: uuid.UUID) -> str:
    """The value of `mirror.source` of a topic that mirrors this one. The id is zero where topics have none (Kafka
    before 2.8)."""
    return f"{cluster_id}/{urlsafe_b64encode(topic_id.bytes).decode().rstrip('=')}"


class ClusterEnd:
    """One cluster: `router` reaches its leaders, `admin` the rest. `option` is how the user named it. Use it in `async
    with`."""

    def __init__(self, brokers: str, option: str):
        settings = read_settings(ClientSettings, option, (brokers,), {})
        self.option = option
        self.brokers = brokers
        self.router: Router = router_of(dataclasses.replace(settings, client_id=CLIENT_ID), highest=BY_ID)
        self.admin = AsyncAdmin(brokers, client_id=CLIENT_ID)
        self.cluster_id = ""

    async def __aenter__(self) -> Self:
        try:
            await self.router.retrying(lambda: self.router.refresh([]))
        except BaseException:
            await self.close()
            raise
        self.cluster_id = self.router.view.cluster_id or ""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self.router.close()
        await self.admin.close()

    async def topics(self) -> dict[str, TopicView]:
        """All topics but internal ones, as the cluster has them now; the router knows them too. Raises `KafkaError`:
        `INCONSISTENT_CLUSTER_ID` if it is another cluster than before."""
        await self.router.retrying(lambda: self.router.refresh(None))
        now = self.router.view.cluster_id or ""
        if now != self.cluster_id:
            raise KafkaError(
                ErrorCode.INCONSISTENT_CLUSTER_ID, ANOTHER.format(self.option, self.brokers, now, self.cluster_id)
            )
        return {name: topic for name, topic in sorted(self.router.view.topics.items()) if not topic.internal}

    async def settings(self, topics: Iterable[str]) -> dict[str, MadeSettings | KafkaError]:
        """As `settings_of`."""
        return await settings_of(self.router, topics)

    async def own_settings(self, topic: str) -> dict[str, str]:
        """The settings that were made for a topic. Raises `KafkaError`."""
        found = (await self.settings([topic]))[topic]
        if isinstance(found, KafkaError):
            raise found
        return found


async def check_ends(source: ClusterEnd, target: ClusterEnd) -> None:
    """Raises `ConfigError` if these two cannot be the ends of a mirror, byte by byte."""
    if not await is_ours(target):
        raise ConfigError(NOT_OURS.format(target.brokers))
    check_different(source, target)


async def is_ours(target: ClusterEnd) -> bool:
    """Whether the cluster takes batches at offsets that it did not choose. Raises `KafkaError`."""
    return (await target.router.any()).versions.has(MIRROR_APPEND)


def check_different(source: ClusterEnd, target: ClusterEnd) -> None:
    """Raises `ConfigError` if these two are not different clusters."""
    if not source.cluster_id:
        raise ConfigError(f"--from {source.brokers}: this cluster has no id, so a mirror could not know it again")
    if source.cluster_id == target.cluster_id:
        raise ConfigError(f"--from and --to are the same cluster, {source.cluster_id}")
