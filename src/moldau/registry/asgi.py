"""The REST interface as an ASGI application, for uvicorn and for tests without a socket.

Paths are matched piece by piece before they are decoded, because a subject may contain `/`.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from moldau.http.targets import Receive, Scope, Send, body_of
from moldau.registry.api import Decide, RawText, RegistryApi, route_of
from moldau.registry.http_messages import (
    RestAnswer,
    RestRequest,
    answered,
    is_acceptable,
    parsed_path,
    parsed_query,
    refused,
)
from moldau.registry.refusals import Refused

logger = logging.getLogger(__name__)

BODY_BYTES_MAX = 4 << 20
UNAUTHORIZED, FORBIDDEN, UNREACHABLE = 401, 403, 500
NOT_FOUND = (40401, 40402, 40403)
"""No such subject, version, schema."""
NOT_PERMITTED = 42205
"""As where the topic is a mirror, which nobody else may write."""


class MakesChanges(Protocol):
    """What makes a change last before it is answered, here or at another instance."""

    async def change(self, decide: Decide, request: RestRequest) -> RestAnswer: ...

    async def catch_up(self) -> bool:
        """Take in what other instances have written; whether that was anything."""
        ...


class AdmitsRequests(Protocol):
    """What says who may ask what."""

    async def admit(self, request: RestRequest) -> str: ...

    def check_registering(self, user: str, request: RestRequest) -> None: ...

    def may_read(self, user: str, subject: str) -> bool: ...


class RegistryApp:
    """The application; `changes` writes what the requests change."""

    def __init__(self, api: RegistryApi, changes: MakesChanges, guard: AdmitsRequests | None = None):
        self._api = api
        self._changes = changes
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body = await body_of(receive, BODY_BYTES_MAX)
        if body is None:
            return  # the client went away
        answer = await self.answer(scope, body)
        headers = [
            (b"content-type", answer.media_type.encode()),
            (b"content-length", str(len(answer.body)).encode()),
        ]
        if answer.status == UNAUTHORIZED:
            headers.append((b"www-authenticate", b'Basic realm="schema registry"'))
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else answer.body})

    async def answer(self, scope: Scope, body: bytes) -> RestAnswer:
        """The answer to one request, whatever happens."""
        try:
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            raw = scope.get("raw_path") or scope["path"].encode()
            parts, query = parsed_path(raw.partition(b"?")[0]), parsed_query(scope["query_string"])
            target = (raw.partition(b"?")[0] + b"?" + scope["query_string"]).decode("latin-1").rstrip("?")
            return await self._answer(RestRequest(scope["method"], parts, query, headers, body, target))
        except Refused as refusal:
            return refused(refusal)
        except Exception:
            logger.exception("a request to %s failed", scope.get("path", "")[:200])
            return refused(Refused(500, 500, "Internal Server Error: the log of the registry says more"))

    async def _answer(self, request: RestRequest) -> RestAnswer:
        if not is_acceptable(request.headers.get("accept", "")):
            raise Refused(406, 406, "HTTP 406 Not Acceptable: the registry answers with JSON")
        if len(request.body) > BODY_BYTES_MAX:
            raise Refused(413, 413, f"The body of the request has more than {BODY_BYTES_MAX} bytes")
        method = "GET" if request.method == "HEAD" else request.method
        found = route_of(method, request.parts)
        if found is None:
            raise Refused(404, 404, "HTTP 404 Not Found")
        if isinstance(found, list):
            raise Refused(405, 405, f"HTTP 405 Method Not Allowed: this path has {', '.join(found)}")
        function, arguments = found
        user = ""
        if self._guard is not None:
            user = await self._guard.admit(request)
            request = replace(request, may_read=partial(self._guard.may_read, user))
        if function is RegistryApi.register:
            return await self._registered(user, request, arguments)
        result = await self._found(function, request, arguments)
        if isinstance(result, RawText):
            return RestAnswer(200, result.text.encode("utf-8", "replace"))
        if callable(result):
            return await self._changes.change(result, request)
        return answered(result)

    async def _found(self, function: Callable[..., Any], request: RestRequest, arguments: tuple[str, ...]) -> Any:
        try:
            return function(self._api, request, *arguments)
        except Refused as refusal:
            # Another instance may have answered a moment ago that it is there.
            if refusal.code not in NOT_FOUND or not await self._changes.catch_up():
                raise
            if self._guard is not None:  # it may be there by now, and not for this user
                await self._guard.admit(request)
            return function(self._api, request, *arguments)

    async def _registered(self, user: str, request: RestRequest, arguments: tuple[str, ...]) -> RestAnswer:
        """The answer to a registration. A schema that the subject has already needs neither the right to write nor a
        writer that can be reached: serializers register at each start."""
        try:
            if self._guard is not None:
                self._guard.check_registering(user, request)
            answer = await self._changes.change(self._api.register(request, *arguments), request)
            if answer.status < UNREACHABLE:
                return answer
        except Refused as refusal:
            if refusal.status not in (FORBIDDEN, UNREACHABLE) and refusal.code != NOT_PERMITTED:
                raise
            answer = refused(refusal)
        try:
            return answered(await self._found(RegistryApi.find_registered, request, arguments))
        except Refused as missing:
            if missing.code not in NOT_FOUND:
                raise
            return answer
