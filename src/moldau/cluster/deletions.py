"""Deleted topics that some broker may still have logs of. The metadata keeps their ids until every broker that had a
replica acts by an image without the topic: a broker that is away meanwhile deletes its logs when it is back. Pure.
"""

import uuid
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from moldau.cluster.image import Image


class Deletion(NamedTuple):
    """The brokers that may have logs of the topic, and the position in the stream at which it was gone."""

    holders: set[int]
    position: int


class Deletions:
    def __init__(self, holders: Mapping[uuid.UUID, set[int]]):
        """As a new controller finds them."""
        self._known = {topic_id: Deletion(set(brokers), 0) for topic_id, brokers in holders.items()}

    def note(self, before: Image, after: Image, position: int) -> None:
        """The image at this position, and the one before it."""
        if after.deleted is before.deleted:
            return
        for topic_id in self._known.keys() - after.deleted.keys():
            del self._known[topic_id]
        for topic_id in after.deleted.keys() - self._known.keys():
            topic = before.topics_by_id.get(topic_id)
            parts = topic.partitions if topic is not None else ()
            self._known[topic_id] = Deletion({broker for part in parts for broker in part.replicas}, position)

    def waiting(self) -> Iterator[tuple[int, int]]:
        """The brokers that may have logs, with the position that each must act by."""
        return iter([(broker, each.position) for each in self._known.values() for broker in each.holders])

    def done_by(self, broker: int, position: int) -> None:
        """This broker acts by that position."""
        for each in self._known.values():
            if each.position <= position:
                each.holders.discard(broker)

    def complete(self) -> list[uuid.UUID]:
        """The topics that no broker has any more."""
        return [topic_id for topic_id, each in self._known.items() if not each.holders]
