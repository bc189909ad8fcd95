"""What the worker that has the first lane tells in the target: heartbeats, and the positions of groups.

Positions are translated by the pairs of offsets in the target (`offset_syncs`), which are read up to their end first.
The checkpoints that were told before are read as well, so that no group goes back because another worker tells.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from moldau.client.consuming.async_consumer import AsyncConsumer
from moldau.client.producing.async_producer import AsyncProducer
from moldau.errors import KafkaError
from moldau.mirror.ends import CLIENT_ID
from moldau.mirror.foreign.board import Board
from moldau.mirror.foreign.foreign_settings import ForeignSettings
from moldau.mirror.foreign.group_checkpoints import ToldCheckpoints, news, of_group, selects, translated
from moldau.mirror.foreign.mirror_records import (
    GroupCheckpoint,
    checkpoint_record,
    heartbeat_record,
    read_checkpoint,
    read_sync,
)
from moldau.mirror.foreign.offset_syncs import OffsetTranslation
from moldau.mirror.foreign.policy import HEARTBEATS
from moldau.mirror.foreign.target_topics import make_topic, reader, records_from
from moldau.mirror.groups import SHARE, WITHOUT_MEMBERS, to_commit
from moldau.names import TopicPartition, counted
from moldau.notices import Notices

PAUSE_S: Final = 1.0

logger = logging.getLogger(__name__)
notices = Notices(logger)


class Telling:
    """Runs in `run` until it is cancelled."""

    def __init__(self, board: Board, settings: ForeignSettings):
        self._board = board
        self._settings = settings
        self._begin()

    def _begin(self) -> None:
        self._translation = OffsetTranslation()
        self._known: ToldCheckpoints = {}
        self._next = 0

    async def run(self) -> None:
        while True:
            self._begin()
            try:
                async with (
                    AsyncProducer(self._board.target.brokers, client_id=CLIENT_ID) as producer,
                    reader(self._board.target) as topics,
                ):
                    await self._read_checkpoints(topics)
                    policy = self._board.policy
                    async with asyncio.TaskGroup() as group:
                        group.create_task(self._beat(producer, policy.source, policy.target))
                        group.create_task(self._tell_groups(producer, topics))
                        if self._settings.source_heartbeats:
                            group.create_task(self._beat_in_source())
            except* KafkaError as failures:
                notices.warning("", "checkpoints and heartbeats of the mirror pause: %s", failures.exceptions[0])
                await asyncio.sleep(PAUSE_S)

    async def _beat(self, producer: AsyncProducer, source: str, target: str) -> None:
        """Write heartbeats, by which MirrorMaker's clients see that a mirror is alive."""
        clock = self._board.target.router.runtime.clock
        while True:
            key, value = heartbeat_record(source, target, clock.now_ms())
            await (await producer.send(HEARTBEATS, value, key, partition=0))
            await asyncio.sleep(self._settings.heartbeats_s)

    async def _beat_in_source(self) -> None:
        """Write heartbeats into the source, as MirrorMaker does for the way back. They are mirrored, and show clients
        of the target which clusters it gets records from."""
        policy = self._board.policy
        await make_topic(self._board.source, HEARTBEATS, 1, self._settings.replication_factor)
        async with AsyncProducer(self._board.source.brokers, client_id=CLIENT_ID) as producer:
            await self._beat(producer, policy.target, policy.source)

    async def _tell_groups(self, producer: AsyncProducer, topics: AsyncConsumer) -> None:
        while True:
            await self.tell(producer, topics)
            await asyncio.sleep(self._board.checkpoints_s)

    async def _read_checkpoints(self, topics: AsyncConsumer) -> None:
        async for record in records_from(topics, TopicPartition(self._board.policy.checkpoints(), 0)):
            told = read_checkpoint(record.key, record.value)
            if told is not None:
                self._known[told.group, told.tp] = told

    async def _read_syncs(self, topics: AsyncConsumer) -> None:
        """Read the pairs that were told since the last time."""
        tp = TopicPartition(self._board.offset_syncs, 0)
        if await topics.log(*tp).end() < self._next:  # the topic was made anew
            self._translation, self._next = OffsetTranslation(), 0
        async for record in records_from(topics, tp, self._next):
            self._next = record.offset + 1
            sync = read_sync(record.key, record.value)
            if sync is not None:
                self._translation.add(*sync)
        self._translation.is_complete = True

    async def tell(self, producer: AsyncProducer, topics: AsyncConsumer) -> None:
        """Write the checkpoints of groups that are further than before. Raises `KafkaError`."""
        board, policy = self._board, self._board.policy
        await self._read_syncs(topics)
        for group in await board.source.admin.list_groups():
            name = group.group_id
            if not selects(name, self._settings.groups) or group.type.lower() == SHARE:
                continue
            try:
                of_source = await board.source.admin.group_offsets(name)
            except KafkaError as failure:  # it was deleted meanwhile, or rights are missing
                notices.warning(name, "the positions of group %s cannot be read now: %s", name, failure)
                continue
            found = translated(name, of_source, board.topics, policy, self._translation)
            await self._write(producer, news(found, self._known))
        if self._settings.sync_groups:
            await self._commit()

    async def _write(self, producer: AsyncProducer, changed: list[GroupCheckpoint]) -> None:
        deliveries = []
        for one in changed:
            key, value = checkpoint_record(one)
            deliveries.append(await producer.send(self._board.policy.checkpoints(), value, key, partition=0))
        for delivery in deliveries:
            await delivery
        self._known.update({(one.group, one.tp): one for one in changed})

    async def _commit(self) -> None:
        """Commit what was told of groups that have no members in the target, and never backwards."""
        admin = self._board.target.admin
        states = {one.group_id: one.state for one in await admin.list_groups()}
        for group in sorted({group for group, _ in self._known}):
            if states.get(group, "Empty") not in WITHOUT_MEMBERS or not selects(group, self._settings.groups):
                continue
            told = of_group(group, self._known)
            try:
                ends = await self._ends(told)
                wanted = to_commit(told, await admin.group_offsets(group) if group in states else {}, ends)
                if wanted:
                    await admin.alter_group_offsets(group, wanted)
                    notices.info(group, "group %s: %s committed in the target", group, counted(len(wanted), "position"))
            except KafkaError as failure:  # a member has joined meanwhile, or rights are missing
                notices.warning(group, "the positions of group %s cannot be committed now: %s", group, failure)

    async def _ends(self, told: Mapping[TopicPartition, object]) -> dict[TopicPartition, int]:
        """Where the logs of these partitions end, of those that exist."""
        views = self._board.target.router.view.topics
        there = [tp for tp in told if tp.topic in views and tp.partition in views[tp.topic].partitions]
        return await self._board.target.admin.offsets(dict.fromkeys(there, "latest"), known_only=True) if there else {}
