"""Work of the controller that lasts: an administrator begins it, and it ends hours later, perhaps under another
controller.

What is under way is in the image and nowhere else, so a new controller goes on with what it reads. A kind of work is
one function, from the image to the next change of that work, or to None while it has to wait. It is asked whenever
topics have changed (such as their ISRs), and when brokers have come or gone; its changes take their turn in the queue
like all others. A change must bring the work forward: the function is asked again until it returns None.
"""

import logging
from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple, TypeAlias

from moldau.cluster.controlling.controller_queue import ControllerQueue
from moldau.cluster.state.elections import BATCH_MAX, LeastInSync, steps_of
from moldau.cluster.state.image import Image, TopicImage
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.cluster.state.reassignment import next_ended
from moldau.metadata_store.store import Operation
from moldau.names import counted

logger = logging.getLogger(__name__)


class NextChange(NamedTuple):
    """The operations, of `BATCH_MAX` partitions at most, and a line for the operator once they are written."""

    operations: Sequence[Operation]
    line: str


Work: TypeAlias = Callable[[Image, Collection[TopicImage]], NextChange | None]
"""The next change of one kind of work in these topics. Pure."""


def end_of_reassignments(least: LeastInSync, image: Image, topics: Collection[TopicImage]) -> NextChange | None:
    """Partitions whose target replicas are all in sync lose the others."""
    found = list(islice(next_ended(topics, least), BATCH_MAX))
    if not found:
        return None
    return NextChange(steps_of(image, found), f"the reassignment of {counted(len(found), 'partition')} is complete")


class LastingWork:
    """`metadata` and `queue` are the controller's."""

    def __init__(self, metadata: MetadataCache, queue: ControllerQueue, least: LeastInSync):
        self._metadata = metadata
        self._queue = queue
        self._kinds: Sequence[Work] = (partial(end_of_reassignments, least),)
        self._is_due = False

    def changed(self, image: Image, names: Collection[str]) -> bool:
        """These topics have changed; returns whether there is something to do by that."""
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

    async def _make_next(self) -> bool:
        image = self._metadata.image
        partitions = sum(len(topic.partitions) for topic in image.topics.values())
        change = await self._queue.decided(partitions, lambda: self._next(image, image.topics.values()))
        if change is None:
            return False
        await self._queue.commit(change.operations)
        logger.info("%s", change.line)
        return True

    def _next(self, image: Image, topics: Collection[TopicImage]) -> NextChange | None:
        changes = (work(image, topics) for work in self._kinds)
        return next((change for change in changes if change is not None), None)
