"""From fetched bytes to the records in them: the whole batches, checked, inflated, cut down to the offsets asked for.

A broker sends a run of batches: the last may be cut off, the first may begin before the requested offset, and control
batches may lie between them. Readers of committed records also get the aborted transactions: a producer id and a first
offset each. Such a transaction ends at the producer's next abort marker. Rows and columns are both made from
`Section`s.
"""

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from moldau.errors import DamagedBatch, KafkaError
from moldau.records import compression
from moldau.records.arena import Arena
from moldau.records.batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    BatchHeader,
    crc_holds,
    read_header,
    read_marker,
)
from moldau.records.columns import Section

Buffer: TypeAlias = bytes | bytearray | memoryview

INFLATED_MAX: Final = 1 << 30
"""The most bytes that one batch of a log may inflate to when it is read."""
FETCHED_INFLATED_MAX: Final = 256 << 20
"""The same of a batch that a client has fetched, from brokers of others too: as much as a broker of Moldau accepts with
usual settings. librdkafka stops at `receive.message.max.bytes`, 100 MB."""
OFFSET_MAX: Final = (1 << 63) - 1


class _Aborted:
    """Decides for one batch after another, in order of offsets, whether it belongs to an aborted transaction
    (KIP-98)."""

    def __init__(self, transactions: Iterable[tuple[int, int]]):
        self._waiting = sorted(transactions, key=lambda transaction: -transaction[1])
        self._dropped: set[int] = set()

    def has(self, header: BatchHeader, batch: memoryview) -> bool:
        while self._waiting and self._waiting[-1][1] <= header.last_offset:
            self._dropped.add(self._waiting.pop()[0])
        if header.producer_id not in self._dropped or not header.is_transactional:
            return False
        if not header.is_control:
            return True
        marker = read_marker(batch)
        if marker is not None and not marker.commits:
            self._dropped.remove(header.producer_id)
        return False


def sections(
    buffer: Buffer,
    start_offset: int = 0,
    end_offset: int = OFFSET_MAX,
    *,
    control: bool = False,
    check_crcs: bool = True,
    aborted: Iterable[tuple[int, int]] = (),
    arena: Arena | None = None,
    inflated_max: int = INFLATED_MAX,
) -> Iterator[Section]:
    """The records of each batch that has any in start_offset <= offset < end_offset, except those of the transactions
    in `aborted`: (producer id, first offset) of each. With `arena`, batches are inflated into its memory. A
    batch that inflates to more than `inflated_max` bytes is refused; no more than that is inflated.

    Raises `DamagedBatch` for bytes that are not batches.
    """
    view = memoryview(buffer).cast("B")
    at, end = 0, len(view)
    dropped = _Aborted(aborted) if aborted else None
    while end - at >= HEADER_SIZE:
        header = read_header(view, at)
        size = header.batch_length + LOG_OVERHEAD
        if size < HEADER_SIZE or header.magic != MAGIC:
            raise _corrupt(header, f"has format {view[at + MAGIC_AT]} and {size} bytes, which cannot be read")
        if size > end - at or header.base_offset >= end_offset:
            return
        if dropped is not None and dropped.has(header, view[at : at + size]):
            at += size
            continue
        if header.count > 0 and header.last_offset >= start_offset and (control or not header.is_control):
            if check_crcs and not crc_holds(view, at):
                raise _corrupt(header, "fails its checksum")
            yield section_of(view, at, header, start_offset, end_offset, inflated_max, arena)
        at += size


def section_of(
    view: memoryview,
    at: int,
    header: BatchHeader,
    start_offset: int = 0,
    end_offset: int = OFFSET_MAX,
    inflated_max: int = INFLATED_MAX,
    arena: Arena | None = None,
) -> Section:
    """The records of the batch at `at`."""
    start, stop = at + HEADER_SIZE, at + header.batch_length + LOG_OVERHEAD
    records: Buffer = view
    if header.codec != compression.NONE:
        try:
            records = compression.decompress(header.codec, view[start:stop], inflated_max, arena)
        except compression.DecompressionError as error:
            raise _corrupt(header, f"cannot be inflated: {error}") from None
        start, stop = 0, len(records)
    last = header.last_offset_delta
    low, high = max(start_offset - header.base_offset, 0), min(end_offset - header.base_offset, last + 1)
    append_timestamp = header.max_timestamp if header.log_append_time else None
    return Section(
        records, start, stop, header.count, last, header.base_offset, header.base_timestamp, append_timestamp, low, high
    )


def parts(section: Section, rows_max: int) -> Iterator[Section]:
    """The section itself, or several with about `rows_max` of its records each, if it has more: a record of seven bytes
    costs ten times as many in memory. The records are walked through once for each part."""
    span = section.high - section.low
    step = max(span * rows_max // max(section.count, 1), rows_max)
    if section.count <= rows_max or span <= step:
        yield section
        return
    for low in range(section.low, section.high, step):
        yield section._replace(low=low, high=min(low + step, section.high))


def malformed(section: Section, failure: KafkaError) -> DamagedBatch:
    """The error for a batch whose checksum holds and whose records cannot be decoded."""
    return DamagedBatch(section.base_offset, section.base_offset + section.last_offset_delta, str(failure))


def _corrupt(header: BatchHeader, what: str) -> DamagedBatch:
    return DamagedBatch(header.base_offset, header.last_offset, f"the batch at offset {header.base_offset} {what}")
