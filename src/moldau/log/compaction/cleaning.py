"""One cleaning of one log: read the keys of its dirty part, then rewrite its segments, group by group.

    note     the dirty part of the log is read into an offset map, until that is full
    write    closed segments, as many as fit into one, become `<base>.log.cleaned` with indexes of their own
    swap     see `swapping`: the new segment takes the place of the old ones

Nothing here touches the log that is being served: a cleaning takes closed segments and returns new ones. It runs in
steps of about one I/O buffer, which block. Between two steps the caller may wait, or give up, which leaves only
`.cleaned` files behind. Old data may have decayed on the disk, so every checksum is verified, and a damaged batch ends
the cleaning with `Uncleanable`.
Source: "Log Compaction" of Kafka's documentation.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from moldau.checksums import crc32c
from moldau.config import TopicConfig
from moldau.log.compaction.compactor import CleanedTransactions, Compactor, LastOfProducer, Uncleanable, records_of
from moldau.log.compaction.offset_map import OffsetMap
from moldau.log.compaction.swapping import cleaned_segment
from moldau.log.files import OpenFiles
from moldau.log.lookup import aborted_between
from moldau.log.segment import RELATIVE_MAX, Segment
from moldau.records.batch import (
    ATTRIBUTES_AT,
    CONTROL_BIT,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Buffer,
    read_header,
)

BATCH_BYTES_MAX: Final = 128 << 20
"""The largest possible batch: it arrived in one request. A larger size means damage."""
IO_BYTES_MIN: Final = 4096
Read: TypeAlias = tuple[BatchHeader, memoryview, int]


@dataclass(frozen=True)
class CleaningPlan:
    """The input of one cleaning. `segments`: all of the log's, the active one last; those below `end_offset` are
    cleaned, and their indexes have been checked. `first_position`: the position, in its file, of the batch that holds
    the first dirty offset."""

    folder: Path
    config: TopicConfig
    files: OpenFiles
    segments: Sequence[Segment]
    first_dirty_offset: int
    first_position: int
    end_offset: int
    producers: Mapping[int, LastOfProducer]
    now_ms: int
    io_bytes: int

    @property
    def cleanable(self) -> list[Segment]:
        """The segments that lie wholly below the end."""
        ends = [segment.base_offset for segment in self.segments[1:]]
        return [segment for segment, end in zip(self.segments, ends, strict=False) if end <= self.end_offset]


def read_batches(segment: Segment, position: int, chunk_bytes: int) -> Iterator[Read]:
    """The batches of a segment from `position` on, each verified, with the position of the next one. Raises
    `Uncleanable`, `OSError`."""
    file, size = segment.log.get(), segment.size
    chunk, chunk_at, least = memoryview(b""), position, segment.base_offset
    while position < size:
        within = position - chunk_at
        if len(chunk) - within < HEADER_SIZE:
            chunk, chunk_at, within = memoryview(file.read(min(chunk_bytes, size - position), position)), position, 0
            if len(chunk) < HEADER_SIZE:
                raise Uncleanable(f"{segment.log.path} ends in the middle of a batch")
        header = read_header(chunk, within)
        base_offset, length = header.base_offset, header.batch_length + LOG_OVERHEAD
        if header.magic != MAGIC or length < HEADER_SIZE or length > size - position or length > BATCH_BYTES_MAX:
            raise Uncleanable(f"{segment.log.path} holds no batch of format 2 at byte {position}")
        if len(chunk) - within < length:
            wanted = min(max(chunk_bytes, length), size - position)
            chunk, chunk_at, within = memoryview(file.read(wanted, position)), position, 0
        batch = chunk[within : within + length]
        if len(batch) < length or crc32c(batch[ATTRIBUTES_AT:]) != header.crc:
            raise Uncleanable(f"{segment.log.path} is damaged: the batch at byte {position} fails its checksum")
        if base_offset < least or header.last_offset_delta < 0 or header.count < 0:
            raise Uncleanable(f"{segment.log.path} has offsets that do not increase at byte {position}")
        least = base_offset + header.last_offset_delta + 1
        position += length
        yield header, batch, position


def note_keys(plan: CleaningPlan, offsets: OffsetMap) -> Iterator[int]:
    """Fill the map from the first dirty offset on, up to the plan's end or until the map is full; yields the bytes read
    in each step. Raises `Uncleanable`, `OSError`."""
    start, end = plan.first_dirty_offset, plan.end_offset
    transactions = CleanedTransactions()
    cleanable = plan.cleanable
    dirty = [at for at, segment in enumerate(cleanable) if plan.segments[at + 1].base_offset > start]
    if dirty:
        transactions.expect(aborted_between(plan.segments[dirty[0] :], start, end))
    for at in dirty:
        segment = cleanable[at]
        position = stepped = plan.first_position if at == dirty[0] else 0
        for header, batch, next_position in read_batches(segment, position, plan.io_bytes):
            last_offset = header.base_offset + header.last_offset_delta
            if header.attributes & CONTROL_BIT:
                transactions.ends(header, batch)
            elif (
                not (header.attributes & TRANSACTIONAL_BIT and transactions.is_aborted(header))
                and header.count
                and last_offset >= start
                and not offsets.note(records_of(header, batch, start), last_offset)
            ):
                return
            if last_offset >= start:
                offsets.latest_offset = last_offset
            if next_position - stepped >= plan.io_bytes:
                yield next_position - stepped
                stepped = next_position
        offsets.pass_over(plan.segments[at + 1].base_offset - 1)
        yield segment.size - stepped


def groups(plan: CleaningPlan, up_to: int) -> list[list[Segment]]:
    """The segments below an offset, as many together as fit into one segment and its indexes."""
    config = plan.config
    bases = [segment.base_offset for segment in plan.segments]
    grouped: list[list[Segment]] = []
    room = index_room = time_room = 0
    for at, segment in enumerate(plan.cleanable):
        if segment.base_offset >= up_to:
            break
        sizes = segment.size, segment.offsets.entries, segment.times.entries
        fits = grouped and sizes[0] <= room and sizes[1] <= index_room and sizes[2] <= time_room
        if not fits or bases[at + 1] - 1 - grouped[-1][0].base_offset > RELATIVE_MAX:
            grouped.append([])
            room, index_room, time_room = config.segment_bytes, segment.offsets.entries_max, segment.times.entries_max
        grouped[-1].append(segment)
        room, index_room, time_room = room - sizes[0], index_room - sizes[1], time_room - sizes[2]
    return grouped


class Writer:
    """Puts batches into a new segment, a buffer at a time."""

    def __init__(self, segment: Segment, buffer_bytes: int):
        self.segment = segment
        self._buffer = bytearray()
        self._buffer_bytes = buffer_bytes

    def add(self, batch: Buffer) -> None:
        self.segment.index(read_header(batch), self.segment.size + len(self._buffer))
        self._buffer += batch
        if len(self._buffer) >= self._buffer_bytes:
            self.write()

    def write(self) -> None:
        if self._buffer:
            self.segment.log.get().write(self._buffer, self.segment.size)
            self.segment.size += len(self._buffer)
            self._buffer = bytearray()


def rewrite(plan: CleaningPlan, group: Sequence[Segment], compactor: Compactor, writer: Writer) -> Iterator[int]:
    """Write the records of a group of segments that stay; yields the bytes read and written in each step. The new
    segment is complete and flushed after the last step. Raises `Uncleanable`, `OSError`."""
    segments = list(plan.segments)
    last = next((segment for segment in reversed(group) if segment.size), None)
    done = 0
    for segment in group:
        after = segments.index(segment) + 1
        up_to = segments[after].base_offset
        compactor.transactions.expect(aborted_between(segments[after - 1 :], segment.base_offset, up_to))
        for header, batch, next_position in read_batches(segment, 0, plan.io_bytes):
            at_end = segment is last and next_position == segment.size
            kept = compactor.keep(header, batch, at_end or header.next_offset == plan.end_offset)
            if kept.batch is not None:
                writer.add(kept.batch)
                done += len(kept.batch)
            if kept.aborted is not None:
                writer.segment.aborted.append(kept.aborted)
            done += header.size
            if done >= plan.io_bytes:
                yield done
                done = 0
    writer.write()
    writer.segment.close()
    disk = plan.files.disk
    disk.set_modified_ms(writer.segment.log.path, disk.modified_ms(group[-1].log.path))
    writer.segment.flush(active=False)
    yield done


def new_writer(plan: CleaningPlan, group: Sequence[Segment]) -> Writer:
    """A writer for the segment that replaces a group. Raises `OSError`."""
    segment = cleaned_segment(plan.folder, group[0].base_offset, plan.config, plan.files)
    segment.created_ms = group[0].created_ms
    return Writer(segment, plan.io_bytes)
