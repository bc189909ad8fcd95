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
from moldau.requests.dispatch import Dispatch
from moldau.requests.gate import Gate, Parked
from moldau.requests.session import Call
from moldau.runtime import Runtime, Unanswered
from moldau.turns import Turns

VERSION = FETCH.high


class Broker:
    """Parks every Fetch until `responses` has its response."""

    def __init__(self) -> None:
        self.responses: asyncio.Queue[FetchReply | FetchResponse] = asyncio.Queue()
        dispatch = Dispatch({FETCH.key: self._fetch}, Gate(), Turns(Runtime()))
        self._handle = dispatch.connected(Peer("10.0.0.7", 50_000), "PLAINTEXT")

    def _fetch(self, request: Any, call: Call) -> Parked:
        return Parked(self.responses.get)

    async def ask(self, request: FetchRequest) -> Unanswered:
        answer: Any = self._handle(framed(FETCH, VERSION, request))
        answer = answer if isinstance(answer, Unanswered) else await answer
        assert isinstance(answer, Unanswered)
        return answer


def framed(api: Api, version: int, request: Any) -> memoryview:
    return memoryview(bytearray(codec.write_request(api, version, 7, "asker", request)[4:]))


async def reply_of(answer: Unanswered) -> FetchResponse:
    pieces = answer.pack(await answer.response)
    assert pieces is not None
    whole = memoryview(b"".join(pieces))  # type: ignore[arg-type]
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
        assert (await reply_of(parked)).session_id == 5

    asyncio.run(scenario())


def test_a_wide_request_and_a_wide_reply_do_the_same() -> None:
    async def scenario() -> None:
        broker = Broker()
        many = [FetchPartition(partition=number) for number in range(WIDE + 1)]
        parked = await broker.ask(FetchRequest(topics=[FetchTopic(partitions=many)]))
        results = [PartitionData(partition_index=number) for number in range(WIDE + 1)]
        broker.responses.put_nowait(FetchResponse(responses=[FetchableTopicResponse(partitions=results)]))
        assert len((await reply_of(parked)).responses[0].partitions) == WIDE + 1

    asyncio.run(scenario())


def test_a_connection_that_ends_at_once_leaves_no_coroutine_behind(recwarn: pytest.WarningsRecorder) -> None:
    async def scenario() -> None:
        parked = await Broker().ask(FetchRequest())
        parked.response.cancel()
        with pytest.raises(asyncio.CancelledError):
            await parked.response

    asyncio.run(scenario())
    gc.collect()
    assert not recwarn.list
