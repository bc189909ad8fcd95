"""From fetched bytes to the records in them: the whole batches, checked, inflated, cut down to the offsets asked for.

What a broker sends is a run of whole batches whose last may be cut off, whose first may begin before the offset that
was asked for, and which may hold control batches that no reader wants to see. Rows and columns are both made from
`Section`s.
"""

from collections.abc import Iterator
from typing import Final, TypeAlias

from moldau.errors import ErrorCode, KafkaError
from moldau.records import compression
from moldau.records.batch import HEADER_SIZE, LOG_OVERHEAD, MAGIC, MAGIC_AT, BatchHeader, crc_holds, read_header
from moldau.records.columns import Section

Buffer: TypeAlias = bytes | bytearray | memoryview

INFLATED_MAX: Final = 1 << 30
"""What one batch may inflate to where we read."""
OFFSET_MAX: Final = (1 << 63) - 1


def sections(
    buffer: Buffer,
    start_offset: int = 0,
    end_offset: int = OFFSET_MAX,
    *,
    control: bool = False,
    check_crcs: bool = True,
) -> Iterator[Section]:
    """The records of each batch that has any in start_offset <= offset < end_offset.

    Raises `KafkaError` (CORRUPT_MESSAGE) for bytes that are no batches.
    """
    view = memoryview(buffer).cast("B")
    at, end = 0, len(view)
    while end - at >= HEADER_SIZE:
        header = read_header(view, at)
        size = header.batch_length + LOG_OVERHEAD
        if size < HEADER_SIZE or header.magic != MAGIC:
            raise _corrupt(header, f"has format {view[at + MAGIC_AT]} and {size} bytes, which is none that we read")
        if size > end - at or header.base_offset >= end_offset:
            return
        if header.count > 0 and header.last_offset >= start_offset and (control or not header.is_control):
            if check_crcs and not crc_holds(view, at):
                raise _corrupt(header, "does not have the checksum of its bytes")
            yield section_of(view, at, header, start_offset, end_offset)
        at += size


def section_of(
    view: memoryview,
    at: int,
    header: BatchHeader,
    start_offset: int = 0,
    end_offset: int = OFFSET_MAX,
    inflated_max: int = INFLATED_MAX,
) -> Section:
    """The records of the batch at `at`."""
    start, stop = at + HEADER_SIZE, at + header.batch_length + LOG_OVERHEAD
    records: Buffer = view
    if header.codec != compression.NONE:
        try:
            records = compression.decompress(header.codec, view[start:stop], inflated_max)
        except compression.DecompressionError as error:
            raise _corrupt(header, f"cannot be inflated: {error}") from None
        start, stop = 0, len(records)
    last = header.last_offset_delta
    low, high = max(start_offset - header.base_offset, 0), min(end_offset - header.base_offset, last + 1)
    append_timestamp = header.max_timestamp if header.log_append_time else None
    return Section(
        records, start, stop, header.count, last, header.base_offset, header.base_timestamp, append_timestamp, low, high
    )


def _corrupt(header: BatchHeader, what: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the batch at offset {header.base_offset} {what}")
