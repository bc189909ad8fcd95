"""The records of batches one by one, as objects: for tools, coordinators and consumers that use rows.

The broker's data path and the pipeline do not use this module: they handle batches (`validation`) and columns
(`arrow`).
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeVar

from moldau.errors import KafkaError
from moldau.records import columns
from moldau.records.arena import Arena
from moldau.records.columns import Section
from moldau.records.sections import INFLATED_MAX, OFFSET_MAX, Buffer, malformed, parts, sections

T = TypeVar("T", bound=tuple[Any, ...])
CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1
ROWS_MAX: Final = 1 << 17
"""A batch of more records becomes objects in parts: a million of the smallest records, 7 MB, are objects of 300 MB."""


class Record(NamedTuple):
    """One record that was read."""

    offset: int
    timestamp_ms: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def iterate(
    buffer: Buffer,
    start_offset: int = 0,
    end_offset: int = OFFSET_MAX,
    *,
    control: bool = False,
    check_crcs: bool = True,
    aborted: Iterable[tuple[int, int]] = (),
    arena: Arena | None = None,
    inflated_max: int = INFLATED_MAX,
) -> Iterator[Record]:
    """Every record with start_offset <= offset < end_offset in whole batches. Control records are included only on
    request; records of the transactions in `aborted`, as (producer id, first offset), never. Batches are inflated in
    `arena`, which is empty again afterwards.

    Raises `KafkaError` (CORRUPT_MESSAGE) for bytes that are not batches.
    """
    arena = Arena() if arena is None else arena
    found = sections(
        buffer, start_offset, end_offset, control=control, check_crcs=check_crcs, aborted=aborted, arena=arena,
        inflated_max=inflated_max,
    )  # fmt: skip
    for records in _rows(found, Record, None, arena):
        yield from records


def lists(
    buffer: Buffer,
    kind: type[T],
    place: object,
    start_offset: int = 0,
    *,
    aborted: Iterable[tuple[int, int]] = (),
    arena: Arena | None = None,
    inflated_max: int = INFLATED_MAX,
) -> Iterator[list[T]]:
    """As `iterate` from `start_offset` on, a list for each batch that has any records, of tuples of the class `kind`: a
    record's fields and `place`. A batch of more than `ROWS_MAX` records has several lists."""
    arena = Arena() if arena is None else arena
    found = sections(buffer, start_offset, aborted=aborted, arena=arena, inflated_max=inflated_max)
    return _rows(found, kind, place, arena)


def _rows(found: Iterable[Section], kind: type[T], place: object, arena: Arena) -> Iterator[list[T]]:
    for section in found:
        whole = section
        if section.count > ROWS_MAX:  # others use the arena before the last part is read
            records = bytes(section.records[section.start : section.stop])
            whole = section._replace(records=records, start=0, stop=len(records))
        for part in parts(whole, ROWS_MAX):
            try:
                rows = columns.rows(part, kind, place)
            except KafkaError as failure:
                raise malformed(part, failure) from None
            arena.clear()
            if rows:
                yield rows
