"""Responses to answers of coordinators, which come at once or later."""

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import TypeVar

A = TypeVar("A")
R = TypeVar("R")


def respond_when_ready(answer: A | Awaitable[A], respond: Callable[[A], R]) -> R | Awaitable[R]:
    """`respond(answer)` at once if the answer is ready, else an awaitable of it."""
    if isawaitable(answer):
        return _respond_later(answer, respond)
    return respond(answer)


async def _respond_later(answer: Awaitable[A], respond: Callable[[A], R]) -> R:
    return respond(await answer)
