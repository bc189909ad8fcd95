"""Responses to answers of coordinators, which come at once or later, and to changes that failed."""

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import TypeVar

from moldau.cluster.controlling.controller import Refusal
from moldau.errors import ErrorCode, KafkaError, StorageError

A = TypeVar("A")
R = TypeVar("R")


def not_made(error: StorageError | KafkaError) -> Refusal:
    """The answer for each element of a change to the metadata that failed as a whole: another broker is the controller,
    or the store cannot take it."""
    is_elsewhere = isinstance(error, KafkaError) and error.code is ErrorCode.NOT_CONTROLLER
    return Refusal(ErrorCode.NOT_CONTROLLER if is_elsewhere else ErrorCode.KAFKA_STORAGE_ERROR, str(error))


def respond_when_ready(answer: A | Awaitable[A], respond: Callable[[A], R]) -> R | Awaitable[R]:
    """`respond(answer)` at once if the answer is ready, else an awaitable of it."""
    if isawaitable(answer):
        return _respond_later(answer, respond)
    return respond(answer)


async def _respond_later(answer: Awaitable[A], respond: Callable[[A], R]) -> R:
    return respond(await answer)
