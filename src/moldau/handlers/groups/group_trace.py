"""One log line for every answer about a group: it shows owners why their group rebalances, and tests judge it.

    {"api": "Heartbeat", "group": "readers", "client": "a", "member": "a-5f3a", "epoch": 3, "error": "NONE", "ms": 0}

Logger `moldau.groups`, level DEBUG: `moldau server start --log-level moldau.groups=debug`. `epoch` is the generation or
member epoch of the answer, or else of the request; `ms` is how long the answer took, for a JoinGroup the time that it
was parked. A refused ConsumerGroupHeartbeat also has the `message` that its member got. Decisions are recorded in
`__consumer_offsets` (`moldau log dump`). The level can change while the broker runs (`kafka-configs --entity-type
broker-loggers`). Clients choose ids: they are quoted and truncated, so that each answer is one line.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from inspect import isawaitable
from types import GeneratorType
from typing import Any, NamedTuple

from moldau.errors import ErrorCode
from moldau.protocol import apis
from moldau.requests.gate import Handler
from moldau.requests.session import Call
from moldau.turns import Steps

log = logging.getLogger("moldau.groups")

ID_CHARS_MAX = 200
MESSAGE_CHARS_MAX = 1000
NAMES = {int(code): code.name for code in ErrorCode}


class Line(NamedTuple):
    """The line about one member in an answer."""

    member: str
    epoch: int
    error: int
    message: str | None = None


def traced(api: apis.Api, handler: Handler) -> Handler:
    """The handler of this API; one of groups is wrapped so that its answers are logged while the logger is on."""
    read = READERS.get(api)
    return handler if read is None else _Traced(api.name, handler, read)


class _Traced:
    def __init__(self, api: str, handler: Handler, read: Callable[[Any, Any], Iterator[Line]]):
        self._api = api
        self._handler = handler
        self._read = read

    def __call__(self, request: Any, call: Call) -> Any:
        if not log.isEnabledFor(logging.DEBUG):
            return self._handler(request, call)
        began_s = asyncio.get_running_loop().time()
        return self._followed(request, call, began_s, self._handler(request, call))

    def _followed(self, request: Any, call: Call, began_s: float, response: Any) -> Any:
        """The same response, or steps or an awaitable of it; logs a line once the response is complete."""
        if type(response) is GeneratorType:
            return self._steps(request, call, began_s, response)
        if isawaitable(response):
            return self._later(request, call, began_s, response)
        self._write(request, call, began_s, response)
        return response

    def _steps(self, request: Any, call: Call, began_s: float, steps: Steps[Any]) -> Steps[Any]:
        return self._followed(request, call, began_s, (yield from steps))

    async def _later(self, request: Any, call: Call, began_s: float, response: Awaitable[Any]) -> Any:
        return self._followed(request, call, began_s, await response)

    def _write(self, request: Any, call: Call, began_s: float, response: Any) -> None:
        ms = round((asyncio.get_running_loop().time() - began_s) * 1000)
        for member, epoch, error, message in self._read(request, response):
            line = {
                "api": self._api,
                "group": request.group_id[:ID_CHARS_MAX],
                "client": (call.client_id or "")[:ID_CHARS_MAX],
                "member": member[:ID_CHARS_MAX],
                "epoch": epoch,
                "error": NAMES[error],
                "ms": ms,
            }
            if message:
                line["message"] = message[:MESSAGE_CHARS_MAX]
            log.debug("%s", json.dumps(line))


def _join(request: Any, response: Any) -> Iterator[Line]:
    yield Line(response.member_id or request.member_id, response.generation_id, response.error_code)


def _with_generation(request: Any, response: Any) -> Iterator[Line]:
    yield Line(request.member_id, request.generation_id, response.error_code)


def _leave(request: Any, response: Any) -> Iterator[Line]:
    if not response.members:
        yield Line(request.member_id, -1, response.error_code)
    for member in response.members:
        yield Line(member.member_id, -1, response.error_code or member.error_code)


def _beat(request: Any, response: Any) -> Iterator[Line]:
    epoch = request.member_epoch if response.error_code else response.member_epoch
    yield Line(response.member_id or request.member_id, epoch, response.error_code, response.error_message)


def _commit(request: Any, response: Any) -> Iterator[Line]:
    errors = [partition.error_code for topic in response.topics for partition in topic.partitions]
    yield Line(request.member_id, request.generation_id_or_member_epoch, next(filter(None, errors), 0))


READERS: Mapping[apis.Api, Callable[[Any, Any], Iterator[Line]]] = {
    apis.JOIN_GROUP: _join,
    apis.SYNC_GROUP: _with_generation,
    apis.HEARTBEAT: _with_generation,
    apis.LEAVE_GROUP: _leave,
    apis.CONSUMER_GROUP_HEARTBEAT: _beat,
    apis.OFFSET_COMMIT: _commit,
}
