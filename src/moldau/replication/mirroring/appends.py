"""Batches of another cluster's partition, appended to its mirror here: with their offsets, timestamps, gaps, markers
and producers. Only the leader epoch is this cluster's.

    the topic mirrors that source                      its setting `mirror.source` says so, else nothing is appended
    the sender knows where the mirror's log ends       nothing that it remembers is believed
    the batches go on from there                       gaps are what compaction left in the source

Everything else holds as for a follower's appends (`log/replicated.py`), and followers of the mirror fetch as ever. The
mirror's log starts where the source's does. A batch counts once it is committed.
"""

import asyncio
from collections.abc import Iterator
from typing import NamedTuple

from moldau.errors import ErrorCode, KafkaError
from moldau.log import replicated
from moldau.names import Offset
from moldau.records.batch import batches as whole
from moldau.replication.own_appends import until_committed
from moldau.replication.replica import Replica
from moldau.turns import ELEMENTS

ASKS_ONLY = -1


class MirroredBatches(NamedTuple):
    """`end`: where the sender says that the mirror's log ends, `ASKS_ONLY` if it wants to know. `records` are patched
    in place. Offsets that are not known are -1."""

    source: str
    leader_epoch: int
    end: int
    source_start: int
    records: bytearray


async def append_mirrored(replica: Replica, batches: MirroredBatches, now_ms: int) -> None:
    """Append and flush if `flush.messages` asks for it. Raises `KafkaError`: INVALID_REQUEST, OFFSET_OUT_OF_RANGE if
    the log ends elsewhere, CORRUPT_MESSAGE, KAFKA_STORAGE_ERROR, errors of leadership. Then nothing was appended, or,
    of more batches than one turn of the loop takes, the first ones."""
    await replica.until_free()
    _check(replica, batches)
    if batches.end == ASKS_ONLY:
        return
    replica.takes_own()
    log = replica.log
    _check_end(replica, batches.end)
    has_moved = batches.source_start > log.log_end_offset
    if has_moved:
        replicated.begin_behind(log, Offset(batches.source_start), now_ms)
    try:
        for number, piece in enumerate(_turns(batches.records)):
            if number:  # others had their turn
                end = log.log_end_offset
                await asyncio.sleep(0)
                await replica.until_free()
                _check(replica, batches)
                log = replica.log
                _check_end(replica, end)
            replicated.append_mirrored(log, piece, replica.leadership.leader_epoch, now_ms)
            has_moved = True
    finally:
        if has_moved:
            await replica.appended_marker()
    if log.log_start_offset < batches.source_start:
        replica.delete_records_before(min(batches.source_start, replica.high_watermark))


def _turns(records: bytearray) -> Iterator[memoryview]:
    """The records in pieces of as many whole batches as one turn of the loop may take."""
    view, begin = memoryview(records), 0
    for number, (at, header) in enumerate(whole(records), 1):
        if not number % ELEMENTS:
            yield view[begin : at + header.size]
            begin = at + header.size
    if begin < len(view):
        yield view[begin:]


def _check_end(replica: Replica, end: int) -> None:
    if replica.log.log_end_offset != end:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"the mirror's log ends at {replica.log.log_end_offset}")


def _check(replica: Replica, batches: MirroredBatches) -> None:
    error = replica.leadership_error(batches.leader_epoch)
    if error is not None:
        raise KafkaError(error)
    if replica.internal or not replica.mirrors or replica.config.mirror_source != batches.source:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{replica.tp.topic} is not a mirror of {batches.source[:100]}")
    replica.log.serving.check()


async def mirrored(replica: Replica, seconds: float) -> tuple[Offset, Offset]:
    """Wait until all of the mirror's log is committed; its start and end then. Raises as `until_committed` does."""
    end = replica.log.log_end_offset
    await until_committed(replica, end, replica.leadership.leader_epoch, seconds)
    return replica.log_start_offset, end
