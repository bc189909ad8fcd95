"""What a broker checks of a batch before it appends it, and what it then writes into it.

Everything here is a decision about bytes in a buffer: `check_produce` returns a value for every outcome and raises nothing
for bad input; `assign_offsets` patches a batch that passed. It knows no log, no topic's name and no clock.
Sources: the table "What Kafka 4.3.1 answered when asked" in PROTOCOL.md; KIP-467 (record errors); KIP-937 (timestamps).
"""

from typing import Final, NamedTuple, TypeAlias

from crc32c import crc32c

from moldau.errors import ErrorCode
from moldau.records import columns, compression
from moldau.records.batch import (
    ATTRIBUTES_AT,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    place,
    read_header,
    stamp,
)

Buffer: TypeAlias = bytes | bytearray | memoryview

INT64_MAX: Final = (1 << 63) - 1
INLINE_BYTES: Final = 65536
"""What may be inflated on the loop (D14)."""
MAX_INFLATED_BYTES: Final = 32 * 1024 * 1024
RECORD_ERRORS_MAX: Final = 1000
"""Entries in `record_errors`; Kafka knows no limit, and a hostile batch has millions of records."""


class Rules(NamedTuple):
    """What a topic's settings ask of a batch."""

    max_message_bytes: int = 1048588
    compacted: bool = False
    timestamp_type: str = "CreateTime"
    before_max_ms: int = INT64_MAX
    after_max_ms: int = 3600000
    compression_type: str = "producer"
    max_inflated_bytes: int = MAX_INFLATED_BYTES


class Checked(NamedTuple):
    """The outcome: `error` NONE and what an append needs to know, or why not."""

    error: ErrorCode
    message: str | None
    header: BatchHeader | None
    max_timestamp: int
    offset_of_max_timestamp: int
    """Relative to the batch's base offset."""
    size: int
    """Bytes of the batch; what follows them in the buffer is not appended."""
    record_errors: tuple[tuple[int, str], ...] = ()
    rewritten: bytearray | None = None
    """The batch to append instead of the one given: another codec than the producer's (`compression.type`)."""


def needs_executor(buffer: Buffer) -> bool:
    """Whether checking this batch may inflate more than 64 KiB, which is too long for the loop."""
    if len(buffer) < HEADER_SIZE:
        return False
    codec = buffer[ATTRIBUTES_AT + 1] & 0x07
    if codec == compression.NONE:
        return False
    if len(buffer) > INLINE_BYTES:
        return True
    return compression.exceeds(codec, memoryview(buffer)[HEADER_SIZE:], INLINE_BYTES)


def check_produce(buffer: memoryview, rules: Rules, now_ms: int) -> Checked:
    """Check the one batch that a client sent for a partition, record by record, under the topic's rules."""
    end = len(buffer)
    if end < HEADER_SIZE:
        return _refused(ErrorCode.INVALID_RECORD, "a produce request needs exactly one record batch for a partition")
    header = read_header(buffer)
    size = header.batch_length + LOG_OVERHEAD
    if (
        size < HEADER_SIZE
        or size != end
        or header.magic != MAGIC
        or header.base_offset != 0
        or size > rules.max_message_bytes
    ):
        refusal = _misshapen(buffer, header, rules)
        if refusal is not None:
            return refusal
    if crc32c(buffer[ATTRIBUTES_AT:size]) != header.crc:
        return _refused(ErrorCode.CORRUPT_MESSAGE, "the batch's checksum is not that of its bytes")
    attributes = header.attributes
    if attributes & CONTROL_BIT:
        return _refused(ErrorCode.INVALID_RECORD, "clients cannot write control batches")
    if header.count <= 0 or header.last_offset_delta != header.count - 1:
        return _refused(ErrorCode.INVALID_RECORD, "the batch's count is not that of its offsets")
    if header.producer_id >= 0 and header.base_sequence < 0:
        return _refused(ErrorCode.INVALID_RECORD, "a batch with a producer id needs a sequence that is not negative")
    if attributes & LOG_APPEND_TIME_BIT:
        return _refused(ErrorCode.INVALID_TIMESTAMP, "a producer cannot send log append times")
    codec = attributes & 0x07
    records: Buffer = buffer
    start, stop = HEADER_SIZE, size
    if codec:
        if codec > compression.ZSTD:
            return _refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"no codec has the number {codec}")
        try:
            records = compression.decompress(codec, buffer[HEADER_SIZE:size], rules.max_inflated_bytes)
        except compression.TooLarge as error:
            return _refused(ErrorCode.MESSAGE_TOO_LARGE, str(error))
        except compression.DecompressionError as error:
            return _refused(ErrorCode.CORRUPT_MESSAGE, f"the records cannot be inflated: {error}")
        start, stop = 0, len(records)
    flaw, index, largest, at_largest, smallest, null_keys = columns.scan(
        records, start, stop, header.count, header.base_timestamp
    )
    if flaw:
        return _refused(ErrorCode.INVALID_RECORD, f"record {index} is bad: {columns.FLAWS[flaw]}")
    return Checked(ErrorCode.NONE, None, header, largest, at_largest, size)


def _misshapen(buffer: memoryview, header: BatchHeader, rules: Rules) -> Checked | None:
    """What is wrong before the checksum is worth computing; None if only bytes follow that are no batch."""
    end = len(buffer)
    size = header.batch_length + LOG_OVERHEAD
    if size < HEADER_SIZE or not 0 <= header.magic <= MAGIC:
        return _refused(ErrorCode.CORRUPT_MESSAGE, "the batch's length or format is none of Kafka's")
    if header.magic != MAGIC:
        return _refused(ErrorCode.INVALID_RECORD, "message formats 0 and 1 are no longer written (KIP-724)")
    if size > end:
        return _refused(ErrorCode.INVALID_RECORD, "a produce request needs exactly one whole record batch for a partition")
    if end - size >= HEADER_SIZE:
        second = read_header(buffer, size)
        if second.magic == MAGIC and HEADER_SIZE <= second.size <= end - size:
            return _refused(ErrorCode.INVALID_RECORD, "a produce request needs exactly one record batch for a partition")
    if header.base_offset != 0:
        return _refused(ErrorCode.INVALID_RECORD, "the base offset of a client's batch must be 0")
    if size > rules.max_message_bytes:
        return _refused(
            ErrorCode.MESSAGE_TOO_LARGE, f"the batch has {size} bytes, the topic allows {rules.max_message_bytes}"
        )
    return None


def _refused(error: ErrorCode, message: str) -> Checked:
    return Checked(error, message, None, -1, -1, 0)


def assign_offsets(
    buffer: memoryview | bytearray, base_offset: int, leader_epoch: int, append_time_ms: int | None, max_timestamp: int
) -> None:
    """Write the offset and the leader's epoch into a checked batch, and correct its timestamp fields where they are wrong.

    `append_time_ms`: the time under log append time, None for create time. The checksum is redone only if it covers a change.
    """
    place(buffer, base_offset, leader_epoch)
    header = read_header(buffer)
    attributes = header.attributes
    if append_time_ms is not None:
        attributes |= LOG_APPEND_TIME_BIT
        max_timestamp = append_time_ms
    if attributes != header.attributes or max_timestamp != header.max_timestamp:
        stamp(buffer, attributes, max_timestamp)
