"""The commit: all or nothing wherever it dies, one of two that race wins, and nothing foreign is deleted."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moldau.names import TopicPartition
from moldau.pipeline.manifest import DataFile, WarehouseError
from moldau.pipeline.warehouse import Staged, Warehouse
from moldau.runtime import RealDisk, Runtime

TP = TopicPartition("t", 0)


class Died(BaseException):
    """The process is gone."""


class MortalDisk(RealDisk):
    """A disk whose user dies before its n-th change."""

    def __init__(self, changes: int):
        self.left = changes

    def _change(self) -> None:
        if self.left == 0:
            raise Died
        self.left -= 1

    def open(self, path: Path, *, create: bool = False, writable: bool = True) -> Any:
        if create:
            self._change()
        return super().open(path, create=create, writable=writable)

    def rename(self, old: Path, new: Path) -> None:
        self._change()
        super().rename(old, new)

    def remove(self, path: Path) -> None:
        self._change()
        super().remove(path)

    def make_folder(self, folder: Path) -> None:
        self._change()
        super().make_folder(folder)

    def sync_folder(self, folder: Path) -> None:
        self._change()
        super().sync_folder(folder)


def staged(warehouse: Warehouse, load_id: str, start: int, count: int = 3) -> list[Staged]:
    """Files of one record each from offset `start` on, every second one of another date."""
    folder = warehouse.staging(load_id)
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for offset in range(start, start + count):
        path = folder / f"{offset}.parquet"
        path.write_text(f"record {offset}")
        date = f"2013-01-0{1 + offset % 2}"
        name = f"topic=t/date={date}/part-00000-{offset:020d}-{offset + 1:020d}-{load_id}.parquet"
        made.append(Staged(str(path), DataFile(name, "t", 0, date, offset, offset + 1, 1, 9, 0, 0)))
    return made


def records_in_manifests(warehouse: Warehouse) -> list[str]:
    return sorted(Path(path).read_text() for path in warehouse.paths())


def records_in_folders(warehouse: Warehouse) -> list[str]:
    return sorted(path.read_text() for path in warehouse.folder.glob("topic=*/date=*/*.parquet"))


def load(warehouse: Warehouse, load_id: str, until: int) -> None:
    """What the loader does: everything from the warehouse's offset up to `until`."""
    with warehouse.locked():
        warehouse.recover()
        start = warehouse.offsets().get(TP, 0)
        if start < until:
            warehouse.commit(load_id, staged(warehouse, load_id, start, until - start), {TP: until})


def expected(until: int) -> list[str]:
    return sorted(f"record {offset}" for offset in range(until))


def test_loads_add_up_and_offsets_go_on(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    assert (warehouse.files(), warehouse.offsets(), warehouse.manifests()) == ([], {}, [])
    load(warehouse, "aa", 3)
    load(warehouse, "bb", 7)
    load(warehouse, "cc", 7)
    assert records_in_manifests(warehouse) == records_in_folders(warehouse) == expected(7)
    assert warehouse.offsets() == {TP: 7}
    assert [manifest.number for manifest in warehouse.manifests()] == [1, 2]
    assert sorted(path.name for path in warehouse.state.iterdir()) == [
        "lock", "manifest-000001.json", "manifest-000002.json",
    ]  # fmt: skip


def test_dying_at_any_change_leaves_each_record_once_after_the_next_load(tmp_path: Path) -> None:
    deaths = 0
    while True:
        warehouse = Warehouse(tmp_path / str(deaths))
        load(warehouse, "aa", 2)
        mortal = Warehouse(warehouse.folder, Runtime(disk=MortalDisk(deaths)))
        try:
            load(mortal, "bb", 6)
            break
        except Died:
            deaths += 1
        assert records_in_manifests(warehouse) in (expected(2), expected(6)), "manifests are exact at every moment"
        lying = records_in_folders(warehouse)
        assert len(lying) == len(dict.fromkeys(lying)), "no record lies there twice at any moment"
        load(warehouse, "cc", 6)
        assert records_in_manifests(warehouse) == records_in_folders(warehouse) == expected(6)
        assert not list(warehouse.state.glob("staging/*")) and not list(warehouse.state.glob("*.tmp"))
    assert deaths > 15


def test_only_one_load_runs_at_a_time(tmp_path: Path) -> None:
    with Warehouse(tmp_path).locked():
        with pytest.raises(WarehouseError, match="Another load is writing to"):
            with Warehouse(tmp_path).locked():
                pass
    with Warehouse(tmp_path).locked():
        pass


def test_of_two_loads_that_both_get_through_the_lock_one_commits(tmp_path: Path) -> None:
    one, other = Warehouse(tmp_path), Warehouse(tmp_path)
    files = staged(other, "bb", 0)
    before = other.manifests()
    one.commit("aa", staged(one, "aa", 0), {TP: 3})
    other.manifests = lambda: before  # type: ignore[method-assign]
    with pytest.raises(WarehouseError, match="Another load committed"):
        other.commit("bb", files, {TP: 3})
    fresh = Warehouse(tmp_path)
    assert records_in_manifests(fresh) == records_in_folders(fresh) == expected(3)


def test_a_commit_that_cannot_move_its_files_takes_them_back_and_says_so(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    files = staged(warehouse, "aa", 0)
    Path(files[-1].staged_path).unlink()
    with pytest.raises(WarehouseError, match="cannot be written: No such file or directory"):
        warehouse.commit("aa", files, {TP: 3})
    assert records_in_folders(warehouse) == [] and warehouse.manifests() == []


def test_files_that_are_not_ours_are_left_alone(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    load(warehouse, "aa", 3)
    stranger = tmp_path / "topic=t" / "date=2013-01-01" / "notes.parquet"
    stranger.write_text("mine")
    load(warehouse, "bb", 4)
    assert stranger.read_text() == "mine"


def damage(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def apply(path: Path) -> None:
        tree = json.loads(path.read_text())
        change(tree)
        path.write_text(json.dumps(tree))

    return apply


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: path.write_text("{"), "not a manifest"),
        (lambda path: path.write_text("[]"), "not a manifest"),
        (damage(lambda tree: tree.pop("offsets")), "not a manifest"),
        (damage(lambda tree: tree["files"][0].pop("path")), "not a manifest"),
        (damage(lambda tree: tree.update(format=9)), "format 9"),
        (damage(lambda tree: tree.update(number=5)), "says it is manifest 5"),
        (lambda path: path.unlink(), "is missing"),
    ],
)
def test_a_damaged_manifest_is_said_in_one_sentence(tmp_path: Path, spoil: Callable[[Path], object], said: str) -> None:
    warehouse = Warehouse(tmp_path)
    load(warehouse, "aa", 1)
    load(warehouse, "bb", 2)
    spoil(warehouse.state / "manifest-000001.json")
    with pytest.raises(WarehouseError, match=said):
        warehouse.files()


def test_a_pending_list_cannot_reach_out_of_the_warehouse(tmp_path: Path) -> None:
    outside = tmp_path / "precious"
    outside.write_text("keep")
    warehouse = Warehouse(tmp_path / "w")
    load(warehouse, "aa", 1)
    (warehouse.state / "pending-bb.json").write_text(json.dumps(["topic=t/../../precious"]))
    with warehouse.locked(), pytest.raises(WarehouseError, match="not a path inside"):
        warehouse.recover()
    assert outside.read_text() == "keep"


def test_a_folder_that_cannot_be_written_is_said_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WarehouseError, match="cannot be written"), Warehouse(tmp_path / "file").locked():
        pass
