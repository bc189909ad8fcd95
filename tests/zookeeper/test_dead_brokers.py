"""The session of a broker's process that has died is ended by another process, and only if it has died."""

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from harness.patience import within
from harness.zookeeper import ZooKeeper
from moldau.cluster.zookeeper_sessions import ZooKeeperSessions
from moldau.log.folders.identity import LOCK, SESSION
from moldau.metadata_store.store import Create, node_at
from moldau.metadata_store.zookeeper import ZooKeeperSession
from moldau.metadata_store.zookeeper_access import ZooKeeperAccess
from moldau.runtime import RealDisk, Runtime
from moldau.zookeeper.dead_brokers import end_session


def test_a_session_is_ended_when_nobody_holds_the_folder_any_more(
    single: ZooKeeper, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    connect = f"{single.connect}/dead-broker"
    properties = {"zookeeper.connect": connect, "log.dirs": str(tmp_path), "broker.id": "1"}

    async def scenario() -> None:
        runtime, access = Runtime(), ZooKeeperAccess(connect, 60.0)
        observer = await ZooKeeperSession.open(access, runtime)
        unlock = runtime.disk.lock(tmp_path / LOCK)
        session = await ZooKeeperSessions(access, tmp_path, runtime).open()
        await session.multi([Create("/controller", b"{}", ephemeral=True)])

        await end_session(tmp_path, properties)
        assert "another broker uses" in caplog.text
        assert await observer.read(node_at("/controller")) is not None
        await session.multi([Create("/still-there")])

        copy = shutil.copytree(tmp_path, tmp_path / "copy")
        await end_session(copy, properties)
        assert "it came with a copy of its folder" in caplog.text
        assert await observer.read(node_at("/controller")) is not None, "the lock of a copy is no proof"

        unlock()
        await end_session(tmp_path, properties)
        assert await observer.read(node_at("/controller")) is None
        await end_session(tmp_path, properties)  # it is over already
        runtime.disk.lock(tmp_path / LOCK)()
        await session.close()
        await observer.close()

    asyncio.run(within(scenario()))


def test_what_cannot_be_ended_is_a_line_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def end(folder: Path, **properties: str) -> None:
        asyncio.run(end_session(folder, {"zookeeper.connect": "localhost:1", "broker.id": "1", **properties}))

    end(tmp_path)
    assert not caplog.records, "there was no session"
    end(tmp_path / "missing")
    note = {"session": 7, "password": "00", "lock": RealDisk().mark(tmp_path / LOCK)}
    (tmp_path / SESSION).write_text(json.dumps(note))
    end(tmp_path, **{"zookeeper.connect": "localhost:port"})
    assert len(caplog.records) == 2
    assert all("is left to end by itself" in one.getMessage() for one in caplog.records)
    caplog.clear()
    (tmp_path / SESSION).write_text(json.dumps({"session": 7, "password": "00"}))  # as before locks had marks
    end(tmp_path)
    assert "is left to expire: it is damaged, or an earlier version of Moldau has written it" in caplog.text
