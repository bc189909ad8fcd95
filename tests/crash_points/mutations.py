"""Bugs that the harness must find: changes of the production code that `tests/replacing.py` makes in memory."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from moldau.errors import ErrorCode, KafkaError
from moldau.log.deletion import files_of
from moldau.log.file_names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    base_of,
    is_segment_name,
)
from moldau.log.folders import identity
from moldau.log.folders.identity import CLEAN_MARKER, NO_BROKER_EPOCH
from moldau.log.producers import snapshots
from moldau.log.producers.producers import Producers
from tests.crash_points.driver import Report, run_seed
from tests.crash_points.folder import ROOT
from tests.first_seeds import first_seed
from tests.replacing import Instead, nothing, replaced, returns, unless
from tests.unlogged import unlogged

FAVOURS: dict[str, dict[str, float]] = {
    "a log start that shows is not written down before it lasts": {
        "delete_records": 8, "retain": 6, "checkpoint": 8, "roll": 3, "flush": 0, "compact": 0, "transaction": 0,
    },
    "indexes of a segment closed after the flush are trusted": {
        "flush": 8, "roll": 8, "checkpoint": 4, "burst": 2, "compact": 0, "delete_records": 0, "retain": 0,
    },
    "old segments go before the new one counts": {"compact": 4, "roll": 2},
    "what was written down of a deleted topic is taken for its successor's": {"delete": 12, "checkpoint": 3},
    "compaction forgets the last batch of a producer": {"compact": 4, "roll": 2},
    "a failed fsync counts as done": {"flush": 4},
    "logs count as closed before their file system is flushed": {"restart": 6},
    "the clean marker is left before the logs are flushed": {"restart": 8, "flush": 0, "checkpoint": 0, "compact": 0},
    "a failed fsync is tried again": {"flush": 4},
    "the recovery point stays when a log is truncated": {"follow": 2, "truncate": 3, "flush": 3},
    "a lower recovery point is not written down": {"follow": 2, "truncate": 3, "flush": 3, "checkpoint": 3},
    "what is cut off comes back": {"follow": 2, "truncate": 4, "flush": 2},
    "epochs without a batch are kept by a truncation": {"follow": 1, "truncate": 1},
    "producers are kept by a truncation": {"follow": 1, "truncate": 1},
    "snapshots of producers are kept by a truncation": {
        "follow": 4, "truncate": 8, "restart": 10, "append": 0.2, "roll": 0, "flush": 0, "retain": 0,
        "delete_records": 0, "delete": 0, "compact": 0, "kill": 0, "lose_power": 0,
    },
    "transactions aborted in what is cut off are kept": {"follow": 2, "truncate": 2},
    "producers do not know what a leader wrote": {"follow": 1, "truncate": 0},
    "transactions that a leader aborted are not noted": {"follow": 1, "truncate": 0},
    "epochs of what a leader wrote are not noted": {"follow": 1, "truncate": 0},
}  # fmt: skip
"""What stories are to be about for what is rare in others."""
POINTS = 2000
"""Within so many points, errors among them, each mutation is caught."""


CHECKPOINTS = "moldau.log.checkpoints"
CLEANING = "moldau.log.compaction.cleaning"
FLUSHING = "moldau.log.flushing:Flushing"
FOLDER = "moldau.log.folders.folder:LogFolder"
IDENTITY = "moldau.log.folders.identity"
LOG = "moldau.log.log:Log"
RECOVERY = "moldau.log.recovering.recovery"
SEGMENT = "moldau.log.segment:Segment"
SWAPPING = "moldau.log.compaction.swapping"
DISK = "moldau.simulation.disk:SimulatedDisk"
FILE = "moldau.simulation.disk:SimulatedFile"
TRUNCATE = "moldau.log.truncation:truncate_to"
REPLICATED = "moldau.log.replicated:append"
TRANSACTION_INDEX = "moldau.log.transaction_index:TransactionIndex"
RECOVER_SEGMENT = f"{RECOVERY}:recover_segment"
FAR = 1 << 62


def advanced_first(force: Any, self: Any, segments: Any, end: int, *rest: Any, **options: Any) -> None:
    self.recovery_point = max(self.recovery_point, end)
    force(self, segments, end, *rest, **options)


def only_the_active_segment(force: Any, self: Any, segments: Any, *rest: Any, **options: Any) -> None:
    force(self, segments[-1:], *rest, **options)


def as_if_flushed(flush: Any, self: Any) -> None:
    try:
        flush(self)
    except OSError:
        pass


def flushed_twice(flush: Any, self: Any) -> None:
    try:
        flush(self)
    except OSError:
        flush(self)


def stays_online(_: Any, self: Any, error: OSError) -> KafkaError:
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))


def one_too_late(segment_at: Any, segments: Any, offset: int) -> int:
    return max(min(int(segment_at(segments, offset)) + 1, len(segments) - 1), 0)


def newest_snapshot(_: Any, loading: Any, *__: Any) -> tuple[Producers, int]:
    names = [name for name in loading.names if name.endswith(SNAPSHOT_SUFFIX) and is_segment_name(name)]
    for offset in sorted(map(base_of, names), reverse=True):
        producers = snapshots.read(loading.disk, loading.folder, offset)
        if producers is not None:
            return producers, offset
    return Producers(), 0


def from_the_beginning(load: Any, loading: Any) -> Any:
    return load(replace(loading, log_start=0))


def shows_what_may_not_last(_: Any, self: Any) -> bool:
    return bool(self.log_start_offset <= self.segments[0].base_offset)


def removing_the_marker(settle: Any, self: Any) -> None:
    self.runtime.disk.remove(self.path / CLEAN_MARKER)
    settle(self)


def marked_first(close: Any, self: Any, clean: bool = True, *rest: Any, **options: Any) -> None:
    if clean and self.failed is None:
        with suppress(OSError):
            identity.leave_marker(self.runtime.disk, self.path, NO_BROKER_EPOCH)
    close(self, clean, *rest, **options)


def old_ones_gone(rewrite: Any, round: Any, group: Any, *rest: Any) -> Iterator[int]:
    yield from rewrite(round, group, *rest)
    disk = round.files.disk
    for lazy in [lazy for segment in group for lazy in files_of(segment, disk)]:
        lazy.rename(lazy.path.with_name(lazy.path.name + DELETED_SUFFIX))


def named_at_once(_: Any, segment: Any, disk: Any) -> None:
    for lazy in files_of(segment, disk):
        lazy.rename(lazy.path.with_name(lazy.path.name.removesuffix(CLEANED_SUFFIX)))


def without_swaps(finish_leftovers: Any, disk: Any, folder: Path) -> bool:
    for name in disk.list(folder):
        if name.endswith(SWAP_SUFFIX):
            disk.remove(folder / name)
    return bool(finish_leftovers(disk, folder))


def without_tombstones(choose: Any, self: Any, section: Any, _: bool, chosen: Any) -> Any:
    return choose(self, section, False, chosen)


def without_producers(init: Any, self: Any, offsets: Any, _: Any, *rest: Any) -> None:
    init(self, offsets, {}, *rest)


def as_if_all_were_stable(dirt_of: Any, segments: Any, config: Any, first_dirty: int, _: int, now_ms: int) -> Any:
    return dirt_of(segments, config, first_dirty, FAR, now_ms)


def with_its_producers(truncated: Any, self: Any, *rest: Any) -> None:
    producers = self.producers
    truncated(self, *rest)
    self.producers = producers


MUTATIONS: dict[str, list[Instead]] = {
    "the recovery point is advanced before the flush": [Instead(f"{FLUSHING}.force", advanced_first)],
    "a checkpoint is renamed without a flush of the folder": [
        Instead(f"{DISK}.sync_folder", nothing, within=f"{CHECKPOINTS}:replace_file")
    ],
    "a checkpoint is renamed before its bytes are flushed": [
        Instead(f"{FILE}.flush", nothing, within=f"{CHECKPOINTS}:stage_file")
    ],
    "the names of new segments are not flushed": [
        Instead(
            f"{DISK}.sync_folder",
            unless(lambda _, folder: folder != ROOT),
            within=f"{FLUSHING}.force",
            outside=f"{CHECKPOINTS}:replace_file",
        )
    ],
    "the name of the log folder is not flushed": [
        Instead(f"{DISK}.sync_folder", unless(lambda _, folder: folder != ROOT), within=f"{FOLDER}.__init__")
    ],
    "closed segments are left out of a flush": [Instead(f"{FLUSHING}.force", only_the_active_segment)],
    "a failed fsync counts as done": [Instead(f"{FILE}.flush", as_if_flushed, within=f"{SEGMENT}.flush")],
    "a failed fsync is tried again": [Instead(f"{FILE}.flush", flushed_twice, within=f"{SEGMENT}.flush")],
    "a log stays online after a failed append": [Instead("moldau.log.serving:Serving.fail", stays_online)],
    "a bad batch is not cut off": [Instead(f"{SEGMENT}.truncate", nothing, within=RECOVER_SEGMENT)],
    "checksums are not looked at in recovery": [Instead(f"{RECOVERY}:_holds", returns(True))],
    "later segments stay after a cut": [Instead(f"{RECOVERY}:_remove_segments", nothing)],
    "a segment that lost its end in silence passes": [Instead(f"{RECOVERY}:Loading.tolerates_gap", returns(True))],
    "recovery begins a segment too late": [
        Instead("moldau.log.lookup:segment_at", one_too_late, within=f"{RECOVERY}:load")
    ],
    "indexes are not built anew in recovery": [
        Instead(f"{SEGMENT}.begin_rebuild", nothing, within=RECOVER_SEGMENT),
        Instead(f"{SEGMENT}.index", nothing, within=RECOVER_SEGMENT),
    ],
    "indexes of a segment closed after the flush are trusted": [
        Instead(f"{SEGMENT}.rebuild_indexes", nothing, within=f"{RECOVERY}:load")
    ],
    "a snapshot beyond the log's end is trusted": [Instead(f"{RECOVERY}:_producers_at", newest_snapshot)],
    "producers are not replayed in recovery": [
        Instead("moldau.log.producers.producers:Producers.replay", nothing, within=RECOVER_SEGMENT)
    ],
    "snapshots are not flushed": [
        Instead(f"{CHECKPOINTS}:flush_file", unless(lambda _, path: path.suffix == SNAPSHOT_SUFFIX))
    ],
    "transaction indexes are not flushed": [Instead("moldau.log.transaction_index:TransactionIndex.flush", nothing)],
    "the log start checkpoint is ignored": [Instead(f"{RECOVERY}:load", from_the_beginning)],
    "a log start that shows is not written down before it lasts": [
        Instead(f"{LOG}.shows_its_start", shows_what_may_not_last)
    ],
    "epochs beyond the log's end are kept": [
        Instead("moldau.log.epochs:Epochs.truncate_from_end", nothing, within=f"{RECOVERY}:load")
    ],
    "epochs are not noted in recovery": [Instead("moldau.log.epochs:Epochs.assign", nothing, within=RECOVER_SEGMENT)],
    "what was written down of a deleted topic is taken for its successor's": [
        Instead(f"{CHECKPOINTS}:write_offsets", nothing, within=f"{FOLDER}.create")
    ],
    "the clean marker is deleted after loading": [
        Instead(f"{DISK}.remove", nothing, within=f"{IDENTITY}:take_marker"),
        Instead(f"{DISK}.sync_folder", nothing, within=f"{IDENTITY}:take_marker"),
        Instead(f"{FOLDER}.settle", removing_the_marker),
    ],
    "the clean marker is deleted for a while only": [
        Instead(f"{DISK}.sync_folder", nothing, within=f"{IDENTITY}:take_marker")
    ],
    "the clean marker is left before the logs are flushed": [Instead(f"{FOLDER}.close", marked_first)],
    "logs count as closed before their file system is flushed": [
        Instead(
            "moldau.simulation.disk:SimulatedFileSystem.flush",
            returns(True),
            within="moldau.log.folders.closing:ClosingLogs.work",
        )
    ],
    "a stop leaves no checkpoints": [Instead(f"{CHECKPOINTS}:write_offsets", nothing, within=f"{FOLDER}.close")],
    "old segments go before the new one counts": [Instead(f"{CLEANING}:rewrite", old_ones_gone)],
    "a new segment takes its name before it counts": [Instead(f"{SWAPPING}:commit", named_at_once)],
    "a new segment is not flushed before it counts": [
        Instead(f"{SEGMENT}.flush", nothing, within=f"{CLEANING}:rewrite")
    ],
    "a log is compacted beyond what is flushed": [
        Instead(f"{LOG}.flush", nothing, within="moldau.log.compaction.cleaner:Cleaner.clean_dirtiest")
    ],
    "a swap that counts is thrown away": [Instead("moldau.log.recovering.leftovers:finish_leftovers", without_swaps)],
    "tombstones go too early": [Instead("moldau.log.compaction.offset_map:OffsetMap.choose", without_tombstones)],
    "compaction forgets the last batch of a producer": [
        Instead("moldau.log.compaction.compactor:Compactor.__init__", without_producers)
    ],
    "records of open transactions are compacted": [
        Instead("moldau.log.compaction.dirtiness:dirt_of", as_if_all_were_stable)
    ],
    "the recovery point stays when a log is truncated": [Instead(f"{FLUSHING}.lower", returns(False))],
    "a lower recovery point is not written down": [
        Instead(
            "moldau.log.folders.folder_checkpoints:FolderCheckpoints.write_recovery_points", nothing, within=TRUNCATE
        )
    ],
    "what is cut off comes back": [Instead(f"{FILE}.flush", nothing, within=f"{SEGMENT}.cut")],
    "epochs without a batch are kept by a truncation": [
        Instead("moldau.log.epochs:Epochs.truncate_from_end", nothing, within=TRUNCATE)
    ],
    "producers are kept by a truncation": [Instead(f"{LOG}.truncated", with_its_producers)],
    "snapshots of producers are kept by a truncation": [Instead("moldau.log.truncation:remove_snapshots", nothing)],
    "transactions aborted in what is cut off are kept": [Instead(f"{TRANSACTION_INDEX}.truncate", nothing)],
    "producers do not know what a leader wrote": [
        Instead("moldau.log.producers.producers:Producers.replay", nothing, within=REPLICATED)
    ],
    "transactions that a leader aborted are not noted": [
        Instead(f"{TRANSACTION_INDEX}.append", nothing, within=REPLICATED)
    ],
    "epochs of what a leader wrote are not noted": [
        Instead("moldau.log.epochs:Epochs.assign", nothing, within=REPLICATED)
    ],
}


def found(name: str) -> tuple[int, str] | None:
    """The story that shows a bug, and the sentence that says so; None if so many points do not."""
    done, seed = Report(), first_seed("logs", name, 1)
    with unlogged(), replaced(MUTATIONS[name]):
        while done.points + done.errors < POINTS:
            done.add(run_seed(seed, POINTS - done.points - done.errors, 0.1, FAVOURS.get(name)))
            if done.failures:
                return seed, done.failures[0].sentence
            seed += 1
    return None
