"""A server that logs clients in, and then passes them on to a broker which knows nothing of it.

It may also behave as no broker does: ask for too much, or never come to an end.
"""

import asyncio
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass

from moldau.protocol.apis import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE, Api
from moldau.protocol.codec import read_header, read_reply, read_request, write_reply
from moldau.protocol.messages.api_versions import ApiVersion
from moldau.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from moldau.protocol.messages.sasl_handshake import SaslHandshakeResponse
from moldau.transport.sasl.exchange import Authenticated, SaslFailed, ServerExchange
from moldau.transport.sasl.scram import NamedCredential, ScramServer, credential, salted_password

PASSWORD = "the-password-of-the-test"
_SIZE = struct.Struct(">i")


@dataclass
class Front:
    """Listens from `with` on. `begin` makes the server's part of an exchange. A login lasts `session_ms`, after which
    only a new login is taken. `logins` counts them, and
    `late` the connections that went on without a new one."""

    target: str
    begin: Callable[[], ServerExchange]
    mechanism: str = "PLAIN"
    session_ms: int = 0
    logins: int = 0
    late: int = 0
    address: str = ""

    def __enter__(self) -> "Front":
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []
        self._server = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._accept, "127.0.0.1", 0), self._loop
        ).result()
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        self._server.close()
        await asyncio.sleep(0)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()
        for _ in range(3):  # turns of the loop, in which aborted connections end
            await asyncio.sleep(0)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        task = self._loop.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, _, port = self.target.rpartition(":")
        try:
            back, forth = await asyncio.open_connection(host, int(port))
            self._writers.append(forth)
            try:
                await _Connection(self, reader, writer, back, forth).serve()
            finally:
                forth.transport.abort()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()


class _Connection:
    def __init__(
        self,
        front: Front,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        back: asyncio.StreamReader,
        forth: asyncio.StreamWriter,
    ):
        self.front, self.reader, self.writer, self.back, self.forth = front, reader, writer, back, forth
        self.exchange: ServerExchange | None = None
        self.until_s = 0.0

    async def serve(self) -> None:
        """One request after the other, so that replies keep their order."""
        loop = asyncio.get_running_loop()
        while True:
            frame = await _frame(self.reader)
            key, version, number = struct.unpack_from(">hhi", frame)
            if key == SASL_HANDSHAKE.key:
                self._handshake(frame, version, number)
            elif key == SASL_AUTHENTICATE.key:
                await self._authenticate(frame, version, number)
            else:
                if key != API_VERSIONS.key and (not self.until_s or loop.time() > self.until_s):
                    self.front.late += 1
                    return
                self.forth.write(_SIZE.pack(len(frame)) + frame)
                reply = await _frame(self.back)
                if key == API_VERSIONS.key:
                    reply = _with_sasl(version, number, reply)
                self.writer.write(_SIZE.pack(len(reply)) + reply)
            await self.writer.drain()

    def _handshake(self, frame: bytes, version: int, number: int) -> None:
        asked = read_request(SASL_HANDSHAKE, version, frame, read_header(frame).body).mechanism
        self.exchange = self.front.begin()
        code = 0 if asked == self.front.mechanism else 33
        self._reply(
            SASL_HANDSHAKE, version, number, SaslHandshakeResponse(error_code=code, mechanisms=[self.front.mechanism])
        )

    async def _authenticate(self, frame: bytes, version: int, number: int) -> None:
        request = read_request(SASL_AUTHENTICATE, version, frame, read_header(frame).body)
        assert self.exchange is not None
        try:
            answer = self.exchange.answer(bytes(request.auth_bytes))
        except SaslFailed as failed:
            response = SaslAuthenticateResponse(error_code=58, error_message=str(failed))
        else:
            response = SaslAuthenticateResponse(auth_bytes=answer)
            found = self.exchange.authenticated
            if found is not None:
                self.front.logins += 1
                response.session_lifetime_ms = self.front.session_ms
                lasts_s = self.front.session_ms / 1000 or 3600
                self.until_s = asyncio.get_running_loop().time() + lasts_s
        self._reply(SASL_AUTHENTICATE, version, number, response)

    def _reply(self, api: Api, version: int, number: int, response: object) -> None:
        self.writer.write(write_reply(api, version, number, response))


async def _frame(reader: asyncio.StreamReader) -> bytes:
    (size,) = _SIZE.unpack(await reader.readexactly(4))
    return await reader.readexactly(size)


def _with_sasl(version: int, number: int, reply: bytes) -> bytes:
    response = read_reply(API_VERSIONS, version, memoryview(reply))
    keys = {one.api_key: one for one in response.api_keys}
    for api in (SASL_HANDSHAKE, SASL_AUTHENTICATE):
        keys[api.key] = ApiVersion(api_key=api.key, min_version=api.low, max_version=api.high)
    response.api_keys = list(keys.values())
    return bytes(write_reply(API_VERSIONS, version, number, response)[4:])


def scram(mechanism: str, password: str = PASSWORD) -> Callable[[], ServerExchange]:
    """The login of alice, and of the token token-7."""
    made = credential(mechanism, b"salt" * 5, 4096, salted_password(mechanism, password, b"salt" * 5, 4096))

    def find(name: str, by_token: bool) -> NamedCredential | None:
        is_known = (by_token and name == "token-7") or (not by_token and name == "alice")
        return NamedCredential(made, Authenticated("alice", by_token=by_token)) if is_known else None

    return lambda: ScramServer(mechanism, find, "server-nonce", b"secret")
