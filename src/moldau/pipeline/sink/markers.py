"""What a task's transaction says of the batch it wrote: the metadata of an offset committed in that transaction.

Each task of a query has a consumer group of its own, whose committed offset is the number of the last batch that the
task has written. It becomes visible together with the records, so a task that is run again knows whether its batch is
in the topic. Pure, except for `committed`, which asks the broker.
"""

import json
from typing import NamedTuple

from moldau.client.administration.admin import Admin
from moldau.names import OffsetAndMetadata, TopicPartition


class TaskOfQuery(NamedTuple):
    """The tasks with this number of a query; `prefix` is the option transactionalIdPrefix."""

    prefix: str
    query: str
    number: int

    @property
    def transactional_id(self) -> str:
        """Also the id of the group."""
        return f"{self.prefix}-{self.query}-{self.number}"


class BatchMarker(NamedTuple):
    """One batch of a task: its number, and how many rows and bytes of keys and values it has."""

    batch: int
    rows: int
    bytes: int

    def offset(self) -> OffsetAndMetadata:
        return OffsetAndMetadata(self.batch, json.dumps(self._asdict()))


def read_marker(metadata: str) -> BatchMarker | None:
    """The reverse of `BatchMarker.offset`; None for metadata of somebody else."""
    try:
        marker = json.loads(metadata)
        return BatchMarker(int(marker["batch"]), int(marker["rows"]), int(marker["bytes"]))
    except (ValueError, KeyError, TypeError):
        return None


def committed(admin: Admin, task: TaskOfQuery) -> BatchMarker | None:
    """The last batch that this task has committed; None if it has none."""
    offsets = admin.group_offsets(task.transactional_id)
    return max((one for one in map(read_marker, (at.metadata for at in offsets.values())) if one), default=None)


def place(topic: str) -> TopicPartition:
    """The partition whose offset carries the marker."""
    return TopicPartition(topic, 0)
