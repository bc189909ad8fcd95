"""The disks a log may stand on, so that one kit of behaviour runs on all of them.

A `Ground` is a disk with an empty folder on it, and what it is to be killed there: the next process finds what was
written. A test module has a fixture over `GROUNDS`.
"""

from collections.abc import Callable
from pathlib import Path

from moldau.runtime import Disk, RealDisk
from moldau.simulation.disk import SimulatedDisk


class Ground:
    """`disk` is what the process that runs now sees of `folder`."""

    def __init__(self, disk: Disk, folder: Path):
        self.disk = disk
        self.folder = folder

    def kill(self) -> None:
        """The process is killed: what it wrote stays, and nothing it still holds is used again."""
        if isinstance(self.disk, SimulatedDisk):
            self.disk = self.disk.after_kill()


def simulated(_: Path) -> Ground:
    ground = Ground(SimulatedDisk(), Path("/data"))
    ground.disk.make_folder(ground.folder)
    return ground


def real(folder: Path) -> Ground:
    return Ground(RealDisk(), folder)


GROUNDS: tuple[Callable[[Path], Ground], ...] = (real, simulated)
"""Each makes a ground; the real one in the folder it is given."""
