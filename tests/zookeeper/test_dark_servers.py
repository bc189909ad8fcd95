"""Servers of ZooKeeper whose machines are off: neither a wait nor a session may last as long as they are dialled."""

import asyncio
import socket

import pytest

from harness.patience import stretched
from moldau.errors import StorageError
from moldau.metadata_store import one_session
from moldau.metadata_store.one_session import OneSession
from moldau.metadata_store.zookeeper import ZooKeeperSession
from moldau.metadata_store.zookeeper_access import ZooKeeperAccess
from moldau.runtime import Runtime
from tests.zookeeper.dark import dark_address

HOUR_S = 3600.0


def test_a_wait_for_a_dark_server_ends_when_its_time_is_over_and_says_what_is_wrong() -> None:
    """Whatever the time-out of the session is, for which kazoo would dial it."""

    async def opened(connect: str) -> None:
        async with asyncio.timeout(stretched(60)):
            await ZooKeeperSession.open(ZooKeeperAccess(connect, HOUR_S, 0.5), Runtime())

    with dark_address() as connect:
        with pytest.raises(StorageError) as refused:
            asyncio.run(opened(connect))
        sentence = f"ZooKeeper at {connect} did not answer within 0.5 s: it does not answer, as a machine that is off"
        assert str(refused.value).startswith(sentence)


@pytest.mark.parametrize("servers", [1, 3])
def test_a_dark_server_takes_its_share_of_a_session_and_leaves_the_rest_to_the_others(
    servers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 100.0

    def waited(_: socket.socket, wait_s: float) -> bool:
        nonlocal now_s
        now_s += wait_s
        return False

    monkeypatch.setattr(one_session, "elapsed_s", lambda: now_s)
    monkeypatch.setattr(one_session, "_is_connected", waited)
    with dark_address() as address:
        host, _, port = address.rpartition(":")
        with pytest.raises(TimeoutError):
            OneSession(None, servers).create_connection((host, int(port)), host, 18.0)
    assert now_s == pytest.approx(100 + 18 / servers)
