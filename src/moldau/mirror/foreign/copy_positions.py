"""How far each partition is: a record in a compacted topic of ours in the target, and what it is worth today. Pure.

A position is written in the transaction of the records that it counts, so both are there or neither is. It is not in
the form of Connect's offsets (`mm2-offsets.A.internal`), which MirrorMaker writes: that has an offset only. Ours also
knows the ids of both topics, the leader epoch of the last record and the mirror's end, by which a worker tells whether
the position belongs to the logs that are there today.

The topic's partitions are lanes. A partition of the source belongs to one lane, for as long as the number of lanes
stays; the worker that has a lane writes all of its transactions under one transactional id.
"""

import json
import uuid
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from moldau.checksums import crc32c
from moldau.mirror.copies import LogSpan
from moldau.names import TopicPartition

NO_ID: Final = uuid.UUID(int=0)
LANES: Final = 8


@dataclass(frozen=True)
class CopyPosition:
    """`upstream`: the next offset of the source to be copied. `epoch`: the leader epoch of the record before it, None
    if it is not known. `downstream`: where the mirror ended after it, at the least. `source_id`, `target_id`: of the
    topics, zero where topics have none. `cluster`: the id of the source cluster."""

    upstream: int
    epoch: int | None
    downstream: int
    source_id: uuid.UUID = NO_ID
    target_id: uuid.UUID = NO_ID
    cluster: str = ""


class MirroredLogs(NamedTuple):
    """A partition today: where its log starts and ends in both clusters, and the ids of its topics."""

    source: LogSpan
    target: LogSpan
    source_id: uuid.UUID
    target_id: uuid.UUID


class ResumePoint(NamedTuple):
    """Copy from `start` on, with a line for the log in `warning`; or do not, because of the sentence `refused`.
    `is_new`: there is no position yet. `downstream`: where the mirror ends for what comes before `start`."""

    start: int = 0
    epoch: int | None = None
    downstream: int = 0
    is_new: bool = False
    warning: str = ""
    refused: str = ""


def lane_of(tp: TopicPartition, lanes: int) -> int:
    """The lane that a partition of the source belongs to: neighbours are in different ones."""
    return (crc32c(tp.topic.encode()) + tp.partition) % lanes


def position_record(tp: TopicPartition, at: CopyPosition) -> tuple[bytes, bytes]:
    """Key and value."""
    value = {
        "next": at.upstream,
        "epoch": at.epoch,
        "end": at.downstream,
        "source.id": at.source_id.hex,
        "target.id": at.target_id.hex,
        "cluster": at.cluster,
    }
    return json.dumps([tp.topic, tp.partition]).encode(), json.dumps(value).encode()


def read_position(key: bytes | None, value: bytes | None) -> tuple[TopicPartition, CopyPosition]:
    """Raises `ValueError` for a record that is not a position: copying on without it would double records."""
    try:
        topic, partition = json.loads(key or b"")
        fields: dict[str, Any] = json.loads(value or b"")
        at = CopyPosition(
            int(fields["next"]),
            None if fields["epoch"] is None else int(fields["epoch"]),
            int(fields["end"]),
            uuid.UUID(hex=fields["source.id"]),
            uuid.UUID(hex=fields["target.id"]),
            str(fields["cluster"]),
        )
        return TopicPartition(str(topic), int(partition)), at
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError) as wrong:
        raise ValueError(f"a record that is not a position (key {key!r}): {wrong}") from None


def judged(tp: TopicPartition, remote: str, at: CopyPosition | None, logs: MirroredLogs) -> ResumePoint:
    """Whether copying goes on, and where. `remote`: the topic's name in the target."""
    source, target = logs.source, logs.target
    there = f"{remote}-{tp.partition}"
    anew = f"delete {remote} in the target cluster to mirror {tp.topic} anew"
    is_empty = target.end == 0
    if at is None:
        if is_empty:
            return ResumePoint(source.start, is_new=True)
        return ResumePoint(
            refused=f"{there} has records in the target cluster that this mirror has not written: {anew}"
        )
    if _differ(at.target_id, logs.target_id):
        if is_empty:
            warning = (
                f"{remote} was made anew in the target cluster: {tp} is mirrored again from offset {source.start} on"
            )
            return ResumePoint(source.start, is_new=True, warning=warning)
        return ResumePoint(refused=f"{remote} was made anew in the target cluster and has records: {anew}")
    if _differ(at.source_id, logs.source_id):
        return ResumePoint(refused=f"{tp.topic} was deleted and made again in the source cluster: {anew}")
    if at.upstream > source.end:
        return ResumePoint(
            refused=f"{tp} ends at {source.end} in the source cluster, and records up to {at.upstream} were mirrored: "
            f"the source has lost records. To go on, {anew}"
        )
    if target.end < at.downstream:
        return ResumePoint(
            refused=f"{there} ends at {target.end} in the target cluster, and the mirror has written up to "
            f"{at.downstream}: the target has lost records. To go on, {anew}"
        )
    if at.upstream < source.start:
        missed = source.start - at.upstream
        warning = f"{tp}: the source has deleted up to {missed} offsets that were not mirrored yet"
        return ResumePoint(source.start, downstream=at.downstream, warning=warning)
    return ResumePoint(at.upstream, at.epoch, at.downstream)


def truncated(tp: TopicPartition, remote: str, why: str) -> str:
    """The sentence for a source that has other records than were mirrored."""
    return f"the source has lost records of {tp} ({why}). To go on, delete {remote} in the target cluster"


def _differ(one: uuid.UUID, other: uuid.UUID) -> bool:
    return NO_ID not in (one, other) and one != other
