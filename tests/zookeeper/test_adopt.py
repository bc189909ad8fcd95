"""A broker that was alone becomes the first of three, with all it has."""

import itertools
import subprocess
import sys
from pathlib import Path

import pytest

from harness.brokers import SOURCE, Broker, NotReady
from harness.patience import stretched, wait_until
from harness.zookeeper import ZooKeeper
from moldau import Admin, Consumer, Producer
from moldau.files.cluster_adoption import ADOPTED
from tests import environments

GROUP, TOPICS, SMALL = "g", 200, {"offsets.topic.num.partitions": "6", "transaction.state.log.num.partitions": "4"}


def adopt(folder: Path, connect: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "moldau", "cluster", "adopt", str(folder), "--zookeeper", connect],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={"PYTHONPATH": str(SOURCE), "PATH": ""},
    )  # fmt: skip


def said(process: "subprocess.Popen[str]") -> tuple[int, str]:
    output, _ = process.communicate(timeout=stretched(60))
    return process.returncode, output


def adopted_in_spite_of_kills(folder: Path, connect: str) -> tuple[int, str]:
    """Every attempt is killed a little later, until one ends by itself."""
    for kills in itertools.count(3):
        process = adopt(folder, connect)
        try:
            process.wait(kills * 0.1)
        except subprocess.TimeoutExpired:
            process.kill()
            said(process)
        else:
            break
    return said(process)


def member(folder: Path, connect: str, number: int) -> Broker:
    own = folder / str(number)
    own.mkdir(exist_ok=True)
    return Broker(own, {**SMALL, "broker.id": str(number), "zookeeper.connect": connect})


def fill(address: str) -> None:
    with Admin(address) as admin:
        admin.create_topic("t", partitions=6, configs={"retention.ms": "86400000"})
        for number in range(TOPICS):
            admin.create_topic(f"more-{number}", partitions=1)
        admin.configs.alter("broker", "1", {"log.cleaner.threads": "2"})
    with Producer(address) as producer:
        for number in range(60):
            producer.send("t", str(number), key=str(number))
    with Producer(address, transactional_id="pay") as producer:
        with producer.transaction():
            producer.send("more-0", "paid")
    with Consumer(address, group_id=GROUP, auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["t"])
        found: list[str] = []
        assert wait_until(lambda: found.extend(values(consumer)) or len(found) == 60)
        consumer.commit()


def values(consumer: Consumer) -> list[str]:
    return [(one.value or b"").decode() for one in consumer.poll(timeout_ms=300)]


@pytest.mark.check  # needs kcat
def test_three_brokers_go_on_with_all_that_one_had_alone(tmp_path: Path, single: ZooKeeper) -> None:
    kcat = environments.program("kcat", "kcat")
    connect = f"{single.connect}/adopted"
    (tmp_path / "1").mkdir()
    alone = Broker(tmp_path / "1", {**SMALL, "node.id": "1"})
    alone.start()
    fill(alone.address)
    code, output = said(adopt(alone.data, connect))
    assert (code, "a broker is using" in output) == (1, True)
    with Admin(alone.address) as admin:
        cluster_id = admin.describe_cluster().cluster_id
    alone.stop()

    code, output = adopted_in_spite_of_kills(alone.data, connect)
    assert code == 0, output
    if "adopted before" not in output:
        assert f"cluster {cluster_id}: broker 1 with {TOPICS + 3} topics" in output
    assert said(adopt(alone.data, connect)) == (0, "these folders were adopted before\n")
    assert (alone.data / ADOPTED).exists()
    with pytest.raises(NotReady, match=f"start it with --set zookeeper.connect={connect}"):
        alone.start()

    brokers = [member(tmp_path, connect, number) for number in (1, 2, 3)]
    try:
        for one in brokers:
            one.start()
        servers = ",".join(one.address for one in brokers)
        with Admin(brokers[2].address) as admin:
            assert admin.describe_cluster().cluster_id == cluster_id
            assert len(admin.list_topics()) == TOPICS + 1
            assert {one.name: one.value for one in admin.configs.describe("topic", "t")}["retention.ms"] == "86400000"
            assert admin.transactions.describe("pay").producer_epoch >= 0
            admin.create_topic("new", partitions=6)
        with Producer(servers, transactional_id="pay") as producer:
            with producer.transaction():
                producer.send("more-0", "paid again")
        with Producer(brokers[1].address) as producer:
            producer.send("t", "later")
            producer.send("new", "later")
        with Consumer(brokers[2].address, group_id=GROUP, auto_offset_reset="earliest") as consumer:
            consumer.subscribe(["t"])
            found: list[str] = []
            assert wait_until(lambda: found.extend(values(consumer)) or bool(found))
            assert found == ["later"]
        options = ["-o", "beginning", "-e", "-q", "-X", "isolation.level=read_committed"]
        for topic, expected in (("t", [*map(str, range(60)), "later"]), ("more-0", ["paid", "paid again"])):
            output = subprocess.check_output(
                [kcat, "-C", "-b", brokers[1].address, "-t", topic, *options], text=True, timeout=stretched(60)
            )
            assert sorted(output.split("\n")[:-1]) == sorted(expected)
        for one in brokers:
            one.stop()
    finally:
        for one in brokers:
            if one.runs:
                one.kill()
