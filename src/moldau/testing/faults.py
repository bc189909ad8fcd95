"""Faults that a test puts into a broker: errors, delays and broken connections, at the gate that every request passes.

A broker without faults answers through the gate as in production. A request that a fault takes is refused, held up or
cut off there; the newest fault that takes it counts. Produce and Fetch name several topics in one request, and a fault
of one topic leaves the others alone: their batches are appended, their records are read.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from types import GeneratorType
from typing import Any, TypeAlias

from moldau.errors import ErrorCode, ProtocolViolation
from moldau.names import guess
from moldau.protocol.apis import APIS, FETCH, PRODUCE, Api
from moldau.protocol.fetch_request import Fetch
from moldau.protocol.hot_fetch import FetchReply, FetchResult
from moldau.protocol.hot_produce import Produce, in_own_memory, produce_response
from moldau.requests.gate import Gate, Handler
from moldau.requests.refusals import refused
from moldau.requests.session import Call
from moldau.turns import turn

TOPIC_FIELDS = ("name", "topic", "topic_name", "topic_names", "subscribed_topic_names", "resource_name", "topic_id")
SESSION_ERRORS = (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)
Names: TypeAlias = frozenset[str | bytes]
"""What requests may call a topic: its name and its id."""
BEFORE, AFTER = "before", "after"
_APIS = {api.name: api for api in APIS.values()}


@dataclass(frozen=True)
class What:
    """What a fault does, and to which requests."""

    api: Api
    error: ErrorCode | None
    delay_s: float
    drop: str | None
    topic: str | None


def what(api: str, error: str | int | None, delay_ms: float, drop: str | None, topic: str | None) -> What:
    """Raises `ValueError` for what no broker could do."""
    if api not in _APIS:
        raise ValueError(f"there is no API {api!r}{guess(api, _APIS)}")
    if error is not None and drop is not None:
        raise ValueError("a fault answers with an error or drops the connection, not both")
    if error is None and drop is None and not delay_ms:
        raise ValueError("a fault needs an error, a delay_ms or a drop")
    if drop not in (None, BEFORE, AFTER):
        raise ValueError(f"drop is {BEFORE!r} or {AFTER!r} (the request takes effect), not {drop!r}")
    if delay_ms < 0:
        raise ValueError("delay_ms is not negative")
    return What(_APIS[api], None if error is None else _code(error), delay_ms / 1000, drop, topic)


def _code(error: str | int) -> ErrorCode:
    if isinstance(error, int):
        numbered = {int(code): code for code in ErrorCode}
        if error not in numbered:
            raise ValueError(f"there is no error {error}")
        return numbered[error]
    if error not in ErrorCode.__members__:
        raise ValueError(f"there is no error {error!r}{guess(error, ErrorCode.__members__)}")
    return ErrorCode[error]


class Fault:
    """A fault of a broker, until it is cleared, or has hit its number of requests. As a context manager it is cleared
    at the end of the block."""

    def __init__(self, gate: "FaultyGate", what: What, times: int | None):
        self._gate = gate
        self._what = what
        self._left = times
        self.hits = 0
        """How many requests it has hit."""

    def __repr__(self) -> str:
        what = self._what
        parts = [
            what.api.name,
            what.error.name if what.error else "",
            f"{what.delay_s:g} s late" if what.delay_s else "",
        ]
        parts += [f"dropped {what.drop}" if what.drop else "", f"topic {what.topic}" if what.topic else ""]
        return f"<Fault {', '.join(filter(None, parts))}; {self.hits} hits>"

    def __enter__(self) -> "Fault":
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def clear(self) -> None:
        """End the fault. Requests that it holds up already are still answered late."""
        self._gate.clear(self)

    @property
    def what(self) -> What:
        return self._what

    def hit(self) -> None:
        """Count a request; the fault ends with its last one."""
        self.hits += 1
        if self._left is not None:
            self._left -= 1
            if not self._left:
                self.clear()


class FaultyGate(Gate):
    """The gate of a broker under test. `topic_id` looks a topic's id up, None if there is no such topic."""

    def __init__(self) -> None:
        super().__init__()
        self.topic_id: Callable[[str], bytes | None] = lambda _: None
        self._faults: tuple[Fault, ...] = ()
        self._lock = threading.Lock()

    def add(self, what: What, times: int | None) -> Fault:
        if times is not None and times < 1:
            raise ValueError("times is the number of requests to hit, at least 1")
        fault = Fault(self, what, times)
        with self._lock:
            self._faults = (fault, *self._faults)
        return fault

    def clear(self, fault: Fault | None = None) -> None:
        """End this fault, or all."""
        with self._lock:
            self._faults = tuple(one for one in self._faults if fault not in (one, None))

    def __call__(self, request: Any, call: Call, handler: Handler) -> Any:
        for fault in self._faults:
            if fault.what.api.key == call.key and call.version <= fault.what.api.high:
                names = self._names(fault.what.topic)
                if names is None or _mentions(request, names):
                    return super().__call__(request, call, partial(self._hit, fault, names, handler))
        return super().__call__(request, call, handler)

    def _names(self, topic: str | None) -> Names | None:
        if topic is None:
            return None
        topic_id = self.topic_id(topic)
        return frozenset([topic] if topic_id is None else [topic, topic_id])

    def _hit(self, fault: Fault, names: Names | None, handler: Handler, request: Any, call: Call) -> Any:
        what = fault.what
        if what.api is FETCH and what.error not in (None, *SESSION_ERRORS) and request.session_id:
            # its partitions are named by earlier requests: the client must name them again
            return FetchReply(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0, (), ())
        fault.hit()
        if not what.delay_s:
            return _answer(what, names, request, call, handler)
        own = in_own_memory(request) if what.api is PRODUCE else request

        async def later() -> Any:
            await asyncio.sleep(what.delay_s)
            answer = _answer(what, names, own, call, handler)
            while isinstance(answer, Awaitable | GeneratorType):
                answer = await answer if isinstance(answer, Awaitable) else turn(answer)
            return answer

        return later()


def _answer(what: What, names: Names | None, request: Any, call: Call, handler: Handler) -> Any:
    if what.drop == BEFORE:
        raise ProtocolViolation("a fault of the test drops the connection")
    if what.drop == AFTER:
        return _then(handler(request, call), _drop)
    if what.error is None:
        return handler(request, call)
    if what.api is FETCH:
        return _failing_fetch(what.error, names, request, call, handler)
    if what.api is PRODUCE and names is not None:
        return _failing_produce(what.error, names, request, call, handler)
    return refused(request, call, what.error)


def _drop(_: Any) -> Any:
    raise ProtocolViolation("a fault of the test drops the connection after its request")


def _then(answer: Any, change: Callable[[Any], Any]) -> Any:
    """A handler's answer, be it at once, in steps or awaited, with its response changed."""
    if isinstance(answer, GeneratorType):
        return _after_steps(answer, change)
    if isinstance(answer, Awaitable):
        return _after_wait(answer, change)
    return change(answer)


def _after_steps(answer: Any, change: Callable[[Any], Any]) -> Any:
    return _then((yield from answer), change)


async def _after_wait(answer: Awaitable[Any], change: Callable[[Any], Any]) -> Any:
    changed = _then(await answer, change)
    while isinstance(changed, Awaitable):
        changed = await changed
    return changed


def _failing_fetch(error: ErrorCode, names: Names | None, request: Fetch, call: Call, handler: Handler) -> Any:
    """The partitions of these topics, or all, have the error; the others are read. Nothing waits for records."""
    if error in SESSION_ERRORS:
        return FetchReply(error, 0, (), ())

    def change(answer: Any) -> Any:
        if not isinstance(answer, FetchReply) or answer.error:
            return answer
        topics = [topic for topic in answer.topics for _ in topic[2]]
        results = [
            FetchResult(result[0], error, -1, -1, -1) if _is_one(topic, names) else result
            for topic, result in zip(topics, answer.results, strict=True)
        ]
        return answer._replace(results=results)

    return _then(handler(request._replace(max_wait_ms=0), call), change)


def _failing_produce(error: ErrorCode, names: Names, request: Produce, call: Call, handler: Handler) -> Any:
    """The batches of these topics are refused; those of the others are appended."""
    others = [topic for topic in request.topics if not _is_one(topic, names)]
    if not others or not request.acks:
        return refused(request, call, error)

    def change(answer: Any) -> Any:
        if not isinstance(answer, list):  # a message, because a batch was refused with a sentence
            own = refused(request._replace(topics=[t for t in request.topics if _is_one(t, names)]), call, error)
            return _joined(answer, request, names, own)
        results = iter(answer)
        return [
            (part[0], error, -1, -1, -1) if _is_one(topic, names) else next(results)
            for topic in request.topics
            for part in topic[2]
        ]

    return _then(handler(request._replace(topics=others), call), change)


def _joined(answer: Any, request: Produce, names: Names, own: Any) -> Any:
    """A Produce response with the refused topics added to it."""
    refused_topics = [topic for topic in request.topics if _is_one(topic, names)]
    answer.responses += produce_response(request._replace(topics=refused_topics), own).responses
    return answer


def _is_one(topic: Any, names: Names | None) -> bool:
    """Whether a topic of Produce or Fetch, (name, id, partitions), is one of these."""
    return names is None or topic[0] in names or topic[1] in names


def _mentions(request: Any, names: Names) -> bool:
    """Whether a request names one of these topics."""
    if isinstance(request, Produce | Fetch):
        by_session = isinstance(request, Fetch) and bool(request.session_id)
        return by_session or any(_is_one(topic, names) for topic in request.topics)
    if isinstance(request, list):
        return any(_mentions(one, names) for one in request)
    for name in getattr(request, "__slots__", ()):
        value = getattr(request, name)
        if isinstance(value, list) and value and isinstance(value[0], str):
            if name in TOPIC_FIELDS and not names.isdisjoint(value):
                return True
        elif isinstance(value, list):
            if any(_mentions(one, names) for one in value):
                return True
        elif name in TOPIC_FIELDS and (value in names or getattr(value, "bytes", None) in names):
            return True
    return False
