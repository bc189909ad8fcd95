"""ZooKeeper grants sessions of at most its `maxSessionTimeout` (20 times `tickTime`: 40 s), whatever is asked for."""

import asyncio
import socket
import struct
import threading

import pytest

from harness.patience import within
from moldau.metadata_store.store import SessionOver
from moldau.metadata_store.zookeeper import ZooKeeperSession
from moldau.metadata_store.zookeeper_access import ZooKeeperAccess
from moldau.runtime import Runtime

ASKED_S, GRANTED_S = 3600.0, 2.0
PING, EXISTS, SYNC = 11, 3, 9


class Server:
    """As much of ZooKeeper as a session without nodes needs. It grants 2 s, and answers until it is `cut`."""

    def __init__(self) -> None:
        self.cut = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            is_first = True
            while head := stream.read(4):
                request = stream.read(struct.unpack(">i", head)[0])
                if self.cut:
                    continue
                if is_first:
                    answer = struct.pack(">iiqi16s?", 0, int(GRANTED_S * 1000), 77, 16, b"p" * 16, False)
                    is_first = False
                else:
                    xid, kind = struct.unpack_from(">ii", request)
                    body = {PING: b"", EXISTS: bytes(68), SYNC: struct.pack(">i", 1) + b"/"}.get(kind, b"")
                    answer = struct.pack(">iqi", xid, 1, 0) + body
                connection.sendall(struct.pack(">i", len(answer)) + answer)

    def close(self) -> None:
        self._listener.close()


def test_a_session_is_over_when_the_time_out_that_was_granted_has_passed() -> None:
    async def scenario() -> None:
        server = Server()
        session = await ZooKeeperSession.open(ZooKeeperAccess(f"127.0.0.1:{server.port}", ASKED_S), Runtime())
        await session.sync()
        assert session.timeout_s == GRANTED_S
        server.cut = True
        with pytest.raises(SessionOver):
            await within(session.sync())
        await session.close()
        server.close()

    asyncio.run(scenario())
