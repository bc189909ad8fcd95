"""A broker that is killed, by itself and with SIGKILL, in the middle of a disk operation it is told.

usage: python -m tests.end_to_end.fragile_broker FOLDER server start ...

FOLDER/seen lists the operations that were seen on each kind of file, while the broker started and (FOLDER/serving is
there) while it served. While FOLDER/armed is there, operations are counted against the `Point` in it. The broker that
reaches the point renames FOLDER/armed to FOLDER/hit, and only then dies: whoever removes FOLDER/armed first has decided
that it lives. `MUTATION` in the environment makes a broker that loses data on purpose, to see whether the tests notice.
"""

import json
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from moldau import process
from moldau.cli import main
from moldau.runtime import Buffer, File, RealDisk, RealFile, Runtime

SEEN, ARMED, HIT, SERVING = "seen", "armed", "hit", "serving"
BEFORE, HALF, AFTER = "before", "half", "after"
SEGMENT_FILE = re.compile(r"[0-9]{20}(\..+)")


@dataclass(frozen=True)
class Point:
    """Where to die: at the `count`-th such operation, `where` in it (`half`: of a write, half of the bytes)."""

    operation: str
    kind: str
    count: int = 1
    where: str = BEFORE


def arm(folder: Path, point: Point) -> None:
    """From now on operations are counted against `point`."""
    (folder / HIT).unlink(missing_ok=True)
    unfinished = folder / "arming"
    unfinished.write_text(json.dumps(asdict(point)))
    unfinished.rename(folder / ARMED)


def disarm(folder: Path) -> bool:
    """No operation is counted from now on. Returns False if that is too late: the broker has reached its point, and
    dies there, at once or when the operation is over."""
    (folder / ARMED).unlink(missing_ok=True)
    return not (folder / HIT).exists()


def seen(folder: Path, serving: bool) -> list[tuple[str, str]]:
    """The (operation, kind of file) pairs that were seen so far, in order of their names."""
    lines = [line.split(" ") for line in dict.fromkeys((folder / SEEN).read_text().splitlines())]
    return sorted((operation, kind) for phase, operation, kind in lines if (phase == SERVING) == serving)


def kind_of(path: Path) -> str:
    """What a file is, whatever its offset or partition."""
    segment_file = SEGMENT_FILE.fullmatch(path.name)
    if segment_file:
        return segment_file[1]
    if path.name.endswith("-delete"):
        return "-delete"
    return "folder" if re.search("-[0-9]+$", path.name) else path.name


class Fate:
    """Counts the operations of this process, and ends it."""

    def __init__(self, folder: Path):
        self._armed = folder / ARMED
        self._hit = folder / HIT
        self._serving = folder / SERVING
        self._file = os.open(folder / SEEN, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._seen: dict[str, None] = {}
        self._counts: dict[Point, int] = {}
        self._lock = threading.Lock()

    @property
    def serves(self) -> bool:
        return self._serving.exists()

    def claim(self) -> bool:
        """Whether this process may die now: it may not once nothing is armed any more."""
        try:
            self._armed.rename(self._hit)
        except FileNotFoundError:
            return False
        return True

    @contextmanager
    def around(self, operation: str, kind: str, half: Callable[[], object] = lambda: None) -> Iterator[None]:
        """One operation; `half` does half of it."""
        where = self._where(operation, kind)
        if where == HALF:
            half()
        if where in (BEFORE, HALF):
            os.kill(os.getpid(), signal.SIGKILL)
        yield
        if where == AFTER:
            os.kill(os.getpid(), signal.SIGKILL)

    def _where(self, operation: str, kind: str) -> str | None:
        """Where in this operation the end comes, if it does."""
        with self._lock:
            seen = f"{SERVING if self.serves else 'starting'} {operation} {kind}\n"
            if seen not in self._seen:
                self._seen[seen] = None
                os.write(self._file, seen.encode())
            try:
                point = Point(**json.loads(self._armed.read_text()))
            except FileNotFoundError:
                return None
            if (point.operation, point.kind) != (operation, kind):
                return None
            self._counts[point] = self._counts.get(point, 0) + 1
            return point.where if self._counts[point] == point.count and self.claim() else None


class FragileFile(RealFile):
    __slots__ = ("fate", "kind")

    def __init__(self, opened: RealFile, kind: str, fate: Fate):
        self._fd, opened._fd = opened._fd, -1
        self.fate = fate
        self.kind = kind

    def write(self, data: Buffer, at: int) -> None:
        half = memoryview(data)[: len(data) // 2]
        with self.fate.around("write", self.kind, lambda: RealFile.write(self, half, at)):
            super().write(data, at)

    def truncate(self, size: int) -> None:
        with self.fate.around("truncate", self.kind):
            super().truncate(size)

    def flush(self) -> None:
        with self.fate.around("flush", self.kind):
            super().flush()


class FragileDisk(RealDisk):
    """Every change of a file or a folder goes through `fate`."""

    def __init__(self, fate: Fate):
        self.fate = fate

    def open(self, path: Path, *, create: bool = False, writable: bool = True) -> File:
        with self.fate.around("create" if create else "open", kind_of(path)):
            opened = super().open(path, create=create, writable=writable)
        assert isinstance(opened, RealFile)
        return FragileFile(opened, kind_of(path), self.fate)

    def rename(self, old: Path, new: Path) -> None:
        with self.fate.around("rename", f"{kind_of(old)}->{kind_of(new)}"):
            super().rename(old, new)

    def remove(self, path: Path) -> None:
        with self.fate.around("remove", kind_of(path)):
            super().remove(path)

    def make_folder(self, folder: Path) -> None:
        with self.fate.around("make", kind_of(folder)):
            super().make_folder(folder)

    def sync_folder(self, folder: Path) -> None:
        with self.fate.around("sync", kind_of(folder)):
            super().sync_folder(folder)


def run() -> None:
    disk = FragileDisk(Fate(Path(sys.argv.pop(1))))
    if mutation := os.environ.get("MUTATION"):
        from tests.end_to_end import losing

        disk = losing.MUTATIONS[mutation](disk)
    process.Runtime = partial(Runtime, disk=disk)  # type: ignore[misc, assignment]
    main.main()


if __name__ == "__main__":
    run()
