"""The gate: every request passes it between being read and being handled, Produce and Fetch included.

The gate counts requests. It is where requests will be authorised, charged to quotas and timed.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from moldau.protocol.apis import APIS
from moldau.requests.session import Call

Handler: TypeAlias = Callable[[Any, Call], Any]
"""Takes the request's message and returns the response's, steps that end in it (`turns`), or an awaitable of those."""


class Gate:
    """`requests` counts the requests of each API since the start, by API key."""

    def __init__(self) -> None:
        self.requests = dict.fromkeys(APIS, 0)

    def __call__(self, request: Any, call: Call, handler: Handler) -> Any:
        """Count the request and have `handler` answer it."""
        self.requests[call.key] += 1
        return handler(request, call)
