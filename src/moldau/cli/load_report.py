"""What `moldau pipeline load` says: a sentence or JSON for each commit, and a line that moves in a terminal."""

import contextlib
import json
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from moldau.cli.output import note, print_json, print_table
from moldau.errors import MoldauError
from moldau.names import counted

if TYPE_CHECKING:
    from moldau.pipeline.loading.planning import Plan
    from moldau.pipeline.loading.progress import LoadProgress
    from moldau.pipeline.loading.settings import Loaded
    from moldau.pipeline.tables.maintenance import Compacted

MOVES_S = 0.5
CLEAR_LINE = "\r\x1b[K"


def print_loaded(loaded: "Loaded", as_json: bool, quarantine: str) -> None:
    """The result of one load."""
    for sentence in loaded.notes:
        note(sentence)
    if as_json:
        tables: dict[str, dict[str, int]] = {}
        for one in loaded.commits:  # a load with --upsert may have several of a topic
            before = tables.get(one.topic, {})
            added = {"records": one.records, "deleted": one.deleted, "files": one.files}
            sums = {name: before.get(name, 0) + number for name, number in added.items()}
            tables[one.topic] = {"version": one.version, **sums}
        print_json({**_totals(loaded), "tables": tables})
        return
    if loaded.commits:
        print(
            f"loaded {counted(loaded.records, 'record')} "
            f"({loaded.bytes / 1e6:,.1f} MB, files: {loaded.files:,}) in "
            f"{loaded.seconds:.1f} s, {loaded.records_per_second:,.0f} records/s: "
            + ", ".join(f"{one.topic} version {one.version}" for one in loaded.commits)
            + (f"; {counted(loaded.deleted, 'row')} deleted" if loaded.deleted else "")
        )
    else:
        print("nothing new to load")
    if loaded.rejected:
        print(
            f"{counted(loaded.rejected, 'record')} could not be decoded: {quarantine} has the reasons, "
            "`moldau pipeline rejected` shows them"
        )


def _totals(loaded: "Loaded") -> dict[str, Any]:
    return {
        "records": loaded.records,
        "rejected": loaded.rejected,
        "deleted": loaded.deleted,
        "bytes": loaded.bytes,
        "files": loaded.files,
        "seconds": round(loaded.seconds, 3),
        "records_per_second": round(loaded.records_per_second),
    }


def print_plan(planned: "Plan", as_json: bool) -> None:
    """What a load would read."""
    for sentence in planned.notes:
        note(sentence)
    if as_json:
        ranges = [part._asdict() for part in planned.ranges]
        print_json({"offsets": planned.records, "ranges": ranges})
    elif planned.ranges:
        rows = [[part.topic, part.partition, part.start, part.end, part.size] for part in planned.ranges]
        print_table(["TOPIC", "PARTITION", "FROM", "TO", "OFFSETS"], rows)
    else:
        print("nothing new to load")


class ContinuousReport:
    """A line on standard output for each commit and compaction, flushed at once, and a note for each failure."""

    def __init__(self, as_json: bool):
        self._as_json = as_json
        self._lock = threading.Lock()
        self._commits = self._records = self._bytes = 0

    def committed(self, loaded: "Loaded", lag: dict[str, int]) -> None:
        for sentence in loaded.notes:
            note(f"{CLEAR_LINE if sys.stderr.isatty() else ''}{sentence}")
        for one in loaded.commits:
            self._commits += 1
            self._records += one.records
            self._bytes += one.bytes
            behind = lag.get(one.topic)
            self._say(
                f"{one.topic} version {one.version}: {counted(one.records, 'record')}, {one.bytes / 1e6:,.1f} MB in "
                f"{loaded.seconds:.1f} s"
                + (f", {one.deleted:,} deleted" if one.deleted else "")
                + (f", {one.rejected:,} in quarantine" if one.rejected else "")
                + ("" if behind is None else f", lag {behind:,}"),
                event="commit", topic=one.topic, version=one.version, records=one.records, rejected=one.rejected,
                deleted=one.deleted, bytes=one.bytes, files=one.files, seconds=round(loaded.seconds, 3), lag=behind,
            )  # fmt: skip

    def compacted(self, topic: str, done: "Compacted") -> None:
        self._say(
            f"{topic}: compacted, {counted(done.removed, 'file')} became {done.added:,}",
            event="compaction", topic=topic, files_removed=done.removed, files_added=done.added,
        )  # fmt: skip

    def failed(self, failure: MoldauError, pause_s: float) -> None:
        clear = CLEAR_LINE if sys.stderr.isatty() else ""
        note(f"{clear}{str(failure).rstrip('.')}; next attempt in {pause_s:.0f} s")

    def stopped(self) -> None:
        self._say(
            f"stopped after {counted(self._commits, 'commit')}: {counted(self._records, 'record')}, "
            f"{self._bytes / 1e6:,.1f} MB",
            event="stopped", commits=self._commits, records=self._records, bytes=self._bytes,
        )  # fmt: skip

    def _say(self, sentence: str, **fields: Any) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = json.dumps({"time": now, **fields}, ensure_ascii=False) if self._as_json else f"{now} {sentence}"
        with self._lock:
            if sys.stderr.isatty():
                print(CLEAR_LINE, end="", file=sys.stderr, flush=True)
            print(line, flush=True)


@contextlib.contextmanager
def progress_line(progress: "LoadProgress") -> Iterator[None]:
    """Show how far the running load is, on a terminal's standard error only."""
    if not sys.stderr.isatty():
        yield
        return
    over = threading.Event()
    began = time.monotonic()

    def show() -> None:
        while not over.wait(MOVES_S):
            left = max(0, progress.planned - progress.records)
            print(
                f"{CLEAR_LINE}{progress.records:,} records, {progress.bytes / 1e6:,.1f} MB, lag {left:,}, "
                f"{time.monotonic() - began:,.0f} s",
                end="", file=sys.stderr, flush=True,
            )  # fmt: skip

    showing = threading.Thread(target=show, name="moldau-progress", daemon=True)
    showing.start()
    try:
        yield
    finally:
        over.set()
        showing.join()
        print(CLEAR_LINE, end="", file=sys.stderr, flush=True)
