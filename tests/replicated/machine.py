"""The machine of a broker process: its files as the process sees them, and what a power loss leaves of them.

The journal of a `recording_broker` says what was written and what was flushed; the simulator's platter says which of
what was not flushed survives: any sectors of a file, a beginning of the changes of a folder's names.
"""

import pickle
import random
import shutil
from pathlib import Path

from harness.brokers import Broker
from moldau.simulation.disk import SHARES
from moldau.simulation.platter import Folder, Inode
from tests.replicated.recording_broker import Entry, boot_id_of, journal_of

LENGTH_BYTES = 4


class Machine:
    """A broker that has not started yet, and its data folder."""

    def __init__(self, broker: Broker, chance: random.Random):
        self.broker = broker
        self.lost_bytes = 0
        """How many bytes of logs were written and are gone."""
        self._data = broker.data
        self._chance = chance
        self._boots = 0
        self._root = Folder()
        self._inodes: dict[int, Inode] = {}
        self._boot()

    def kill(self) -> None:
        """SIGKILL: whatever was written is there."""
        self.broker.kill()
        self._read_journal()
        self._correct(self._root, self._data)

    def lose_power(self) -> None:
        """SIGKILL, and the files lose what was not flushed, or some of it."""
        self.kill()
        before = log_bytes(self._data)
        self._root.crash(self._chance, self._chance.choice(SHARES))
        shutil.rmtree(self._data)
        write_out(self._root, self._data)
        self.lost_bytes += before - log_bytes(self._data)
        self._boot()

    def _boot(self) -> None:
        """All that is on the disk now is there for good."""
        self._boots += 1
        boot_id_of(self._data).write_text(f"boot-{self._boots}")
        journal_of(self._data).write_bytes(b"")
        self._inodes.clear()
        self._root = self._found(self._data) if self._data.exists() else Folder()

    def _found(self, path: Path) -> Folder:
        folder = Folder()
        for below in sorted(path.iterdir()):
            folder.change((below.name, self._found(below) if below.is_dir() else self._read(below)))
        folder.sync()
        return folder

    def _read(self, path: Path) -> Inode:
        inode = self._inodes[path.stat().st_ino] = Inode()
        inode.change((0, path.read_bytes()))
        inode.flush()
        return inode

    def _read_journal(self) -> None:
        """Follow the journal, and empty it. Its last entry may have been cut off by the kill."""
        data, at = journal_of(self._data).read_bytes(), 0
        while (end := at + LENGTH_BYTES + int.from_bytes(data[at : at + LENGTH_BYTES], "big")) <= len(data) > at:
            self._follow(Entry(*pickle.loads(data[at + LENGTH_BYTES : end])))
            at = end
        journal_of(self._data).write_bytes(b"")

    def _follow(self, entry: Entry) -> None:
        inode = self._inodes.get(entry.inode)
        match entry.what:
            case "create":
                folder, name = self._place(entry.path)
                created = self._inodes[entry.inode] = Inode()
                folder.change((name, created))
            case "write" if inode is not None:
                inode.change((entry.at, entry.data))
            case "truncate" if inode is not None:
                inode.change((entry.at, None))
            case "flush" if inode is not None:
                inode.flush()
            case "rename":
                self._rename(entry)
            case "remove":
                folder, name = self._place(entry.path)
                if name in folder.now:
                    folder.change((name, None))
            case "make":
                self._make(entry.path)
            case "sync" if Path(entry.path) != self._data.parent:
                self._folder(Path(entry.path)).sync()

    def _rename(self, entry: Entry) -> None:
        (source, old), (target, new) = self._place(entry.path), self._place(entry.new_path)
        node = source.now[old]
        if source is target:
            source.change((old, None), (new, node))
        else:
            target.change((new, node))
            source.change((old, None))

    def _make(self, path: str) -> None:
        """The data folder's own name, and those above it, are taken for flushed."""
        at = self._root
        for name in Path(path).relative_to(self._data).parts:
            below = at.now.get(name)
            if not isinstance(below, Folder):
                below = Folder()
                at.change((name, below))
            at = below

    def _place(self, path: str) -> tuple[Folder, str]:
        return self._folder(Path(path).parent), Path(path).name

    def _folder(self, path: Path) -> Folder:
        at = self._root
        for name in path.relative_to(self._data).parts:
            below = at.now[name]
            assert isinstance(below, Folder)
            at = below
        return at

    def _correct(self, folder: Folder, path: Path) -> None:
        """The files are what counts: the kill may have come between a change and its note."""
        there = {below.name: below for below in path.iterdir()}
        for name in folder.now.keys() - there.keys():
            folder.change((name, None))
        for name, below in there.items():
            node = folder.now.get(name)
            if below.is_dir():
                if not isinstance(node, Folder):
                    node = Folder()
                    folder.change((name, node))
                self._correct(node, below)
                continue
            if not isinstance(node, Inode):
                node = self._inodes[below.stat().st_ino] = Inode()
                folder.change((name, node))
            content = below.read_bytes()
            if node.now.read(node.now.size, 0) != content:
                node.change((0, content))
                node.change((len(content), None))


def write_out(folder: Folder, path: Path) -> None:
    path.mkdir()
    for name, node in folder.now.items():
        if isinstance(node, Folder):
            write_out(node, path / name)
        else:
            (path / name).write_bytes(node.now.read(node.now.size, 0))


def log_bytes(data: Path) -> int:
    return sum(path.stat().st_size for path in data.glob("*/*.log"))
