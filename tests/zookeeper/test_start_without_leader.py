"""The start of a broker while its ZooKeeper has no leader, or is away: it waits, says so, and can be stopped."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import pytest

from harness.brokers import Broker, NotReady
from harness.patience import stretched, wait_until
from harness.zookeeper import ZooKeeper, mode
from tests.zookeeper.dark import dark_address

SESSION_MS = 4000


@contextmanager
def starting(folder: Path, **settings: str) -> Iterator[tuple[Broker, "list[NotReady]"]]:
    """A broker whose start is under way; at the end it has started, or there is what it ended with."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    broker, ended = Broker(folder, {"broker.id": "1", **given}), list[NotReady]()

    def start() -> None:
        try:
            broker.start(seconds=120)
        except NotReady as error:
            ended.append(error)

    try:
        with ThreadPoolExecutor(1) as thread:
            start_ends = thread.submit(start)
            assert wait_until(lambda: broker.runs or ended)
            try:
                yield broker, ended
            except BaseException:
                if broker.runs:
                    os.kill(broker.pid, signal.SIGKILL)
                raise
            start_ends.result()
    finally:
        broker.kill()


@pytest.mark.check  # three JVMs
def test_a_start_without_a_leader_waits_longer_than_a_session_and_goes_on(tmp_path: Path, three: ZooKeeper) -> None:
    leader = three.leader()
    stopped = [pid for address, pid in three.servers().items() if address != leader]
    limit = {
        "zookeeper_session_timeout_ms": str(SESSION_MS),
        "zookeeper_connection_timeout_ms": str(int(stretched(120) * 1000)),
    }
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        assert wait_until(lambda: not mode(leader)), "without a quorum it does not serve"
        with starting(tmp_path, zookeeper_connect=f"{leader}/x", **limit) as (broker, ended):
            began_s = time.monotonic()
            why = f"waiting for ZooKeeper at {leader}/x: it accepts connections and does not answer, as without a "
            assert wait_until(lambda: ended or why in broker.log())
            assert wait_until(lambda: ended or time.monotonic() > began_s + 2 * SESSION_MS / 1000)
            assert not ended, ended
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
        assert not ended, ended
        assert broker.address
        assert "zookeeper.connection.timeout.ms" in (tmp_path / "broker.log").read_text()
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)


@contextmanager
def silent_address() -> Iterator[str]:
    """It accepts connections, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


ADDRESSES = {"refused": nullcontext("127.0.0.1:1"), "silent": silent_address(), "dark": dark_address()}


@pytest.mark.parametrize("at", ADDRESSES.values(), ids=ADDRESSES)
def test_a_start_that_waits_for_zookeeper_can_be_stopped(at: AbstractContextManager[str], tmp_path: Path) -> None:
    """Also while it waits for the answer of a server that accepts connections, or of a machine that is off: for as long
    as a session may take."""
    with at as connect:
        wait = {f"zookeeper_{name}_timeout_ms": "3600000" for name in ("connection", "session")}
        with starting(tmp_path, zookeeper_connect=connect, **wait) as (broker, ended):
            assert wait_until(lambda: ended or f"waiting for ZooKeeper at {connect}: " in broker.log())
            os.kill(broker.pid, signal.SIGTERM)
    [end] = ended
    assert end.code == 0
    assert "the broker was asked to stop before it had joined its cluster" in str(end)


def test_a_broker_that_was_killed_waits_for_the_connection_once(tmp_path: Path, single: ZooKeeper) -> None:
    """Not once more to end the session of the process before it."""
    broker = Broker(tmp_path, {"broker.id": "1", "zookeeper.connect": f"{single.connect}/once"})
    broker.start()
    broker.kill()
    broker.settings |= {"zookeeper.connect": "localhost:1", "zookeeper.session.timeout.ms": "3600000"}
    broker.settings |= {"zookeeper.connection.timeout.ms": "500"}
    with pytest.raises(NotReady, match=r"ZooKeeper at localhost:1 did not answer within 0\.5 s"):
        broker.start()
