import shutil
from pathlib import Path

import pytest

from harness.logs import names
from moldau.errors import StorageError
from moldau.files.foreign import refusal, survey
from moldau.runtime import RealDisk
from tests.files.inspection.filled import IDS, RECORDS, fill
from tests.records.old_messages import message

DISK = RealDisk()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    fill(tmp_path / "theirs")
    return tmp_path / "theirs"


def test_topics_come_from_names_and_ids_from_their_files(folder: Path) -> None:
    found = survey(DISK, [folder])
    assert {name: topic.id for name, topic in found.topics.items()} == IDS
    assert found.clusters == {"the-cluster"} and found.skipped == []
    topic = found.topics["flights"]
    assert refusal(DISK, topic) is None
    [partition] = topic.partitions.values()
    assert (partition.clean, partition.recovery_point, partition.records) == (True, RECORDS, RECORDS)
    assert (partition.leader_epoch, partition.producer_id_max) == (3, 70)


def test_what_means_nothing_here_is_skipped_with_a_reason(folder: Path) -> None:
    for name in (
        "__cluster_metadata-0",
        "__share_group_state-7",
        "flights-0.0a1b-delete",
        "x-1.0a1b-future",
        "x-1.2-stray",
    ):
        shutil.copytree(folder / "hollow-0", folder / name)
    (folder / "readme").write_text("not a folder")
    (folder / "notes-1").write_text("not a folder either")
    found = survey(DISK, [folder])
    assert set(found.topics) == set(IDS)
    reasons = {path.name: reason for path, reason in found.skipped}
    assert len(reasons) == 5
    assert "controllers" in reasons["__cluster_metadata-0"]


def test_partitions_that_are_missing_are_named_and_may_be_in_another_folder(folder: Path, tmp_path: Path) -> None:
    for number in (1, 3):
        shutil.copytree(folder / "hollow-0", folder / f"hollow-{number}")
    said = refusal(DISK, survey(DISK, [folder]).topics["hollow"])
    assert said == "topic hollow lacks partitions 2 in these folders: name the other log folders as well"
    other = tmp_path / "other"
    other.mkdir()
    shutil.copytree(folder / "hollow-0", other / "hollow-2")
    both = survey(DISK, [folder, other])
    assert refusal(DISK, both.topics["hollow"]) is None and len(both.topics["hollow"].partitions) == 4
    shutil.copytree(folder / "hollow-0", other / "hollow-1")
    assert "has two folders for one partition" in (refusal(DISK, survey(DISK, [folder, other]).topics["hollow"]) or "")


def test_a_topic_whose_files_do_not_hold_is_refused(folder: Path) -> None:
    path = folder / "flights-0" / names(folder / "flights-0", ".log")[1]
    content = bytearray(path.read_bytes())
    content[200] ^= 1
    path.write_bytes(content)
    said = refusal(DISK, survey(DISK, [folder]).topics["flights"])
    assert said is not None and str(path) in said and "checksum" in said


def test_partitions_of_two_topics_under_one_name_are_refused(folder: Path) -> None:
    shutil.copytree(folder / "flights-0", folder / "hollow-1")
    assert "different topic ids" in (refusal(DISK, survey(DISK, [folder]).topics["hollow"]) or "")


def test_messages_of_old_formats_are_for_the_import(folder: Path) -> None:
    shutil.rmtree(folder / "hollow-0")
    (folder / "hollow-0").mkdir()
    (folder / "hollow-0" / f"{0:020d}.log").write_bytes(message(0, b"k", b"v"))
    for suffix in (".index", ".timeindex"):
        (folder / "hollow-0" / f"{0:020d}{suffix}").write_bytes(b"")
    assert "moldau log import" in (refusal(DISK, survey(DISK, [folder]).topics["hollow"]) or "")


def test_properties_that_are_no_text_are_said_to_be_none(folder: Path) -> None:
    (folder / "meta.properties").write_bytes(b"cluster.id=\xff")
    with pytest.raises(StorageError, match=r"meta\.properties: it is no text"):
        survey(DISK, [folder])


def test_what_is_no_log_folder_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "thing").write_text("")
    with pytest.raises(StorageError, match="is not a log folder"):
        survey(DISK, [tmp_path])
    with pytest.raises(OSError, match="No such file"):
        survey(DISK, [tmp_path / "nowhere"])
