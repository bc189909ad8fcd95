"""`SharingAdmin`: our admin client with the console's settings; several pages share an answer while it is young.

A page about all brokers shows what those know that answer: one that hangs is waited for `ANSWER_S`, the next time for
`AGAIN_S`, and pages name it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

from moldau.client.administration.admin import AdminSettings, AsyncAdmin
from moldau.client.settings import read_settings
from moldau.console.asking import keeping
from moldau.console.asking.keeping import SharedAnswer
from moldau.errors import ErrorCode, KafkaError

ANSWER_S, AGAIN_S = 5.0, 0.25
"""How long one broker is waited for if a page can do without its answer; and if it did not answer the last time."""
CLIENT = {"client.id": "moldau-console", "default.api.timeout.ms": "10000", "request.timeout.ms": "10000"}
T = TypeVar("T")


class SharingAdmin(AsyncAdmin):
    """`client` has the settings by Kafka's names."""

    def __init__(self, client: Mapping[str, Any]):
        # A mapping for other clients may name a client id; the console has its own.
        super().__init__(read_settings(AdminSettings, "the console", ({**client, **CLIENT},), {}))
        self._client = client
        self._kept: dict[str, SharedAnswer] = {}
        self.silent: set[int] = set()
        """The brokers that did not answer when a page could do without them: what only they know is left out."""

    async def heard(self, broker_id: int, ask: Callable[[], Awaitable[T]]) -> T | None:
        """What one broker answers; None if it does not answer in time, or cannot now. Raises other `KafkaError`s."""
        try:
            async with asyncio.timeout(AGAIN_S if broker_id in self.silent else ANSWER_S):
                answer = await ask()
        except KafkaError as failure:
            if not failure.retriable and failure.code is not ErrorCode.BROKER_NOT_AVAILABLE:  # it has left
                raise
        except TimeoutError:
            pass
        else:
            self.silent.discard(broker_id)
            return answer
        self.silent.add(broker_id)
        return None

    async def rows(self, what: str, names: Iterable[str], ask: Callable[[], Awaitable[T]]) -> T:
        """The rows of a part of a list, with these names, which several browsers share while they are young."""
        return await self._once(f"{what} {[*names]}", ask, keeping.ROWS_KEPT_S, self._times(keeping.ROWS_TIMES))

    def _times(self, times: int) -> int:
        """For how many times as long as it took an answer is kept: one without a broker that hangs took long for no
        work, and lacks something."""
        return 0 if self.silent else times

    async def _once(
        self,
        what: str,
        ask: Callable[[], Awaitable[T]],
        kept_s: float | None = None,
        times: int | None = None,
        most_s: float = keeping.KEPT_MAX_S,
    ) -> T:
        """The answer to a question that several requests share while it is young."""
        loop = asyncio.get_running_loop()
        if len(self._kept) > keeping.QUESTIONS_MAX:
            self._kept = {name: one for name, one in self._kept.items() if not one.task.done()}
        known = self._kept.get(what)
        kept_s = keeping.KEPT_S if kept_s is None else kept_s
        times = keeping.KEPT_TIMES if times is None else times
        if known is None or known.is_over(loop.time(), kept_s, times, most_s):
            known = self._kept[what] = SharedAnswer(loop.create_task(_awaited(ask)), loop.time)
        result: T = await asyncio.shield(known.task)
        return result

    def forget(self, what: str) -> None:
        """The next question is asked again: the user has just changed what it is about."""
        self._kept.pop(what, None)


async def _awaited(ask: Callable[[], Awaitable[T]]) -> T:
    return await ask()
