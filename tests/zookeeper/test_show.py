"""`moldau zookeeper show`: a node of a real ZooKeeper, for people and for programs."""

import asyncio
import json
import re
import sys

import pytest

from harness.listening import free_port
from harness.patience import stretched
from harness.zookeeper import ZooKeeper
from moldau.cli import main
from moldau.metadata_store.store import Create
from moldau.metadata_store.zookeeper import ZooKeeperSession
from moldau.metadata_store.zookeeper_access import ZooKeeperAccess
from moldau.runtime import Runtime


def test_a_node_is_shown_with_its_children(single: ZooKeeper, capfd: pytest.CaptureFixture[str]) -> None:
    async def shown() -> None:
        session = await ZooKeeperSession.open(ZooKeeperAccess(f"{single.connect}/show", stretched()), Runtime())
        try:
            await shown_by(session)
        finally:  # its threads would go on for as long as this process
            await session.close()

    async def shown_by(session: ZooKeeperSession) -> None:
        await session.multi([Create("/a", b'{"version":1}'), Create("/a/b"), Create("/a/e", b"1", ephemeral=True)])
        assert await asyncio.to_thread(show, "/a") == '/a: version 0\n{"version":1}\n/a/b\n/a/e\n'
        assert re.fullmatch(r"/a/e: version 0, of session 0x[0-9a-f]+\n1\n", await asyncio.to_thread(show, "/a/e"))
        assert json.loads(await asyncio.to_thread(show, "/a", "--json")) == {
            "path": "/a",
            "data": '{"version":1}',
            "version": 0,
            "children": ["b", "e"],
        }
        assert json.loads(await asyncio.to_thread(show, "/a/e", "--json"))["session"] == session.session_id

    def show(path: str, *options: str) -> str:
        capfd.readouterr()
        assert main.run(["zookeeper", "show", path, "--connect", f"{single.connect}/show", *options]) == 0
        return capfd.readouterr().out

    asyncio.run(shown())


def test_what_cannot_be_shown_is_one_sentence(
    single: ZooKeeper, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(path: str, connect: str) -> str:
        capfd.readouterr()
        assert main.run(["zookeeper", "show", path, "--connect", connect]) == 1
        out, err = capfd.readouterr()
        assert out == ""
        assert err.count("\n") == 1, err
        return err

    assert f"{single.connect} has no node /missing" in said("/missing", single.connect)
    assert "'missing' is not the path of a node" in said("missing", single.connect)
    assert "is not of the form HOST:PORT" in said("/", "localhost:x")
    monkeypatch.setattr("moldau.cli.zookeeper.CONNECT_S", 0.5)
    assert "did not answer within 0.5 s" in said("/", f"localhost:{free_port()}")
    monkeypatch.setitem(sys.modules, "kazoo", None)
    assert "pip install 'moldau[cluster]'" in said("/", single.connect)
