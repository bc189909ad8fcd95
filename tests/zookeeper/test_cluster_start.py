"""`moldau cluster start`: three brokers and their ZooKeeper by one command, and one Ctrl-C for all of them."""

import os
import signal
import socket
import time
from pathlib import Path

import pytest

from harness.local_cluster import is_gone, processes, started
from harness.patience import stretched, wait_until
from harness.tiers import LONG
from moldau import Admin, Consumer, Producer
from moldau.cli import main
from moldau.errors import MoldauError
from moldau.names import INTERNAL_TOPICS

AN_HOUR_MS = 3_600_000
"""A session that does not end by itself during a test."""


def test_three_brokers_serve_one_that_is_killed_is_started_again_and_one_ctrl_c_stops_all(tmp_path: Path) -> None:
    with started(tmp_path) as (_, addresses):
        assert len(addresses) == 3
        with Admin(",".join(addresses)) as admin:
            assert [str(one) for one in admin.describe_cluster().brokers.values()] == addresses
            admin.create_topic("t", partitions=6)
            assert {part.leader for part in admin.describe_topics(["t"])["t"].partitions.values()} == {1, 2, 3}
        with Producer(addresses[1]) as producer:
            for number in range(60):
                producer.send("t", b"%d" % number)
        children = processes(tmp_path / "data")
        killed = children[str(tmp_path / "data" / "broker-2")]
        os.kill(killed, signal.SIGKILL)
        assert wait_until(
            lambda: processes(tmp_path / "data").get(str(tmp_path / "data" / "broker-2"), killed) != killed
        )
        assert wait_until(lambda: leaders(addresses[0]) == {1, 2, 3}), "it leads again"
        values: list[bytes | None] = []
        with Consumer(addresses[2], group_id="g", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(["t"])
            assert wait_until(
                lambda: values.extend(one.value for one in consumer.poll(500)) or len(values) == 60  # type: ignore[func-returns-value]
            )
        assert "broker 2 has ended with code -9. It is started again" in (tmp_path / "command.log").read_text()
        children = processes(tmp_path / "data")
    assert all(is_gone(process) for process in children.values())


@pytest.mark.check  # three brokers and a JVM more
def test_the_session_of_a_broker_that_has_died_is_ended_before_it_is_started_again(tmp_path: Path) -> None:
    with started(tmp_path, "--set", f"zookeeper.session.timeout.ms={AN_HOUR_MS}") as (_, addresses):
        with Admin(",".join(addresses)) as admin:
            killed = admin.describe_cluster().controller_id
        folder = tmp_path / "data" / f"broker-{killed}"
        (folder / "meta.properties").write_text(f"version=1\ncluster.id=another\nnode.id={killed}\n")  # it stays away
        os.kill(processes(tmp_path / "data")[str(folder)], signal.SIGKILL)
        with Admin(addresses[killed % 3]) as admin:
            assert wait_until(lambda: admin.describe_cluster().controller_id not in (-1, killed))
            assert killed not in admin.describe_cluster().brokers
        assert wait_until(lambda: "another" in (tmp_path / "command.log").read_text())


def test_what_keeps_it_from_starting_is_one_sentence_and_nothing_is_left(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def said(*arguments: str, code: int = 1) -> str:
        capfd.readouterr()
        assert main.run(["cluster", "start", "--data-dir", str(tmp_path / "data"), *arguments]) == code
        out, err = capfd.readouterr()
        assert out == ""
        return err.splitlines()[-1]

    assert "unknown setting 'no.such'" in said("--brokers", "1", "--port", "0", "--set", "no.such=1", code=2)
    assert "belongs to one broker" in said("--set", "broker.id=7", code=2)
    assert "'no.equals' is not of the form NAME=VALUE" in said("--set", "no.equals", code=2)
    assert not (tmp_path / "data").exists()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert said("--brokers", "1", "--host", "127.0.0.1", "--port", port) == (
            f"error: broker 1 did not start: port {port} of 127.0.0.1 is in use by another process: "
            "--port chooses another"
        )
    assert not processes(tmp_path / "data")


def test_the_status_comes_at_once_though_a_broker_does_not_answer(tmp_path: Path) -> None:
    with started(tmp_path, "--embedded", "--set", f"zookeeper.session.timeout.ms={AN_HOUR_MS}") as (_, addresses):
        with Consumer(addresses[2], group_id="g") as consumer:  # the topic of groups: now the status hints at factors
            consumer.subscribe(["t"])
            assert wait_until(lambda: consumer.poll(100) is not None and bool(internal(addresses[2])))
        stopped = processes(tmp_path / "data")[str(tmp_path / "data" / "broker-1")]
        os.kill(stopped, signal.SIGSTOP)
        try:
            began_s = time.monotonic()
            assert main.run(["cluster", "status", "-b", f"{addresses[1]},{addresses[2]}"]) == 0
            assert not LONG or time.monotonic() - began_s < stretched(15)  # a time of this machine
        finally:
            os.kill(stopped, signal.SIGCONT)


def internal(address: str) -> set[str]:
    with Admin(address) as admin:
        return admin.list_topics(internal=True).keys() & INTERNAL_TOPICS


def leaders(address: str) -> set[int]:
    try:
        with Admin(address) as admin:
            return {part.leader for part in admin.describe_topics(["t"])["t"].partitions.values()}
    except MoldauError:
        return set()
