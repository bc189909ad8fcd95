"""The records of batches one by one, as objects: for people, coordinators and consumers that want rows.

Broker and pipeline never come here: they handle batches (`validation`) and columns (`arrow`).
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from moldau.errors import ErrorCode, KafkaError
from moldau.records import columns, compression
from moldau.records.batch import HEADER_SIZE, LOG_OVERHEAD, BatchHeader, batches

Buffer: TypeAlias = bytes | bytearray | memoryview

CREATE_TIME, LOG_APPEND_TIME = 0, 1
READ_LIMIT_BYTES = 1 << 30
"""What one batch may inflate to where we read."""


class Record(NamedTuple):
    """One record as a reader sees it."""

    offset: int
    timestamp_ms: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def records_of(buffer: Buffer, at: int, header: BatchHeader, limit: int = READ_LIMIT_BYTES) -> tuple[Buffer, int, int]:
    """The records of the batch at `at`, inflated if need be: a buffer, and where in it they begin and end."""
    end = at + header.batch_length + LOG_OVERHEAD
    if header.codec == compression.NONE:
        return buffer, at + HEADER_SIZE, end
    try:
        records = compression.decompress(header.codec, memoryview(buffer)[at + HEADER_SIZE : end], limit)
    except compression.DecompressionError as error:
        message = f"the batch at offset {header.base_offset} cannot be inflated: {error}"
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, message) from None
    return records, 0, len(records)


def iterate(buffer: Buffer, *, control: bool = False) -> Iterator[Record]:
    """Every record of every whole batch; those of control batches only if asked for."""
    for at, header in batches(buffer):
        if header.is_control and not control:
            continue
        yield from rows_of(buffer, at, header)


def rows_of(buffer: Buffer, at: int, header: BatchHeader) -> list[Record]:
    """The records of the batch at `at`. Raises `KafkaError` (CORRUPT_MESSAGE) for records that are none."""
    records, start, stop = records_of(buffer, at, header)
    fixed = header.max_timestamp if header.log_append_time else None
    kind = CREATE_TIME if fixed is None else LOG_APPEND_TIME
    flaw, index, rows = columns.rows(
        records, start, stop, header.count, header.last_offset_delta, header.base_offset, header.base_timestamp
    )
    if flaw:
        message = f"record {index} of the batch at offset {header.base_offset} is bad: {columns.FLAWS[flaw]}"
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, message)
    return [
        Record(offset, timestamp if fixed is None else fixed, kind, key, value, headers)
        for offset, timestamp, key, value, headers in rows
    ]
