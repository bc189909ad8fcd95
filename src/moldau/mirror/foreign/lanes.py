"""The lanes that a worker has: the group of the workers assigns the partitions of the positions topic, each a lane."""

import asyncio
import contextlib
from collections.abc import Iterable

from moldau.mirror.foreign.board import Board
from moldau.mirror.foreign.lane import Lane
from moldau.mirror.foreign.telling import Telling
from moldau.names import TopicPartition

FIRST = 0
"""The worker with this lane tells of heartbeats and groups."""


class Lanes:
    """`copies` are this worker's lanes, by the partitions of the positions topic. Runs in `run` until it is
    cancelled."""

    def __init__(self, board: Board, telling: Telling):
        self._board = board
        self._telling = telling
        self.copies: dict[TopicPartition, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """These lanes are this worker's from now on, and no others."""
        wanted = set(partitions)
        for tp in self.copies.keys() - wanted:
            self.copies.pop(tp).cancel()
        for tp in wanted - self.copies.keys():
            self.copies[tp] = task = asyncio.ensure_future(self._work(tp.partition))
            self._tasks.add(task)
        self._changed.set()

    async def _work(self, lane: int) -> None:
        telling = asyncio.ensure_future(self._telling.run()) if lane == FIRST else None
        try:
            await Lane(self._board, lane).run()
        finally:
            if telling is not None:
                telling.cancel()
                await asyncio.gather(telling, return_exceptions=True)

    async def run(self) -> None:
        """Raises what a lane raises."""
        try:
            while True:
                self._changed.clear()
                changed = asyncio.ensure_future(self._changed.wait())
                try:
                    done, _ = await asyncio.wait({*self._tasks, changed}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    changed.cancel()
                for task in done - {changed}:
                    self._tasks.discard(task)
                    with contextlib.suppress(asyncio.CancelledError):
                        task.result()
        finally:
            for task in self._tasks:
                if not task.cancelling():  # a second time would interrupt what a task does at its end
                    task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
