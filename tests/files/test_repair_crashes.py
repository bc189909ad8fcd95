"""`moldau log repair` ends at any call of the disk: the next run completes it, and nothing is ever torn."""

import asyncio
import random
import shutil
import uuid
from pathlib import Path

import pytest

from moldau.cluster.copies import COPY, SPARE, put_in_place
from moldau.cluster.state.reading import read_image
from moldau.files.repairing import Repair, RepairPlan
from moldau.log import checkpoints
from moldau.log.folders.identity import META_PROPERTIES
from moldau.metadata_store.embedded import FILE_NAME, EmbeddedStore
from moldau.protocol import apis
from moldau.runtime import RealDisk, Runtime
from moldau.simulation.disk import SimulatedDisk
from tests.files.killed_disk import Killed, KilledDisk
from tests.handlers.living import batch, living, produce

TOPICS = {"a": 2, "b": 1}


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stopped broker's folder: metadata cut short, no meta.properties, a partition with another topic's id."""
    folder = tmp_path_factory.mktemp("stopped") / "data"

    async def whole() -> None:
        async with living(folder) as alive:
            wire = await alive.dial()
            for name, partitions in TOPICS.items():
                await alive.make(name, partitions)
                for number in range(partitions):
                    await wire.ask(apis.PRODUCE, 12, produce((name, number, batch(b"1", b"2"))))

    asyncio.run(whole())
    (folder / META_PROPERTIES).unlink()
    path = folder / FILE_NAME
    path.write_bytes(path.read_bytes()[:1000])
    checkpoints.write_topic_id(RealDisk(), folder / "a-1", uuid.UUID(int=7))
    return folder


def repair(folder: Path, disk: RealDisk) -> RepairPlan:
    with Repair([folder], Runtime(disk=disk)) as work:
        plan = work.plan(lambda _: False)
        assert not plan.problems
        work.carry_out(plan)
    return plan


def left(folder: Path) -> tuple[object, ...]:
    """Partitions and ids that the metadata has and the folders name, and all records."""
    store = EmbeddedStore(folder)
    try:
        image = store.read(read_image())
    finally:
        store.close()
    assert image is not None
    for name, partitions in TOPICS.items():
        for number in range(partitions):
            named = checkpoints.read_topic_id(RealDisk(), folder / f"{name}-{number}")
            assert named in (image.topics[name].id, None)
    logs = {path.relative_to(folder): path.read_bytes() for path in sorted(folder.glob("*/*.log"))}
    return {name: len(topic.partitions) for name, topic in image.topics.items()}, logs


@pytest.mark.parametrize("has_copy", [True, False])
def test_a_killed_repair_is_completed_by_the_next(damaged: Path, tmp_path: Path, has_copy: bool) -> None:
    def copied(number: int) -> Path:
        folder = Path(shutil.copytree(damaged, tmp_path / str(number)))
        if not has_copy:  # the metadata are rebuilt from the partitions, which must agree then
            for name in (COPY, SPARE):
                (folder / name).unlink(missing_ok=True)
            (folder / "a-1" / checkpoints.PARTITION_METADATA).unlink()
        return folder

    counted = KilledDisk()
    whole = copied(-1)
    plan = repair(whole, counted)
    assert plan.metadata and plan.metas
    assert bool(plan.topic_ids) == has_copy
    expected = left(whole)
    assert expected[0] == TOPICS
    assert counted.calls > 20
    for at in range(counted.calls):
        folder = copied(at)
        with pytest.raises(Killed):
            repair(folder, KilledDisk(at))
        repair(folder, RealDisk())
        assert left(folder) == expected, at
        assert repair(folder, RealDisk()).changes == [], at
        shutil.rmtree(folder)


HOME = Path("/data")
OLD, NEW = b"old" * 2000, b"new" * 3000


class Faults:
    """The power fails at the call of number `at`."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.calls = 0

    def meet(self, name: str, path: Path) -> None:
        if self.calls == self.at:
            raise Killed
        self.calls += 1


def write(disk: SimulatedDisk) -> None:
    put_in_place(disk, HOME, NEW)
    checkpoints.replace_file(disk, HOME / COPY, NEW)


@pytest.mark.parametrize("seed", range(5))
def test_metadata_are_the_old_or_the_new_ones_wherever_the_power_fails(seed: int) -> None:
    before = SimulatedDisk()
    before.make_folder(HOME)
    before.sync_folder(HOME.parent)
    checkpoints.replace_file(before, HOME / FILE_NAME, OLD)
    for at in range(1000):
        disk = before.fork()
        disk.faults = Faults(at)
        try:
            write(disk)
            break
        except Killed:
            disk.faults = None
        after = disk.after_crash(random.Random(seed))
        assert checkpoints.read_whole(after, HOME / FILE_NAME) in (OLD, NEW)
        write(after)
        assert checkpoints.read_whole(after, HOME / FILE_NAME) == NEW
        assert checkpoints.read_whole(after, HOME / COPY) == NEW
    assert at > 10
