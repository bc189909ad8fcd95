"""Batches that a partition's leader wrote, as a follower fetches them: what must hold before they are appended. Pure.

    a batch that the reply cut off at its end       is left for the next Fetch
    magic, size, CRC                                every time: the leader's disk or the network may have damaged them
    offsets                                         at or above the log's end, rising; gaps are what compaction left
    leader epoch of each batch                      not below that of the batch before it, not above the leader's own

The leader checked the records when they were produced; a follower does not repeat that. Source: KIP-101, KIP-595 (a
follower checks what it appends).
"""

from collections.abc import Sequence
from typing import NoReturn

from moldau.checksums import crc32c
from moldau.errors import ErrorCode, KafkaError
from moldau.log.epochs import Epochs
from moldau.log.producers.producers import Producers
from moldau.log.transaction_index import TransactionIndex
from moldau.records.batch import (
    ATTRIBUTES_AT,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MARKER_BYTES_MAX,
    BatchHeader,
    Marker,
    read_header,
    read_marker,
)


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
            marker = read_marker(data[position : position + min(size, MARKER_BYTES_MAX)])
        markers.append(marker)
        position += size
    return markers


def note(
    headers: Sequence[BatchHeader],
    markers: Sequence[Marker | None],
    epochs: Epochs,
    producers: Producers,
    index: TransactionIndex,
) -> bool:
    """Note what these appended batches say of leader epochs, producers and aborted transactions; whether a transaction
    was aborted. Raises `OSError`."""
    has_aborted = False
    for header, marker in zip(headers, markers, strict=True):
        if header.partition_leader_epoch != epochs.latest:
            epochs.assign(header.partition_leader_epoch, header.base_offset)
        if header.producer_id >= 0:
            aborted = producers.replay(header, marker)
            if aborted is not None:
                index.append(aborted)
                has_aborted = True
    return has_aborted


def _refuse(sentence: str) -> NoReturn:
    raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"what the leader sent is not appended: {sentence}")
