"""A request that waits and that later ones of its API may end: they are handled behind it, and its reply is first."""

import asyncio
import gc
from typing import Any

import pytest

from moldau.net.server import Peer
from moldau.protocol import codec
from moldau.protocol.apis import FETCH, HEARTBEAT, Api
from moldau.protocol.hot_fetch import FetchReply
from moldau.protocol.hot_topics import WIDE
from moldau.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from moldau.protocol.messages.heartbeat import HeartbeatRequest
from moldau.replies import Reply, Unanswered
from moldau.requests.dispatch import Dispatch
from moldau.requests.gate import Gate, Pending
from moldau.requests.session import Call
from moldau.runtime import Runtime
from moldau.turns import Turns

VERSION = FETCH.high
MANY = FetchRequest(topics=[FetchTopic(partitions=[FetchPartition(partition=number) for number in range(WIDE + 1)])])


class Broker:
    """Parks every Fetch until `responses` has its response."""

    def __init__(self) -> None:
        self.responses: asyncio.Queue[FetchReply | FetchResponse] = asyncio.Queue()
        dispatch = Dispatch({FETCH.key: self._fetch}, Gate(), Turns(Runtime()))
        self._handle = dispatch.connected(Peer("10.0.0.7", 50_000), "PLAINTEXT")

    def _fetch(self, request: Any, call: Call) -> Pending:
        return Pending(request, asyncio.ensure_future(self.responses.get()))

    async def ask(self, request: FetchRequest) -> Unanswered:
        answer: Any = self._handle(framed(FETCH, VERSION, request))
        answer = answer if isinstance(answer, Unanswered) else await answer
        assert isinstance(answer, Unanswered)
        return answer


def framed(api: Api, version: int, request: Any) -> memoryview:
    return memoryview(bytearray(codec.write_request(api, version, 7, "asker", request)[4:]))


def wide() -> FetchResponse:
    results = [PartitionData(partition_index=number) for number in range(WIDE + 1)]
    return FetchResponse(responses=[FetchableTopicResponse(partitions=results)])


def read(reply: Reply) -> FetchResponse:
    assert reply is not None
    whole = memoryview(b"".join(reply))  # type: ignore[arg-type]
    response: FetchResponse = codec.read_reply(FETCH, VERSION, whole[4:])
    return response


def test_only_requests_of_its_api_are_handled_behind_it() -> None:
    async def scenario() -> None:
        broker = Broker()
        parked = await broker.ask(FetchRequest())
        assert parked.admits(framed(FETCH, VERSION, FetchRequest()))
        assert not parked.admits(framed(HEARTBEAT, 4, HeartbeatRequest()))
        assert not parked.response.done()
        broker.responses.put_nowait(FetchReply(0, 5, (), ()))
        reply = parked.pack(await parked.response)  # type: ignore[misc]
        assert not isinstance(reply, Unanswered)
        assert read(reply).session_id == 5

    asyncio.run(scenario())


def test_a_wide_request_does_the_same_and_a_wide_reply_is_packed_in_the_executor() -> None:
    async def scenario() -> None:
        broker = Broker()
        parked = await broker.ask(MANY)
        broker.responses.put_nowait(wide())
        later = parked.pack(await parked.response)  # type: ignore[misc]
        assert isinstance(later, Unanswered) and not later.response.done()
        assert later.admits(framed(FETCH, VERSION, FetchRequest()))
        reply = later.pack(await later.response)  # type: ignore[misc]
        assert not isinstance(reply, Unanswered)
        assert len(read(reply).responses[0].partitions) == WIDE + 1

    asyncio.run(scenario())


def test_a_connection_that_ends_before_its_reply_is_packed_leaves_no_coroutine(
    recwarn: pytest.WarningsRecorder,
) -> None:
    async def scenario() -> None:
        parked = await Broker().ask(MANY)
        later = parked.pack(wide())
        assert isinstance(later, Unanswered)
        later.response.cancel()
        with pytest.raises(asyncio.CancelledError):
            await later.response  # type: ignore[misc]

    asyncio.run(scenario())
    gc.collect()
    assert not recwarn.list
