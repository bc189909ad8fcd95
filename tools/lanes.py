"""Stages side by side. A process runs the stages of a lane one after the other, and adopts what their commands leave:
so each accounts for its own (tools/running.py).
"""

import contextlib
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context
from typing import Generic, TypeVar

from tools.running import Outcome, adopt_orphans

FORK = get_context("fork")
S = TypeVar("S")


def side_by_side(lanes: Sequence[Sequence[S]], run: Callable[[S], Outcome]) -> list[Outcome]:
    """`run` each stage, and return the outcomes in the order of the lanes. What the stages of the first lane print is
    shown at once, that of the others when a stage ends. An interrupt ends what runs; this process may have no threads.
    """
    started = [Lane(lane, run, shown=number == 0) for number, lane in enumerate(lanes)]
    try:
        return [outcome for lane in started for outcome in lane.outcomes()]
    except BaseException:
        for lane in started:
            lane.interrupt()
        raise


class Lane(Generic[S]):
    """The process of a lane, in a session of its own: only `interrupt` interrupts it, and once."""

    def __init__(self, stages: Sequence[S], run: Callable[[S], Outcome], shown: bool):
        self._stages, self._run, self._shown = stages, run, shown
        self._told, self._tell = FORK.Pipe(duplex=False)
        sys.stdout.flush()
        self._process = FORK.Process(target=self._keep)
        self._process.start()
        self._tell.close()

    def outcomes(self) -> list[Outcome]:
        try:
            outcomes: list[Outcome] = self._told.recv()
        except EOFError:
            self._process.join()
            names = ", ".join(str(stage) for stage in self._stages)
            outcomes = [Outcome("lane", failures=[f"its process ended with {self._process.exitcode}: {names}"])]
        self._process.join()
        return outcomes

    def interrupt(self) -> None:
        if self._process.is_alive() and self._process.pid:
            os.kill(self._process.pid, signal.SIGINT)
        self._process.join()

    def _keep(self) -> None:
        os.setsid()
        adopt_orphans()
        outcomes = []
        for stage in self._stages:
            with contextlib.nullcontext() if self._shown else shown_at_its_end():
                outcomes.append(self._run(stage))
        self._tell.send(outcomes)


@contextlib.contextmanager
def shown_at_its_end() -> Iterator[None]:
    """What this process prints in this block is printed at the block's end."""
    real = os.dup(1)
    with tempfile.TemporaryFile() as kept, open(real, "wb") as shown:
        os.dup2(kept.fileno(), 1)
        try:
            yield
        finally:
            sys.stdout.flush()
            os.dup2(real, 1)
            kept.seek(0)
            shutil.copyfileobj(kept, shown)
