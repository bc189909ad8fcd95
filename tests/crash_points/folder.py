"""The log folder of a `Machine`: where it is, how it is taken and loaded, and the time and the executor that it has."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from moldau.log.folders.folder import LogFolder
from moldau.runtime import Runtime
from moldau.simulation.disk import SimulatedDisk
from moldau.simulation.ports import SimulatedRandom
from tests.crash_points.checking import broken
from tests.crash_points.model import Model

ROOT = Path("/data")
NOW_MS = 1_700_000_000_000
CLUSTER, NODE = "Y2x1c3Rlci1vZi10ZXN0cw", 1
T = TypeVar("T")


class Clock:
    def __init__(self) -> None:
        self.ms = NOW_MS

    def now_ms(self) -> int:
        return self.ms

    def elapsed_s(self) -> float:
        return self.ms / 1000


def take_folder(disk: SimulatedDisk, clock: Clock, seed: random.Random) -> LogFolder:
    """The folder is ours, and nothing in it is loaded yet."""
    folder = LogFolder(ROOT, Runtime(clock=clock, disk=disk, random=SimulatedRandom(seed)))
    folder.claim(CLUSTER, NODE)
    return folder


def load_folder(folder: LogFolder, model: Model) -> None:
    """As a broker does: what is known is loaded, what is missing is made."""
    known = {tp.topic: partition.topic_id for tp, partition in model.partitions.items()}
    configs = {tp.topic: partition.config for tp, partition in model.partitions.items()}
    strays = folder.load(known, configs.__getitem__, {key: tp.topic for key, tp in model.deleted.items()})
    if strays:
        broken(f"left alone in the folder: {strays}")
    for tp, partition in model.partitions.items():
        if tp not in folder.logs:
            folder.create(tp, partition.topic_id, partition.config)


class Inline(Runtime):
    """What would run in an executor runs at once."""

    async def run(self, work: Callable[[], T]) -> T:
        return work()
