"""Changes to the settings of topics, brokers, groups and client metrics, as administrators ask for them.

Topics, groups and client metrics are altered many at a time: each is refused by itself, and what is not is written in
one step, since every step makes a new image. Every method answers None, or the `Refusal`, for each; with
`validate_only` nothing is written. Raises what `ChangeQueue.commit` raises; then none was altered.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from moldau.cluster.controlling import alterations, controller
from moldau.cluster.controlling.alterations import ConfigChange, OpType, Replacement
from moldau.cluster.controlling.change_queue import ChangeQueue, in_turn
from moldau.cluster.controlling.controller import Refusal
from moldau.cluster.state import layout
from moldau.cluster.state.image import Image
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.config import BrokerConfig
from moldau.config.security import OF_LISTENER, changes_listener, names_file
from moldau.errors import ConfigError, ErrorCode
from moldau.metadata_store.store import NodeOperation

Altered: TypeAlias = list[NodeOperation] | Refusal
"""The operations that alter one resource, or why it is not altered."""


class ConfigChanges:
    def __init__(self, metadata: MetadataCache, queue: ChangeQueue):
        self.queue = queue
        self._metadata = metadata

    @in_turn
    async def alter_topics(
        self, wanted: Sequence[tuple[str, ConfigChange]], *, validate_only: bool = False
    ) -> list[Refusal | None]:
        """`wanted` names each topic once."""
        image, config = self._metadata.image, self._metadata.config
        return await self._alter(wanted, lambda name, change: _of_topic(image, config, name, change), validate_only)

    @in_turn
    async def alter_groups(
        self, wanted: Sequence[tuple[str, ConfigChange]], *, validate_only: bool = False
    ) -> list[Refusal | None]:
        """`wanted` names each group once, whether it exists or not."""
        image, config = self._metadata.image, self._metadata.config
        return await self._alter(wanted, lambda name, change: _of_group(image, config, name, change), validate_only)

    @in_turn
    async def alter_client_metrics(
        self, wanted: Sequence[tuple[str, ConfigChange]], *, validate_only: bool = False
    ) -> list[Refusal | None]:
        """`wanted` names each subscription once; one without settings does not exist."""
        image = self._metadata.image
        return await self._alter(wanted, lambda name, change: _of_client_metrics(image, name, change), validate_only)

    async def _alter(
        self,
        wanted: Sequence[tuple[str, ConfigChange]],
        decide: Callable[[str, ConfigChange], Altered],
        validate_only: bool,
    ) -> list[Refusal | None]:
        settings = sum(1 + _length(change) for _, change in wanted)
        altered = await self.queue.decided(settings, lambda: [decide(name, change) for name, change in wanted])
        if not validate_only:
            await self.queue.commit([step for one in altered if not isinstance(one, Refusal) for step in one])
        return [one if isinstance(one, Refusal) else None for one in altered]

    @in_turn
    async def alter_broker(self, broker: str, change: ConfigChange, *, validate_only: bool = False) -> Refusal | None:
        """Of one broker by its number, or of all by `layout.DEFAULT_BROKER`."""
        now = self._metadata.image.broker_overrides.get(broker)
        overrides = await self.queue.decided(_length(change), lambda: broker_overrides(self._metadata, broker, change))
        if isinstance(overrides, Refusal):
            return overrides
        if not validate_only and (overrides != (now or {}) or _names_file(change)):
            path = f"{layout.BROKER_CONFIGS}/{broker}"
            await self.queue.commit([layout.config(path, overrides, is_new=now is None)])
        return None


def _of_topic(image: Image, config: BrokerConfig, name: str, change: ConfigChange) -> Altered:
    topic = image.topics.get(name)
    if topic is None:
        unknown = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name[:249]} does not exist")
        return controller.name_refusal(name) or unknown
    overrides = alterations.topic_overrides(config, topic.overrides, change)
    if isinstance(overrides, Refusal):
        return overrides
    refusal = controller.overrides_refusal(config, overrides)
    if refusal is not None:
        return refusal
    return [] if overrides == topic.overrides else [layout.topic_overrides(name, overrides)]


def _of_group(image: Image, config: BrokerConfig, group_id: str, change: ConfigChange) -> Altered:
    now = image.group_overrides.get(group_id)
    overrides = alterations.group_overrides(config, now or {}, change)
    if isinstance(overrides, Refusal):
        return overrides
    return [] if overrides == (now or {}) else layout.group_changed(group_id, now, overrides)


def _of_client_metrics(image: Image, name: str, change: ConfigChange) -> Altered:
    now = image.client_metrics.get(name)
    overrides = alterations.client_metrics_overrides(now or {}, change)
    if isinstance(overrides, Refusal):
        return overrides
    return [] if overrides == (now or {}) else layout.client_metrics_changed(name, now, overrides)


def _names_file(change: ConfigChange) -> bool:
    """Whether a file is named, which may have changed although its name has not."""
    return not isinstance(change, Replacement) and any(names_file(one.name) for one in change)


def _of_no_listener(config: BrokerConfig, change: ConfigChange) -> str | None:
    """The first setting that would have no effect, because it is of no listener of this broker."""
    if isinstance(change, Replacement):
        return None
    known = tuple(f"{OF_LISTENER}{one.name.lower()}." for one in config.client_listeners)
    named = (one.name for one in change if changes_listener(one.name) and one.operation != OpType.DELETE)
    return next((name for name in named if not name.startswith(known)), None)


def _length(change: ConfigChange) -> int:
    return len(change.settings) if isinstance(change, Replacement) else len(change)


def broker_overrides(metadata: MetadataCache, broker: str, change: ConfigChange) -> dict[str, str] | Refusal:
    """The settings of a broker, or of all by `layout.DEFAULT_BROKER`, after a change; a refusal also if the broker that
    has this metadata could not run with them."""
    now = metadata.image.broker_overrides.get(broker, {})
    if broker == layout.DEFAULT_BROKER and _names_file(change):
        return Refusal(ErrorCode.INVALID_REQUEST, "the files of a listener's certificates are set for one broker")
    if broker == str(metadata.broker_id) and (name := _of_no_listener(metadata.config, change)) is not None:
        return Refusal(ErrorCode.INVALID_REQUEST, f"{name[:200]} is of a listener that this broker does not have")
    overrides = alterations.broker_overrides(metadata.config, now, change)
    if isinstance(overrides, Refusal):
        return overrides
    try:
        metadata.check_overrides(broker, overrides, _names_file(change))
    except ConfigError as wrong:
        return Refusal(ErrorCode.INVALID_REQUEST, str(wrong))
    return overrides
