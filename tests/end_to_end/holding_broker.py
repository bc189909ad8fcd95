"""A broker whose loop is held by DescribeCluster, in the way that the client id says.

usage: python -m tests.end_to_end.holding_broker server start ...
"""

import asyncio
import inspect
import time
from typing import Any

from moldau import broker
from moldau.cli import main
from moldau.handlers.table import Handlers
from moldau.protocol.apis import DESCRIBE_CLUSTER
from moldau.requests.gate import Handler
from moldau.requests.session import Call

HELD_S = 0.15
AT_ONCE, LATER, TIMER, ASLEEP = "at once", "later", "timer", "asleep"


def burn_the_loop() -> None:
    until = time.thread_time() + HELD_S
    while time.thread_time() < until:
        pass


def holding(answer: Handler) -> Handler:
    def held(request: Any, call: Call) -> Any:
        if call.client_id == AT_ONCE:
            burn_the_loop()
        elif call.client_id == ASLEEP:
            time.sleep(HELD_S)
        elif call.client_id == TIMER:
            asyncio.get_running_loop().call_later(0.001, burn_the_loop)
        elif call.client_id == LATER:
            return later(request, call)
        return answer(request, call)

    async def later(request: Any, call: Call) -> Any:
        await asyncio.sleep(0.001)
        burn_the_loop()
        response = answer(request, call)
        return await response if inspect.isawaitable(response) else response

    return held


class HoldingHandlers(Handlers):
    def __missing__(self, key: int) -> Handler:
        handler = super().__missing__(key)
        if key == DESCRIBE_CLUSTER.key:
            handler = self[key] = holding(handler)
        return handler


if __name__ == "__main__":
    broker.Handlers = HoldingHandlers  # type: ignore[attr-defined,misc]
    main.main()
