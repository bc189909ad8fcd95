"""The lanes that a worker has: the group of the workers assigns the partitions of the positions topic, each a lane."""

import asyncio
import contextlib
from collections.abc import Iterable

from moldau.mirror.foreign.board import Board
from moldau.mirror.foreign.lane import Lane
from moldau.mirror.foreign.telling import Telling
from moldau.names import TopicPartition
from moldau.tasks import ended

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
        work = [asyncio.ensure_future(Lane(self._board, lane).run())]
        if lane == FIRST:
            work.append(asyncio.ensure_future(self._telling.run()))
        try:
            await asyncio.gather(*work)
        finally:
            await ended(*work)

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
            await ended(*self._tasks)
