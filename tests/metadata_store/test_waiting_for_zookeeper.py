"""A session is opened as soon as ZooKeeper answers, however long that takes within the connection time-out."""

import asyncio

import pytest

from harness.listening import free_port
from harness.patience import stretched, within
from moldau.errors import StorageError
from moldau.metadata_store import zookeeper
from moldau.metadata_store.zookeeper import ZooKeeperSession
from moldau.metadata_store.zookeeper_access import ZooKeeperAccess
from moldau.runtime import Runtime, elapsed_s
from tests.metadata_store.test_granted_timeout import Server

SESSION_S = 1.0


def test_a_server_that_accepts_and_does_not_answer_is_waited_for_longer_than_a_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(zookeeper, "TELL_S", 0.1)

    async def scenario() -> None:
        server, said = Server(), list[str]()
        server.cut = True
        access = ZooKeeperAccess(f"127.0.0.1:{server.port}", SESSION_S, stretched(60))
        began_s = elapsed_s()
        opening = asyncio.ensure_future(ZooKeeperSession.open(access, Runtime(), said.append))
        while elapsed_s() < began_s + 2 * SESSION_S or not said:
            assert not opening.done(), await opening
            await asyncio.sleep(0.01)
        assert "it accepts connections and does not answer" in said[-1]
        server.cut = False
        session = await opening
        count = len(said)
        assert session.session_id == 77
        await session.close()
        await asyncio.sleep(0.3)
        assert len(said) == count, "nothing is waited for any more"
        server.close()

    asyncio.run(within(scenario(), 60))


def test_the_reason_is_that_of_the_last_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zookeeper, "TELL_S", 0.1)

    async def scenario() -> None:
        server, said = Server(), list[str]()
        server.cut = True
        silent = ZooKeeperAccess(f"127.0.0.1:{server.port}", 10.0, 1.0)
        with pytest.raises(StorageError, match="did not answer within 1 s: it accepts connections and does not answer"):
            await ZooKeeperSession.open(silent, Runtime())
        server.close()
        nowhere = ZooKeeperAccess(f"127.0.0.1:{free_port()}", 10.0, 1.0)
        with pytest.raises(StorageError, match="did not answer within 1 s: Connection refused"):
            await ZooKeeperSession.open(nowhere, Runtime(), said.append)
        assert set(said) - {""} == {"Connection refused"}

    asyncio.run(within(scenario(), 60))
