"""A crash at every system call of every operation of a story, and errors at some.

Before each call that changes the disk the driver takes a copy of it, lets the power fail there, recovers, and checks:
that is a *point*, numbered by the call. Points are independent: the story goes on as if nothing had been looked at, and
a single one can be looked at again (`python -m tests.crash_points --seed S --point N`). What a crash loses is drawn
from the seed and the number. An error needs a story of its own, since it ends differently.
"""

import random
import time
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import NamedTuple, TypeAlias

from moldau.names import TopicPartition
from moldau.records.batch import Row, encode_batch
from moldau.records.validation import check_produce
from moldau.simulation.disk import SimulatedDisk
from moldau.simulation.faults import CHANGES, READS, DiskCall, DiskFault
from tests.crash_points.checking import Broken, broken, check_partition, digest
from tests.crash_points.folder import load_folder, take_folder
from tests.crash_points.machine import ANYTHING, Machine, Offline
from tests.crash_points.model import Model
from tests.crash_points.story import Favours, Script
from tests.unlogged import unlogged

EXHAUSTIVE = 8
SHARE = 0.15
"""Of the calls of a story; every eighth is crashed at all of them."""
ERRORS = 10
"""So many calls of each story fail, one at a time: each kind of call as often as any other, however rare it is."""
Digests: TypeAlias = dict[TopicPartition, tuple[object, ...]]


class Failure(NamedTuple):
    """What did not hold, and the arguments that show it again."""

    sentence: str
    again: str


@dataclass
class Report:
    """What a run covered, and what did not hold."""

    points: int = 0
    errors: int = 0
    scripts: int = 0
    calls: int = 0
    seconds: float = 0.0
    kinds: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    """The numbers of one story's calls, by operation and name."""
    covered: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    def add(self, other: "Report") -> None:
        self.points += other.points
        self.errors += other.errors
        self.scripts += other.scripts
        self.seconds += other.seconds
        self.covered.update(other.covered)
        self.failures += other.failures


class Enough(BaseException):
    """There were as many points as were asked for."""


def told(error: Exception) -> str:
    """What does not hold; an error that nobody expected is one."""
    return str(error) if isinstance(error, Broken) else f"{type(error).__name__}: {error}"


class BrokenPoint(BaseException):
    """No error of the log's, and none that it could handle: it is raised in the middle of it."""

    def __init__(self, call: DiskCall, sentence: str):
        super().__init__(f"before call {call.number}, {call.name} of {call.operation}: {sentence}")
        self.call = call


class Examiner:
    """Looks at the disk as a crash before a call would find it."""

    def __init__(self, script_seed: int, machine: Machine, only: int | None, enough: int, share: float):
        self._script_seed = script_seed
        self._machine = machine
        self._only = only
        self._enough = enough
        self._share = share
        self.covered: Counter[tuple[str, str]] = Counter()
        self._draw = random.Random(f"share {script_seed}")
        self.points = 0
        self.kinds: defaultdict[tuple[str, str], list[int]] = defaultdict(list)

    def watch(self, call: DiskCall) -> None:
        self.kinds[call.operation, call.name].append(call.number)
        if call.name not in CHANGES or self._draw.random() >= (self._share if self._only is None else 1):
            return
        if self._only in (None, call.number):
            if self.points >= self._enough:
                raise Enough
            self.points += 1
            self.covered[call.operation, call.name] += 1
            try:
                self.examine(call)
            except Exception as error:
                raise BrokenPoint(call, told(error)) from error

    def examine(self, call: DiskCall) -> None:
        machine, model = self._machine, self._machine.model
        seed = random.Random(f"{self._script_seed} {call.number}")
        disk = machine.disk.fork().after_crash(seed)
        floors = {tp: max(p.flushed, machine.claimed(p)) for tp, p in model.partitions.items()}
        found = self._recover(disk, model, floors, seed, model.clean)
        fate = seed.random()
        if fate < 0.3:
            self._same_again(disk.after_kill(), model, floors, found, seed)
        elif fate < 0.5:
            self._recover(disk.after_crash(seed), model, floors, seed, False)
        elif fate < 0.7:
            self._go_on(model, seed)

    def _recover(
        self,
        disk: SimulatedDisk,
        model: Model,
        floors: dict[TopicPartition, int],
        seed: random.Random,
        clean: bool | None,
    ) -> Digests:
        folder = take_folder(disk, self._machine.clock, seed)
        if clean is not None and folder.clean is not clean:
            broken(f"the last stop was {'clean' if clean else 'unclean'}, and was taken for the other")
        load_folder(folder, model)
        for tp, partition in model.partitions.items():
            check_partition(partition, folder.logs[tp], floors[tp], seed)
        self._folder = folder
        return {tp: digest(log) for tp, log in folder.logs.items()}

    def _same_again(
        self, disk: SimulatedDisk, model: Model, floors: dict[TopicPartition, int], found: Digests, seed: random.Random
    ) -> None:
        again = self._recover(disk, model, floors, seed, False)
        if again != found:
            differ = [f"{tp}: {found[tp]}, then {again[tp]}" for tp in found if again[tp] != found[tp]]
            broken(f"a second recovery finds what the first one did not: {differ}")

    def _go_on(self, model: Model, seed: random.Random) -> None:
        """What came back can be written to, read and flushed, and closed."""
        for tp, partition in model.partitions.items():
            log = self._folder.logs[tp]
            end = int(log.log_end_offset)
            data = memoryview(encode_batch([Row(b"k", b"v" * seed.randrange(600), self._machine.clock.ms)]))
            answer = log.append(data, check_produce(data, ANYTHING, self._machine.clock.ms), 99, self._machine.clock.ms)
            if answer.error or answer.base_offset != end or log.read_batches(end, 1) != bytes(data):
                broken(f"{tp}: appending at {end} after the recovery was answered {answer}")
            log.flush()
            if log.recovery_point != end + 1 or log.epochs.latest != 99:
                broken(f"{tp}: a flush after the recovery got to {log.recovery_point}, not {end + 1}")
            if partition.start_kept > log.log_start_offset:
                broken(f"{tp}: the log starts at {log.log_start_offset} after an append")
        self._folder.close()


def run_script(
    seed: int, only: int | None = None, enough: int = 1 << 60, share: float = 1.0, favours: Favours = None
) -> Report:
    """All power losses of one seed's story, or a share of them, or one; it ends after `enough`."""
    script = Script(seed, favours)
    faults = script.machine.faults
    examiner = Examiner(seed, script.machine, only, enough, share)
    faults.watch = examiner.watch
    report = Report(scripts=1)
    try:
        script.run()
    except BrokenPoint as error:
        report.failures.append(Failure(f"seed {seed}: {error}", f"--seed {seed} --point {error.call.number}"))
    except Enough:
        pass
    except Exception as error:
        report.failures.append(Failure(f"seed {seed}, in the story itself: {told(error)}", f"--seed {seed} --point 0"))
    finally:
        script.machine.dispose()
    report.points, report.calls, report.kinds = examiner.points, faults.calls, examiner.kinds
    report.covered = examiner.covered + Counter({pair: n for pair, n in faults.covered.items() if pair[1] in READS})
    return report


def run_error(seed: int, number: int, favours: Favours = None) -> Report:
    """One error of one seed: the call of that number fails, and the next process finds what is left."""
    script = Script(seed, favours)
    machine, draw = script.machine, random.Random(f"{seed} error {number}")
    fault = draw.choice((DiskFault.IO_ERROR, DiskFault.NO_SPACE))
    machine.faults.plan[number] = fault
    report, again = Report(errors=1), f"--seed {seed} --point {number} --error"
    try:
        try:
            script.run()
        except Offline:
            machine.come_back()
    except Exception as error:
        report.failures.append(Failure(f"seed {seed}, {fault.name} at call {number}: {told(error)}", again))
    finally:
        machine.dispose()
    for met, call in machine.faults.met:
        if met is not DiskFault.POWER_LOSS:
            report.covered[call.operation, f"{call.name}: {met.name.lower()}"] += 1
    return report


def run_seed(seed: int, enough: int, share: float = 1.0, favours: Favours = None) -> Report:
    """A story, crashed at a share of its calls until there were `enough`, and failing at a few."""
    started = time.process_time()
    report = run_script(seed, enough=enough, share=share, favours=favours)
    draw = random.Random(f"errors {seed}")
    for _ in range(ERRORS):
        report.add(run_error(seed, draw.choice(draw.choice(list(report.kinds.values()))), favours))
    report.seconds = time.process_time() - started
    return report


def _run_strided(first: int, stride: int, points: int, until: float) -> Report:
    report, seed = Report(), first
    with unlogged():
        while report.points < points and time.monotonic() < until and not report.failures:
            report.add(run_seed(seed, points - report.points, 1.0 if seed % EXHAUSTIVE == 0 else SHARE))
            seed += stride
    return report


def run_many(seed: int, points: int, jobs: int = 1, until: float = float("inf")) -> Report:
    """So many crash points (or what can be done `until` then), the seeds from that one on dealt out to processes."""
    if jobs == 1:
        return _run_strided(seed, 1, points, until)
    report = Report()
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        shares = [points * (job + 1) // jobs - points * job // jobs for job in range(jobs)]
        for done in [pool.submit(_run_strided, seed + job, jobs, shares[job], until) for job in range(jobs)]:
            report.add(done.result())
    return report


def replay(seed: int, point: int, *, error: bool = False) -> Report:
    return run_error(seed, point) if error else run_script(seed, point)
