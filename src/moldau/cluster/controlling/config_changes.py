"""Changes to the settings of topics, brokers and groups, as administrators ask for them.

Every method answers None, or the `Refusal`; with `validate_only` nothing is written. Raises what `ChangeQueue.commit`
raises.
"""

from moldau.cluster.controlling import alterations, controller
from moldau.cluster.controlling.alterations import ConfigChange, Replacement
from moldau.cluster.controlling.change_queue import ChangeQueue, in_turn
from moldau.cluster.controlling.controller import Refusal
from moldau.cluster.state import layout
from moldau.cluster.state.image import TopicImage
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.errors import ConfigError, ErrorCode


class ConfigChanges:
    def __init__(self, metadata: MetadataCache, queue: ChangeQueue):
        self.queue = queue
        self._metadata = metadata

    @in_turn
    async def alter_topic(self, name: str, change: ConfigChange, *, validate_only: bool = False) -> Refusal | None:
        image, config = self._metadata.image, self._metadata.config
        topic = image.topics.get(name)
        if topic is None:
            unknown = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name[:249]} does not exist")
            return controller.name_refusal(name) or unknown

        def decide() -> TopicImage | Refusal:
            overrides = alterations.topic_overrides(config, topic.overrides, change)
            if isinstance(overrides, Refusal):
                return overrides
            return controller.with_overrides(image, config, name, overrides)

        changed = await self.queue.decided(_length(change), decide)
        if isinstance(changed, Refusal):
            return changed
        if not validate_only:
            await self.queue.commit(layout.topic_changed(topic, changed, image.controller_epoch))
        return None

    @in_turn
    async def alter_broker(self, broker: str, change: ConfigChange, *, validate_only: bool = False) -> Refusal | None:
        """Of one broker by its number, or of all by `layout.DEFAULT_BROKER`."""
        now = self._metadata.image.broker_overrides.get(broker)
        overrides = await self.queue.decided(_length(change), lambda: broker_overrides(self._metadata, broker, change))
        if isinstance(overrides, Refusal):
            return overrides
        if not validate_only and overrides != (now or {}):
            path = f"{layout.BROKER_CONFIGS}/{broker}"
            await self.queue.commit([layout.config(path, overrides, is_new=now is None)])
        return None

    @in_turn
    async def alter_group(self, group_id: str, change: ConfigChange, *, validate_only: bool = False) -> Refusal | None:
        """Of a group by its name, whether it exists or not."""
        now = self._metadata.image.group_overrides.get(group_id)
        overrides = alterations.group_overrides(self._metadata.config, now or {}, change)
        if isinstance(overrides, Refusal):
            return overrides
        if not validate_only and overrides != (now or {}):
            await self.queue.commit(layout.group_changed(group_id, now, overrides))
        return None


def _length(change: ConfigChange) -> int:
    return len(change.settings) if isinstance(change, Replacement) else len(change)


def broker_overrides(metadata: MetadataCache, broker: str, change: ConfigChange) -> dict[str, str] | Refusal:
    """The settings of a broker, or of all by `layout.DEFAULT_BROKER`, after a change; a refusal also if the broker that
    has this metadata could not run with them."""
    now = metadata.image.broker_overrides.get(broker, {})
    overrides = alterations.broker_overrides(metadata.config, now, change)
    if isinstance(overrides, Refusal):
        return overrides
    try:
        metadata.check_overrides(broker, overrides)
    except ConfigError as wrong:
        return Refusal(ErrorCode.INVALID_REQUEST, str(wrong))
    return overrides
