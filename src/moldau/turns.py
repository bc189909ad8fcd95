"""Long work on the loop, cut into turns, so that other connections are served in between.

Work that goes through many elements is written as a generator (`Steps`): it yields after each element and returns its
result. `turn` runs as many elements as one turn of the loop may take. Elements are counted, and time is not
measured, so that simulation stays deterministic. An element costs up to about ten microseconds. Work of a few elements
is done in its first turn, without a task.

`Turns` is a broker's queue for work of more than one turn. It does one wide piece at a time, in order of arrival.
However many clients send wide requests, a turn of the loop therefore holds one share of one of them, the memory holds
the elements of one of them, and one thread at a time competes with the loop for the interpreter's lock. The copied
frames of all wide requests share one bound (`Turns.holding`).
"""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from types import GeneratorType
from typing import Any, TypeAlias, TypeVar

from moldau.errors import ProtocolViolation
from moldau.runtime import Runtime
from moldau.tasks import to_its_end

T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, T]
"""Work that yields after each element, and returns the result of all."""

ELEMENTS = 1000
"""The most elements in one turn."""
HELD_BYTES_MAX = 128 << 20
"""The bound on the copied frames of all wide requests together; one alone may be as large as the listener allows."""


def turn(work: Any) -> Any:
    """Do one turn of `work`: returns its result, or the remaining steps. Steps that return steps continue with those in
    the same turn. Any other value is already a result."""
    left = ELEMENTS
    while type(work) is GeneratorType:
        try:
            while left:
                next(work)
                left -= 1
            return work
        except StopIteration as ended:
            work = ended.value
    return work


async def in_turns(items: Iterable[T], size: int = ELEMENTS) -> AsyncIterator[T]:
    """The items one by one, with a turn for others after every `size` of them: for loops that await."""
    for number, item in enumerate(items, 1):
        yield item
        if not number % size:
            await asyncio.sleep(0)


class _NoCollections:
    """Holds up the cyclic garbage collector while wide work is done, in any broker of the process.

    The elements of a request are in no cycle and are gone when it is answered. Their number alone would start one full
    collection after another, and each of them goes through all objects of the broker (0.2 s with 10,000 partitions).
    """

    def __init__(self) -> None:
        self._working = 0
        self._were_on = False

    def begin(self) -> None:
        if not self._working:
            self._were_on = gc.isenabled()
            gc.disable()
        self._working += 1

    def end(self) -> None:
        self._working -= 1
        if not self._working and self._were_on:
            gc.enable()


_no_collections = _NoCollections()


class Turns:
    """`async with turns:` holds the place at the head of the queue; `finish` and `off_loop` are for its holder."""

    def __init__(self, runtime: Runtime):
        self._runtime = runtime
        self._head = asyncio.Lock()
        self.held_bytes = 0
        """The copied frames of wide requests that wait or are being worked on."""

    async def __aenter__(self) -> None:
        await self._head.acquire()
        _no_collections.begin()

    async def __aexit__(self, *_: object) -> None:
        _no_collections.end()
        self._head.release()

    @contextmanager
    def holding(self, frame_bytes: int) -> Iterator[None]:
        """Count the copied frame of a wide request, from before its place in the queue until nothing reads the frame.

        Raises `ProtocolViolation` if other frames are held and this one would exceed `HELD_BYTES_MAX`.
        """
        if self.held_bytes and self.held_bytes + frame_bytes > HELD_BYTES_MAX:
            raise ProtocolViolation("too many wide requests wait to be answered: send fewer of them at a time")
        self.held_bytes += frame_bytes
        try:
            yield
        finally:
            self.held_bytes -= frame_bytes

    async def run(self, work: Steps[T]) -> T:
        """Queue up, and do all the work in turns."""
        done: T | Steps[T] = turn(work)
        if type(done) is GeneratorType:
            async with self:
                done = await self.finish(done)
        return done  # type: ignore[return-value]

    async def finish(self, work: Any) -> Any:
        """Do the rest of the work, beginning with the next turn of the loop; returns its result."""
        while type(work) is GeneratorType:
            await asyncio.sleep(0)
            work = turn(work)
        return work

    async def off_loop(self, work: Callable[[], T]) -> T:
        """Run work that only computes in the executor. Work that has begun is awaited even after a cancellation: the
        next in the queue must not run beside it."""
        return await to_its_end(self._runtime.run(work))
