"""Partitions whose state another session has written, as far as the controller has met them.

Changes of many partitions are one step of the store: one state that is not as it is known refuses all of them. The
image is read again then, and the change is decided again. A state that cannot be read stays in the image as it was, and
would refuse the others again: such a partition is left out, until a change has been written without it.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from moldau.cluster.state import layout
from moldau.cluster.state.image import Image, PartitionImage
from moldau.metadata_store.store import StoreConflict
from moldau.names import TopicPartition


class ConflictingStates:
    """Remembers each partition as it was when its change was in conflict."""

    def __init__(self) -> None:
        self._before: dict[TopicPartition, PartitionImage | None] = {}

    @contextmanager
    def noted(self, image: Image, changed: Collection[TopicPartition]) -> Iterator[None]:
        """Wraps the writing of a change of these partitions that was decided on that image. Once it is written, the
        next change tries all partitions."""
        try:
            yield
        except StoreConflict as conflict:
            self._before |= {tp: image.partition(tp) for tp in changed if layout.state_path(*tp) == conflict.path}
            raise
        self._before.clear()

    def still_conflicts(self, tp: TopicPartition, image: Image) -> bool:
        """Whether the partition could not be read since its change was refused."""
        return tp in self._before and self._before[tp] == image.partition(tp)
