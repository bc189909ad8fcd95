"""Several log folders as one: where partitions go, what one failure takes along, and what is refused at the start."""

import asyncio
import errno
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.logs import NOW_MS, TOPIC_ID, append, config, read_all
from moldau.config import TopicConfig
from moldau.errors import KafkaError, StorageError
from moldau.log.folders.folder import LogFolder
from moldau.log.folders.folders import LogFolders
from moldau.log.folders.identity import CLEAN_MARKER
from moldau.names import TopicPartition
from moldau.runtime import File, RealDisk, Runtime

KNOWN = {"t": TOPIC_ID}


def tp(number: int) -> TopicPartition:
    return TopicPartition("t", number)


def config_of(_: str) -> TopicConfig:
    return config()


class BadDisk(RealDisk):
    """Whatever is opened below `bad` is an I/O error."""

    def __init__(self) -> None:
        self.bad: Path | None = None

    def open(self, path: Path, *, create: bool = False, writable: bool = True) -> File:
        if self.bad is not None and self.bad in path.parents:
            raise OSError(errno.EIO, "Input/output error", str(path))
        return super().open(path, create=create, writable=writable)


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    return [tmp_path / name for name in ("a", "b", "c")]


@pytest.fixture
def folders(paths: list[Path]) -> Iterator[LogFolders]:
    made = begun(paths)
    yield made
    made.close(clean=False)


def begun(paths: list[Path], runtime: Runtime | None = None, threads: int = 2) -> LogFolders:
    folders = LogFolders(paths, runtime or Runtime())
    try:
        folders.claim("cluster", 1)
        asyncio.run(folders.load(KNOWN, config_of, {}, threads))
    except BaseException:
        folders.close(clean=False)
        raise
    return folders


def fill(folders: LogFolders, count: int) -> None:
    for number, directory in enumerate(folders.place([tp(number) for number in range(count)])):
        home = folders.home(directory)
        assert home is not None
        append(home.create(tp(number), TOPIC_ID, config()), number + 1)


def by_folder(folders: LogFolders) -> list[int]:
    return [len(folder.logs) for folder in folders.folders]


def test_new_partitions_go_where_the_fewest_are(folders: LogFolders) -> None:
    folders.folders[0].create(TopicPartition("other", 0), TOPIC_ID, config())
    fill(folders, 5)
    assert by_folder(folders) == [2, 2, 2]
    assert folders.home("") is folders.folders[0]


def test_partitions_come_back_from_where_they_were(paths: list[Path]) -> None:
    folders = begun(paths)
    fill(folders, 7)
    ids = folders.directories
    assert len(ids) == 3
    folders.checkpoint_high_watermarks({tp(number): number for number in range(7)})
    folders.close()
    again = begun(list(reversed(paths)))
    assert again.directories == dict.fromkeys(reversed(ids), True)
    assert again.high_watermarks == {tp(number): number for number in range(7)}
    for number in range(7):
        log = again.find(tp(number))
        assert log is not None and len(read_all(log)) == number + 1
    assert again.find(tp(7)) is None
    again.close()


@pytest.mark.parametrize("threads", [1, 3])
def test_after_an_unclean_stop_all_partitions_are_recovered(paths: list[Path], threads: int) -> None:
    folders = begun(paths)
    fill(folders, 9)
    folders.close(clean=False)
    again = begun(paths, threads=threads)
    assert [int(log.log_end_offset) for log in map(again.find, map(tp, range(9))) if log] == list(range(1, 10))
    again.close()


def test_a_folder_that_cannot_be_opened_is_left_out(paths: list[Path], caplog: pytest.LogCaptureFixture) -> None:
    paths[1].write_text("no folder")
    folders = begun(paths)
    assert [folder.path for folder in folders.serving] == [paths[0], paths[2]]
    assert list(folders.unusable) == [paths[1]] and str(paths[1]) in caplog.text
    fill(folders, 4)
    assert by_folder(folders) == [2, 2]
    folders.close()


def test_without_any_folder_there_is_no_start(paths: list[Path]) -> None:
    for path in paths:
        path.write_text("no folder")
    with pytest.raises(FileExistsError):
        LogFolders(paths, Runtime())


def test_a_partition_whose_folder_is_away_has_no_other_home(paths: list[Path]) -> None:
    folders = begun(paths)
    away = folders.folders[1].directory_id
    folders.close()
    shutil.move(paths[1], paths[1].with_name("unmounted"))
    again = begun(paths)
    assert again.home(away) is None
    assert again.home(again.folders[0].directory_id) is again.folders[0]
    again.close()
    shutil.rmtree(paths[1])
    paths[1].write_text("no folder")
    again = begun(paths)
    assert again.home("") is None, "it may be in the one that is away"
    again.close()


def test_one_failure_takes_one_folder(paths: list[Path]) -> None:
    folders = begun(paths)
    failed: list[LogFolder] = []
    folders.on_failure = failed.append
    fill(folders, 6)
    bad, good = folders.find(tp(1)), folders.find(tp(0))
    assert bad is not None and good is not None
    bad.active_segment.log.get().close()
    with pytest.raises(KafkaError):
        append(bad, 1)
    assert failed == [folders.folders[1]] and not folders.lost and not folders.whole
    assert append(good, 1).base_offset == 1
    assert [folders.find(tp(number)) is None for number in range(6)] == [False, True, False] * 2
    assert folders.folders[1].directory_id not in folders.place([tp(number) for number in range(10)])
    folders.checkpoint_recovery_points()
    folders.checkpoint_log_starts()
    folders.delete([tp(0), tp(1)], NOW_MS)
    assert folders.remove_due(2**62) == 1
    folders.close()
    assert [(path / CLEAN_MARKER).exists() for path in paths] == [True, False, True]


def test_the_last_folder_or_the_one_that_is_needed_is_the_end(folders: LogFolders, paths: list[Path]) -> None:
    folders.needed = paths[2]
    for number, lost in ((0, False), (2, True)):
        folders.folders[number].fail(OSError(errno.EIO, "gone"))
        assert folders.lost is lost
    folders.needed = None
    assert not folders.lost
    folders.folders[1].fail(OSError(errno.EIO, "gone"))
    assert folders.lost and folders.place([tp(0), tp(1)]) == ["", ""]


def test_a_folder_that_fails_while_it_is_read_is_offline(paths: list[Path]) -> None:
    folders = begun(paths)
    fill(folders, 6)
    folders.close(clean=False)
    disk = BadDisk()
    again = LogFolders(paths, Runtime(disk=disk))
    again.claim("cluster", 1)
    disk.bad = paths[1]
    asyncio.run(again.load(KNOWN, config_of, {}, 2))
    assert again.folders[1].failed is not None
    assert [again.find(tp(number)) is None for number in range(6)] == [False, True, False] * 2
    disk.bad = None
    again.close()
    whole = begun(paths)
    assert by_folder(whole) == [2, 2, 2]
    whole.close()


def test_a_copy_of_a_folder_is_refused(paths: list[Path]) -> None:
    begun(paths[:1]).close()
    shutil.copytree(paths[0], paths[1])
    with pytest.raises(StorageError, match=r"same directory\.id"):
        begun(paths)
    begun(paths[:1]).close()


def test_a_folder_of_another_cluster_is_refused(paths: list[Path]) -> None:
    other = LogFolders(paths[2:], Runtime())
    other.claim("other", 1)
    other.close()
    with pytest.raises(StorageError, match="belongs to the cluster other"):
        begun(paths)


def test_one_of_several_brokers_is_told_nothing_of_a_command_that_refuses_its_folders(paths: list[Path]) -> None:
    LogFolders(paths[:1], Runtime()).close()
    for of_several, said in ((False, "is wrong, run `moldau log repair"), (True, "is wrong, correct it")):
        folders = LogFolders(paths[:1], Runtime(), of_several=of_several)
        folders.folders[0].meta["cluster.id"] = "other"
        with pytest.raises(StorageError, match=said):
            folders.claim("cluster", 1)
        folders.close()
    (paths[0] / "t-0").mkdir()
    (paths[0] / "meta.properties").write_text("version=1\nnode.id=1\n")
    folders = LogFolders(paths[:1], Runtime(), of_several=True)
    with pytest.raises(StorageError, match=r"lacks cluster\.id, but the folder was used before: restore the file$"):
        folders.check_identity()
    folders.close()


def test_a_folder_of_an_older_kafka_gets_an_id(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=cluster\n")
    folders = begun([tmp_path])
    (own,) = folders.directories
    folders.close()
    assert f"directory.id={own}" in (tmp_path / "meta.properties").read_text()
    again = begun([tmp_path])
    assert list(again.directories) == [own]
    again.close()


def test_strays_are_told_with_their_folders(paths: list[Path]) -> None:
    begun(paths).close()
    (paths[1] / "lost+found").mkdir()
    (paths[2] / "u-0").mkdir()
    folders = LogFolders(paths, Runtime())
    assert asyncio.run(folders.load(KNOWN, config_of)) == [str(paths[1] / "lost+found"), str(paths[2] / "u-0")]
    folders.close()


def open_descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def test_all_folders_together_keep_to_the_files_that_may_be_open(paths: list[Path]) -> None:
    folders = LogFolders(paths, Runtime(), open_files_max=16)
    folders.claim("cluster", 1)
    before = open_descriptors()
    fill(folders, 60)
    assert open_descriptors() <= before + 16
    assert [len(read_all(log)) for log in map(folders.find, map(tp, range(60))) if log] == list(range(1, 61))
    assert open_descriptors() <= before + 16
    folders.close()
