"""`SharingAdmin`: our admin client with the console's settings; several pages share an answer while it is young."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

from moldau.client.administration.admin import AdminSettings, AsyncAdmin
from moldau.client.settings import read_settings
from moldau.console.asking import keeping
from moldau.console.asking.keeping import SharedAnswer

CLIENT = {"client.id": "moldau-console", "default.api.timeout.ms": "10000", "request.timeout.ms": "10000"}
T = TypeVar("T")


class SharingAdmin(AsyncAdmin):
    """`client` has the settings by Kafka's names."""

    def __init__(self, client: Mapping[str, Any]):
        # A mapping for other clients may name a client id; the console has its own.
        super().__init__(read_settings(AdminSettings, "the console", ({**client, **CLIENT},), {}))
        self._client = client
        self._kept: dict[str, SharedAnswer] = {}

    async def rows(self, what: str, names: Iterable[str], ask: Callable[[], Awaitable[T]]) -> T:
        """The rows of a part of a list, with these names, which several browsers share while they are young."""
        return await self._once(f"{what} {[*names]}", ask, keeping.ROWS_KEPT_S, keeping.ROWS_TIMES)

    async def _once(
        self, what: str, ask: Callable[[], Awaitable[T]], kept_s: float | None = None, times: int | None = None
    ) -> T:
        """The answer to a question that several requests share while it is young."""
        loop = asyncio.get_running_loop()
        if len(self._kept) > keeping.QUESTIONS_MAX:
            self._kept = {name: one for name, one in self._kept.items() if not one.task.done()}
        known = self._kept.get(what)
        kept_s = keeping.KEPT_S if kept_s is None else kept_s
        times = keeping.KEPT_TIMES if times is None else times
        if known is None or known.is_over(loop.time(), kept_s, times):
            known = self._kept[what] = SharedAnswer(loop.create_task(_awaited(ask)), loop.time)
        result: T = await asyncio.shield(known.task)
        return result

    def forget(self, what: str) -> None:
        """The next question is asked again: the user has just changed what it is about."""
        self._kept.pop(what, None)


async def _awaited(ask: Callable[[], Awaitable[T]]) -> T:
    return await ask()
