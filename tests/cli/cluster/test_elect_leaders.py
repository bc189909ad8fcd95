"""`moldau cluster elect-leaders`, on three brokers; what is told of a partition without a leader; and leaders that are
back by themselves."""

import json
from collections.abc import Iterator

import pytest

from harness.patience import wait_until
from moldau import Admin, OffsetAndMetadata, Producer, TopicPartition
from moldau.cli import main
from moldau.testing import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, default_replication_factor=3) as one:
        yield one


@pytest.fixture
def admin(cluster: Cluster) -> Iterator[Admin]:
    with Admin(cluster.address) as one:
        yield one


def leaders(admin: Admin, topic: str) -> list[int]:
    parts = admin.describe_topics([topic])[topic].partitions
    return [parts[number].leader for number in sorted(parts)]


def in_sync(admin: Admin, *topics: str) -> bool:
    found = admin.describe_topics(topics)
    return all(len(part.isr) == 3 for topic in found.values() for part in topic.partitions.values())


def made_uneven(cluster: Cluster, admin: Admin, *topics: str) -> None:
    """Topics whose leaders have all been restarted."""
    for topic in topics:
        admin.create_topic(topic, assignment={0: [1, 2, 3], 1: [2, 3, 1]})
    one, _, _ = cluster.brokers
    one.restart()
    assert wait_until(lambda: in_sync(admin, *topics))
    assert all(leaders(admin, topic)[0] != 1 for topic in topics)


def said(capsys: pytest.CaptureFixture[str], cluster: Cluster, *words: str, code: int = 0) -> list[dict[str, object]]:
    capsys.readouterr()
    assert main.run(["cluster", "elect-leaders", *words, "--json", "-b", cluster.address]) == code
    found: list[dict[str, object]] = json.loads(capsys.readouterr().out)
    return found


def test_preferred_replicas_lead_again(cluster: Cluster, admin: Admin, capsys: pytest.CaptureFixture[str]) -> None:
    made_uneven(cluster, admin, "a", "b", "c")
    elected = {"topic": "a", "partition": 0, "leader": 1, "outcome": "elected"}
    assert said(capsys, cluster, "a", "--partition", "0") == [elected]
    assert said(capsys, cluster, "a", "--preferred") == [
        {**elected, "outcome": "not needed"},
        {"topic": "a", "partition": 1, "leader": 2, "outcome": "not needed"},
    ]
    assert said(capsys, cluster, "--all") == [{**elected, "topic": "b"}, {**elected, "topic": "c"}]
    assert [leaders(admin, topic) for topic in "abc"] == [[1, 2]] * 3
    assert main.run(["cluster", "elect-leaders", "-b", cluster.address]) == 0
    assert capsys.readouterr().out == "no partition needs an election\n"


@pytest.fixture(scope="module")
def alone(cluster: Cluster) -> Iterator[str]:
    """A topic with one record, and a group that has committed 0 in both partitions. The second one has no leader: the
    only broker that holds it is down."""
    three = cluster.brokers[2]
    with Admin(cluster.address) as admin, Producer(cluster.address) as producer:
        admin.create_topic("alone", assignment={0: [1], 1: [3]})
        producer.send("alone", b"value", partition=0).result()
        admin.alter_group_offsets(
            "readers", {TopicPartition("alone", number): OffsetAndMetadata(0) for number in (0, 1)}
        )
        three.kill()
        assert wait_until(lambda: leaders(admin, "alone") == [1, -1])
        yield "alone"
        three.start()
        assert wait_until(lambda: leaders(admin, "alone") == [1, 3])


def test_a_partition_that_gets_no_leader_makes_the_exit_code_1(
    cluster: Cluster, alone: str, capsys: pytest.CaptureFixture[str]
) -> None:
    [row] = said(capsys, cluster, alone, "--partition", "1", code=1)
    assert (row["leader"], "alone-1" in str(row["outcome"])) == (None, True)
    [row] = said(capsys, cluster, alone, "--partition", "1", "--unclean", code=1)
    assert "no replica of the partition is up" in str(row["outcome"])


def test_offsets_and_lags_of_the_other_partitions_are_told(
    cluster: Cluster, alone: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kafka's tool for groups fails as a whole (KAFKA-19435)."""
    assert main.run(["topics", "offsets", alone, "--json", "-b", cluster.address]) == 1
    shown = capsys.readouterr()
    assert [row["offset"] for row in json.loads(shown.out)] == [1, None]
    assert shown.err == "error: alone-1 has no leader: its offset is not known\n"
    assert main.run(["groups", "describe", "readers", "--json", "-b", cluster.address]) == 0
    shown = capsys.readouterr()
    [group] = json.loads(shown.out)
    parts = [(part["committed"], part["end"], part["lag"]) for part in group["partitions"]]
    assert parts == [(0, 1, 1), (0, None, None)]
    assert shown.err == "alone-1 has no leader: its end and its lag are not known\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--preferred", "--unclean", "t"), "--preferred or --unclean, not both"),
        (("--unclean",), "name the topics"),
        (("--all", "t"), "takes no topics"),
        (("--partition", "0"), "needs one topic"),
        (("t", "u", "--partition", "0"), "needs one topic"),
    ],
)
def test_what_makes_no_sense_is_refused(
    cluster: Cluster, words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["cluster", "elect-leaders", *words, "-b", cluster.address]) == 2
    assert sentence in capsys.readouterr().err


def test_a_restarted_broker_leads_again_within_seconds_if_it_is_told_to() -> None:
    """The next automatic check would come after 300 s."""
    settings = {"auto_leader_rebalance_in_sync_enable": True}
    with Cluster(brokers=3, default_replication_factor=3, **settings) as cluster, Admin(cluster.address) as admin:
        admin.create_topic("t", assignment={0: [1, 2, 3], 1: [2, 3, 1]})
        cluster.brokers[0].restart()
        assert wait_until(lambda: leaders(admin, "t") == [1, 2])
