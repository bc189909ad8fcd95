"""Work of the controller that lasts: an administrator begins it, and it ends hours later, perhaps under another
controller.

The image shows all that is under way, and nothing else remembers it, so a new controller goes on with what it reads. A
kind of work is one pure function: from an image to the next change of that work, or to None while it has to wait. The
controller calls it when topics have changed (their ISRs, for instance), when brokers have come or gone, and when its
term begins. Each change takes its turn in the queue like all others. It must bring the work forward: the function is
called again until it returns None. Throttles that were set for moves, and that no move has taken along, go after a
while (see `move_throttles`).
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple, TypeAlias

from moldau.cluster.controlling.controller_queue import ControllerQueue
from moldau.cluster.state.elections import BATCH_MAX, LeastInSync, steps_of
from moldau.cluster.state.image import Image, TopicImage
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.cluster.state.move_throttles import LeftOverThrottles, MoveOver, without_throttles_of
from moldau.cluster.state.reassignment import next_ended, originals_of
from moldau.metadata_store.store import NodeOperation
from moldau.names import TopicPartition, counted

logger = logging.getLogger(__name__)


class NextChange(NamedTuple):
    """`operations` makes the operations, for at most `BATCH_MAX` partitions; `line` is logged once they are written."""

    operations: Callable[[], Sequence[NodeOperation]]
    line: str


Work: TypeAlias = Callable[[Image, Collection[TopicImage]], NextChange | None]
"""The next change of one kind of work in these topics. Pure."""


def end_of_reassignments(least: LeastInSync, image: Image, topics: Collection[TopicImage]) -> NextChange | None:
    """Partitions whose target replicas are all in sync lose the others, and the throttles of their moves."""
    ended = list(islice(next_ended(topics, least), BATCH_MAX))
    if not ended:
        return None
    line = f"the reassignment of {counted(len(ended), 'partition')} is complete"

    def operations() -> list[NodeOperation]:
        parts = (
            (TopicPartition(one.topic, one.number), image.topics[one.topic].partitions[one.number]) for one in ended
        )
        over = (MoveOver(tp, originals_of(part)) for tp, part in parts)
        return [*without_throttles_of(image, over), *steps_of(image, ended)]

    return NextChange(operations, line)


class LastingWork:
    """`metadata` and `queue` are the controller's."""

    def __init__(self, metadata: MetadataCache, queue: ControllerQueue, least: LeastInSync):
        self._metadata = metadata
        self._queue = queue
        self._kinds: Sequence[Work] = (partial(end_of_reassignments, least),)
        self._is_due = False
        self._left_over = LeftOverThrottles()

    def changed(self, image: Image, names: Collection[str]) -> bool:
        """These topics have changed; returns whether some work in them can go on now."""
        topics = [image.topics[name] for name in names if name in image.topics]
        can_go_on = self._next(image, topics) is not None
        self._is_due |= can_go_on
        return can_go_on

    def brokers_changed(self) -> None:
        """Brokers have come or gone, or this broker became the controller."""
        self._is_due = True

    async def go_on(self) -> None:
        """Make all changes that are due now. Raises what `ChangeQueue.commit` raises."""
        while self._is_due:
            self._is_due = False  # what changes during the change is due again
            if await self._queue.made(self._make_next):
                self._is_due = True
        if self._left_over_now():
            await self._queue.made(self._take_left_over_away)

    def due_in_s(self) -> float:
        """How long until something is due although nothing changes."""
        return self._left_over.due_in_s(asyncio.get_running_loop().time())

    def _left_over_now(self) -> Sequence[NodeOperation]:
        return self._left_over.look(self._metadata.image, asyncio.get_running_loop().time())

    async def _take_left_over_away(self) -> None:
        # A move may have begun before this change had its turn.
        if operations := self._left_over_now():
            await self._queue.commit(operations)
            logger.info("throttles that were set for reassignments are removed: none is under way any more")

    async def _make_next(self) -> bool:
        image = self._metadata.image

        def decide() -> tuple[Sequence[NodeOperation], str] | None:
            change = self._next(image, image.topics.values())
            return None if change is None else (change.operations(), change.line)

        decided = await self._queue.decided(sum(len(topic.partitions) for topic in image.topics.values()), decide)
        if decided is None:
            return False
        operations, line = decided
        await self._queue.commit(operations)
        logger.info("%s", line)
        return True

    def _next(self, image: Image, topics: Collection[TopicImage]) -> NextChange | None:
        changes = (work(image, topics) for work in self._kinds)
        return next((change for change in changes if change is not None), None)
