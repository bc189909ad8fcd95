"""A worker of a mirror: makes the mirrored topics, keeps them as their sources are, and copies.

All state is in the target: which topic mirrors what (the setting `mirror.source`), and how far (where its log ends). A
worker that starts anew, or another one, asks. Several workers share the partitions (`sharing`).
"""

import asyncio
import logging
import re
from dataclasses import dataclass
from functools import partial

from moldau.mirror.access import copy_acls, to_add
from moldau.mirror.copied_partitions import CopiedTopic
from moldau.mirror.copying import Copying
from moldau.mirror.counters import MirrorGauges
from moldau.mirror.ends import NO_ID, ClusterEnd, check_ends, source_of
from moldau.mirror.groups import sync_groups
from moldau.mirror.keeping import SelectedTopic, TopicUpkeep, keep, log_refusals, tell_progress, topics_of_both
from moldau.mirror.planning import plan
from moldau.mirror.sharing import MemberOptions, Sharing
from moldau.names import counted
from moldau.notices import Notices
from moldau.tasks import ended

logger = logging.getLogger(__name__)
notices = Notices(logger)
COMPARED = "topics, settings and groups"


@dataclass(frozen=True)
class MirrorSettings:
    """`topics`: the mirrored topics are those whose whole names match it. `replication_factor`: of topics that are made
    in the target, -1 for its default. `refresh_s`: how often topics, settings and groups are looked at. `groups`: the
    offsets of those groups are kept in the target, too. `acls`: access rights of mirrored topics are copied. `member`:
    how this worker takes part in the group of the workers."""

    topics: re.Pattern[str]
    replication_factor: int = -1
    refresh_s: float = 10.0
    groups: re.Pattern[str] = re.compile(".*")
    acls: bool = False
    member: MemberOptions = MemberOptions()


class MirrorWorker:
    """`refused`: a sentence for each topic that matches and is not mirrored. Runs in `run` until it is cancelled."""

    def __init__(self, source: ClusterEnd, target: ClusterEnd, settings: MirrorSettings):
        self.source = source
        self.target = target
        self.settings = settings
        self.copying = Copying(source.router, target.router)
        self.refused: dict[str, str] = {}
        self._bytes_told = 0
        self._sharing = Sharing(target, source.cluster_id, self.copying, notices, settings.member)
        self._upkeep = TopicUpkeep(target, settings.replication_factor)

    async def run(self) -> None:
        """Raises `ConfigError` if the clusters cannot be the ends of a mirror, `KafkaError` if they cannot be asked at
        the start."""
        await check_ends(self.source, self.target)
        await self.refresh()
        tasks = [
            asyncio.ensure_future(self._sharing.run()),
            asyncio.ensure_future(tell_progress(self.told)),
            asyncio.ensure_future(self.copying.run()),
            asyncio.ensure_future(keep(self.refresh, self.settings.refresh_s, COMPARED)),
            asyncio.ensure_future(keep(self.sync_groups, self.settings.refresh_s, COMPARED)),
        ]
        try:
            await asyncio.gather(*tasks)
        finally:
            await ended(*tasks)

    @property
    def gauges(self) -> MirrorGauges:
        copies = self.copying.copies.values()
        return MirrorGauges(
            partitions=len(copies),
            followed=sum(copy.session is not None for copy in copies),
            stopped=sum(bool(copy.stopped or copy.damaged) for copy in copies),
            offsets_behind=sum(copy.records_behind or 0 for copy in copies),
            refused_topics=len(self.refused),
        )

    def told(self) -> str:
        """What the log says of the work each minute."""
        gauges, appended = self.gauges, self.copying.counters.appended_bytes
        moved, self._bytes_told = appended - self._bytes_told, appended
        so_far = f"{counted(gauges.partitions, 'partition')}, {moved:,} bytes since the last line"
        halted = f", {counted(gauges.stopped, 'partition')} stopped" if gauges.stopped else ""
        return f"{so_far}, {counted(gauges.offsets_behind, 'record')} behind{halted}"

    async def sync_groups(self) -> None:
        """Commit what groups of the source have committed. Raises `KafkaError`."""
        mirrors = {name: one.source for name, one in self.copying.topics.items()}
        synced = await sync_groups(self.source, self.target, mirrors, self.settings.groups)
        for group in synced.changed:
            notices.info(group, "offsets of group %s are kept in the target cluster", group)
        for group, failure in synced.failures.items():
            notices.warning(group, "offsets of group %s cannot be kept now: %s", group, failure)

    async def refresh(self) -> None:
        """Compare topics and settings, and do what is to be done. Raises `KafkaError`."""
        of_source, of_target = await topics_of_both(self.source, self.target, lambda: self.copying.mirror({}))
        names = [name for name in of_source if self.settings.topics.fullmatch(name)]
        has = await self.source.settings(names)
        had = await self.target.settings(name for name in names if name in of_target)
        mirrored: dict[str, CopiedTopic] = {}
        refused: dict[str, str] = {}
        for name in names:
            topic, refusal = await self._kept(
                SelectedTopic(name, name, of_source[name], has[name], of_target.get(name), had.get(name))
            )
            if topic is None:
                refused[name] = refusal
            else:
                mirrored[name] = topic
        log_refusals(refused, self.refused)
        self.refused = refused
        self.copying.mirror(mirrored)
        self._sharing.want({name: len(of_source[name].partitions) for name in mirrored})
        if self.settings.acls and mirrored:
            await copy_acls(self.source, self.target, partial(to_add, topics=mirrored))

    async def _kept(self, topic: SelectedTopic) -> tuple[CopiedTopic | None, str]:
        """How the topic is copied, or why it is not."""
        name, view = topic.name, topic.view
        known = self.copying.topics.get(name)
        mirror_source = source_of(self.source.cluster_id, view.topic_id)
        is_mirrored = known is not None and known.topic_id == view.topic_id
        kept = await self._upkeep.keep_topic(
            topic, is_mirrored, lambda source, target: plan(name, source, mirror_source, target, self.target.cluster_id)
        )
        if kept.refused:
            return None, kept.refused
        if kept.as_before:
            return known, ""
        mirror_id = NO_ID if topic.remote_view is None else topic.remote_view.topic_id
        return CopiedTopic(mirror_source, view.topic_id, mirror_id), ""
