import json
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from harness.logs import NOW_MS, TOPIC_ID, TP, HandClock, append, config, names, read_all, rows
from harness.patience import stretched
from moldau.config import TopicConfig
from moldau.errors import ErrorCode, KafkaError, StorageError
from moldau.log import truncation
from moldau.log.folders.folder import LogFolder
from moldau.log.segment import Segment
from moldau.names import TopicPartition
from moldau.runtime import Runtime

KNOWN = {"flights": TOPIC_ID}


def config_of(_: str) -> TopicConfig:
    return config()


def opened(path: Path, known: dict[str, uuid.UUID] | None = None) -> LogFolder:
    folder = LogFolder(path, Runtime(clock=HandClock()))
    folder.load(KNOWN if known is None else known, config_of)
    return folder


def test_a_clean_stop_leaves_a_marker_that_is_gone_once_the_folder_is_open(tmp_path: Path) -> None:
    folder = opened(tmp_path)
    assert not folder.clean
    append(folder.create(TP, TOPIC_ID, config()), 3)
    folder.close(broker_epoch=12)
    assert json.loads((tmp_path / ".kafka_cleanshutdown").read_text()) == {"version": 0, "brokerEpoch": 12}
    again = LogFolder(tmp_path, Runtime())
    assert (again.clean, again.broker_epoch) == (True, 12)
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    assert again.load(KNOWN, config_of) == []
    assert len(read_all(again.logs[TP])) == 3
    again.close(clean=False)
    assert not LogFolder(tmp_path, Runtime()).clean


def test_a_folder_has_one_user(tmp_path: Path) -> None:
    folder = opened(tmp_path)
    with pytest.raises(StorageError, match="another broker uses"):
        LogFolder(tmp_path, Runtime())
    folder.close()
    opened(tmp_path).close()


def test_a_folder_belongs_to_one_node_of_one_cluster(tmp_path: Path) -> None:
    folder = opened(tmp_path)
    folder.claim("cluster-a", 1)
    meta = dict(line.split("=") for line in (tmp_path / "meta.properties").read_text().splitlines() if "=" in line)
    assert (meta["version"], meta["cluster.id"], meta["node.id"]) == ("1", "cluster-a", "1")
    directory = meta["directory.id"]
    folder.close()
    again = opened(tmp_path)
    again.claim("cluster-a", 1)
    assert again.meta["directory.id"] == directory
    for cluster, node in (("cluster-b", 1), ("cluster-a", 2)):
        with pytest.raises(StorageError, match="belongs to"):
            again.claim(cluster, node)
    again.close()


def test_partitions_come_back_with_their_checkpoints(tmp_path: Path) -> None:
    folder = opened(tmp_path)
    log = folder.create(TP, TOPIC_ID, config())
    append(log, 10)
    log.flush()
    append(log, 5)
    log.delete_records_before(4)
    folder.checkpoint({TP: 12})
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n1\nflights 0 10\n"
    assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n1\nflights 0 4\n"
    assert (tmp_path / "replication-offset-checkpoint").read_text() == "0\n1\nflights 0 12\n"
    folder.close(clean=False)
    again = opened(tmp_path)
    log = again.logs[TP]
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (4, 15, 10)
    assert again.high_watermarks == {TP: 12}
    again.close()


@pytest.mark.parametrize("content", ["", "0\n2\nflights 0 10\n", "1\n0\n", "0\n1\nflights 0 many\n"])
def test_an_unreadable_checkpoint_counts_as_zero(tmp_path: Path, content: str) -> None:
    folder = opened(tmp_path)
    log = folder.create(TP, TOPIC_ID, config())
    append(log, 10)
    log.flush()
    folder.checkpoint()
    folder.close(clean=False)
    (tmp_path / "recovery-point-offset-checkpoint").write_text(content)
    again = opened(tmp_path)
    assert (again.logs[TP].log_end_offset, again.logs[TP].recovery_point) == (10, 0)
    again.close()


def test_a_deleted_partition_is_renamed_at_once_and_removed_later(tmp_path: Path) -> None:
    folder = opened(tmp_path)
    log = folder.create(TP, TOPIC_ID, config(file_delete_delay_ms=60_000))
    append(log, 3)
    piece = log.read(0, 1000, 3)
    folder.delete(TP, NOW_MS)
    assert [name.startswith("flights-0.") for name in names(tmp_path, "-delete")] == [True]
    assert folder.remove_due(NOW_MS + 59_999) == 0
    assert piece is not None and len(piece.file.read(piece.length, piece.offset)) == piece.length
    with pytest.raises(KafkaError):
        append(log, 1)
    assert folder.remove_due(NOW_MS + 60_000) == 1
    assert not names(tmp_path, "-delete")
    assert folder.create(TP, uuid.UUID(int=9), config()).log_end_offset == 0
    folder.close()


def test_an_interrupted_deletion_is_finished_at_the_next_start(tmp_path: Path) -> None:
    folder = opened(tmp_path)
    folder.create(TP, TOPIC_ID, config())
    folder.delete(TP, NOW_MS)
    folder.close(clean=False)
    again = LogFolder(tmp_path, Runtime())
    assert again.load(KNOWN, config_of) == []
    assert not names(tmp_path, "-delete")
    again.close()


def test_deleted_segments_of_all_partitions_are_removed_with_the_folders(tmp_path: Path) -> None:
    folder = opened(tmp_path)
    log = folder.create(TP, TOPIC_ID, config(retention_ms=1, file_delete_delay_ms=1000))
    append(log, rows(3, 1))
    assert len(log.retain(NOW_MS, 3)) == 1
    assert names(tmp_path / "flights-0", ".deleted")
    assert folder.remove_due(NOW_MS + 999) == 0
    assert folder.remove_due(NOW_MS + 1000) == 3
    assert not names(tmp_path / "flights-0", ".deleted")
    folder.close()


def test_one_failure_takes_the_whole_folder_offline_and_leaves_no_marker(tmp_path: Path) -> None:
    folder = opened(tmp_path)
    failures: list[OSError] = []
    folder.on_failure = failures.append
    first = folder.create(TP, TOPIC_ID, config())
    second = folder.create(TopicPartition("flights", 1), TOPIC_ID, config())
    append(first, 1)
    first.active_segment.log.get().close()
    with pytest.raises(KafkaError):
        append(first, 1)
    assert folder.failed is not None and len(failures) == 1
    with pytest.raises(KafkaError) as raised:
        append(second, 1)
    assert raised.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    for refused in (folder.checkpoint, lambda: folder.remove_due(NOW_MS), lambda: folder.delete(TP, NOW_MS)):
        with pytest.raises(KafkaError):
            refused()
    folder.close()
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    again = opened(tmp_path)
    assert again.logs[TP].log_end_offset == 1
    again.close()


def open_descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def test_many_partitions_need_few_descriptors(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path, Runtime(clock=HandClock()), open_files_max=16)
    folder.load({}, config_of)
    before = open_descriptors()
    logs = [folder.create(TopicPartition("t", number), TOPIC_ID, config()) for number in range(60)]
    for number, log in enumerate(logs * 2):
        append(log, number % 3 + 1)
    assert open_descriptors() <= before + 16
    assert [len(read_all(log)) for log in logs] == [int(log.log_end_offset) for log in logs]
    folder.close()


def test_a_topic_made_again_does_not_inherit_the_checkpoints_of_the_one_that_was_deleted(tmp_path: Path) -> None:
    """What is written down of an earlier partition of the same name would hide records that were never flushed, or
    throw away all of them."""
    folder = opened(tmp_path)
    log = folder.create(TP, TOPIC_ID, config())
    append(log, 100)
    log.flush()
    log.delete_records_before(90)
    folder.checkpoint({TP: 100})
    folder.delete(TP, NOW_MS)
    append(folder.create(TP, uuid.UUID(int=9), config()), 20)
    for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint"):
        assert (tmp_path / name).read_text() == "0\n0\n"
    folder.close(clean=False)
    again = opened(tmp_path, {"flights": uuid.UUID(int=9)})
    assert (again.logs[TP].log_start_offset, again.logs[TP].log_end_offset) == (0, 20)
    again.close()


def test_what_a_crash_took_from_below_the_recovery_point_is_written_down_before_anything_is_appended(
    tmp_path: Path,
) -> None:
    folder = opened(tmp_path)
    log = folder.create(TP, TOPIC_ID, config())
    for _ in range(10):
        append(log, 10)
    log.flush()
    folder.checkpoint()
    folder.close(clean=False)
    path = tmp_path / "flights-0" / "00000000000000000000.log"
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    again = opened(tmp_path)
    assert again.logs[TP].recovery_point == again.logs[TP].log_end_offset == 90
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n1\nflights 0 90\n"
    again.close()


def test_checkpoints_may_be_asked_for_by_several_threads(tmp_path: Path) -> None:
    folder = opened(tmp_path)
    for number in range(20):
        append(folder.create(TopicPartition("flights", number), TOPIC_ID, config()), 1)
    with ThreadPoolExecutor(4) as pool:
        for each in [pool.submit(folder.checkpoint, {TP: 1}) for _ in range(40)]:
            each.result()
    assert folder.failed is None
    folder.close()


def test_a_start_that_is_refused_before_anything_is_opened_leaves_the_folder_as_clean_as_it_was(tmp_path: Path) -> None:
    folder = opened(tmp_path)
    append(folder.create(TP, TOPIC_ID, config()), 3)
    folder.close(broker_epoch=12)
    LogFolder(tmp_path, Runtime()).close(clean=False)
    again = LogFolder(tmp_path, Runtime())
    assert (again.clean, again.broker_epoch) == (True, 12)
    again.load(KNOWN, config_of)
    again.close(clean=False)
    assert not (tmp_path / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize("content", [b"", b"\xff\x00", b"[" * 100_000, b'{"brokerEpoch": "12"}', b"7"])
def test_a_marker_with_anything_in_it_is_a_marker(tmp_path: Path, content: bytes) -> None:
    opened(tmp_path).close()
    (tmp_path / ".kafka_cleanshutdown").write_bytes(content)
    folder = opened(tmp_path)
    assert (folder.clean, folder.broker_epoch) == (True, -1)
    folder.close()


def test_a_huge_file_where_one_line_should_be_is_not_read(tmp_path: Path) -> None:
    opened(tmp_path).close()
    with (tmp_path / "meta.properties").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(StorageError, match=r"so it is not a meta\.properties"):
        opened(tmp_path)


def test_a_log_that_began_anew_below_its_start_is_there_after_a_kill(tmp_path: Path) -> None:
    folder = LogFolder(tmp_path, Runtime())
    log = folder.create(TP, TOPIC_ID, config())
    for _ in range(60):
        append(log)
    log.delete_records_before(55)
    folder.checkpoint()  # the job that runs once a minute
    truncation.begin_at(log, 20, NOW_MS)
    for _ in range(25):
        append(log)
    log.abandon()
    folder.close(clean=False)
    again = LogFolder(tmp_path, Runtime())
    again.load({TP.topic: TOPIC_ID}, lambda _: config())
    found = again.logs[TP]
    assert (found.log_start_offset, found.log_end_offset) == (20, 45)


def test_two_logs_of_a_folder_begin_anew_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = LogFolder(tmp_path, Runtime())
    logs = [folder.create(TopicPartition("a", number), TOPIC_ID, config()) for number in range(2)]
    for log in logs:
        append(log, 10)
    begun, released = threading.Event(), threading.Event()
    create = Segment.create

    def held(where: Path, *more: Any, **named: Any) -> Segment:
        if where == logs[0].folder:
            begun.set()
            assert released.wait(stretched())
        return create(where, *more, **named)

    monkeypatch.setattr(Segment, "create", staticmethod(held))
    other = threading.Thread(target=truncation.begin_at, args=(logs[0], 100, NOW_MS))
    other.start()
    try:
        assert begun.wait(stretched())
        truncation.begin_at(logs[1], 100, NOW_MS)
    finally:
        released.set()
        other.join()
    assert [log.log_start_offset for log in logs] == [100, 100]
    folder.close(clean=False)
