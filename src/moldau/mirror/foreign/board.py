"""What the parts of one worker know of the mirror: its clusters and names, the topics, how far the partitions are."""

import asyncio
import logging
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from moldau.client.routing import Router
from moldau.mirror.ends import ClusterEnd
from moldau.mirror.foreign.copy_positions import NO_ID, lane_of
from moldau.mirror.foreign.policy import ReplicationPolicy
from moldau.mirror.latency import ReplicationLatency
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
    """`topics`: those that are mirrored, by their names in the source. `stopped`: why partitions are not copied, those
    that pause included. `positions_of`: the next offset of the source, of the partitions of this worker; `behind`: how
    many offsets they lack. `records` counts what was copied, `pauses` how often a partition or a lane paused because of
    an error. `latencies`: of the records of each partition. `lanes` is 0 before the positions topic is known."""

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
        self.latencies: dict[TopicPartition, ReplicationLatency] = {}
        self.records = 0
        self.pauses = 0
        self._again_s: dict[TopicPartition, float] = {}
        """When partitions that pause are tried again."""
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
        self._forget(lambda tp: tp.topic in anew or tp.topic not in topics)
        self._look(self._changed)

    def release(self, lane: int) -> None:
        """Another worker may have the lane now, and knows more of its partitions."""
        self._forget(lambda tp: lane_of(tp, self.lanes) == lane)

    def stop(self, tp: TopicPartition, why: str) -> None:
        """Copy this partition no longer."""
        logger.error("%s is mirrored no longer: %s", tp, why)
        self._set_aside(tp, why)

    def pause(self, tp: TopicPartition, why: str, seconds: float) -> None:
        """Copy this partition again after this time, and the others of its lane meanwhile."""
        logger.error("%s is not mirrored now, and tried again in %g s: %s", tp, seconds, why)
        self._again_s[tp] = asyncio.get_running_loop().time() + seconds
        self.pauses += 1
        self._set_aside(tp, why)

    def try_again(self) -> None:
        """Let partitions that have paused for long enough be copied."""
        now_s = asyncio.get_running_loop().time()
        due = [tp for tp, again_s in self._again_s.items() if again_s <= now_s]
        for tp in due:
            del self._again_s[tp]
            self.stopped.pop(tp, None)
        self._look({lane_of(tp, self.lanes) for tp in due})

    def _set_aside(self, tp: TopicPartition, why: str) -> None:
        self.stopped[tp] = why
        self._look([lane_of(tp, self.lanes)])

    def _forget(self, which: Callable[[TopicPartition], bool]) -> None:
        for known in (self.stopped, self.behind, self.latencies, self.positions_of, self._again_s):
            for tp in [tp for tp in known if which(tp)]:
                del known[tp]

    def _look(self, lanes: Iterable[int]) -> None:
        for lane in [*lanes]:
            self.changed(lane).set()

    @staticmethod
    def id_in(router: Router, topic: str) -> uuid.UUID:
        """The topic's id, as the cluster told it last."""
        return router.view.topic_id(topic) or NO_ID
