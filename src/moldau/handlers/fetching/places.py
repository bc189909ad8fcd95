"""Places of heavy look-ups in the executor: a request that needs it many times is answered piece by piece. Work that is
only wide, and never leaves the loop, is cut by `moldau.turns`.

Such an answer is a generator. It yields None after one turn of work, or a callable that is too slow for the loop, and
returns the response. A request that needs neither is answered at once. All others of its kind share `AT_ONCE` places:
a request has a turn of the loop, or a thread of the executor, only while it holds a place, so that the other threads
are left to heavy batches and flushes. The rest wait in order of arrival, again for each piece. A place is free when its
work has ended, even if the client has left. The connection is muted meanwhile (D14).
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Final, TypeAlias, TypeVar

from moldau.runtime import Runtime, Step

T = TypeVar("T")
LookUps: TypeAlias = Generator[Step, Any, T]

AT_ONCE: Final = 2


class Places:
    """The places for one kind of request. Used only on the loop."""

    def __init__(self, runtime: Runtime):
        self._runtime = runtime
        self._free = asyncio.Semaphore(AT_ONCE)

    def carry_out(self, steps: LookUps[T]) -> T | Awaitable[T]:
        """The result of the steps: at once if they need no more than this turn."""
        try:
            step = next(steps)
        except StopIteration as answered:
            return answered.value  # type: ignore[no-any-return]
        return self._go_on(steps, step)

    async def _go_on(self, steps: LookUps[T], step: Step) -> T:
        try:
            while True:
                if step is None:
                    async with self._free:
                        await asyncio.sleep(0)
                        step = next(steps)
                    continue
                try:
                    result = await self._elsewhere(step)
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as answered:
            return answered.value  # type: ignore[no-any-return]
        finally:
            steps.close()

    async def _elsewhere(self, work: Callable[[], Any]) -> Any:
        await self._free.acquire()
        running = asyncio.ensure_future(self._runtime.run(work))
        running.add_done_callback(self._ended)
        return await asyncio.shield(running)

    def _ended(self, running: "asyncio.Future[Any]") -> None:
        self._free.release()
        if not running.cancelled():
            running.exception()  # retrieved because the waiting request may be gone
