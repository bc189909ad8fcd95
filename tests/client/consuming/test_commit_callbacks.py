"""Commits are reported to interceptors and callbacks, in the caller's thread."""

import asyncio
from typing import Any

from moldau.client.consuming.commit_callbacks import CommitCallbacks
from moldau.errors import ClientClosed
from moldau.names import OffsetAndMetadata, TopicPartition

OFFSETS = {TopicPartition("t", 0): OffsetAndMetadata(5)}


class Interceptor:
    def __init__(self) -> None:
        self.heard: list[Any] = []

    def on_consume(self, records: Any) -> Any:
        return records

    def on_commit(self, offsets: Any) -> None:
        self.heard.append(offsets)


def test_a_callback_waits_for_the_caller_and_interceptors_hear_only_of_what_is_committed() -> None:
    interceptor, heard = Interceptor(), list[Any]()
    callbacks, failed = CommitCallbacks([interceptor]), ClientClosed("closed")
    asyncio.run(callbacks.later(OFFSETS, None, lambda *outcome: heard.append(outcome)))
    asyncio.run(callbacks.later(OFFSETS, failed, lambda *outcome: heard.append(outcome)))
    assert (interceptor.heard, heard) == ([OFFSETS], [])
    callbacks.call()
    callbacks.call()
    assert heard == [(OFFSETS, None), (OFFSETS, failed)]


def test_a_coroutine_function_is_awaited_on_the_loop() -> None:
    heard: list[Any] = []

    async def callback(*outcome: Any) -> None:
        heard.append(outcome)

    callbacks = CommitCallbacks([])
    asyncio.run(callbacks.later(OFFSETS, None, callback))
    assert heard == [(OFFSETS, None)]
