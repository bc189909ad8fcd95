"""Answers as values: a page, a redirection, a stream; and the headers that each answer has."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

HTML, TEXT = "text/html; charset=utf-8", "text/plain; charset=utf-8"
SEE_OTHER = 303
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    b" form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = (
    (b"content-security-policy", _POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),  # with no-referrer the Origin of our own forms would be null
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
NOT_STORED = (b"cache-control", b"no-store")
"""Pages show records: no cache keeps them."""
Headers = list[tuple[bytes, bytes]]


@dataclass
class PageAnswer:
    """`cookies` are values of Set-Cookie."""

    body: bytes
    status: int = 200
    media_type: str = HTML
    headers: Headers = field(default_factory=lambda: [NOT_STORED])
    cookies: list[str] = field(default_factory=list)

    def all_headers(self) -> Headers:
        own = [(b"content-type", self.media_type.encode()), (b"content-length", str(len(self.body)).encode())]
        return [*SECURITY_HEADERS, *own, *self.headers, *_set(self.cookies)]


@dataclass
class StreamAnswer:
    """An answer whose end is not known yet; the iterator is closed when the client goes away. `end` gives back what the
    answer holds before its first piece, and is called whether or not there was one. `of_session` are the streams of the
    user's session, which end with it."""

    pieces: AsyncIterator[bytes]
    media_type: str
    headers: Headers = field(default_factory=lambda: [NOT_STORED])
    cookies: list[str] = field(default_factory=list)
    end: Callable[[], Awaitable[None]] | None = None
    of_session: set["asyncio.Task[None]"] = field(default_factory=set)

    def all_headers(self) -> Headers:
        return [
            *SECURITY_HEADERS, (b"content-type", self.media_type.encode()), *self.headers, *_set(self.cookies),
        ]  # fmt: skip


Answer = PageAnswer | StreamAnswer


def redirection(path: str) -> PageAnswer:
    """After a POST: the page at this path, whose names are quoted already."""
    return PageAnswer(b"", SEE_OTHER, TEXT, [(b"location", path.encode("ascii")), NOT_STORED])


def _set(cookies: list[str]) -> Headers:
    return [(b"set-cookie", one.encode("latin-1")) for one in cookies]
