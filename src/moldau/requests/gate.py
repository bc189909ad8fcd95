"""The gate: every request passes it between being read and being handled, Produce and Fetch included.

The gate applies its rules before the handler: a rule may refuse a request, throttle its client, or both. Its accounting
hears of every reply, and may throttle the client too. The reply to a throttled client carries the time in
`throttle_time_ms` and is sent at once; then nothing is read from its connection for that time (KIP-219).

A plain broker has neither rules nor accounting. Rights on a whole request (`requests/requirements.py`) are a rule, and
so is the quota on changes of topics; quotas on bytes and on time are accounting.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import GeneratorType
from typing import Any, NamedTuple, Protocol, TypeAlias

from moldau.protocol.hot_fetch import FetchReply
from moldau.replies import Response
from moldau.requests.refusals import refused
from moldau.requests.session import Authorizer, Call
from moldau.turns import Steps

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
    client is throttled. `around` calls the handler in its own way, with another request for example."""

    error: int = 0
    throttle_ms: int = 0
    around: Callable[[Handler, Any, Call], Any] | None = None


Rule: TypeAlias = Callable[[Any, Call], Verdict | None]
"""Judges a request's message and call; None lets the request pass."""


class Charge(NamedTuple):
    """The accounting's decision about a reply: how many milliseconds the client is throttled, and a response to send
    instead, if any: a Fetch above its quota is answered without records."""

    throttle_ms: int
    instead: Any = None


class HandlerTime:
    """How long the handler of a request has worked, in seconds. Waiting does not count: for records, for replicas, or
    for another broker."""

    __slots__ = ("seconds",)

    def __init__(self, seconds: float):
        self.seconds = seconds


class Accounting(Protocol):
    """Hears of every reply before it is sent."""

    def now(self) -> float:
        """The seconds of a clock that only goes forward."""

    def charge(self, request: Any, call: Call, handled: HandlerTime, response: Any, reply_bytes: int) -> Charge | None:
        """None if the reply is sent as it is."""

    def charge_produce(self, call: Call, worked_s: float, now_s: float) -> int:
        """The same for a Produce that was answered in one step, before its reply is packed: the milliseconds for which
        its client is throttled."""

    def charges_fetch(self, call: Call) -> bool:
        """Whether the reply to a Fetch of this client is heard of."""


class Judged(NamedTuple):
    """A handler's answer to a client that a rule throttles for `throttle_ms` milliseconds (0: none), or whose replies
    are accounted for. `charge` takes the response and the bytes of its reply."""

    answer: Any
    throttle_ms: int
    charge: Callable[[Any, int], Charge | None] | None = None

    def settled(self, response: Any, reply_bytes: int) -> tuple[Any, int]:
        """The response that is sent in the end, and for how many milliseconds its client is throttled."""
        charge = None if self.charge is None else self.charge(response, reply_bytes)
        if charge is None:
            return response, self.throttle_ms
        return response if charge.instead is None else charge.instead, max(self.throttle_ms, charge.throttle_ms)


class Gate:
    """`authorizer` decides for the connections whose requests pass here; without one clients may do everything."""

    def __init__(
        self,
        rules: Sequence[Rule] = (),
        accounting: Accounting | None = None,
        authorizer: Authorizer | None = None,
    ) -> None:
        self.authorizer = authorizer
        self._rules = rules
        self._rules_of: dict[int, Sequence[Rule]] = {}
        """All rules of APIs that have some of their own, by key."""
        self._account_with(accounting)
        self._is_open = not rules and accounting is None

    def protect(self, rules: Mapping[int, Rule], authorizer: Authorizer | None) -> None:
        """Have these rules, by API key, and this authorizer instead of those before; before any request."""
        self.authorizer, self._rules, self._rules_of = authorizer, (), {key: [rule] for key, rule in rules.items()}
        self._is_open = not rules
        self._account_with(None)

    def guard(self, rules: Mapping[int, Rule], accounting: Accounting) -> None:
        """Apply these rules as well from now on, by API key, also to connections that are open, and this accounting."""
        assert self._accounting is None, "one accounting hears of all replies"
        for key, rule in rules.items():
            self._rules_of[key] = [*self._rules_of.get(key, self._rules), rule]
        self._is_open = False
        self._account_with(accounting)

    def _account_with(self, accounting: Accounting | None) -> None:
        self._accounting = accounting
        self._now = None if accounting is None else accounting.now
        if accounting is not None:
            self._charge_produce = accounting.charge_produce

    def __call__(self, request: Any, call: Call, handler: Handler) -> Any:
        """The handler's answer, as `Judged` if the client is throttled or accounted for. Raises `ProtocolViolation` if
        a rule refuses a request whose reply cannot say why."""
        if self._is_open:
            return handler(request, call)
        if self._rules or call[1] in self._rules_of:  # `call.key`, without a descriptor
            return self._judge(request, call, handler)
        now = self._now
        if now is None:
            return handler(request, call)
        began = now()
        answer = handler(request, call)
        if type(answer) is list:  # a Produce that has not waited, by far the commonest
            ended = now()
            ms = self._charge_produce(call, ended - began, ended)
            return Judged(answer, ms) if ms else answer
        return self._charged(request, call, answer, 0, began)

    def _judge(self, request: Any, call: Call, handler: Handler) -> Any:
        accounting, throttle_ms = self._accounting, 0
        began = 0.0 if accounting is None else accounting.now()
        rules = self._rules_of.get(call.key, self._rules)
        verdicts = [verdict for rule in rules if (verdict := rule(request, call)) is not None]
        if verdicts:
            throttle_ms = max(0, *(verdict.throttle_ms for verdict in verdicts))
            handler = _as_judged(verdicts, handler)
        answer = handler(request, call)
        if accounting is None:
            return Judged(answer, throttle_ms) if throttle_ms else answer
        return self._charged(request, call, answer, throttle_ms, began)

    def _charged(self, request: Any, call: Call, answer: Any, throttle_ms: int, began: float) -> Any:
        """The answer of a handler that began then; `throttle_ms` is what the rules want."""
        accounting = self._accounting
        assert accounting is not None
        now = accounting.now()
        if type(answer) is list:
            throttle_ms = max(throttle_ms, accounting.charge_produce(call, now - began, now))
            return Judged(answer, throttle_ms) if throttle_ms else answer
        if type(answer) is FetchReply and not accounting.charges_fetch(call):
            return Judged(answer, throttle_ms) if throttle_ms else answer
        handled = HandlerTime(now - began)
        if type(answer) is GeneratorType:
            answer = _timed(answer, handled, accounting.now)
        return Judged(answer, throttle_ms, partial(accounting.charge, request, call, handled))


def _as_judged(verdicts: Sequence[Verdict], handler: Handler) -> Handler:
    """The handler, as the verdicts want it: called in their ways, or not at all."""
    error = next((verdict.error for verdict in verdicts if verdict.error), 0)
    if error:
        return lambda request, call: refused(request, call, error)
    for verdict in verdicts:
        if verdict.around is not None:
            handler = partial(verdict.around, handler)
    return handler


def _timed(steps: Steps[Any], handled: HandlerTime, now: Callable[[], float]) -> Steps[Any]:
    """The same steps; the time of each is added to `handled`."""
    while True:
        began = now()
        try:
            next(steps)
        except StopIteration as ended:
            more = ended.value
            return _timed(more, handled, now) if type(more) is GeneratorType else more
        finally:
            handled.seconds += now() - began
        yield
