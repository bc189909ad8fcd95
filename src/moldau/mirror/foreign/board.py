"""What the parts of one worker know of the mirror: its clusters and names, the topics, how far the partitions are."""

import asyncio
import logging
import uuid
from collections.abc import Mapping
from typing import NamedTuple

from moldau.client.routing import Router
from moldau.mirror.ends import ClusterEnd
from moldau.mirror.foreign.copy_positions import NO_ID
from moldau.mirror.foreign.policy import ReplicationPolicy
from moldau.mirror.sharing import GROUP
from moldau.names import TopicPartition

logger = logging.getLogger(__name__)


class RemoteTopic(NamedTuple):
    """A mirrored topic: its name in the target, its partitions, its ids in source and target (zero if unknown)."""

    remote: str
    partitions: int
    source_id: uuid.UUID
    target_id: uuid.UUID


class Board:
    """`topics`: those that are mirrored, by their names in the source. `stopped`: why partitions are not copied.
    `positions_of`: the next offset of the source, of partitions that were copied by this worker; `behind`: how many
    offsets they lack. `records` counts what was copied. `lanes` is 0 before the positions topic is known."""

    def __init__(
        self,
        source: ClusterEnd,
        target: ClusterEnd,
        policy: ReplicationPolicy,
        *,
        lag_max: int,
        checkpoints_s: float,
        compression: str,
    ):
        self.source = source
        self.target = target
        self.policy = policy
        self.lag_max = lag_max
        self.checkpoints_s = checkpoints_s
        self.compression = compression
        self.lanes = 0
        self.positions = policy.positions()
        self.offset_syncs = policy.offset_syncs()
        self.topics: dict[str, RemoteTopic] = {}
        self.stopped: dict[TopicPartition, str] = {}
        self.positions_of: dict[TopicPartition, int] = {}
        self.behind: dict[TopicPartition, int] = {}
        self.records = 0
        self._changed: dict[int, asyncio.Event] = {}

    @property
    def name(self) -> str:
        """The name of the workers' group, and how their transactional ids begin."""
        return f"{GROUP}{self.policy.source}"

    def transactional_id(self, lane: int) -> str:
        return f"{self.name}-{lane}"

    def remote(self, tp: TopicPartition) -> str:
        """The name of its topic in the target."""
        return self.policy.remote(tp.topic)

    def changed(self, lane: int) -> asyncio.Event:
        """Set when a lane has to look at `topics` again."""
        return self._changed.setdefault(lane, asyncio.Event())

    def mirror(self, topics: Mapping[str, RemoteTopic]) -> None:
        """These topics are mirrored now. A partition that has stopped is looked at again if one of its topics is
        another one than before."""
        if dict(topics) == self.topics:
            return
        anew = {name for name, topic in topics.items() if topic != self.topics.get(name)}
        self.topics = dict(topics)
        for known in (self.stopped, self.behind, self.positions_of):
            for tp in [tp for tp in known if tp.topic in anew or tp.topic not in topics]:
                del known[tp]
        self._look()

    def stop(self, tp: TopicPartition, why: str) -> None:
        """Copy this partition no longer."""
        logger.error("%s is mirrored no longer: %s", tp, why)
        self.stopped[tp] = why
        self._look()

    def _look(self) -> None:
        for event in self._changed.values():
            event.set()

    @staticmethod
    def id_in(router: Router, topic: str) -> uuid.UUID:
        """The topic's id, as the cluster told it last."""
        return router.view.topic_id(topic) or NO_ID
