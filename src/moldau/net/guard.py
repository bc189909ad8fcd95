"""What answers the frames of a connection may also limit what it sends: before its client has authenticated."""

from typing import Protocol, runtime_checkable

from moldau.net.inbox import Inbox
from moldau.replies import Answer


class Guarded(Protocol):
    """A connection, as its guard knows it."""

    @property
    def inbox(self) -> Inbox: ...

    def finish(self) -> None:
        """Answer the request in flight, take no other one, close."""

    def lose(self, why: str) -> None:
        """Close it."""


@runtime_checkable
class Guard(Protocol):
    """Answers the frames of a connection, and limits what it may send."""

    def __call__(self, frame: memoryview) -> Answer: ...

    def guard(self, connection: Guarded) -> None:
        """Called once, before its first frame."""
