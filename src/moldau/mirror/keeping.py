"""What workers of both kinds of mirrors do again and again: tell, compare, and keep a topic of the target."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple, NoReturn

from moldau.client.cluster_view import TopicView
from moldau.errors import ErrorCode, KafkaError
from moldau.mirror.ends import SETTING, ClusterEnd
from moldau.mirror.planning import SourceTopic, TargetTopic, TopicPlan
from moldau.mirror.topic_settings import MadeSettings, untold
from moldau.notices import Notices

logger = logging.getLogger(__name__)
notices = Notices(logger)
TOLD_EACH_S = 60.0
UNFIT: Final = (ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST)
"""What clusters answer for a setting that they do not have, or a value that they do not allow."""


async def tell_progress(told: Callable[[], str]) -> NoReturn:
    """Log each minute what `told` says."""
    while True:
        await asyncio.sleep(TOLD_EACH_S)
        logger.info("mirroring: %s", told())


async def keep(what: Callable[[], Awaitable[None]], every_s: float, compared: str) -> NoReturn:
    """Do it again and again. A `KafkaError` is logged: what is `compared` cannot be, now."""
    while True:
        await asyncio.sleep(every_s)
        try:
            await what()
        except KafkaError as failure:
            notices.warning("", "%s cannot be compared now: %s", compared, failure)


async def topics_of_both(
    source: ClusterEnd, target: ClusterEnd, stop_all: Callable[[], None]
) -> tuple[dict[str, TopicView], dict[str, TopicView]]:
    """The topics of both clusters. If one is another cluster than before, `stop_all` ends all copying first. Raises
    `KafkaError`."""
    try:
        return await source.topics(), await target.topics()
    except KafkaError as failure:
        if failure.code is ErrorCode.INCONSISTENT_CLUSTER_ID:
            stop_all()
        raise


class SelectedTopic(NamedTuple):
    """A topic of the source that is to be mirrored, and the topic of the target with the name `remote`, if there is
    one: what both clusters tell of them."""

    name: str
    remote: str
    view: TopicView
    settings: MadeSettings | KafkaError
    remote_view: TopicView | None
    remote_settings: MadeSettings | KafkaError | None


class KeptTopic(NamedTuple):
    """`refused`: why the topic cannot be mirrored, else empty. `changed`: the target has another topic now, or more
    partitions. `as_before`: the clusters do not tell what is to be done, and the topic is mirrored already."""

    refused: str = ""
    changed: bool = False
    as_before: bool = False


class TopicUpkeep:
    """Makes the mirrored topics of the target, and keeps their partitions and settings as they are planned. A setting
    that the target refuses is logged once and left out, and the topic is mirrored without it."""

    def __init__(self, end: ClusterEnd, replication_factor: int):
        self._end = end
        self._replication_factor = replication_factor
        self._unfit: dict[str, dict[str, str | None]] = {}
        """Settings that the target has refused, with their values, of each topic."""

    async def keep_topic(
        self, topic: SelectedTopic, is_mirrored: bool, planned: Callable[[SourceTopic, TargetTopic | None], TopicPlan]
    ) -> KeptTopic:
        """Do what is `planned`. A topic that `is_mirrored` goes on if the clusters do not tell its settings now."""
        name, remote, partitions = topic.name, topic.remote, len(topic.view.partitions)
        why = untold(name, topic.settings, topic.remote_settings)
        if why or isinstance(topic.settings, KafkaError):
            if is_mirrored and topic.remote_view is not None:
                notices.warning(name, "%s; it is mirrored as before", why)
                return KeptTopic(as_before=True)
            return KeptTopic(refused=why)
        target = None
        if topic.remote_view is not None and isinstance(topic.remote_settings, dict):
            target = TargetTopic(len(topic.remote_view.partitions), topic.remote_settings)
        wanted = planned(SourceTopic(partitions, topic.settings, topic.settings.get(SETTING, "")), target)
        if wanted.refused:
            return KeptTopic(refused=wanted.refused)
        begun = f"{name} is mirrored" if name == remote else f"{name} is mirrored into {remote}"
        try:
            await self.carry_out(remote, partitions, wanted, begun)
        except KafkaError as failure:
            return KeptTopic(refused=f"{remote} cannot be made in the target: {failure}")
        return KeptTopic(changed=wanted.make or wanted.expand_to is not None)

    async def carry_out(self, name: str, partitions: int, wanted: TopicPlan, begun: str) -> None:
        """Do what is planned for a topic; `begun` is said of one that is made. Raises `KafkaError` if the topic cannot
        be made; one that exists goes on as it is."""
        if wanted.make:
            await self._make(name, partitions, wanted.changes, begun)
            return
        try:
            if wanted.expand_to is not None:
                await self._end.admin.create_partitions(name, wanted.expand_to)
                logger.info("%s has %d partitions now, as in the source cluster", name, wanted.expand_to)
            await self._change(name, wanted.changes)
        except KafkaError as failure:
            notices.error(name, "%s is mirrored, and cannot be kept as its source is: %s", name, failure)

    async def _make(self, name: str, partitions: int, settings: Mapping[str, str | None], begun: str) -> None:
        self._unfit.pop(name, None)
        try:
            try:
                await self._create(name, partitions, settings)
            except KafkaError as failure:
                if failure.code not in UNFIT:
                    raise
                needed = {key: value for key, value in settings.items() if key == SETTING}
                await self._create(name, partitions, needed)
                await self._change(name, {key: value for key, value in settings.items() if key not in needed})
        except KafkaError as failure:
            if failure.code is not ErrorCode.TOPIC_ALREADY_EXISTS:  # another worker was faster
                raise
        logger.info("%s from now on", begun)

    async def _create(self, name: str, partitions: int, settings: Mapping[str, str | None]) -> None:
        factor = self._replication_factor
        await self._end.admin.create_topic(name, partitions=partitions, replication_factor=factor, configs=settings)

    async def _change(self, name: str, changes: Mapping[str, str | None]) -> None:
        """Change settings at once; if the target refuses that, one by one. Raises `KafkaError`."""
        unfit = self._unfit.setdefault(name, {})
        wanted = {key: value for key, value in changes.items() if key not in unfit or unfit[key] != value}
        if not wanted:
            return
        changed: list[str] = []
        try:
            await self._end.admin.alter_topic_configs(name, wanted)
            changed = sorted(wanted)
        except KafkaError as refusal:
            if refusal.code not in UNFIT:
                raise
            for key, value in sorted(wanted.items()):
                try:
                    await self._end.admin.alter_topic_configs(name, {key: value})
                    changed.append(key)
                except KafkaError as failure:
                    if failure.code not in UNFIT:
                        raise
                    unfit[key] = value
                    logger.warning("%s is mirrored without the setting %s=%s: %s", name, key, value, failure)
        if changed:
            logger.info("%s: settings changed as in the source cluster: %s", name, ", ".join(changed))


def log_refusals(refused: Mapping[str, str], before: Mapping[str, str]) -> None:
    """Log why topics are not mirrored, except those that were refused before for the same reason."""
    for name, why in refused.items():
        if before.get(name) != why:
            logger.error("not mirrored: %s", why)
