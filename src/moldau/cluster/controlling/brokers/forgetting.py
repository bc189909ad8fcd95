"""Brokers that have left for good are forgotten: what the controller keeps of them goes.

    the registration that was dealt with last    the broker is known no more: if it comes back, it counts as new
    the eligible leaders of partitions           it cannot be waited for: a partition whose last eligible leader it was
                                                 gets a leader by an unclean election, or when another replica can lead
    deleted topics that it may still have        their names are free, and nothing waits for it

It stays among the replicas of its partitions. `forgetting_refusal` and `without_broker` are pure.
"""

import logging
from collections.abc import Callable, Collection
from functools import partial

from moldau.cluster.controlling.controller import Refusal
from moldau.cluster.controlling.controller_queue import ControllerQueue
from moldau.cluster.state import layout
from moldau.cluster.state.deletions import Deletions
from moldau.cluster.state.elections import Elected, in_batches, steps_of
from moldau.cluster.state.image import Image
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.errors import ErrorCode
from moldau.metadata_store.store import Delete

logger = logging.getLogger(__name__)


def forgetting_refusal(image: Image, broker_id: int, known: Collection[int]) -> Refusal | None:
    """Why a broker cannot be forgotten; `known` are those that have registered, and were not forgotten since."""
    if broker_id in image.brokers:
        sentence = f"broker {broker_id} is running: stop it first, and unregister it only if it will not come back"
        return Refusal(ErrorCode.INVALID_REQUEST, sentence)
    if broker_id not in known:
        return Refusal(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not currently registered")
    return None


def without_broker(image: Image, broker_id: int) -> list[Elected]:
    """The partitions of which this broker, which is not up, is an eligible leader or was one."""
    return [
        Elected(
            topic.name,
            number,
            part._replace(
                elr=tuple(one for one in part.elr if one != broker_id),
                last_elr=tuple(one for one in part.last_elr if one != broker_id),
            ),
        )
        for topic in image.topics.values()
        for number, part in enumerate(topic.partitions)
        if broker_id in part.elr or broker_id in part.last_elr
    ]


class ForgottenBrokers:
    """`metadata` and `queue` are the controller's; `known` returns the broker epochs that were dealt with, which lose
    the broker, and `deletions` the deletions that wait for brokers."""

    def __init__(
        self,
        metadata: MetadataCache,
        queue: ControllerQueue,
        known: Callable[[], dict[int, int]],
        deletions: Callable[[], Deletions],
    ):
        self._metadata = metadata
        self._queue = queue
        self._known = known
        self._deletions = deletions

    async def forget(self, broker_id: int) -> Refusal | None:
        """Raises what `ChangeQueue.commit` raises."""
        return await self._queue.run(partial(self._forget, broker_id))

    async def _forget(self, broker_id: int) -> Refusal | None:
        image, known = self._metadata.image, self._known()
        if (refusal := forgetting_refusal(image, broker_id, known)) is not None:
            return refusal
        partitions = sum(len(topic.partitions) for topic in image.topics.values())
        changed = await self._queue.decided(partitions, lambda: without_broker(image, broker_id))
        for batch in in_batches(changed):
            await self._queue.commit(steps_of(self._metadata.image, batch))
        await self._queue.commit([Delete(f"{layout.BROKER_EPOCHS}/{broker_id}")])
        known.pop(broker_id, None)
        self._deletions().forget(broker_id)
        logger.info("broker %d is forgotten: it has left the cluster for good", broker_id)
        return None
