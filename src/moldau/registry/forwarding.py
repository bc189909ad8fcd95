"""Where a change is made: here if this instance is the writer, else by the writer, which gets the request forwarded."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote, urlsplit

from moldau.registry.decisions import Writes
from moldau.registry.http_messages import RestAnswer, RestRequest, answered
from moldau.registry.refusals import Refused, no_writer, not_forwarded
from moldau.registry.topic import SchemasTopic, WriterReplaced

if TYPE_CHECKING:
    import ssl

FORWARDED = "x-forward"
"""A request with this header comes from another instance, and is not forwarded again."""
PASSED_ON = ("accept", "authorization", "confluent-accept-unknown-properties", "content-type")
ANSWER_BYTES_MAX = 16 << 20
TRIES = 3
AS_SENT = "".join(map(chr, range(33, 127)))
"""A client may send other bytes in a path than these, which http.client does not."""
MakeContext = Callable[[], "ssl.SSLContext"]
"""What the next connection to another instance is made by."""


class Elects(Protocol):
    """What says who should write."""

    async def writer(self) -> str: ...

    def doubt(self) -> None: ...


class WriterRoute:
    """Makes changes, wherever the writer is."""

    def __init__(self, topic: SchemasTopic, election: Elects, timeout_s: float, tls: MakeContext | None = None):
        self._tls = tls
        self._topic = topic
        self._election = election
        self._timeout_s = timeout_s

    async def change(self, decide: Callable[[], Writes], request: RestRequest) -> RestAnswer:
        """The answer to a request that changes something. Raises `Refused`."""
        for tried in range(TRIES):
            writer = await self._election.writer()
            if writer and FORWARDED in request.headers:
                raise no_writer()
            if writer:
                answer = await self._forwarded(writer, request)
                await self.catch_up()  # so that who asks this instance next sees the change
                return answer
            try:
                return answered((await self._topic.write(decide)).answer)
            except WriterReplaced:
                # Nothing was written. Another instance is the writer now, or this one takes over again.
                self._election.doubt()
                if tried == TRIES - 1:
                    raise
        raise no_writer()

    async def catch_up(self) -> bool:
        """As `SchemasTopic.catch_up`."""
        return await self._topic.catch_up()

    async def _forwarded(self, writer: str, request: RestRequest) -> RestAnswer:
        import http.client  # with a parser of mail: the writer, and so most registries, never need it

        try:
            tls = None if self._tls is None else self._tls()
            return await asyncio.to_thread(_ask, writer, request, self._timeout_s, tls)
        except (OSError, ValueError, http.client.HTTPException) as failure:  # ValueError: that is no address
            self._election.doubt()
            why = f"{type(failure).__name__}: {failure}"[:200]
            raise not_forwarded(f"The request could not be forwarded to the writer at {writer} ({why})") from None


def _ask(writer: str, request: RestRequest, timeout_s: float, tls: "ssl.SSLContext | None") -> RestAnswer:
    import http.client

    where = urlsplit(writer)
    host, port = where.hostname or "", where.port
    if where.scheme == "https":
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(host, port, timeout=timeout_s, context=tls)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
    try:
        headers = {name: request.headers[name] for name in PASSED_ON if name in request.headers}
        target = quote(request.target.encode("latin-1"), safe=AS_SENT)
        connection.request(request.method, target, request.body, {**headers, FORWARDED: "true"})
        answer = connection.getresponse()
        body = answer.read(ANSWER_BYTES_MAX + 1)
    finally:
        connection.close()
    if len(body) > ANSWER_BYTES_MAX:
        raise Refused(500, 50003, "The answer of the writer is too large")
    return RestAnswer(answer.status, body)
