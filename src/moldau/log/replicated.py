"""Appending batches that another broker wrote: those of a partition's leader, as a follower fetches them, or those of
another cluster, as a mirror's leader gets them; and what must hold before that.

    a batch that the reply cut off at its end       is left for the next Fetch
    magic, size, CRC                                every time: the leader's disk or the network may have damaged them
    offsets                                         at or above the log's end, rising; gaps are what compaction left
    leader epoch of each batch                      not below that of the batch before it, not above the leader's own

That broker checked the records when they were produced, which is not repeated here. Source: KIP-101, KIP-595 (a
follower checks what it appends).
"""

from collections.abc import Sequence
from typing import NoReturn

from moldau.checksums import crc32c
from moldau.errors import ErrorCode, KafkaError
from moldau.log.log import Log
from moldau.log.segment import RELATIVE_MAX
from moldau.names import Offset
from moldau.records.batch import (
    ATTRIBUTES_AT,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MARKER_BYTES_MAX,
    BatchHeader,
    Marker,
    batches,
    place,
    read_control,
    read_header,
)
from moldau.runtime import Buffer


def append(log: Log, data: Buffer, leader_epoch: int, now_ms: int) -> Offset:
    """Append the whole batches at the beginning of `data`, as this partition's leader wrote them: a follower's part.
    Returns the log's new end. `leader_epoch`: that of the leader they were fetched from.

    Raises `KafkaError`: CORRUPT_MESSAGE if any whole batch must not be appended (then none was), and
    KAFKA_STORAGE_ERROR."""
    log.serving.check()
    view = memoryview(data)
    headers = whole_batches(view, log.log_end_offset, log.epochs.latest, leader_epoch)
    with log.serving.guard():
        while headers:
            count = log.segments[-1].fitting(headers, now_ms)
            if not count:  # the next segment takes at least one batch, however large
                count = max(log.roll(now_ms).fitting(headers, now_ms), 1)
            run, headers = headers[:count], headers[count:]
            size = sum(header.size for header in run)
            _append_run(log, view[:size], run)
            view = view[size:]
    return log.log_end_offset


def append_mirrored(log: Log, data: bytearray | memoryview, leader_epoch: int, now_ms: int) -> Offset:
    """Append the whole batches at the beginning of `data`, as another cluster's log has them: a mirror's leader's part.
    All but the leader epoch is kept, which is this leader's: checksums do not cover it. Returns the log's new end.
    Raises as `append` does."""
    for position, header in batches(data):
        place(data, header.base_offset, leader_epoch, position)
    return append(log, data, leader_epoch, now_ms)


def begin_behind(log: Log, offset: Offset, now_ms: int) -> None:
    """Go on at `offset`, behind the log's end, and start there: all before it is gone from the mirrored log. What is
    here goes with the next retention. Raises `KafkaError` (KAFKA_STORAGE_ERROR)."""
    log.serving.check()
    with log.serving.guard():
        log.log_end_offset = offset
        log.roll(now_ms)
    log.delete_records_before(offset)


def _append_run(log: Log, data: memoryview, headers: Sequence[BatchHeader]) -> None:
    """Append batches that fit into the active segment, with one write. Raises `OSError`, and then they are not in the
    log."""
    segment = log.segments[-1]
    if headers[-1].last_offset - segment.base_offset > RELATIVE_MAX:
        gap = headers[0].base_offset - log.log_end_offset
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"a gap of {gap} offsets does not fit into a segment")
    markers = markers_in(data, headers)
    if any(marker is not None and not marker.commits for marker in markers):
        segment.aborted.prepare()
    segment.append_run(data, headers)
    with log.serving.changing_files():  # the producers would know batches that are not in the log
        _note(log, headers, markers)
    log.log_end_offset = Offset(headers[-1].next_offset)


def whole_batches(data: memoryview, log_end: int, epoch_min: int, epoch_max: int) -> list[BatchHeader]:
    """The headers of the whole batches at the beginning of `data`. `epoch_min`: of the log's last batch; `epoch_max`:
    the leader's. Raises `KafkaError` (CORRUPT_MESSAGE) if any whole batch must not be appended."""
    headers = []
    position, end, epoch = 0, log_end, epoch_min
    while len(data) - position >= HEADER_SIZE:
        header = read_header(data, position)
        size = header.batch_length + LOG_OVERHEAD
        if header.magic != MAGIC or size < HEADER_SIZE:
            _refuse(f"byte {position} of the reply begins no batch of format {MAGIC}")
        if size > len(data) - position:
            break
        if crc32c(data[position + ATTRIBUTES_AT : position + size]) != header.crc:
            _refuse(f"the checksum of the batch at offset {header.base_offset} is wrong")
        if header.base_offset < end or header.last_offset_delta < 0:
            _refuse(f"the batch at offset {header.base_offset} follows offset {end - 1}")
        if not epoch <= header.partition_leader_epoch <= epoch_max:
            _refuse(
                f"the batch at offset {header.base_offset} is of leader epoch {header.partition_leader_epoch}, "
                f"and not between {epoch} and {epoch_max}"
            )
        headers.append(header)
        position, end, epoch = position + size, header.next_offset, header.partition_leader_epoch
    return headers


def markers_in(data: memoryview, headers: Sequence[BatchHeader]) -> list[Marker | None]:
    """The marker of each control batch among these batches, None for the others. Reads one record of a control batch
    and none of the others."""
    markers: list[Marker | None] = []
    position = 0
    for header in headers:
        size, marker = header.size, None
        if header.is_control:
            marker = read_control(data[position : position + min(size, MARKER_BYTES_MAX)])
        markers.append(marker)
        position += size
    return markers


def _note(log: Log, headers: Sequence[BatchHeader], markers: Sequence[Marker | None]) -> None:
    """Note what these appended batches say of leader epochs, producers and aborted transactions. Raises `OSError`."""
    epochs, producers = log.epochs, log.producers
    for header, marker in zip(headers, markers, strict=True):
        if header.partition_leader_epoch != epochs.latest:
            epochs.assign(header.partition_leader_epoch, header.base_offset)
        if header.producer_id >= 0 or marker is not None:
            aborted = producers.replay(header, marker)
            if aborted is not None:
                log.segments[-1].aborted.append(aborted)
                log.note_aborted()


def _refuse(sentence: str) -> NoReturn:
    raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the records were not appended: {sentence}")
