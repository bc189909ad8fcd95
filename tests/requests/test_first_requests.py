"""The first request of an API waits for the import of its handler's modules, which the loop does not do itself."""

import asyncio
import errno
import threading
from collections.abc import Callable
from typing import Any

import pytest

from harness.patience import stretched
from moldau.errors import ProtocolViolation
from moldau.net.server import Peer
from moldau.protocol import codec
from moldau.protocol.apis import HEARTBEAT, LEAVE_GROUP, SERVED, Api
from moldau.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from moldau.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from moldau.requests.dispatch import Dispatch
from moldau.requests.gate import Gate
from moldau.runtime import Runtime
from moldau.turns import Turns

ASKED = {HEARTBEAT: HeartbeatRequest(), LEAVE_GROUP: LeaveGroupRequest()}


class Broker:
    """`imported` names the API of every import and whether the loop's thread did it; an import waits for `may_end`."""

    def __init__(self, *at_once: Api) -> None:
        self.imported: list[tuple[str, bool]] = []
        self.may_end = threading.Event()
        self.failure: Exception | None = None
        self._thread = threading.get_ident()
        self.dispatch = Dispatch(
            {HEARTBEAT.key: lambda *_: HeartbeatResponse(), LEAVE_GROUP.key: lambda *_: LeaveGroupResponse()},
            Gate(),
            Turns(Runtime()),
            imports={api.key: self._import_of(api) for api in ASKED if api not in at_once},
        )

    def _import_of(self, api: Api) -> Callable[[], None]:
        def do() -> None:
            self.imported.append((api.name, threading.get_ident() == self._thread))
            assert self.may_end.wait(stretched())
            if self.failure is not None:
                raise self.failure

        return do

    def ask(self, api: Api, frame: bytearray | None = None) -> Any:
        """The answer to a request on a connection of its own."""
        handle = self.dispatch.connected(Peer("10.0.0.7", 50_000), "PUBLIC")
        return handle(memoryview(frame or frame_of(api)))


def frame_of(api: Api) -> bytearray:
    return bytearray(codec.write_request(api, api.high, 7, "asker", ASKED[api])[4:])


def read(api: Api, reply: Any) -> Any:
    return codec.read_reply(api, api.high, b"".join(reply)[4:])


def test_the_executor_imports_once_and_later_requests_are_answered_at_once() -> None:
    async def asked() -> None:
        broker = Broker()
        frame = frame_of(HEARTBEAT)
        waiting = [asyncio.ensure_future(broker.ask(HEARTBEAT, frame)), asyncio.ensure_future(broker.ask(HEARTBEAT))]
        frame[:] = bytes(len(frame))  # the connection's buffer is used again
        await asyncio.sleep(0)
        assert not any(answer.done() for answer in waiting)
        broker.may_end.set()
        for answer in waiting:
            assert read(HEARTBEAT, await answer) == HeartbeatResponse()
        assert broker.imported == [("Heartbeat", False)]
        assert isinstance(broker.ask(HEARTBEAT), list)

    asyncio.run(asked())


def test_other_apis_are_answered_meanwhile() -> None:
    async def asked() -> None:
        broker = Broker(HEARTBEAT)
        waiting = asyncio.ensure_future(broker.ask(LEAVE_GROUP))
        await asyncio.sleep(0)
        assert read(HEARTBEAT, broker.ask(HEARTBEAT)) == HeartbeatResponse()
        assert not waiting.done()
        broker.may_end.set()
        assert read(LEAVE_GROUP, await waiting) == LeaveGroupResponse()

    asyncio.run(asked())


@pytest.mark.parametrize("others", [[], [~LEAVE_GROUP.key, 0.1]])
def test_a_request_that_waits_for_an_import_is_noted_when_it_comes_and_not_again(others: list[float]) -> None:
    async def asked() -> None:
        broker = Broker()
        broker.dispatch.noted = noted = list[float](others)
        waiting = broker.ask(HEARTBEAT)
        assert noted == [*others, ~HEARTBEAT.key]
        noted.pop()  # as its connection does, which measures how long it waits
        broker.may_end.set()
        assert read(HEARTBEAT, await waiting) == HeartbeatResponse()
        assert noted == others
        broker.ask(HEARTBEAT)
        assert noted == [*others, ~HEARTBEAT.key]

    asyncio.run(asked())


def test_an_import_that_fails_is_tried_again() -> None:
    async def asked() -> None:
        broker = Broker()
        broker.may_end.set()
        broker.failure = OSError(errno.EIO, "a broken disk")
        with pytest.raises(OSError, match="a broken disk"):
            await broker.ask(HEARTBEAT)
        broker.failure = OSError(errno.EMFILE, "too many open files")
        with pytest.raises(ProtocolViolation, match=r"^its code cannot be read: too many open files$"):
            await broker.ask(HEARTBEAT)
        broker.failure = None
        assert read(HEARTBEAT, await broker.ask(HEARTBEAT)) == HeartbeatResponse()
        assert broker.imported == [("Heartbeat", False)] * 3

    asyncio.run(asked())


def test_every_api_that_clients_ask_for_has_an_import() -> None:
    from moldau.handlers.table import TABLE

    assert {api.key for api in TABLE} == set(SERVED)
    assert all(row.module().__name__.startswith("moldau.handlers.") for row in TABLE.values())
