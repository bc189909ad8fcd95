"""A `Disk` is one thing, whether the machine's or simulated: the same calls, the same answers, the same errors."""

from pathlib import Path

import pytest

from moldau.errors import StorageError
from moldau.runtime import File
from tests.grounds import GROUNDS, Ground


@pytest.fixture(params=GROUNDS)
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Ground:
    made: Ground = request.param(tmp_path)
    return made


def filled(ground: Ground, name: str, content: bytes = b"content") -> Path:
    path = ground.folder / name
    file = ground.disk.open(path, create=True)
    file.write(content, 0)
    file.close()
    return path


def content(file: File) -> bytes:
    return file.read(file.size() + 10, 0)


def content_at(ground: Ground, path: Path) -> bytes:
    return content(ground.disk.open(path, writable=False))


def test_what_is_written_is_read_at_once_by_whoever_has_the_file_open(ground: Ground) -> None:
    path = filled(ground, "a", b"0123456789")
    writer, reader = ground.disk.open(path), ground.disk.open(path, writable=False)
    writer.write(b"AB", 4)
    assert reader.read(4, 3) == b"3AB6"
    assert reader.read(100, 8) == b"89"
    assert reader.read(100, 10) == reader.read(100, 1000) == reader.read(0, 0) == b""
    writer.write(b"xyz", 9)
    assert (reader.size(), ground.disk.size(path), content(reader)) == (12, 12, b"0123AB678xyz")


def test_opening_a_file_that_is_there_keeps_what_is_in_it(ground: Ground) -> None:
    path = filled(ground, "a")
    assert content(ground.disk.open(path, create=True)) == b"content"


def test_a_private_file_is_created_and_never_opened(ground: Ground) -> None:
    path = ground.folder / "a"
    file = ground.disk.create_private(path)
    file.write(b"secret", 0)
    with pytest.raises(FileExistsError):
        ground.disk.create_private(path)
    assert content(file) == content_at(ground, path) == b"secret"


def test_what_was_handed_over_may_be_changed_afterwards(ground: Ground) -> None:
    file = ground.disk.open(filled(ground, "a", b""))
    buffer = bytearray(b"one")
    file.write(memoryview(buffer), 0)
    buffer[:] = b"two"
    file.write(buffer, 3)
    buffer[:] = b"..."
    assert content(file) == b"onetwo"


def test_a_gap_reads_as_zeros(ground: Ground) -> None:
    file = ground.disk.open(filled(ground, "a", b"head"))
    file.write(b"tail", 10)
    assert content(file) == b"head" + bytes(6) + b"tail"
    file.write(b"", 100)
    assert file.size() == 14


def test_a_file_is_cut_and_what_was_cut_does_not_come_back(ground: Ground) -> None:
    file = ground.disk.open(filled(ground, "a", b"0123456789"))
    file.truncate(4)
    assert (file.size(), content(file)) == (4, b"0123")
    file.truncate(8)
    assert content(file) == b"0123" + bytes(4)
    file.truncate(1 << 40)
    assert file.size() == 1 << 40
    assert file.read(4, 1 << 39) == bytes(4)
    file.truncate(0)
    assert content(file) == b""


@pytest.mark.parametrize("act", ["write", "truncate"])
def test_what_is_open_for_reading_cannot_be_changed(ground: Ground, act: str) -> None:
    path = filled(ground, "a")
    file = ground.disk.open(path, writable=False)
    with pytest.raises(OSError):
        file.write(b"x", 0) if act == "write" else file.truncate(1)
    assert content_at(ground, path) == b"content"


def test_a_closed_file_is_of_no_more_use_and_may_be_closed_again(ground: Ground) -> None:
    path = filled(ground, "a")
    file, other = ground.disk.open(path), ground.disk.open(path)
    file.close()
    file.close()
    for use in (lambda: file.read(1, 0), lambda: file.write(b"x", 0), lambda: file.truncate(0), file.flush, file.size):
        with pytest.raises(OSError):
            use()
    assert content(other) == b"content"


def test_what_is_not_there_is_not_found(ground: Ground) -> None:
    disk, path = ground.disk, ground.folder / "missing"
    for use in (
        lambda: disk.open(path),
        lambda: disk.open(path, writable=False),
        lambda: disk.open(path / "file", create=True),
        lambda: disk.size(path),
        lambda: disk.modified_ms(path),
        lambda: disk.list(path),
        lambda: disk.sync_folder(path),
        lambda: disk.rename(path, ground.folder / "new"),
        lambda: disk.rename(filled(ground, "a"), path / "a"),
    ):
        with pytest.raises(FileNotFoundError):
            use()
    assert not disk.exists(path)
    assert not disk.exists(path / "file")
    disk.remove(path)
    disk.remove(path / "file")
    assert disk.list(ground.folder) == ["a"]


def test_nothing_is_below_a_file(ground: Ground) -> None:
    disk, path = ground.disk, filled(ground, "a")
    for use in (
        lambda: disk.open(path / "b"),
        lambda: disk.open(path / "b", create=True),
        lambda: disk.list(path),
        lambda: disk.size(path / "b"),
    ):
        with pytest.raises(NotADirectoryError):
            use()
    with pytest.raises(FileExistsError):
        disk.make_folder(path)
    assert not disk.exists(path / "b")
    assert content_at(ground, path) == b"content"


def test_a_folder_is_no_file(ground: Ground) -> None:
    disk, folder = ground.disk, ground.folder / "folder"
    disk.make_folder(folder)
    for create in (False, True):
        with pytest.raises(IsADirectoryError):
            disk.open(folder, create=create)
    with pytest.raises(IsADirectoryError):
        disk.rename(filled(ground, "a"), folder)
    with pytest.raises(NotADirectoryError):
        disk.rename(folder, ground.folder / "a")
    assert disk.list(ground.folder) == ["a", "folder"]


def test_folders_are_made_with_their_parents_and_listed_with_the_files(ground: Ground) -> None:
    disk = ground.disk
    deep = ground.folder / "x" / "y" / "z"
    disk.make_folder(deep)
    disk.make_folder(deep)
    for name in ("x/file", "x/y/file", "b", "Z", "x/.hidden"):
        filled(ground, name)
    assert disk.list(ground.folder) == ["Z", "b", "x"]
    assert disk.list(ground.folder / "x") == [".hidden", "file", "y"]
    assert disk.list(deep) == []
    assert all(disk.exists(path) for path in (deep, ground.folder / "b", ground.folder))


def test_a_rename_replaces_and_whoever_has_either_file_open_goes_on(ground: Ground) -> None:
    disk, old, new = ground.disk, filled(ground, "old", b"of old"), filled(ground, "new", b"of new")
    old_file, new_file = disk.open(old), disk.open(new)
    disk.rename(old, new)
    assert disk.list(ground.folder) == ["new"]
    assert (content(old_file), content(new_file), content_at(ground, new)) == (b"of old", b"of new", b"of old")
    old_file.write(b"!", 6)
    assert content_at(ground, new) == b"of old!"
    disk.rename(new, new)
    assert content_at(ground, new) == b"of old!"


def test_a_file_moves_to_another_folder(ground: Ground) -> None:
    disk, path = ground.disk, filled(ground, "a")
    disk.make_folder(ground.folder / "folder")
    disk.rename(path, ground.folder / "folder" / "b")
    assert not disk.exists(path)
    assert content_at(ground, ground.folder / "folder" / "b") == b"content"


def test_a_folder_is_renamed_with_all_in_it_but_replaces_no_full_one(ground: Ground) -> None:
    disk, one, two, three = ground.disk, *(ground.folder / name for name in ("one", "two", "three"))
    disk.make_folder(one / "below")
    filled(ground, "one/below/a")
    reader = disk.open(one / "below" / "a")
    disk.rename(one, two)
    assert not disk.exists(one)
    assert (content(reader), content_at(ground, two / "below" / "a")) == (b"content", b"content")
    disk.make_folder(three)
    disk.rename(three, one)
    with pytest.raises(OSError):
        disk.rename(one, two)
    disk.make_folder(three)
    disk.rename(two, three)
    assert disk.list(ground.folder) == ["one", "three"]
    assert disk.list(three / "below") == ["a"]


def test_what_is_removed_is_read_on_by_whoever_has_it_open(ground: Ground) -> None:
    disk, path = ground.disk, filled(ground, "a")
    disk.make_folder(ground.folder / "folder" / "below")
    filled(ground, "folder/below/b")
    file, below = disk.open(path), disk.open(ground.folder / "folder" / "below" / "b")
    disk.remove(path)
    disk.remove(ground.folder / "folder")
    assert disk.list(ground.folder) == []
    assert (content(file), content(below)) == (b"content", b"content")
    filled(ground, "a", b"another")
    file.write(b"old one", 0)
    assert content_at(ground, path) == b"another"


def test_what_is_flushed_and_synced_reads_as_before(ground: Ground) -> None:
    path = filled(ground, "a")
    file = ground.disk.open(path)
    file.write(b"C", 0)
    file.flush()
    ground.disk.sync_folder(ground.folder)
    assert content_at(ground, path) == b"Content"
    assert ground.disk.modified_ms(path) >= 0


def test_a_lock_is_held_by_one_until_it_is_released(ground: Ground) -> None:
    disk, path = ground.disk, ground.folder / ".lock"
    release = disk.lock(path)
    with pytest.raises(StorageError, match=f"another broker uses {ground.folder}"):
        disk.lock(path)
    release()
    again = disk.lock(path)
    assert disk.exists(path)
    again()


def test_a_lock_knows_whether_its_path_leads_elsewhere(ground: Ground) -> None:
    disk, folder = ground.disk, ground.folder / "used"
    disk.make_folder(folder)
    lock = disk.lock(folder / ".lock")
    assert lock.in_place()
    disk.rename(folder, ground.folder / "away")
    assert not lock.in_place()
    disk.make_folder(folder)
    assert not lock.in_place()
    disk.rename(folder, ground.folder / "empty")
    disk.rename(ground.folder / "away", folder)
    assert lock.in_place()
    lock()


def test_a_lock_needs_its_folder(ground: Ground) -> None:
    with pytest.raises(FileNotFoundError):
        ground.disk.lock(ground.folder / "missing" / ".lock")


def test_a_kill_loses_nothing_that_was_written(ground: Ground) -> None:
    path = filled(ground, "a")
    file = ground.disk.open(path)
    file.write(b"!", 7)
    ground.disk.rename(path, ground.folder / "b")
    ground.kill()
    assert ground.disk.list(ground.folder) == ["b"]
    assert content_at(ground, ground.folder / "b") == b"content!"
