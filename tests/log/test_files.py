import errno
from pathlib import Path

from moldau.log.files import LazyFile, OpenFiles
from moldau.replies import FileSlice
from moldau.runtime import File, RealDisk


def opened(path: Path, files: OpenFiles, content: bytes = b"content") -> LazyFile:
    lazy = LazyFile(path, files)
    lazy.create().write(content, 0)
    return lazy


def test_no_more_files_are_open_than_allowed_and_all_can_be_used(tmp_path: Path) -> None:
    files = OpenFiles(RealDisk(), limit=8)
    lazies = [opened(tmp_path / str(number), files, b"%d" % number) for number in range(50)]
    for number, lazy in enumerate(lazies):
        assert lazy.get().read(10, 0) == b"%d" % number
        assert len(files) <= 8


def test_what_was_used_lately_stays_open(tmp_path: Path) -> None:
    files = OpenFiles(RealDisk(), limit=8)
    hot = opened(tmp_path / "hot", files)
    first = hot.get()
    for number in range(100):
        opened(tmp_path / str(number), files)
        assert hot.get() is first


def test_where_all_are_used_room_is_made_all_the_same(tmp_path: Path) -> None:
    files = OpenFiles(RealDisk(), limit=16)
    lazies = [opened(tmp_path / str(number), files) for number in range(16)]
    for _ in range(10):
        for lazy in lazies:
            lazy.get()
        opened(tmp_path / "more", files)
        assert len(files) <= 16


def test_a_reader_keeps_a_file_that_was_let_go_renamed_and_removed(tmp_path: Path) -> None:
    files = OpenFiles(RealDisk())
    lazy = opened(tmp_path / "a", files)
    file = lazy.get()
    lazy.rename(tmp_path / "b")
    lazy.let_go()
    (tmp_path / "b").unlink()
    assert file.read(10, 0) == b"content"


def test_a_renamed_file_opens_under_its_new_name(tmp_path: Path) -> None:
    files = OpenFiles(RealDisk())
    lazy = opened(tmp_path / "a", files)
    lazy.let_go()
    lazy.rename(tmp_path / "b")
    assert lazy.get().read(10, 0) == b"content"


def test_where_the_process_may_open_nothing_more_the_longest_open_make_room(tmp_path: Path) -> None:
    class FullDisk(RealDisk):
        """So many files may be open, as with `ulimit -n`."""

        left = 10

        def open(self, path: Path, *, create: bool = False, writable: bool = True) -> File:
            if self.left == 0:
                self.left = 5
                raise OSError(errno.EMFILE, "Too many open files", str(path))
            self.left -= 1
            return super().open(path, create=create, writable=writable)

    files = OpenFiles(FullDisk())
    lazies = [opened(tmp_path / str(number), files, b"%d" % number) for number in range(40)]
    assert [lazy.get().read(10, 0) for lazy in lazies] == [b"%d" % number for number in range(40)]
    assert len(files) < 40


def test_the_files_of_a_reply_are_counted_until_its_last_slice_is_gone(tmp_path: Path) -> None:
    files = OpenFiles(RealDisk(), limit=8, held_max=20)
    hold = files.hold()
    assert (hold.count, files.held) == (11, 10), "one is each connection's own"
    lazies = [opened(tmp_path / str(number), files) for number in range(5)]
    slices = [FileSlice(lazy.get(), 0, 7) for lazy in lazies[:4]]
    hold.shrink(5)
    slices.append(FileSlice(lazies[4].get(), 0, 7, hold=hold))
    del hold
    assert files.held == 4
    for lazy in lazies:
        lazy.let_go()
    assert [piece.file.read(7, 0) for piece in slices] == [b"content"] * 5
    left = slices.pop()._replace(offset=3, length=4)
    slices.clear()
    assert files.held == 4
    del left
    assert files.held == 0


def test_a_reply_may_hold_half_of_the_files_that_are_left_and_always_one() -> None:
    files = OpenFiles(RealDisk(), held_max=20)
    held = [files.hold() for _ in range(7)]
    assert [hold.count for hold in held] == [11, 6, 3, 2, 2, 1, 1]
    assert files.held == 19
    held.clear()
    assert files.held == 0
