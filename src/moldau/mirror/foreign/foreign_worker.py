"""A worker of a mirror into a foreign Kafka: makes the topics, keeps them as their sources are, and has lanes copy.

All state is in the target: positions, pairs of offsets and checkpoints are in topics. Several workers share the lanes
as members of a group, and a lane's transactional id sees to it that one of them copies it.
"""

import asyncio
import logging
from functools import partial
from typing import Final

from moldau.errors import ConfigError
from moldau.mirror.access import copy_acls
from moldau.mirror.ends import ClusterEnd, check_different
from moldau.mirror.foreign.board import Board, RemoteTopic
from moldau.mirror.foreign.foreign_settings import ForeignSettings
from moldau.mirror.foreign.lanes import Lanes
from moldau.mirror.foreign.policy import HEARTBEATS
from moldau.mirror.foreign.remote_acls import rights_to_add
from moldau.mirror.foreign.remote_topics import plan_remote
from moldau.mirror.foreign.target_topics import check_compacted, make_topic, read_positions, reader
from moldau.mirror.foreign.telling import Telling
from moldau.mirror.keeping import (
    KeptTopic,
    SelectedTopic,
    TopicUpkeep,
    keep,
    log_refusals,
    tell_progress,
    topics_of_both,
)
from moldau.mirror.sharing import Sharing
from moldau.names import counted
from moldau.notices import Notices
from moldau.tasks import ended

logger = logging.getLogger(__name__)
notices = Notices(logger)
COMPARED: Final = "topics and settings"


class ForeignWorker:
    """`refused`: a sentence for each topic that is wanted and not mirrored. Runs in `run` until it is cancelled."""

    def __init__(self, source: ClusterEnd, target: ClusterEnd, settings: ForeignSettings):
        self.source = source
        self.target = target
        self.settings = settings
        self.board = Board(
            source,
            target,
            settings.policy,
            lag_max=settings.lag_max,
            checkpoints_s=settings.checkpoints_s,
            compression=settings.compression,
        )
        self.lanes = Lanes(self.board, Telling(self.board, settings))
        self.refused: dict[str, str] = {}
        self._told = 0
        self._sharing = Sharing(
            target, settings.policy.source, self.lanes, notices, settings.member._replace(options=settings.digest)
        )
        self._upkeep = TopicUpkeep(target, settings.replication_factor)

    async def run(self) -> None:
        """Raises `ConfigError` if the clusters, or the topics that a mirror keeps in the target, are of no use, and
        `KafkaError` if they cannot be asked at the start."""
        check_different(self.source, self.target)
        await self._sharing.admitted()
        await self.prepare()
        self._sharing.want({self.board.positions: self.board.lanes})
        logger.info(
            "the target is mirrored to by MirrorMaker's rules, exactly once: orders becomes %s, positions are in %s",
            self.settings.policy.remote("orders"),
            self.board.positions,
        )
        tasks = [
            asyncio.ensure_future(self._sharing.run()),
            asyncio.ensure_future(self.lanes.run()),
            asyncio.ensure_future(tell_progress(self.told)),
            asyncio.ensure_future(keep(self.refresh, self.settings.refresh_s, COMPARED)),
        ]
        try:
            await asyncio.gather(*tasks)
        finally:
            await ended(*tasks)

    async def prepare(self) -> None:
        """Have all topics in the target. Raises as `run` does."""
        await self._make_internal_topics()
        await self.refresh()

    def told(self) -> str:
        """What the log says of the work each minute."""
        board = self.board
        moved, self._told = board.records - self._told, board.records
        halted = f", {counted(len(board.stopped), 'partition')} stopped" if board.stopped else ""
        behind = counted(sum(board.behind.values()), "record")
        return (
            f"{counted(len(self.lanes.copies), 'lane')}, {moved:,} records since the last line, {behind} behind{halted}"
        )

    async def _make_internal_topics(self) -> None:
        policy, board = self.settings.policy, self.board
        there = await self.target.admin.list_topics()
        wanted = {board.positions: self.settings.lanes, board.offset_syncs: 1, policy.checkpoints(): 1, HEARTBEATS: 1}
        for name, partitions in wanted.items():
            if name not in there:
                await make_topic(self.target, name, partitions, self.settings.replication_factor)
        board.lanes = len((await self.target.admin.describe_topics([board.positions]))[board.positions].partitions)
        await check_compacted(self.target, board.positions)
        async with reader(self.target) as topics:
            for lane in range(board.lanes):  # all of them: another source of the same alias would share them silently
                await read_positions(topics, board.positions, lane, board.lanes, self.source.cluster_id)

    async def refresh(self) -> None:
        """Compare topics and settings, and do what is to be done. Raises `KafkaError`, and `ConfigError` for a loop."""
        self.board.try_again()
        policy = self.settings.policy
        of_source, of_target = await topics_of_both(self.source, self.target, lambda: self.board.mirror({}))
        loop = policy.loop(of_source)
        if loop:
            raise ConfigError(loop)
        selected = [name for name in of_source if policy.selects(name, self.settings.topics)]
        refused = {
            name: f"{name} came from the target {policy.target!r}: it is not mirrored back"
            for name in selected
            if policy.is_cycle(name)
        }
        names = [name for name in selected if name not in refused]
        has = await self.source.settings(names)
        remotes = {policy.remote(name) for name in has}
        had = await self.target.settings(remote for remote in remotes if remote in of_target)
        made = False
        there: list[str] = []
        for name in names:
            remote = policy.remote(name)
            kept = await self._kept(
                SelectedTopic(name, remote, of_source[name], has[name], of_target.get(remote), had.get(remote))
            )
            made = made or kept.changed
            if kept.refused:
                refused[name] = kept.refused
            else:
                there.append(name)
        log_refusals(refused, self.refused)
        self.refused = refused
        if made:
            of_target = await self.target.topics()
        mirrored = {name: policy.remote(name) for name in there if policy.remote(name) in of_target}
        self.board.mirror(
            {
                name: RemoteTopic(
                    remote,
                    min(len(of_source[name].partitions), len(of_target[remote].partitions)),
                    of_source[name].topic_id,
                    of_target[remote].topic_id,
                )
                for name, remote in mirrored.items()
            }
        )
        if self.settings.acls and mirrored:
            await copy_acls(self.source, self.target, partial(rights_to_add, remotes=mirrored))

    async def _kept(self, topic: SelectedTopic) -> KeptTopic:
        name, remote = topic.name, topic.remote
        return await self._upkeep.keep_topic(
            topic,
            name in self.board.topics,
            lambda source, target: plan_remote(name, remote, source, target, self.target.cluster_id),
        )
