"""Bugs that the harness must find: each is a small edit of the production code, made in memory and undone.

An edit is a piece of a function's source and what stands in its place. A piece that is no longer there once is an
error: a mutation that mutates nothing proves nothing.
"""

import importlib
import inspect
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tests.crash_points.driver import Report, run_seed
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
    "a failed fsync is tried again": {"flush": 4},
}  # fmt: skip
"""What stories are to be about for what is rare in others."""
POINTS = 2000
"""Within so many points, errors among them, each mutation is caught."""


class Edit(NamedTuple):
    """`where`: module:function or module:Class.method."""

    where: str
    old: str
    new: str


FLUSHING = "moldau.log.flushing:Flushing"
FOLDER = "moldau.log.folder:LogFolder"
RECOVERY = "moldau.log.recovery"
SYNC_PARTITION = "        self._disk.sync_folder(self._folder)\n"

MUTATIONS: dict[str, list[Edit]] = {
    "the recovery point is advanced before the flush": [
        Edit(f"{FLUSHING}.force", "active = segments[-1]", "active, self.recovery_point = segments[-1], end")
    ],
    "a checkpoint is renamed without a flush of the folder": [
        Edit("moldau.log.checkpoints:replace_file", "disk.sync_folder(path.parent)", "pass")
    ],
    "a checkpoint is renamed before its bytes are flushed": [
        Edit("moldau.log.checkpoints:stage_file", "file.flush()", "pass")
    ],
    "the names of new segments are not flushed": [
        Edit(f"{FLUSHING}._force_names", SYNC_PARTITION, "        pass\n")
    ],
    "the name of the log folder is not flushed": [
        Edit(f"{FOLDER}._make", "self._disk.sync_folder(each.parent)", "pass")
    ],
    "closed segments are left out of a flush": [
        Edit(f"{FLUSHING}.force", "segments[_first_unflushed(segments) :]", "segments[-1:]")
    ],
    "a failed fsync counts as done": [
        Edit(
            "moldau.log.segment:Segment.flush",
            "    self.log.get().flush()\n",
            "    try:\n        self.log.get().flush()\n    except OSError:\n        pass\n",
        )
    ],
    "a failed fsync is tried again": [
        Edit(
            "moldau.log.segment:Segment.flush",
            "    self.log.get().flush()\n",
            "    try:\n        self.log.get().flush()\n    except OSError:\n        self.log.get().flush()\n",
        )
    ],
    "a log stays online after a failed append": [
        Edit("moldau.log.log:Log.fail", "if self.offline:", "if True:")
    ],
    "a bad batch is not cut off": [Edit(f"{RECOVERY}:recover_segment", "segment.truncate(position)", "pass")],
    "checksums are not looked at in recovery": [
        Edit(f"{RECOVERY}:_holds", "return crc == header.crc", "return True")
    ],
    "later segments stay after a cut": [
        Edit(
            f"{RECOVERY}:_recover",
            "        _remove_segments(loading.disk, later)\n            del segments[at + 1 :]\n",
            "        continue\n",
        )
    ],
    "a segment that lost its end in silence passes": [
        Edit(f"{RECOVERY}:_recover", "elif not later or end == later[0].base_offset", "elif True")
    ],
    "recovery begins a segment too late": [
        Edit(f"{RECOVERY}:_segment_at", "return first", "return min(first + 1, len(segments) - 1)")
    ],
    "indexes are not built anew in recovery": [
        Edit(f"{RECOVERY}:recover_segment", "segment.begin_rebuild()", "segment.look()"),
        Edit(f"{RECOVERY}:recover_segment", "segment.index(header, position)", "pass"),
    ],
    "indexes of a segment closed after the flush are trusted": [
        Edit(f"{RECOVERY}:load", "suspects.append(segments[first - 1])", "pass")
    ],
    "a snapshot beyond the log's end is trusted": [
        Edit(f"{RECOVERY}:load", "_producers_at(loading, segments, segments[first].base_offset)", "_newest(loading)"),
        Edit(
            f"{RECOVERY}:_producers_at",
            "def _producers_at",
            "def _newest(loading):\n"
            "    for offset in reversed(_snapshot_offsets(loading)):\n"
            "        found = snapshots.read(loading.disk, loading.folder, offset)\n"
            "        if found is not None:\n"
            "            return found, offset\n"
            "    return Producers(), 0\n"
            "\n\ndef _producers_at",
        ),
    ],
    "producers are not replayed in recovery": [
        Edit(f"{RECOVERY}:recover_segment", "if header.producer_id >= 0:", "if header.producer_id < -1:")
    ],
    "snapshots are not flushed": [
        Edit(f"{FLUSHING}.force_snapshots", "checkpoints.flush_file(self._disk, path)", "continue")
    ],
    "transaction indexes are not flushed": [
        Edit("moldau.log.segment:Segment.flush", "self.aborted.flush()", "pass")
    ],
    "the log start checkpoint is ignored": [
        Edit(f"{RECOVERY}:load", "start = max(loading.log_start, ", "start = max(0, ")
    ],
    "a log start that shows is not written down before it lasts": [
        Edit("moldau.log.log:Log.shows_its_start", " and not (start and self._flushing.unsynced_names)", "")
    ],
    "epochs beyond the log's end are kept": [Edit(f"{RECOVERY}:load", "epochs.truncate_from_end(end)", "pass")],
    "epochs are not noted in recovery": [Edit(f"{RECOVERY}:recover_segment", "_note_epoch(epochs, header)", "pass")],
    "what was written down of a deleted topic is taken for its successor's": [
        Edit(f"{FOLDER}._forget", "if any(", "if not any(")
    ],
    "the clean marker is deleted after loading": [
        Edit("moldau.log.identity:take_marker", "    disk.remove(path)\n    disk.sync_folder(folder)\n", ""),
        Edit(f"{FOLDER}.settle", "if any(", "self._disk.remove(self.path / CLEAN_MARKER)\n    if any("),
    ],
    "the clean marker is deleted for a while only": [
        Edit("moldau.log.identity:take_marker", "disk.sync_folder(folder)", "pass")
    ],
    "the clean marker is left before the logs are flushed": [
        Edit(
            f"{FOLDER}.close",
            "for log in self.logs.values():",
            "identity.leave_marker(self._disk, self.path, broker_epoch)\n            for log in self.logs.values():",
        )
    ],
    "logs count as closed before their file system is flushed": [
        Edit("moldau.log.closing:Closing._close_together", "if not self._file_system.flush():", "if False:")
    ],
    "a stop leaves no recovery points": [
        Edit(f"{FOLDER}.close", "self._checkpoint(high", "(lambda _: None)(high"),
    ],
    "old segments go before the new one counts": [
        Edit(
            "moldau.log.compaction.cleaner:Cleaner._rewrite",
            "await run(partial(swapping.commit, new, disk))",
            "[lazy.rename(lazy.path.with_name(lazy.path.name + '.deleted')) "
            "for one in group for lazy in swapping.files_of(one, disk)]\n"
            "    await run(partial(swapping.commit, new, disk))",
        ),
    ],
    "a new segment takes its name before it counts": [
        Edit("moldau.log.compaction.swapping:commit", "+ SWAP_SUFFIX", ""),
    ],
    "a new segment is not flushed before it counts": [
        Edit("moldau.log.compaction.cleaning:rewrite", "writer.segment.flush(active=False)", "pass")
    ],
    "a log is compacted beyond what is flushed": [
        Edit("moldau.log.compaction.cleaner:Cleaner._clean", "await run(log.flush)", "pass")
    ],
    "a swap that counts is thrown away": [
        Edit("moldau.log.leftovers:finish_leftovers", "if cleaned and base_of(name) >= min(cleaned)", "")
    ],
    "tombstones go too early": [
        Edit("moldau.log.compaction.compactor:Compactor._filtered", "not header.has_delete_horizon or ", "False and ")
    ],
    "compaction forgets the last batch of a producer": [
        Edit(
            "moldau.log.compaction.compactor:Compactor._is_last_of_producer",
            "return header.last_offset ==",
            "return -1 ==",
        )
    ],
    "records of open transactions are compacted": [
        Edit(
            "moldau.log.compaction.dirtiness:dirt_of",
            "min(stable_offset, segments[-1].base_offset)",
            "segments[-1].base_offset",
        )
    ],
}  # fmt: skip


def _find(where: str) -> tuple[Any, Any, str]:
    """The module, what holds the function, and its name."""
    module_name, _, path = where.partition(":")
    module: Any = importlib.import_module(module_name)
    *parts, name = path.split(".")
    owner = module
    for part in parts:
        owner = getattr(owner, part)
    return module, owner, name


@contextmanager
def mutated(edits: list[Edit]) -> Iterator[None]:
    """The production code with these edits in it."""
    undo: list[tuple[Any, str, Any]] = []
    sources: dict[tuple[int, str], str] = {}
    try:
        for edit in edits:
            module, owner, name = _find(edit.where)
            before = inspect.getattr_static(owner, name)
            source = sources.get((id(owner), name))
            if source is None:
                function = before.fget if isinstance(before, property) else getattr(before, "__func__", before)
                source = textwrap.dedent(inspect.getsource(function))
            if source.count(edit.old) != 1:
                raise LookupError(f"{edit.where} holds {edit.old!r} {source.count(edit.old)} times")
            source = sources[id(owner), name] = source.replace(edit.old, edit.new)
            made: dict[str, Any] = {}
            exec(compile(source, f"<mutated {edit.where}>", "exec"), module.__dict__, made)
            holders = [owner]
            if owner is module:
                holders += [
                    other
                    for key, other in list(sys.modules.items())
                    if key.startswith(("moldau.", "tests.crash_points"))
                    and getattr(other, name, None) is before
                    and other is not module
                ]
            for holder in holders:
                undo.append((holder, name, inspect.getattr_static(holder, name)))
                setattr(holder, name, made[name])
            for extra in made.keys() - {name}:
                setattr(module, extra, made[extra])
        yield
    finally:
        for holder, name, value in reversed(undo):
            setattr(holder, name, value)


def caught_after(name: str, points: int = POINTS, seed: int = 1) -> tuple[int, str] | None:
    """After how many points a mutation is caught, and by which sentence; None if it is not."""
    done = Report()
    with unlogged(), mutated(MUTATIONS[name]):
        while done.points + done.errors < points:
            done.add(run_seed(seed, points - done.points - done.errors, 0.1, FAVOURS.get(name)))
            if done.failures:
                return done.points + done.errors, done.failures[0].sentence
            seed += 1
    return None
