"""A log moves to another log folder, and the machine dies, or a disk fails, at every call of the disk."""

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import pytest

from harness.logs import TOPIC_ID, append, config, read_all
from moldau.config import BrokerConfig
from moldau.log.folders.folders import LogFolders
from moldau.log.log import Log
from moldau.names import BrokerId, LeaderEpoch, TopicPartition
from moldau.replication.leadership import Leadership, PartitionRoles
from moldau.replication.log_dirs.log_moves import LogMoves
from moldau.replication.replica import Replica
from moldau.simulation.disk import SimulatedDisk
from moldau.simulation.faults import CHANGES, DiskFault, Faults
from moldau.simulation.ports import SimulatedRandom
from tests.crash_points.folder import Clock, Inline
from tests.replacing import Instead, nothing, replaced
from tests.unlogged import unlogged

TP = TopicPartition("t", 0)
A, B = Path("/data/a"), Path("/data/b")
SETTINGS = config(segment_bytes=400, file_delete_delay_ms=0)
RECORDS = 12
Made = dict[TopicPartition, str]
T = TypeVar("T")


class Machine:
    """Two log folders on one disk, and where the metadata has the partition."""

    def __init__(self, seed: int):
        self.seed = random.Random(seed)
        self.faults = Faults(random.Random(seed))
        self.disk = SimulatedDisk(faults=self.faults)
        self.made: Made = {}
        self.folders: LogFolders
        self.acknowledged = 0

    async def start(self) -> Replica | None:
        """What serves the partition; None if nothing does."""
        runtime = Inline(clock=Clock(), disk=self.disk, random=SimulatedRandom(self.seed))
        self.folders = folders = LogFolders([A, B], runtime)
        folders.claim("cluster", 1)
        await folders.load({"t": TOPIC_ID}, lambda _: SETTINGS, made=dict(self.made), accepted=lambda _: False)
        if not self.made:
            folders.folders[0].create(TP, TOPIC_ID, SETTINGS)
            folders.folders[0].sync_names()
        home = folders.folder_of(TP)
        if home is None:
            return None
        self.made[TP] = home.directory_id
        leadership = Leadership(BrokerId(1))
        replica = Replica(TP, TOPIC_ID, home.logs[TP], SETTINGS, leadership, home.logs[TP].log_end_offset, runtime)
        replica.take_roles(PartitionRoles(BrokerId(1), LeaderEpoch(0), (BrokerId(1),), (BrokerId(1),), 0, False), 0)
        return replica

    def moves(self, replica: Replica) -> LogMoves:
        async def assign(directories: Mapping[str, Mapping[int, str]]) -> None:
            self.made[TP] = directories["t"][0]

        hosted = {("t", 0): replica}
        return LogMoves(self.folders, hosted, asyncio.Lock(), BrokerConfig, assign, replica.runtime)

    async def move(self, replica: Replica, where: Path) -> None:
        moves = self.moves(replica)
        moves.ask(TP, str(where), lambda: pytest.fail("it is here"))
        while moves._moves:
            await asyncio.gather(*[one.task for one in moves._moves.values() if one.task], return_exceptions=True)
            await asyncio.sleep(0)

    def write(self, log: Log, count: int = RECORDS) -> None:
        """Records that are flushed are acknowledged."""
        for _ in range(count):
            append(log, 1)
        log.flush()
        self.acknowledged = int(log.log_end_offset)

    async def story(self) -> None:
        replica = await self.start()
        assert replica is not None
        self.write(replica.log)
        replica.log.delete_records_before(3)
        self.folders.checkpoint_log_starts()
        self.faults.operation = "move"
        await self.move(replica, B)
        if any(fault is DiskFault.POWER_LOSS for fault, _ in self.faults.met):
            return
        self.faults.operation = "serve"
        if not replica.log.offline:
            self.write(replica.log, 3)
        self.faults.operation = "stop"

    def die(self, loses_power: bool) -> None:
        self.disk.faults = None
        self.disk = self.disk.after_crash(self.seed) if loses_power else self.disk.after_kill()
        self.disk.faults = None

    async def come_back(self) -> None:
        """Everything acknowledged is served from one folder, and can move again."""
        for where in (B, A):
            replica = await self.start()
            assert replica is not None, "nothing serves it"
            log = replica.log
            assert (int(log.log_start_offset), log.log_end_offset >= self.acknowledged) == (3, True)
            assert len(read_all(log)) == log.log_end_offset - 3
            await self.move(replica, where)
            assert replica.log.folder == where / "t-0", "it cannot move any more"
            self.write(replica.log, 1)
            self.folders.remove_due(2**62)
            names = [name for path in (A, B) for name in self.disk.list(path) if name.startswith("t-")]
            assert names == ["t-0"], f"left behind: {names}"
            self.folders.close()


def calls(wanted: Callable[[str], bool]) -> list[int]:
    """The numbers of the calls that a move makes, and of a few behind it."""
    machine, numbers = Machine(1), []
    machine.faults.watch = lambda call: numbers.append(call.number) if call.operation and wanted(call.name) else None
    asyncio.run(machine.story())
    return numbers


def crashed_at(number: int, fault: DiskFault) -> None:
    machine = Machine(number)
    machine.faults.plan[number] = fault
    try:
        asyncio.run(machine.story())
    except Exception:
        assert fault is not DiskFault.POWER_LOSS, "only the machine dies"
    except BaseException:
        pass
    machine.die(loses_power=bool(number % 3) or fault is DiskFault.POWER_LOSS)
    asyncio.run(machine.come_back())


def failures(numbers: list[int], fault: DiskFault) -> Iterator[str]:
    """What does not hold after a crash at these calls."""
    with unlogged():
        for number in numbers:
            try:
                crashed_at(number, fault)
            except Exception as error:
                yield f"call {number}: {type(error).__name__}: {error}"


def test_a_power_loss_at_any_call_of_a_move_loses_nothing_and_leaves_one_log() -> None:
    numbers = calls(CHANGES.__contains__)
    assert len(numbers) > 60
    assert list(failures(numbers, DiskFault.POWER_LOSS)) == []


@pytest.mark.parametrize("fault", [DiskFault.IO_ERROR, DiskFault.NO_SPACE])
def test_an_error_at_any_call_of_a_move_loses_nothing_and_leaves_one_log(fault: DiskFault) -> None:
    numbers = calls(lambda _: True)[:: 2 if fault is DiskFault.IO_ERROR else 5]
    assert list(failures(numbers, fault)) == []


FOLDER, MOVES = "moldau.log.folders.folder:LogFolder", "moldau.replication.log_dirs.log_moves:LogMoves"
BUGS: dict[str, tuple[Instead, ...]] = {
    "a complete copy is not noted": (Instead("moldau.log.folders.arrival:note", nothing),),
    "a complete copy is not flushed": (Instead("moldau.log.log:Log.flush", nothing, within=f"{MOVES}._carry_out"),),
    "the old copy keeps its name": (Instead(f"{FOLDER}.retire", nothing),),
}


@pytest.mark.bug
@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_in_the_swap_is_found(bug: str) -> None:
    with replaced(BUGS[bug]):
        assert next(failures(calls(CHANGES.__contains__)[::-1], DiskFault.POWER_LOSS))
