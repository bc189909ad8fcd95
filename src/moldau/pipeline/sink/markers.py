"""What a task's transaction says of the batch it wrote: the metadata of an offset committed in that transaction.

Each task of a query has a consumer group of its own, whose committed offset is the number of the last batch that the
task has written. It becomes visible together with the records, so a task that is run again knows whether its batch is
in the topic. Pure, except for `committed` and `tasks_with_markers`, which ask the broker.
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
    def of_query(self) -> str:
        """How the ids of all tasks of the query begin."""
        return f"{self.prefix}-{self.query}-"

    @property
    def transactional_id(self) -> str:
        """Also the id of the group."""
        return f"{self.of_query}{self.number}"


class BatchMarker(NamedTuple):
    """One batch of a task: its number, how many rows and bytes of keys and values it has, and the run of the query that
    wrote it; a restarted query is another run."""

    batch: int
    rows: int
    bytes: int
    run: str = ""

    def has_rows_of(self, other: "BatchMarker") -> bool:
        """Whether it is the same batch with the same rows, in whichever run."""
        return self[:3] == other[:3]

    def offset(self) -> OffsetAndMetadata:
        return OffsetAndMetadata(self.batch, json.dumps(self._asdict()))


def read_marker(metadata: str) -> BatchMarker | None:
    """The reverse of `BatchMarker.offset`; None for metadata of somebody else."""
    try:
        marker = json.loads(metadata)
        batch, rows, size = int(marker["batch"]), int(marker["rows"]), int(marker["bytes"])
        return BatchMarker(batch, rows, size, str(marker.get("run", "")))
    except (ValueError, KeyError, TypeError):
        return None


def committed(admin: Admin, task: TaskOfQuery) -> BatchMarker | None:
    """The last batch that this task has committed; None if it has none."""
    offsets = admin.group_offsets(task.transactional_id)
    return max((one for one in map(read_marker, (at.metadata for at in offsets.values())) if one), default=None)


def tasks_with_markers(admin: Admin, of: TaskOfQuery) -> list[TaskOfQuery]:
    """The tasks of this task's query that have ever committed a batch."""
    names = [group.group_id for group in admin.list_groups() if group.group_id.startswith(of.of_query)]
    numbers = [name.removeprefix(of.of_query) for name in names]
    return [of._replace(number=number) for number in sorted(int(one) for one in numbers if one.isdecimal())]


def place(topic: str) -> TopicPartition:
    """The partition whose offset carries the marker."""
    return TopicPartition(topic, 0)
