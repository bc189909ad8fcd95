"""In which log folder a new partition is made: where an administrator wants it, else where the fewest partitions are.

Pure.
"""

import heapq
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from moldau.names import TopicPartition

PREFERRED_MAX: Final = 10_000
"""Partitions for which a folder is preferred; the oldest wishes are dropped."""


class PreferredFolders:
    """The directory ids of the folders in which partitions are to be made that are not there yet."""

    def __init__(self) -> None:
        self._wanted: dict[TopicPartition, str] = {}

    def prefer(self, tp: TopicPartition, directory_id: str) -> None:
        if len(self._wanted) >= PREFERRED_MAX:
            del self._wanted[next(iter(self._wanted))]
        self._wanted[tp] = directory_id

    def take(self, tp: TopicPartition, online: Collection[str]) -> str | None:
        """The folder for a partition that is made now; None if none is preferred, or it is offline."""
        directory_id = self._wanted.pop(tp, None)
        return directory_id if directory_id in online else None


def spread(partitions: Sequence[TopicPartition], counts: Mapping[str, int], preferred: PreferredFolders) -> list[str]:
    """The directory ids for these new partitions. `counts`: the partitions of each folder now."""
    heap = [(count, at, directory_id) for at, (directory_id, count) in enumerate(counts.items())]
    heapq.heapify(heap)
    placed = []
    for tp in partitions:
        wanted = preferred.take(tp, counts)
        if wanted is None:
            fewest, at, wanted = heap[0]
            heapq.heapreplace(heap, (fewest + 1, at, wanted))
        placed.append(wanted)
    return placed
