"""The checks of a batch before it is appended, and the fields that the broker then writes into it.

Everything here is a decision about bytes in a buffer: `check_produce` returns a value for every outcome and raises
nothing for bad input; `assign_offsets` patches a batch that passed. This module uses no log, topic name or clock.
Sources: the table "What Kafka 4.3.1 answered when asked" in PROTOCOL.md; KIP-467 (record errors); KIP-937
(timestamps).
"""

import struct
from typing import Final, NamedTuple, TypeAlias

from moldau.checksums import crc32c
from moldau.errors import ErrorCode
from moldau.records import columns, compression
from moldau.records.batch import (
    ATTRIBUTES_AT,
    CODEC_BITS,
    HEADER_SIZE,
    KNOWN_BITS,
    LENGTH_AT,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    read_header,
    stamp,
    write_batch,
)
from moldau.records.columns import Section

Buffer: TypeAlias = bytes | bytearray | memoryview

INT64_MAX: Final = (1 << 63) - 1
INLINE_BYTES: Final = 65536
"""The most bytes that may be inflated on the loop (D14)."""
INFLATED_RATIO_MAX: Final = 24
MIN_INFLATED_MAX, MAX_INFLATED_MAX = 24 * 1024 * 1024, 256 * 1024 * 1024
"""The most bytes that one batch may inflate to: 24 times the topic's `max.message.bytes`, within these bounds, and at
least that setting itself. Inflating takes up to twice as much memory."""
SMALLEST_LENGTH: Final = 14
"""The shortest batch_length of any format; below it Kafka calls the bytes corrupt."""
LOG_APPEND_TIME: Final = "LogAppendTime"
ONE_BATCH: Final = "a partition's records must be exactly one whole record batch"
NO_END: Final = ("Record size ", "Invalid magic ")
OLD_FORMAT: Final = "message formats 0 and 1 are no longer written (KIP-724)"
TOO_SHORT: Final = "Record size {} is less than the minimum record overhead (14)"
KEY_REFUSED: Final = "Compacted topic cannot accept message without key{}"
TIME_REFUSED: Final = "Timestamp {} of message with offset {} is out of range. The timestamp should be within [{}, {}]"
TYPE_REFUSED: Final = "Invalid timestamp type in message. Producer should not set timestamp type to LogAppendTime."
LENGTH, CRC = 1, 4
"""Indexes into a `BatchHeader`: for every batch, access by name would cost more than by number."""
_NONE: Final = ErrorCode.NONE
_plain: Final = columns.plain
_new: Final = tuple.__new__
_LENGTH_ATTRIBUTES_MAX_TIMESTAMP: Final = struct.Struct(f">{LENGTH_AT}xi9xh12xq").unpack_from
assert LENGTH_AT + 4 + 9 == ATTRIBUTES_AT and ATTRIBUTES_AT + 2 + 12 == MAX_TIMESTAMP_AT
_PLACE: Final = struct.Struct(">qii").pack_into
NO_HEADER: Final = BatchHeader(0, 0, -1, MAGIC, 0, 0, -1, -1, -1, -1, -1, -1, 0)
RECORD_ERRORS_MAX: Final = 1000
"""The most entries in `record_errors`; Kafka has no limit, but a hostile batch may have millions of records."""


class Rules(NamedTuple):
    """The rules that a topic's settings impose on a batch."""

    max_message_bytes: int = 1048588
    max_decompressed_bytes: int = 2147483639
    """The size of the largest record that a compressed batch may hold; uncompressed ones are bounded by their batch."""
    compacted: bool = False
    timestamp_type: str = "CreateTime"
    before_max_ms: int = INT64_MAX
    after_max_ms: int = 3600000
    compression_type: str = "producer"
    compression_level: int | None = None
    partition: str = ""
    """`topic-partition`, for messages."""


class Checked(NamedTuple):
    """The outcome: with `error` NONE, what the append needs; otherwise, the reason for the refusal."""

    error: ErrorCode
    message: str | None
    header: BatchHeader
    max_timestamp: int
    """The largest timestamp of the records themselves, not the header's; -1 if they have none. If timestamps were
    refused, the one of them that is furthest from the clock."""
    size: int
    """Bytes of the batch; any bytes after them in the buffer are not appended."""
    record_errors: tuple[tuple[int, str], ...] = ()
    rewritten: bytearray | None = None
    """The batch to append instead of the one given, if the topic's `compression.type` is not the batch's codec."""


def needs_executor(buffer: Buffer) -> bool:
    """Whether checking this batch may inflate more than 64 KiB, which is too long for the loop."""
    if len(buffer) <= HEADER_SIZE:
        return False
    codec = buffer[ATTRIBUTES_AT + 1] & CODEC_BITS
    if codec == compression.NONE:
        return False
    if len(buffer) > INLINE_BYTES:
        return True
    return compression.exceeds(codec, memoryview(buffer)[HEADER_SIZE:], INLINE_BYTES)


def check_produce(buffer: memoryview, rules: Rules, now_ms: int) -> Checked:
    """Check the one batch that a client sent for a partition, record by record, under the topic's rules."""
    plain = _plain(buffer)
    if plain is not None:
        fields, largest, smallest, null_keys = plain
        size = fields[LENGTH] + LOG_OVERHEAD
        if (
            size <= rules.max_message_bytes
            and largest <= now_ms + rules.after_max_ms
            and smallest >= now_ms - rules.before_max_ms
            and not (null_keys and rules.compacted)
            and rules.compression_type == "producer"
            and crc32c(buffer[ATTRIBUTES_AT:]) == fields[CRC]
        ):
            return _new(Checked, (_NONE, None, _new(BatchHeader, fields), largest, size, (), None))
    return _check(buffer, rules, now_ms)


def check_own(buffer: memoryview, rules: Rules, now_ms: int) -> Checked:
    """Check a batch that a coordinator wrote in a producer's name, which has no sequences."""
    return _check(buffer, rules, now_ms, sequenced=False)


def _check(buffer: memoryview, rules: Rules, now_ms: int, sequenced: bool = True) -> Checked:
    """Check a batch that is unusual or bad, step by step in Kafka's order."""
    end = len(buffer)
    if end < HEADER_SIZE:
        return _refused(*_cut_short(buffer))
    header = read_header(buffer)
    size, count = header.size, header.count
    if size != end or header.magic != MAGIC or header.base_offset:
        refusal = _misshapen(buffer, header)
        if refusal is not None:
            return _refused(*refusal)
    if size > rules.max_message_bytes:
        return _refused(ErrorCode.MESSAGE_TOO_LARGE, f"{size} bytes where the topic allows {rules.max_message_bytes}")
    if crc32c(buffer[ATTRIBUTES_AT:size]) != header.crc:
        return _refused(ErrorCode.CORRUPT_MESSAGE, "the batch fails its checksum")
    if count != header.last_offset_delta + 1 or count <= 0:
        return _refused(ErrorCode.INVALID_RECORD, "the batch's record count is 0 or does not match its offsets")
    if header.is_control:
        return _refused(ErrorCode.INVALID_RECORD, "a client cannot write control batches")
    if sequenced and header.base_sequence < 0 <= header.producer_id:
        return _refused(ErrorCode.INVALID_RECORD, "a batch with a producer id has no sequence")
    if header.codec:
        return _check_compressed(buffer[HEADER_SIZE:size], header, rules, now_ms)
    return _check_records(buffer, HEADER_SIZE, size, header, rules, now_ms)


def _check_compressed(section: memoryview, header: BatchHeader, rules: Rules, now_ms: int) -> Checked:
    largest = rules.max_message_bytes
    limit = max(largest, MIN_INFLATED_MAX, min(INFLATED_RATIO_MAX * largest, MAX_INFLATED_MAX))
    try:
        records = compression.decompress(header.codec, section, limit)
    except compression.UnknownCodec as error:
        return _refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, str(error))
    except compression.TooLarge as error:
        return _refused(ErrorCode.MESSAGE_TOO_LARGE, str(error))
    except compression.DecompressionError as error:
        return _refused(ErrorCode.INVALID_RECORD, f"the records cannot be inflated: {error}")
    flaw = compression.flaw(header.codec, section, len(records))
    if flaw is not None:
        return _refused(ErrorCode.INVALID_RECORD, flaw)
    checked = _check_records(records, 0, len(records), header, rules, now_ms)
    allowed = rules.max_decompressed_bytes
    if checked.error or len(records) <= allowed or (size := columns.largest(records, 0, len(records))) <= allowed:
        return checked
    sentence = f"a record has {size} bytes where max.decompressed.message.bytes allows {allowed}"
    return _refused(ErrorCode.INVALID_RECORD, sentence)


def _check_records(records: Buffer, start: int, stop: int, header: BatchHeader, rules: Rules, now_ms: int) -> Checked:
    flaw, index, largest, smallest, null_keys = columns.scan(records, start, stop, header.count, header.base_timestamp)
    if flaw:
        return _refused(ErrorCode.INVALID_RECORD, f"record {index} is bad: {columns.FLAWS[flaw]}")
    append_time = rules.timestamp_type == LOG_APPEND_TIME
    if header.log_append_time:
        if append_time:
            return _rejected(0, 1, [(0, TYPE_REFUSED)])
        largest = smallest = header.max_timestamp
    if (null_keys and rules.compacted) or (
        not append_time and (largest > now_ms + rules.after_max_ms or smallest < now_ms - rules.before_max_ms)
    ):
        refusal = _find_refused(records, start, stop, header, rules, now_ms)
        if refusal is not None and refusal.error is ErrorCode.INVALID_TIMESTAMP:
            return refusal._replace(max_timestamp=largest if largest > now_ms + rules.after_max_ms else smallest)
        if refusal is not None:
            return refusal
    if rules.compression_type != "producer":
        codec = compression.codec_named(rules.compression_type)
        if codec != header.codec:
            return _rewrite(memoryview(records)[start:stop], codec, header, largest, rules)
    return Checked(ErrorCode.NONE, None, header, largest, header.size)


def _cut_short(buffer: memoryview) -> tuple[ErrorCode, str]:
    """The error for fewer bytes than a header has."""
    if len(buffer) >= LOG_OVERHEAD:
        (length,) = struct.unpack_from(">i", buffer, LENGTH_AT)
        if length < SMALLEST_LENGTH:
            return ErrorCode.CORRUPT_MESSAGE, TOO_SHORT.format(length)
        if len(buffer) > MAGIC_AT and buffer[MAGIC_AT] > MAGIC:
            return ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {buffer[MAGIC_AT]}"
    return ErrorCode.INVALID_RECORD, ONE_BATCH


def is_told(refused: Checked) -> bool:
    """Whether Kafka's reply carries the reason: for refused records, and for bytes without the end of a batch."""
    return bool(refused.record_errors) or (refused.message or "").startswith(NO_END)


def reached_the_log(refused: Checked) -> bool:
    """Whether Kafka would refuse the batch only at the log: its reply then carries the log start offset."""
    if refused.error in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE):
        return False
    return refused.message not in (ONE_BATCH, OLD_FORMAT)


def _misshapen(buffer: memoryview, header: BatchHeader) -> tuple[ErrorCode, str] | None:
    """What is wrong with the shape of a partition's records; None if no second batch follows the first."""
    length = header.batch_length
    if length < SMALLEST_LENGTH:
        return ErrorCode.CORRUPT_MESSAGE, TOO_SHORT.format(length)
    if not 0 <= header.magic <= MAGIC:
        return ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {header.magic}"
    size = length + LOG_OVERHEAD
    if size > len(buffer):
        return ErrorCode.INVALID_RECORD, ONE_BATCH
    if header.magic != MAGIC:
        return ErrorCode.INVALID_RECORD, OLD_FORMAT
    after = len(buffer) - size
    if after >= LOG_OVERHEAD:
        (length,) = struct.unpack_from(">i", buffer, size + LENGTH_AT)
        if length < SMALLEST_LENGTH:
            return ErrorCode.CORRUPT_MESSAGE, f"what follows the batch has a length of {length}"
        if after > MAGIC_AT:
            if buffer[size + MAGIC_AT] > MAGIC:
                return ErrorCode.CORRUPT_MESSAGE, f"what follows the batch has magic {buffer[size + MAGIC_AT]}"
            if length + LOG_OVERHEAD <= after:
                return ErrorCode.INVALID_RECORD, ONE_BATCH
    if size < HEADER_SIZE:
        return ErrorCode.CORRUPT_MESSAGE, f"a batch of {size} bytes is shorter than its header"
    if header.base_offset:
        return ErrorCode.INVALID_RECORD, f"the base offset of a client's batch must be 0, not {header.base_offset}"
    return None


def _find_refused(
    records: Buffer, start: int, stop: int, header: BatchHeader, rules: Rules, now_ms: int
) -> Checked | None:
    """Find, among valid records, those that the topic refuses: without a key, or with a timestamp out of range."""
    fixed = header.max_timestamp if header.log_append_time else None
    count = header.count
    section = Section(records, start, stop, count, count - 1, 0, header.base_timestamp, fixed, 0, count)
    earliest, latest = now_ms - rules.before_max_ms, now_ms + rules.after_max_ms
    bounds = (-INT64_MAX - 1, INT64_MAX) if rules.timestamp_type == LOG_APPEND_TIME else (earliest, latest)
    bounds = max(bounds[0], -INT64_MAX - 1), min(bounds[1], INT64_MAX)
    keyless, mistimed, refused = columns.refused(section, rules.compacted, *bounds, RECORD_ERRORS_MAX)
    where = f" in topic partition {rules.partition}" if rules.partition else ""
    errors = [
        (
            index,
            KEY_REFUSED.format(where) if timestamp is None else TIME_REFUSED.format(timestamp, index, earliest, latest),
        )
        for index, timestamp in refused
    ]
    return _rejected(keyless, mistimed, errors) if errors else None


def _rejected(keyless: int, mistimed: int, errors: list[tuple[int, str]]) -> Checked:
    """The refusal in Kafka's words, because its clients show them."""
    if mistimed:
        error, message = ErrorCode.INVALID_TIMESTAMP, "One or more records have been rejected due to invalid timestamp"
    else:
        first = ", ".join(f"RecordError(batchIndex={index}, message='{text}')" for index, text in errors[:3])
        error, message = (
            ErrorCode.INVALID_RECORD,
            (
                f"One or more records have been rejected due to {keyless} record errors in total, "
                f"and only showing the first three errors at most: [{first}]"
            ),
        )
    return _refused(error, message)._replace(record_errors=tuple(errors))


def _rewrite(section: memoryview, codec: int, header: BatchHeader, largest: int, rules: Rules) -> Checked:
    """The batch, recompressed with the topic's codec."""
    rewritten = write_batch(
        section,
        count=header.count,
        base_timestamp=header.base_timestamp,
        max_timestamp=largest,
        codec=codec,
        level=rules.compression_level,
        attributes=header.attributes & TRANSACTIONAL_BIT,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
    )
    size = len(rewritten)
    if size > rules.max_message_bytes:
        message = f"{size} bytes after recompression where the topic allows {rules.max_message_bytes}"
        return _refused(ErrorCode.MESSAGE_TOO_LARGE, message)
    return Checked(ErrorCode.NONE, None, read_header(rewritten), largest, size, (), rewritten)


def _refused(error: ErrorCode, message: str) -> Checked:
    return Checked(error, message, NO_HEADER, NO_TIMESTAMP, 0)


def assign_offsets(
    buffer: memoryview | bytearray, base_offset: int, leader_epoch: int, append_time_ms: int | None, max_timestamp: int
) -> None:
    """Write offset and leader epoch into a checked batch, and correct its attributes and max_timestamp.

    `append_time_ms`: the time under log append time, None for create time; `max_timestamp`: the check's result. The
    checksum is recomputed only if a change is covered by it.
    """
    length, attributes, written = _LENGTH_ATTRIBUTES_MAX_TIMESTAMP(buffer)
    kind = 0
    if append_time_ms is not None:
        kind, max_timestamp = LOG_APPEND_TIME_BIT, append_time_ms
    if attributes & LOG_APPEND_TIME_BIT != kind or max_timestamp != written:
        stamp(buffer, attributes & KNOWN_BITS & ~LOG_APPEND_TIME_BIT | kind, max_timestamp)
    _PLACE(buffer, 0, base_offset, length, leader_epoch)
