"""Deleted topics that some broker may still have logs of. The metadata keeps their ids until every broker that had a
replica acts by an image without the topic, and serves the log folders that the replicas were in: a broker, or a log
folder, that is away meanwhile deletes its logs when it is back. Pure.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from moldau.cluster.state.image import Image


class Deletion(NamedTuple):
    """The brokers that may have logs of the topic, with the log folders that these were in, and the position in the
    stream at which it was gone."""

    holders: dict[int, set[str]]
    position: int


class Deletions:
    def __init__(self, holders: Mapping[uuid.UUID, Mapping[int, set[str]]]):
        """As a new controller finds them."""
        self._known = {topic_id: Deletion(dict(brokers), 0) for topic_id, brokers in holders.items()}

    def note(self, before: Image, after: Image, position: int) -> None:
        """The image at this position, and the one before it."""
        if after.deleted is before.deleted:
            return
        for topic_id in self._known.keys() - after.deleted.keys():
            del self._known[topic_id]
        for topic_id in after.deleted.keys() - self._known.keys():
            topic = before.topics_by_id.get(topic_id)
            self._known[topic_id] = Deletion(topic.holders if topic is not None else {}, position)

    def waiting(self) -> Iterator[tuple[int, int]]:
        """The brokers that may have logs, with the position that each must act by."""
        return iter([(broker, each.position) for each in self._known.values() for broker in each.holders])

    def done_by(self, broker: int, position: int, serves: Callable[[str], bool]) -> None:
        """This broker acts by that position, and serves these log folders."""
        for each in self._known.values():
            if each.position <= position and all(map(serves, each.holders.get(broker, ()))):
                each.holders.pop(broker, None)

    def forget(self, broker: int) -> None:
        """This broker will not come back: nothing waits for it."""
        for each in self._known.values():
            each.holders.pop(broker, None)

    def complete(self) -> list[uuid.UUID]:
        """The topics that no broker has any more."""
        return [topic_id for topic_id, each in self._known.items() if not each.holders]
