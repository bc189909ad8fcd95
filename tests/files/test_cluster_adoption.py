"""The log folders of a broker that was alone: what marks them as those of one of several, whatever cuts it off."""

import asyncio
from pathlib import Path

import pytest

from moldau.broker import Broker
from moldau.cluster.copies import COPY, SPARE
from moldau.config import broker_config
from moldau.errors import StorageError
from moldau.files.cluster_adoption import ADOPTED, ClusterAdoption, LoneBroker
from moldau.files.repairing import Repair
from moldau.log.folders.identity import CLUSTER_STORE, META_PROPERTIES
from moldau.metadata_store.embedded import FILE_NAME, EmbeddedStore
from moldau.runtime import RealDisk, Runtime
from tests.files.killed_disk import Killed, KilledDisk

CALLS = 12
"""The calls of the disk that an adoption makes."""


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    """Those of a broker with the id 7."""
    paths = [tmp_path / "first", tmp_path / "second"]
    start_and_stop(paths)
    return paths


def start_and_stop(folders: list[Path]) -> None:
    async def whole() -> None:
        settings = {"node.id": "7", "log.dirs": ",".join(map(str, folders)), "listeners": "PLAINTEXT://127.0.0.1:0"}
        config, _ = broker_config(settings)
        broker = Broker(config, Runtime())
        await broker.start()
        await broker.stop()

    asyncio.run(whole())


def adopted(folders: list[Path], connect: str = "zk:1/a") -> LoneBroker | None:
    with ClusterAdoption(folders, RealDisk()) as adoption:
        lone = adoption.read(connect)
        if lone is not None:
            adoption.note(connect)
            adoption.finish()
        return lone


def test_adopted_folders_keep_the_metadata_under_another_name_and_have_no_copy_of_them(folders: list[Path]) -> None:
    assert [(path / name).exists() for path in folders for name in (FILE_NAME, COPY, SPARE)] == [
        True, True, False, False, False, True
    ]  # fmt: skip
    lone = adopted(folders)
    assert lone is not None
    assert (lone.node_id, lone.was_noted, lone.image.cluster_id != "") == (7, False, True)
    assert sorted(path.name for path in folders[0].parent.glob("*/metadata*")) == [ADOPTED]
    assert adopted(folders) is None
    with pytest.raises(StorageError, match=f"{folders[0]} was adopted by the cluster that has its metadata in zk:1/a"):
        adopted(folders, "elsewhere:1")


def test_adopted_folders_are_not_those_of_a_broker_alone_any_more(folders: list[Path]) -> None:
    adopted(folders)
    for attempt in (lambda: start_and_stop(folders), lambda: Repair(folders, Runtime())):
        with pytest.raises(StorageError, match=r"start it with --set zookeeper\.connect=zk:1/a; if `moldau"):
            attempt()


@pytest.mark.parametrize("at", range(CALLS))
def test_an_adoption_that_was_cut_off_is_completed(folders: list[Path], at: int) -> None:
    disk = KilledDisk(at)
    before = (folders[0] / FILE_NAME).read_bytes()
    noted = False
    try:
        with ClusterAdoption(folders, disk) as adoption:
            lone = adoption.read("zk:1")
            assert lone is not None
            adoption.note("zk:1")
            noted = True
            adoption.finish()
        pytest.fail("it makes fewer calls of the disk")
    except Killed:
        pass
    if noted:
        with pytest.raises(StorageError, match=r"zookeeper\.connect=zk:1"):
            start_and_stop(folders)
    lone = adopted(folders, "zk:1")
    assert (folders[0] / ADOPTED).read_bytes() == before
    if lone is not None:
        assert lone.was_noted or not noted
    assert sorted(path.name for path in folders[0].parent.glob("*/metadata*")) == [ADOPTED]


def test_folders_that_are_not_of_one_broker_alone_are_refused(folders: list[Path], tmp_path: Path) -> None:
    other = [tmp_path / "other"]
    start_and_stop(other)
    empty = tmp_path / "empty"
    empty.mkdir()
    for given, sentence in (
        ([empty], "is in none of these folders"),
        ([*folders, *other], f"is in both {folders[0]} and {other[0]}"),
        ([*folders, empty], f"{empty} is not a log folder of the broker with the metadata in {folders[0]}"),
    ):
        with pytest.raises(StorageError, match=sentence):
            adopted(given)
    (other[0] / META_PROPERTIES).write_text((other[0] / META_PROPERTIES).read_text().replace("node.id=7", ""))
    with pytest.raises(StorageError, match=r"does not say which node\.id its broker has"):
        adopted(other)
    EmbeddedStore(empty).close()
    with pytest.raises(StorageError, match="is empty: run `moldau log repair` first"):
        adopted([empty])
    assert not list(tmp_path.glob(f"*/{CLUSTER_STORE}"))
