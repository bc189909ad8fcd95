"""The gate: every request passes it between being read and being handled, Produce and Fetch included.

The gate counts requests and applies its rules. A broker has no rules so far: authorisation and quotas will be rules. A
rule may refuse a request, throttle its client, or both. The reply to a throttled client carries the time in
`throttle_time_ms` and is sent at once; then nothing is read from its connection for that time (KIP-219).
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from moldau.protocol.apis import APIS, BETWEEN_BROKERS
from moldau.replies import Response
from moldau.requests.refusals import refused
from moldau.requests.session import Call

Handler: TypeAlias = Callable[[Any, Call], Any]
"""Takes the request's message and returns the response's, steps that end in it (`turns`), an awaitable of those, or
`Pending`."""


class Pending(NamedTuple):
    """A handler's answer to a request that has had its effect, or that waits: later requests of the same API may be
    handled before `response` is there, and may end the wait. `request` is what the reply is packed with, and holds no
    view of the frame."""

    request: Any
    response: Response


class Verdict(NamedTuple):
    """A rule's decision about a request: the error code that answers it (0: none), and for how many milliseconds its
    client is throttled."""

    error: int = 0
    throttle_ms: int = 0


Rule: TypeAlias = Callable[[Any, Call], Verdict | None]
"""Judges a request's message and call; None lets the request pass."""


class Throttled(NamedTuple):
    """A handler's answer to a client that is throttled for `ms` milliseconds."""

    answer: Any
    ms: int


class Gate:
    """`requests` counts the requests of each API since the start, by API key."""

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        self.requests = dict.fromkeys(APIS | BETWEEN_BROKERS, 0)
        self._rules = rules

    def __call__(self, request: Any, call: Call, handler: Handler) -> Any:
        """The handler's answer, wrapped in `Throttled` if a rule throttles the client. Raises `ProtocolViolation` if a
        rule refuses a request whose reply cannot say why."""
        self.requests[call.key] += 1
        if self._rules:
            return self._judge(request, call, handler)
        return handler(request, call)

    def _judge(self, request: Any, call: Call, handler: Handler) -> Any:
        verdicts = [verdict for rule in self._rules if (verdict := rule(request, call)) is not None]
        error = next((verdict.error for verdict in verdicts if verdict.error), 0)
        answer = refused(request, call, error) if error else handler(request, call)
        throttle_ms = max((verdict.throttle_ms for verdict in verdicts), default=0)
        return Throttled(answer, throttle_ms) if throttle_ms > 0 else answer
