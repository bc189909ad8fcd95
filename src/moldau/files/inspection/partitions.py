"""Checks one partition's folder: its segments in order, and the files beside them.

Damage in the part of the log that the next start recovers (see `surroundings`) is only a note, because an unclean stop
leaves such damage. If no recovery point is known, a last segment that ends in the middle of a batch is a note too, but
a wrong checksum is an error.
"""

import itertools
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from moldau.files.inspection import reading
from moldau.files.inspection.findings import CheckedTotals, Finding, limited
from moldau.files.inspection.kinds import CONTROLLERS_FILES, LEFTOVERS, FileKind, FileName, file_name_of, leftover_of
from moldau.files.inspection.segments import Damage, SegmentFiles, Walked, check_segment
from moldau.files.inspection.surroundings import Surroundings
from moldau.files.inspection.transaction_checks import OpenTransactions
from moldau.log import checkpoints
from moldau.log.checkpoints import CorruptCheckpoint
from moldau.log.epochs import Epochs
from moldau.log.file_names import SNAPSHOT_SUFFIX, file_name
from moldau.log.folders import arrival
from moldau.log.folders.arrival import ARRIVED
from moldau.log.producers import snapshots
from moldau.names import TopicPartition
from moldau.runtime import Disk

INDEX_KINDS: Final = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX)


class PartitionCheck:
    """The check of one partition. Call `findings` once; then `walked` has the facts about the log."""

    def __init__(self, disk: Disk, folder: Path, tp: TopicPartition, around: Surroundings, seen: CheckedTotals):
        self.folder = folder
        self.tp = tp
        self.walked = Walked(seen, Epochs(), OpenTransactions())
        self.topic_id: uuid.UUID | None = None
        self._disk = disk
        self._around = around
        self._snapshots: list[int] = []

    def findings(self) -> Iterator[Finding]:
        """Check everything and yield the findings. Raises `OSError` only if the folder cannot be listed."""
        names = self._disk.list(self.folder)
        self.walked.seen.partitions += 1
        return limited(self._findings(names))

    def _findings(self, names: Sequence[str]) -> Iterator[Finding]:
        bases, strange = self._sort_out(names)
        yield from strange
        yield from self._small_files(set(names))
        if not bases:
            yield Finding(self.folder, "the folder has no segment; the next start creates an empty one", False)
        else:
            yield from self._segments(bases, set(names))
        yield from self._epochs_and_snapshots()
        yield from self._against_checkpoints(bases)

    def _sort_out(self, names: Sequence[str]) -> tuple[list[int], list[Finding]]:
        """Base offsets of the segments, and findings about files that do not belong in the folder."""
        file_names = {name: file_name_of(name) for name in names}
        bases = sorted(
            said.offset for said in file_names.values() if said and said.kind is FileKind.LOG and not said.leftover
        )
        self._snapshots = sorted(
            said.offset for said in file_names.values() if said and said.kind is FileKind.SNAPSHOT and not said.leftover
        )
        leftovers = Counter(filter(None, map(leftover_of, names)))
        strange = [
            Finding(
                self.folder / f"*{suffix}",
                f"{LEFTOVERS[suffix]} ({count}); the next start finishes or removes them",
                False,
            )
            for suffix, count in leftovers.items()
        ]
        return bases, strange + [finding for name in names for finding in self._strange(name, file_names[name], bases)]

    def _strange(self, name: str, said: FileName | None, bases: list[int]) -> Iterator[Finding]:
        path = self.folder / name
        if leftover_of(name) or name in CONTROLLERS_FILES:
            return
        if said is None or said.kind in (FileKind.OFFSETS, FileKind.PROPERTIES, FileKind.CLEAN_MARKER):
            yield Finding(path, "not a file of a partition", False)
        elif said.kind in INDEX_KINDS and said.offset not in bases:
            unclean = self._around.clean is False  # the deletion of a segment removes the log file first
            yield Finding(path, "the index has no log file", not unclean)

    def _small_files(self, names: set[str]) -> Iterator[Finding]:
        unclean = self._around.clean is False
        path = self.folder / checkpoints.PARTITION_METADATA
        try:
            self.topic_id = checkpoints.read_topic_id(self._disk, self.folder)
            if self.topic_id is None:
                yield Finding(path, "the file is missing, so the topic id of the partition is unknown", False)
        except CorruptCheckpoint as corrupt:
            yield Finding(path, str(corrupt).removeprefix(f"{path} "), not unclean)
        except OSError as error:
            yield _unreadable(path, error)
        if ARRIVED in names:
            yield from self._arrival(self.folder / ARRIVED)
        path = self.folder / checkpoints.LEADER_EPOCHS
        try:
            starts = checkpoints.read_epochs(self._disk, self.folder)
        except CorruptCheckpoint as corrupt:
            yield Finding(path, str(corrupt).removeprefix(f"{path} "))
            return
        except OSError as error:
            yield _unreadable(path, error)
            return
        pairs = itertools.pairwise(starts)
        rises = all(one < other and before < after for (one, before), (other, after) in pairs)
        if not rises or any(epoch < 0 or start < 0 for epoch, start in starts):
            yield Finding(path, "the epochs and offsets are not in ascending order")
            return
        self.walked.epochs = Epochs(starts)

    def _arrival(self, path: Path) -> Iterator[Finding]:
        try:
            arrived = arrival.noted(self._disk, self.folder)
        except OSError as error:
            yield _unreadable(path, error)
            return
        if arrived is None:
            yield Finding(path, "the file does not say from which log folder the partition moved here")
        else:
            message = f"the partition moved here from log folder {arrived.source}; the next start removes this note"
            yield Finding(path, message, False)

    def _segments(self, bases: list[int], names: set[str]) -> Iterator[Finding]:
        walked, around = self.walked, self._around
        for number, base in enumerate(bases):
            later = bases[number + 1 :]
            files = SegmentFiles(self._disk, self.folder, base, later[0] if later else None, names)
            previous_end = walked.end
            if number and previous_end < base:
                message = f"offsets {previous_end} to {base - 1} are missing: compacted or lost"
                yield Finding(files.log, message, False)
            is_rebuilt = self._is_recovered(later[0] - 1 if later else 2**63 - 1)
            may_have_room = is_rebuilt or (not later and not around.clean)
            walked.seen.segments += 1
            try:
                yield from check_segment(files, walked, is_rebuilt=is_rebuilt, may_have_room=may_have_room)
            except OSError as error:
                yield _unreadable(files.log, error)
                walked.damage = None
                continue
            if walked.damage is not None:
                is_cut = self._is_cut(walked.damage, bool(later))
                yield self._damaged(files.log, walked.damage, len(later), is_cut)
                if is_cut:
                    return
                walked.damage = None

    def _is_recovered(self, offset: int) -> bool:
        return self._around.is_recovered(self.tp, offset)

    def _is_cut(self, damage: Damage, has_later: bool) -> bool:
        """Whether the next start of the broker truncates the log at this damage."""
        if self._around.clean or damage.position < 0:
            return False
        if self._around.clean is False and self._around.recovery_points is not None:
            return self._is_recovered(damage.offset)
        return damage.at_end and not has_later

    def _damaged(self, path: Path, damage: Damage, later: int, is_cut: bool) -> Finding:
        where = f"at position {damage.position}, after offset {damage.offset - 1}: {damage.what}"
        if not is_cut:
            return Finding(path, where)
        more = f" and removes {later} later segments" if later else ""
        return Finding(path, f"{where}; the next start truncates the log there{more}", False)

    def _epochs_and_snapshots(self) -> Iterator[Finding]:
        end, unclean = self.walked.end, self._around.clean is False
        for start in self.walked.epochs.starts:
            if start.start_offset > end:
                message = f"epoch {start.epoch} begins at offset {start.start_offset}, but the log ends at {end}"
                yield Finding(self.folder / checkpoints.LEADER_EPOCHS, message, not unclean)
        for offset in self._snapshots:
            path = self.folder / file_name(offset, SNAPSHOT_SUFFIX)
            try:
                yield from (Finding(path, message, not unclean) for message in self._snapshot(path, offset))
            except OSError as error:
                yield _unreadable(path, error)

    def _snapshot(self, path: Path, offset: int) -> Iterator[str]:
        with reading.opened(self._disk, path) as file:
            size = file.size()
            producers = snapshots.decode(file.read(size, 0)) if size <= checkpoints.FILE_BYTES_MAX else None
        if producers is None:
            yield "not a producer snapshot, or its checksum is wrong"
            return
        if offset > self.walked.end:
            yield f"the snapshot is for offset {offset}, but the log ends at {self.walked.end}"
        for producer_id, producer in producers:
            self.walked.producer_id_max = max(self.walked.producer_id_max, producer_id)
            last = max((batch.last_offset for batch in producer.batches), default=-1)
            if max(last, producer.transaction_start) >= offset:
                yield f"producer {producer_id} is at offset {max(last, producer.transaction_start)}, past the snapshot"
            if producer_id < 0 or producer.epoch < -1 or producer.transaction_start < -1:
                yield f"producer {producer_id} with epoch {producer.epoch} has impossible values"

    def _against_checkpoints(self, bases: list[int]) -> Iterator[Finding]:
        around, end, tp = self._around, self.walked.end, self.tp
        unclean = around.clean is False
        folder = self.folder.parent
        for name, offsets, wrong, what in (
            (checkpoints.RECOVERY_POINTS, around.recovery_points or {}, True, "was flushed"),
            (checkpoints.LOG_STARTS, around.log_starts, True, "begins"),
            (checkpoints.HIGH_WATERMARKS, around.high_watermarks, not unclean, "was committed"),
            (checkpoints.CLEANER_OFFSETS, around.cleaner_offsets, not unclean, "was compacted"),
        ):
            offset = offsets.get(tp)
            if offset is not None and bases and offset > end:
                until = "at" if what == "begins" else "up to"
                yield Finding(folder / name, f"{tp} {what} {until} offset {offset}, but the log ends at {end}", wrong)
        flushed = (around.recovery_points or {}).get(tp)
        if around.clean and flushed is not None and flushed < end:
            message = f"{tp} was flushed up to offset {flushed} by a clean stop, but the log ends at {end}"
            yield Finding(folder / checkpoints.RECOVERY_POINTS, message)


def _unreadable(path: Path, error: OSError) -> Finding:
    return Finding(path, f"the file cannot be read: {error.strerror or error}")
