"""The cluster's metadata as this broker knows it: the current image, the settings that follow from it, and the
subscribers that are called with every next image.

Reading is synchronous and never waits for the store. Only `ChangeQueue` shows a new image.
"""

import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any

from moldau.cluster.state import layout
from moldau.cluster.state.descriptions import ConfigSources
from moldau.cluster.state.image import Image
from moldau.config import BrokerConfig, GroupConfig, TopicConfig, group_config, topic_config, with_changes
from moldau.errors import ConfigError

ImageListener = Callable[[Image, Sequence[str]], Coroutine[Any, Any, None] | None]

logger = logging.getLogger(__name__)


class MetadataCache:
    """`config` has the settings that the broker was started with, `image` the metadata at that time. If settings in the
    image contradict those, raises `ConfigError` or, if `others_write` them too, leaves them out."""

    def __init__(self, config: BrokerConfig, image: Image, *, others_write: bool = False):
        self._static = config
        self.image = image
        try:
            self._config = _with_dynamic(config, image)
        except ConfigError as wrong:
            if not others_write:
                raise
            logger.error("settings of brokers that were changed at run time are ignored: %s", wrong)
            self._config = config
        self._topic_configs: dict[str, TopicConfig] = {}
        self._group_config = group_config(self._config, {})
        self._group_configs: dict[str, GroupConfig] = {}
        self._subscribers: list[ImageListener] = []
        self.checks: list[Callable[[BrokerConfig], None]] = []
        """Each raises `ConfigError` if this broker could not use the files that these settings name."""

    @property
    def config(self) -> BrokerConfig:
        """This broker's settings, including those that were changed while it ran."""
        return self._config

    @property
    def config_sources(self) -> ConfigSources:
        """The origins of the settings in force."""
        own, everyone = _dynamic(self.broker_id, self.image)
        return ConfigSources(self._static, self._config, own, everyone)

    @property
    def broker_id(self) -> int:
        return self._static.node_id

    def topic_config(self, name: str) -> TopicConfig:
        """The settings in force for a topic that is in the image."""
        config = self._topic_configs.get(name)
        if config is None:
            overrides = self.image.topics[name].overrides
            config = self._topic_configs[name] = topic_config(self._config, overrides, judge=False)
        return config

    def least_in_sync(self, name: str) -> int:
        """`min.insync.replicas` of a topic that is in the image."""
        return self.topic_config(name).min_insync_replicas

    def group_config(self, group_id: str) -> GroupConfig:
        """The settings in force for a group, whether it exists or not."""
        overrides = self.image.group_overrides.get(group_id)
        if not overrides:
            return self._group_config
        config = self._group_configs.get(group_id)
        if config is None:
            config = self._group_configs[group_id] = group_config(self._config, overrides, judge=False)
        return config

    def check_overrides(self, broker: str, overrides: Mapping[str, str], names_files: bool = False) -> None:
        """Raise `ConfigError` if this broker could not run with these overrides of a broker, or of all
        (`layout.DEFAULT_BROKER`); `names_files`: nor use the files that they name, if they are its own."""
        changed = {**self.image.broker_overrides, broker: overrides}
        config = _with_dynamic(self._static, replace(self.image, broker_overrides=changed))
        if names_files and broker == str(self.broker_id):
            for check in self.checks:
                check(config)

    def subscribe(self, subscriber: ImageListener) -> None:
        """Call `subscriber(image, names of changed topics)` with every next image.

        A change is answered once the coroutines that subscribers return are done, one after the other; the first that
        fails ends the others.
        """
        self._subscribers.append(subscriber)

    async def show(self, image: Image, names: Sequence[str]) -> None:
        """Make this the current image; `names` are the topics that may have changed."""
        before, self.image = self.image, image
        if image.broker_overrides != before.broker_overrides:
            self._take_over_settings()
        if image.group_overrides is not before.group_overrides:
            self._group_configs.clear()
        for name in names:
            self._topic_configs.pop(name, None)
        waiting: list[Coroutine[Any, Any, None]] = []
        try:
            for subscriber in self._subscribers:
                if (coroutine := subscriber(image, names)) is not None:
                    waiting.append(coroutine)
            while waiting:
                await waiting.pop(0)
        finally:
            for coroutine in waiting:
                coroutine.close()

    def _take_over_settings(self) -> None:
        try:
            self._config = _with_dynamic(self._static, self.image)
        except ConfigError as wrong:  # this broker refuses such a change, another writer of the metadata may not
            logger.error("the changed settings of brokers are invalid; the previous ones stay in effect: %s", wrong)
            return
        self._group_config = group_config(self._config, {})
        self._group_configs.clear()


def _dynamic(broker_id: int, image: Image) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """The settings that were changed while running: of this broker, and of all brokers."""
    return image.broker_overrides.get(str(broker_id), {}), image.broker_overrides.get(layout.DEFAULT_BROKER, {})


def _with_dynamic(config: BrokerConfig, image: Image) -> BrokerConfig:
    """The settings, overridden first by those of all brokers, then by those of this broker."""
    own, everyone = _dynamic(config.node_id, image)
    return with_changes(config, {**everyone, **own})
