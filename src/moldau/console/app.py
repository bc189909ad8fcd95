"""`ConsoleApp`: the way of a request, as an ASGI application.

Host -> session -> the page of the path -> for a change: body, origin, token, read-only -> the page. Whatever fails is
one sentence: a page of its own, or a line where a part of a page was asked for.
"""

import asyncio
import contextlib
import logging
from collections.abc import Collection
from dataclasses import replace

from moldau.console.context import ConsoleContext
from moldau.console.pages.login import to_login
from moldau.console.rights import right_for
from moldau.console.routes import FoundPage, find
from moldau.console.web.answers import Answer, PageAnswer, StreamAnswer
from moldau.console.web.changes import log_change
from moldau.console.web.events import MEDIA_TYPE as EVENTS
from moldau.console.web.guards import check_host, check_origin, check_reader
from moldau.console.web.refusing import BAD_REQUEST, GATEWAY_TIMEOUT, PageRefusal, refusal_of
from moldau.console.web.requests import PageRequest
from moldau.errors import MoldauError
from moldau.http.targets import Receive, Scope, Send, UnusableTarget, body_of, named_values, path_parts
from moldau.tasks import ended

logger = logging.getLogger(__name__)

BODY_BYTES_MAX = 2 << 20
BODY_S = 20.0
PAGE_S = 30.0
REQUEST_TIMEOUT, TOO_LARGE, FAILED = 408, 413, 500
BY_HAND = "x-by-hand"
"""The header of a part of a page that the user asked for: all others are asked for by the page, and no sign of use."""
ASSETS = "assets"
END = {"type": "http.response.body", "body": b""}


class ConsoleApp:
    """The application; `names` are those that a Host header may have besides addresses."""

    def __init__(self, console: ConsoleContext, names: Collection[str]):
        self._console = console
        self._names = frozenset(names)
        self._pumps: set[asyncio.Task[None]] = set()
        self._is_ending = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        answer = await self._answer(scope, receive)
        if answer is None:
            return  # the client went away
        start = {"type": "http.response.start", "status": getattr(answer, "status", 200)}
        try:
            await send({**start, "headers": answer.all_headers()})
            if scope["method"] == "HEAD":  # nobody would see what a stream works for
                await send(END)
            elif isinstance(answer, StreamAnswer):
                await self._stream(answer, receive, send)
            else:
                await send({"type": "http.response.body", "body": answer.body})
        finally:
            if isinstance(answer, StreamAnswer) and answer.end is not None:
                await answer.end()

    async def _answer(self, scope: Scope, receive: Receive) -> Answer | None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            check_host(headers, self._names)
            check_reader(headers)
        except PageRefusal as refused:  # no page: its links and cookies would be those of the foreign name
            return PageAnswer(f"{refused}\n".encode(), refused.status, "text/plain; charset=utf-8")
        is_by_itself = headers.get("hx-request") == "true" and BY_HAND not in headers
        session = self._console.sessions.of(headers.get("cookie", ""), is_used=not is_by_itself)
        address = str((scope.get("client") or ("",))[0])
        request, is_change = PageRequest("GET", (), {}, headers, session, "/", address=address), False
        try:
            request, found = self._routed(scope, request)
            if found is None:
                return self._console.assets.answer(request.parts[1])
            request = replace(request, right=right_for(request.method, found.route.pattern, found.names))
            if request.method == "POST":
                body = await self._body(receive)
                if body is None:
                    return None
                request, is_change = self._with_form(request, found, body), not found.route.is_open
            if request.session.admin is None and not found.route.is_open:
                return to_login(request)
            async with asyncio.timeout(PAGE_S):
                answer: Answer = await found.call(self._console, request)
        except UnusableTarget as wrong:
            answer = self._refused(request, PageRefusal(BAD_REQUEST, str(wrong)))
        except MoldauError as failure:
            answer = self._refused(request, refusal_of(failure, request.right))
        except TimeoutError:
            sentence = f"the cluster did not answer within {PAGE_S:.0f} s: is a broker down?"
            answer = self._refused(request, PageRefusal(GATEWAY_TIMEOUT, sentence))
        except Exception:
            logger.exception("a page failed: %s", request.target[:200])
            answer = self._refused(request, PageRefusal(FAILED, "this page failed: the log of the console says more"))
        if is_change and isinstance(answer, PageAnswer):
            log_change(request, answer.status)
        if request.session.is_new and not answer.cookies:
            answer.cookies.append(self._console.sessions.cookie(request.session))
        if isinstance(answer, StreamAnswer):
            answer.of_session = request.session.streams
        return answer

    @staticmethod
    async def _body(receive: Receive) -> bytes | None:
        """None if the client went away. Raises `PageRefusal`."""
        try:
            async with asyncio.timeout(BODY_S):
                return await body_of(receive, BODY_BYTES_MAX)
        except TimeoutError:
            raise PageRefusal(REQUEST_TIMEOUT, f"the form did not arrive within {BODY_S:.0f} s") from None

    def _routed(self, scope: Scope, blank: PageRequest) -> tuple[PageRequest, FoundPage | None]:
        """The request and its page; None for an asset. Raises `PageRefusal`, `UnusableTarget`."""
        raw = (scope.get("raw_path") or scope["path"].encode()).partition(b"?")[0]
        target = raw + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        parts, query = path_parts(raw), named_values(scope["query_string"])
        request = replace(blank, method=method, parts=parts, query=query, target=target.decode("latin-1"))
        if method == "GET" and len(parts) == 2 and parts[0] == ASSETS:
            return request, None
        return request, find(method, parts)

    def _with_form(self, request: PageRequest, found: FoundPage, body: bytes) -> PageRequest:
        """The request with the fields of its body, if it may change anything. Raises `PageRefusal`."""
        if not found.route.is_open:
            self._console.refuse_when_read_only()
        if len(body) > BODY_BYTES_MAX:
            raise PageRefusal(TOO_LARGE, f"a form may have {BODY_BYTES_MAX:,} bytes, and this one has more")
        check_origin(request.headers)
        form = named_values(body)
        self._console.tokens.check(request.session.id, form.get("csrf", [""])[0])
        return replace(request, form=form)

    def _refused(self, request: PageRequest, refusal: PageRefusal) -> PageAnswer:
        template = "error_line.html" if request.is_fragment else "error.html"
        return self._console.page(request, template, refusal.status, sentence=str(refusal), code=refusal.status)

    def end_streams(self) -> None:
        """End what streams to browsers, or begins to, before the console stops. Pages connect again; exports fail
        visibly."""
        self._is_ending = True
        for task in self._pumps:
            task.cancel()

    async def _stream(self, answer: StreamAnswer, receive: Receive, send: Send) -> None:
        """Send the pieces until they end or the client goes away; then nothing works for them any more."""

        async def pump() -> None:
            async with contextlib.aclosing(answer.pieces) as each:  # type: ignore[type-var]
                async for piece in each:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send(END)

        async def gone() -> None:
            while (await receive())["type"] != "http.disconnect":
                continue

        pumping, leaving = asyncio.ensure_future(pump()), asyncio.ensure_future(gone())
        for known in (self._pumps, answer.of_session):
            known.add(pumping)
        if self._is_ending:  # after its first step, so that what it holds is given back
            asyncio.get_running_loop().call_soon(pumping.cancel)
        try:
            await asyncio.wait([pumping, leaving], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for known in (self._pumps, answer.of_session):
                known.discard(pumping)
            was_ended = pumping.cancelled()
            await ended(pumping, leaving)
        if was_ended and answer.media_type == EVENTS:
            await send(END)
        elif not pumping.cancelled() and (failure := pumping.exception()) is not None:
            logger.warning("a file was not sent to its end: %s", failure)
