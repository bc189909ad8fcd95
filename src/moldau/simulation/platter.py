"""The contents of files and folders in two states: as programs see them, and as a power loss would leave them (the
platter), with the changes in between.

After a power loss any sectors of a file's unflushed writes may survive. One order holds: if a truncation is lost, later
writes behind it are lost too, because a journal keeps changes of a file's size in order. Of a folder's names, a prefix
of the changes since the last sync survives, as with an ordered journal (ext4). Each folder has its own prefix, which is
weaker than ext4's single order. Flushing a file does not make its name durable. After a failed fsync the dirty pages
are never written: the visible state differs from the platter from then on, although the next fsync succeeds (ext4 since
2018, after "fsyncgate").
"""

import random
from typing import TypeAlias

from moldau.runtime import Buffer

SECTOR_BYTES = 512


class FileBytes:
    """The bytes of a file. Preallocated room takes no memory."""

    __slots__ = ("_data", "size")

    def __init__(self) -> None:
        self.size = 0
        self._data = bytearray()

    def copy(self) -> "FileBytes":
        other = FileBytes()
        other.size = self.size
        other._data = self._data[:]
        return other

    def read(self, length: int, at: int) -> bytes:
        end = min(at + length, self.size)
        content = bytes(self._data[at:end])
        return content + bytes(max(end - at - len(content), 0))

    def write(self, data: Buffer, at: int) -> None:
        if not data:
            return
        if at > len(self._data):
            self._data.extend(bytes(at - len(self._data)))
        self._data[at : at + len(data)] = data
        self.size = max(self.size, at + len(data))

    def resize(self, size: int) -> None:
        del self._data[size:]
        self.size = size


Write: TypeAlias = tuple[int, bytes | None]
"""(position, bytes), or (size, None) for a truncation or an extension."""


class Inode:
    """One file: its visible bytes, its bytes after a power loss, and the unflushed writes between the two."""

    __slots__ = ("flushed", "now", "pending")

    def __init__(self) -> None:
        self.now = FileBytes()
        self.flushed = FileBytes()
        self.pending: list[Write] = []

    def copy(self, copies: "NodeCopies") -> "Inode":
        copied = copies.get(id(self))
        if isinstance(copied, Inode):
            return copied
        other = Inode()
        other.now, other.flushed, other.pending = self.now.copy(), self.flushed.copy(), self.pending[:]
        copies[id(self)] = other
        return other

    def change(self, write: Write) -> None:
        _apply_write(self.now, write)
        self.pending.append(write)

    def flush(self) -> None:
        for write in self.pending:
            _apply_write(self.flushed, write)
        self.pending.clear()

    def keep(self, seed: random.Random, share: float) -> None:
        """Let about that share of the unflushed sectors reach the platter, and forget the others."""
        lost_from: int | None = None
        for position, data in self.pending:
            if data is None:
                if lost_from is None and seed.random() < share:
                    self.flushed.resize(position)
                elif position < self.flushed.size:
                    lost_from = position if lost_from is None else min(lost_from, position)
                continue
            if lost_from is not None and position + len(data) > lost_from:
                continue
            for start in range(0, len(data), SECTOR_BYTES):
                if seed.random() < share:
                    self.flushed.write(data[start : start + SECTOR_BYTES], position + start)
        self.pending.clear()

    def crash(self, seed: random.Random, share: float) -> None:
        if self.pending:
            if 0 < share < 1 and seed.random() < 0.4:
                share = seed.choice((0.0, 1.0))
            self.keep(seed, share)
        self.now = self.flushed.copy()


def _apply_write(content: FileBytes, write: Write) -> None:
    position, data = write
    if data is None:
        content.resize(position)
    else:
        content.write(data, position)


class Folder:
    __slots__ = ("now", "pending", "synced")

    def __init__(self) -> None:
        self.now: dict[str, InodeOrFolder] = {}
        self.synced: dict[str, InodeOrFolder] = {}
        self.pending: list[tuple[EntryChange, ...]] = []

    def copy(self, copies: "NodeCopies") -> "Folder":
        copied = copies.get(id(self))
        if isinstance(copied, Folder):
            return copied
        other = Folder()
        copies[id(self)] = other
        other.now = {name: node.copy(copies) for name, node in self.now.items()}
        other.synced = {name: node.copy(copies) for name, node in self.synced.items()}
        other.pending = [
            tuple((name, None if node is None else node.copy(copies)) for name, node in changes)
            for changes in self.pending
        ]
        return other

    def change(self, *changes: "EntryChange") -> None:
        """One step of the journal: its changes survive together or not at all."""
        _apply(self.now, changes)
        self.pending.append(changes)

    def sync(self) -> None:
        self.synced = dict(self.now)
        self.pending.clear()

    def keep(self, seed: random.Random, share: float) -> None:
        """Let a prefix of the unsynced changes reach the platter, and forget the others."""
        count = len(self.pending)
        if share < 1:
            count = seed.randint(0, count) if share > 0 else 0
        for changes in self.pending[:count]:
            _apply(self.synced, changes)
        self.pending.clear()

    def sync_all(self) -> None:
        """This folder and everything below it."""
        self.sync()
        for node in self.now.values():
            if isinstance(node, Folder):
                node.sync_all()
            else:
                node.flush()

    def keep_all(self, seed: random.Random, share: float) -> None:
        """As `keep`, for this folder and everything below it."""
        self.keep(seed, share)
        for name in sorted(self.now):
            node = self.now[name]
            if isinstance(node, Folder):
                node.keep_all(seed, share)
            else:
                node.keep(seed, share)

    def crash(self, seed: random.Random, share: float) -> None:
        """Become what a power loss leaves of this folder and everything below it."""
        self.keep(seed, share)
        self.now = dict(self.synced)
        for name in sorted(self.now):
            self.now[name].crash(seed, share)


InodeOrFolder: TypeAlias = Inode | Folder
NodeCopies: TypeAlias = dict[int, InodeOrFolder]
EntryChange: TypeAlias = tuple[str, InodeOrFolder | None]
"""A name and the file or folder that it now refers to; None if the name was removed."""


def _apply(names: dict[str, InodeOrFolder], changes: tuple[EntryChange, ...]) -> None:
    for name, node in changes:
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node
