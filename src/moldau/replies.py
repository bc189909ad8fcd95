"""The pieces that a reply on a connection is made of: bytes and slices of files, and what stands for one that is not
there yet.

Handlers, coordinators and replicas make them; `net` sends them and never learns what they answer.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from moldau.runtime import File


class FileSlice(NamedTuple):
    """A part of a file that is sent to a socket unchanged. The sender calls `on_left` once the slice is sent: its
    reader is busy with it for a while, so work done then delays no request. The sender calls `on_failed` with the error
    if the file could not be read; the error has no `errno` if the file was truncated. `hold` is kept alive as long as
    the slice."""

    file: File
    offset: int
    length: int
    on_left: Callable[[], None] | None = None
    on_failed: Callable[[OSError], None] | None = None
    hold: object = None


Reply: TypeAlias = Sequence[bytes | bytearray | memoryview | FileSlice] | None
"""The reply on a connection, whole frames in order; None sends no reply (Produce with acks=0)."""


def size_of(reply: Reply) -> int:
    """The bytes of a reply on the wire."""
    return sum(piece.length if isinstance(piece, FileSlice) else len(piece) for piece in reply or ())


class Muting(NamedTuple):
    """A reply after which nothing more is read from its connection for `ms` milliseconds: the client is throttled."""

    reply: Reply
    ms: int


class Response(Protocol):
    """The value that the reply to a request is packed from, which may come later. A future is one."""

    def done(self) -> bool: ...

    def result(self) -> Any:
        """Raises what the request has failed with."""

    def cancel(self) -> object:
        """Nobody waits for it any more."""

    def add_done_callback(self, call: Callable[[Any], object], /) -> object:
        """`call` this when the response is there: in the midst of what brings it, or in a later turn of the loop."""


async def awaited(response: Response) -> Any:
    """The value of a response, once it is there. Nobody waits for it any more after a cancellation."""
    is_there = asyncio.Event()
    response.add_done_callback(lambda _: is_there.set())
    try:
        await is_there.wait()
        return response.result()
    finally:
        response.cancel()


class Unanswered(NamedTuple):
    """A request whose reply has to wait: `pack` makes the reply when `response` is there, or says where it will be if
    that takes more than one turn of the loop. The frames that `admits` lets pass may be handled meanwhile; a request
    that was admitted admits the same ones."""

    response: Response
    pack: "Callable[[Any], Reply | Muting | Unanswered]"
    admits: Callable[[memoryview], bool]


Answer: TypeAlias = Reply | Muting | Unanswered | Awaitable[Reply | Muting | Unanswered]
