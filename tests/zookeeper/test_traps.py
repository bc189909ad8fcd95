"""What kazoo does by itself and a session must not: each of its traps, against a real ZooKeeper behind a proxy."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient, KazooState

from harness.listening import free_port
from harness.patience import stretched, wait_until
from harness.proxy import Proxy
from harness.zookeeper import ZooKeeper
from moldau.errors import ConfigError, StorageError
from moldau.metadata_store import zookeeper
from moldau.metadata_store.store import Create, Node, OutcomeUnknown, SessionOver, Set, children_of, node_at
from moldau.metadata_store.zookeeper import ZooKeeperSession
from moldau.metadata_store.zookeeper_access import ZooKeeperAccess, split_connect
from moldau.runtime import Runtime
from tests.metadata_store.store_kit import eventually, plain_node_at, plain_nodes_at
from tests.zookeeper.sessions import OpenSession, play


def end_from_outside(session: ZooKeeperSession, connect: str) -> None:
    """Take the session up, as a process that knows its id and password can, and close it. The session itself takes the
    connection back at once: where it is faster than the close, that did not reach the server."""
    while not session._handler.is_over:
        client = KazooClient(connect, client_id=session._client.client_id)
        client.start(stretched())
        client.stop()
        client.close()
        wait_until(lambda: session._handler.is_over, seconds=1)


def test_nothing_goes_on_in_a_new_session_when_one_has_expired(single: ZooKeeper) -> None:
    async def scenario(open_session: OpenSession) -> None:
        mine, other = await open_session(), await open_session()
        await mine.multi([Create("/e", ephemeral=True), Create("/w")])
        looked = asyncio.Event()
        await mine.watch("/w", looked.set)
        await asyncio.to_thread(end_from_outside, mine, single.connect)
        await eventually(other, lambda: node_at("/e"), None)
        await looked.wait()
        with pytest.raises(SessionOver):
            await mine.multi([Create("/e", ephemeral=True)])
        with pytest.raises(SessionOver):
            await mine.read(node_at("/w"))
        assert await other.read(children_of("/")) == ["w"]

    play(single.connect, scenario)


def test_kazoo_connects_no_more_when_the_session_is_over(single: ZooKeeper) -> None:
    """Even if a call slips in between the end of a session and the moment that the loop hears of it."""

    async def scenario(open_session: OpenSession) -> None:
        mine, other = await open_session(), await open_session()
        mine._take_state = lambda _: None  # type: ignore[method-assign]
        attempts: list[bool] = []
        connect = mine._handler.create_connection

        def attempted(*args: Any, **kwargs: Any) -> Any:
            attempts.append(mine._handler.is_over)
            return connect(*args, **kwargs)

        mine._handler.create_connection = attempted  # type: ignore[method-assign]
        await asyncio.to_thread(end_from_outside, mine, single.connect)
        while not mine._handler.is_over:
            await asyncio.sleep(0.01)
        late = asyncio.ensure_future(mine.multi([Create("/late", ephemeral=True)]))
        while attempts.count(True) < 3:
            await asyncio.sleep(0.01)
        assert not mine._client.connected
        assert await other.read(children_of("/")) == []
        await mine.close()
        with pytest.raises(OutcomeUnknown):
            await late

    play(single.connect, scenario)


def test_a_session_is_over_here_when_nothing_was_answered_for_its_time_out(single: ZooKeeper) -> None:
    """kazoo alone would stay SUSPENDED for ever."""

    async def scenario(open_session: OpenSession) -> None:
        with Proxy(single.connect) as proxy:
            mine, other = await open_session(proxy.address, timeout_s=stretched(2.0)), await open_session()
            await mine.multi([Create("/e", ephemeral=True)])
            looked = asyncio.Event()
            await mine.watch("/e", looked.set)
            proxy.target = f"127.0.0.1:{free_port()}"
            proxy.cut()
            with pytest.raises(SessionOver):
                await eventually(mine, lambda: plain_node_at("/never"), Node(b"", 0))
            await looked.wait()
            await eventually(other, lambda: node_at("/e"), None)

    play(single.connect, scenario)


def test_a_server_that_accepts_and_says_nothing_ends_the_session_too(single: ZooKeeper) -> None:
    async def scenario(open_session: OpenSession) -> None:
        with Proxy(single.connect) as proxy:
            mine = await open_session(proxy.address, timeout_s=stretched(2.0))
            proxy.lose_replies()
            reading = asyncio.ensure_future(mine.read(node_at("/")))
            writing = asyncio.ensure_future(mine.multi([Create("/a")]))
            with pytest.raises(SessionOver):
                await reading
            with pytest.raises(OutcomeUnknown):
                await writing
            proxy.heal()

    play(single.connect, scenario)


def test_a_process_that_stood_still_knows_it_before_it_asks(single: ZooKeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(open_session: OpenSession) -> None:
        mine, other = await open_session(), await open_session()
        now = zookeeper.elapsed_s
        monkeypatch.setattr(zookeeper, "elapsed_s", lambda: now() + 10_000)
        with pytest.raises(SessionOver):
            await mine.multi([Create("/a")])
        monkeypatch.undo()
        assert await other.read(node_at("/a")) is None

    play(single.connect, scenario)


def test_an_idle_session_asks_something_before_its_time_out(single: ZooKeeper) -> None:
    async def scenario(open_session: OpenSession) -> None:
        timeout_s = stretched(2.0)
        mine = await open_session(timeout_s=timeout_s)
        first = mine._heard_s
        while mine._heard_s < first + 1.5 * timeout_s:
            await asyncio.sleep(0.05)
        assert await mine.read(children_of("/")) == []

    play(single.connect, scenario)


def test_watches_are_set_again_after_a_lost_connection(single: ZooKeeper) -> None:
    async def scenario(open_session: OpenSession) -> None:
        with Proxy(single.connect) as proxy:
            mine, other = await open_session(proxy.address), await open_session()
            looked = asyncio.Event()
            await mine.watch("/w", looked.set)
            for number in range(3):
                looked.clear()
                proxy.target = f"127.0.0.1:{free_port()}"
                proxy.cut()
                await other.multi([Set("/w", b"") if number else Create("/w")])
                proxy.target = single.connect
                await looked.wait()
                await eventually(mine, lambda: plain_node_at("/w"), Node(b"", 2 * number))
                looked.clear()
                await other.multi([Set("/w", b"")])
                await looked.wait()
                await eventually(mine, lambda: plain_node_at("/w"), Node(b"", 2 * number + 1))

    play(single.connect, scenario)


def test_a_write_without_an_answer_is_unknown_and_not_sent_again(single: ZooKeeper) -> None:
    async def scenario(open_session: OpenSession) -> None:
        with Proxy(single.connect) as proxy:
            mine, other = await open_session(proxy.address), await open_session()
            await mine.multi([Create("/n", b"0")])
            proxy.cut_replies_after(0)
            writing = asyncio.ensure_future(mine.multi([Set("/n", b"1")]))
            await eventually(other, lambda: plain_node_at("/n"), Node(b"1", 1))
            with pytest.raises(OutcomeUnknown):
                await writing
            proxy.heal()
            assert await mine.read(plain_node_at("/n")) == Node(b"1", 1)
            await mine.multi([Set("/n", b"2", 1)])

    play(single.connect, scenario)


def test_a_change_that_is_too_large_costs_no_connection(single: ZooKeeper) -> None:
    async def scenario(open_session: OpenSession) -> None:
        with Proxy(single.connect) as proxy:
            mine = await open_session(proxy.address)
            with pytest.raises(StorageError, match="larger than ZooKeeper takes"):
                await mine.multi([Create("/a", bytes(1_000_000))])
            largest = [Create("/a", bytes(499_900)), Create("/b", bytes(499_900))]
            await mine.multi(largest)
            assert proxy.accepted == 1

    play(single.connect, scenario)


@pytest.mark.parametrize("tells_its_version", [True, False])
def test_many_nodes_are_asked_for_together(
    single: ZooKeeper, monkeypatch: pytest.MonkeyPatch, tells_its_version: bool
) -> None:
    if not tells_its_version:
        monkeypatch.setattr(zookeeper, "is_answered_by", lambda _: False)

    async def scenario(open_session: OpenSession) -> None:
        mine = await open_session()
        asked: list[Any] = []
        call = mine._client._call
        monkeypatch.setattr(mine._client, "_call", lambda *given: asked.append(given) or call(*given))
        paths = [f"/{number}" for number in range(2500)]
        for start in range(0, 2500, 500):
            await mine.multi([Create(path, path.encode()) for path in paths[start : start + 500]])
        asked.clear()
        found = await mine.read(plain_nodes_at([*paths, "/missing"]))
        assert found == [*(Node(path.encode(), 0) for path in paths), None]
        assert len(asked) == (26 if tells_its_version else 2501)

    play(single.connect, scenario)


def test_a_chroot_that_is_missing_is_made(single: ZooKeeper) -> None:
    async def scenario(open_session: OpenSession) -> None:
        session = await ZooKeeperSession.open(ZooKeeperAccess(f"{single.connect}/deep/er/", stretched()), Runtime())
        await session.multi([Create("/a")])
        await session.close()
        outside = await ZooKeeperSession.open(ZooKeeperAccess(single.connect, stretched()), Runtime())
        assert await outside.read(children_of("/deep/er")) == ["a"]
        await outside.close()

    play(single.connect, scenario)


def test_without_a_server_it_is_one_sentence(single: ZooKeeper) -> None:
    async def scenario(_: OpenSession) -> None:
        nowhere = f"127.0.0.1:{free_port()}"
        with pytest.raises(StorageError, match=rf"ZooKeeper at {nowhere} did not answer within 0\.5 s"):
            await ZooKeeperSession.open(ZooKeeperAccess(nowhere, 10.0, 0.5), Runtime())

    play(single.connect, scenario)


def stands_still(process: int) -> bool:
    """Whether each of its threads has been stopped: on a busy machine some go on for a while after the SIGSTOP."""
    threads = Path(f"/proc/{process}/task").iterdir()
    try:
        return all((one / "stat").read_text().rpartition(")")[2].split()[0] == "T" for one in threads)
    except OSError:  # a thread has ended meanwhile
        return False


def test_servers_that_all_stand_still_for_a_while_cost_no_session(single: ZooKeeper) -> None:
    async def scenario(open_session: OpenSession) -> None:
        mine = await open_session()
        await mine.multi([Create("/e", ephemeral=True)])
        [java] = single.servers().values()
        os.kill(java, signal.SIGSTOP)
        try:
            await asyncio.to_thread(wait_until, lambda: stands_still(java))
            reading = asyncio.ensure_future(mine.read(plain_node_at("/e")))
            await asyncio.sleep(0.5)
            assert not reading.done()
        finally:
            os.kill(java, signal.SIGCONT)
        assert await reading == Node(b"", 0, mine.session_id)

    play(single.connect, scenario)


@pytest.mark.parametrize(
    ("connect", "hosts", "root"),
    [("a:1", "a:1", ""), ("a:1,b:2/", "a:1,b:2", ""), ("a,[::1]:2/x/y/", "a,[::1]:2", "/x/y"), (" a:1 ", "a:1", "")],
)
def test_a_connect_string_has_servers_and_a_path(connect: str, hosts: str, root: str) -> None:
    assert split_connect(connect) == (hosts, root)


@pytest.mark.parametrize("connect", ["", "/x", "a:1,", "a:b", "a:0", "a:70000", "a:1//x"])
def test_a_connect_string_that_is_none_is_refused(connect: str) -> None:
    with pytest.raises(ConfigError, match="is not of the form HOST:PORT,HOST:PORT/PATH"):
        split_connect(connect)


def test_a_connection_that_is_lost_again_before_the_loop_hears_of_it_is_not_up() -> None:
    """kazoo has no id of the session then."""

    async def scenario() -> None:
        session = ZooKeeperSession(ZooKeeperAccess("localhost:1", 1.0), Runtime())
        session._take_state(KazooState.CONNECTED)
        assert (session._is_up, session.session_id) == (False, 0)
        await session.close()

    asyncio.run(scenario())
