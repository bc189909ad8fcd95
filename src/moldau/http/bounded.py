"""`BoundedHttp`: uvicorn's HTTP with bounds that uvicorn does not have: on requests that do not end, and slow readers.

Without them a client that sends half a request, or takes no answer, keeps one of the bounded number of connections for
good, and one whose head never ends fills the memory.
"""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_S = 10.0
"""From the connection, or the first byte of a later request, until the head is complete."""
HEAD_BYTES_MAX = 64 << 10
"""The bytes of a head that came in earlier reads; a read has 256 KiB at most."""
BODY_S = 30.0
"""From the head of a request until its body is complete. Applications bound its size."""
BEHIND_MAX = 100
"""The most requests that a client may have sent behind the one that is answered."""
STALL_S = 30.0
"""A client that takes an answer so slowly that the socket's buffer does not empty for this long is given up."""


class BoundedHttp(HttpToolsProtocol):
    """A connection; it is closed when a head or a body takes too long, when a head has too many bytes, when too many
    requests wait for the one before them, or when nobody reads the answer."""

    _waiting: asyncio.TimerHandle | None = None
    """Ends the time for the rest of a request."""
    _stalled: asyncio.TimerHandle | None = None
    _is_in_head = False
    _head_bytes = 0
    _read_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        self._moves()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        self._stalled = self.loop.call_later(STALL_S, self._give_up)
        super().pause_writing()

    def resume_writing(self) -> None:
        self._moves()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        is_between = self.cycle is None or self.cycle.response_complete
        if is_between and self._waiting is None:
            self._wait_for_head()
        self._read_bytes = len(data)
        super().data_received(data)
        if self._is_in_head:
            self._head_bytes += self._read_bytes
            if self._head_bytes > HEAD_BYTES_MAX:
                self._give_up()

    def on_message_begin(self) -> None:
        if not self._is_in_head:  # it is behind a request that is being answered, whose time it need not share
            self._is_in_head, self._head_bytes = True, -self._read_bytes
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._wait_no_more()
        self._waiting = self.loop.call_later(BODY_S, self._give_up)
        super().on_headers_complete()
        if len(self.pipeline) > BEHIND_MAX:
            self._give_up()

    def on_message_complete(self) -> None:
        self._wait_no_more()
        super().on_message_complete()

    def _wait_for_head(self) -> None:
        self._is_in_head, self._head_bytes = True, 0
        self._waiting = self.loop.call_later(HEAD_S, self._give_up)

    def _wait_no_more(self) -> None:
        self._is_in_head = False
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _moves(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _give_up(self) -> None:
        self.transport.abort()
