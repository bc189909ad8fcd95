"""Partitions move between four broker processes over ZooKeeper under a throttle, while records are written to them.
Again and again the controller, the source, the target or the tool is killed in the middle: each move ends or is
cancelled whole, nothing acknowledged is lost, the replicas are equal at last, and no throttle stays.

The tool is `moldau cluster reassign --throttle`, or does what `kafka-reassign-partitions --throttle` does before it
ends. `-s` shows what happened.
"""

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from harness.brokers import SOURCE, Broker
from harness.patience import SECONDS, stretched, wait_until
from harness.tiers import sized
from harness.zookeeper import ZooKeeper
from moldau import Admin, Producer
from moldau.cli.cluster.moving.plan_file import write_plan
from moldau.client.administration.admin import Admin as AdminClient
from moldau.client.cluster_view import PartitionView
from moldau.cluster.state.move_throttles import FOLLOWERS, LEADERS, RATES
from moldau.errors import KafkaError
from moldau.names import TopicPartition
from tests.replicated.judging import assert_kept
from tests.replicated.on_disk import assert_replicas_are_equal
from tests.replicated.senders import Sender
from tests.worlds.moves import KILLS, Kill
from tests.zookeeper.three_brokers import three_brokers

CHOSEN: list[Kill] = sized(KILLS[:1], [KILLS[9], KILLS[27], KILLS[23]], KILLS)
"""In `make check`: the source at 50% of Kafka's tool, the tool at 10% of Kafka's tool and cancelled, the tool at 90% of
ours. In `make long` all of them."""
SESSION_S = 3.0
TOPIC, BALLAST, PARTITIONS = "kept", "ballast", 2
TPS = [TopicPartition(topic, number) for topic in (TOPIC, BALLAST) for number in range(PARTITIONS)]
VALUE_BYTES = 10_000
BALLAST_BYTES = sized(1, 2, 4) * 1_000_000
RATE = 600_000
HERE, THERE = (1, 2, 3), (4, 2, 3)
SENT_RATE = 50
SETTINGS = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "replica.fetch.max.bytes": "50000",
    "replica.fetch.response.max.bytes": "100000",
    "replication.quota.window.num": "3",
}


class Moving:
    """Brokers between which everything moves to and fro."""

    def __init__(self, brokers: dict[int, Broker], admin: AdminClient, folder: Path):
        self.brokers = brokers
        self.admin = admin
        self._folder = folder
        self._chance = random.Random(5)

        self.where = HERE
        """The replicas of all partitions between two moves."""

    def move(self, kill: Kill) -> None:
        before, after = (HERE, THERE) if self.where == HERE else (THERE, HERE)
        with self._tool(kill, before, after) as tool:
            self._until_copied(after[0], kill.at)
            victim = {"source": before[0], "target": after[0]}.get(kill.victim)
            if kill.victim == "controller":
                victim = self.admin.describe_cluster().controller_id
            if victim is not None:
                self._kill(victim)
            elif tool is not None:
                tool.kill()
            if kill.is_cancelled:
                self._cancel()
            elif tool is not None and kill.victim != "tool":
                assert tool.wait(stretched(4 * SECONDS)) == 0, self._said()
        if not kill.is_cancelled and kill.victim == "tool" and not kill.like_kafka:
            with self._tool(kill, before, after) as again:
                assert again is not None and again.wait(stretched(4 * SECONDS)) == 0, self._said()
        self.until_at_rest()
        found = {part.replicas for part in self._partitions()}
        if kill.is_cancelled:  # small partitions may have been there before
            assert {frozenset(one) for one in found} <= {frozenset(HERE), frozenset(THERE)}
            self.admin.alter_reassignments(dict.fromkeys(TPS, before))
            self.until_at_rest()
        else:
            assert found == {after}
            self.where = after

    def until_at_rest(self) -> None:
        """Nothing is under way, all replicas are in sync, no throttle is set."""
        left: list[object] = []

        def is_at_rest() -> bool:
            left[:] = [self.admin.list_reassignments()]
            left.extend(part for part in self._partitions() if {*part.isr} != {*part.replicas})
            kinds = [("topic", TOPIC), ("topic", BALLAST), *(("broker", str(one)) for one in self.brokers)]
            for (_, name), entries in self.admin.configs.describe_all(kinds).items():
                left.extend((name, one) for one in entries if "throttled" in one.name and not one.is_default)
            return not any(left)

        def looked() -> bool:
            with suppress(KafkaError):
                return is_at_rest()
            return False

        assert wait_until(looked, 5 * SECONDS, 0.2), left

    def _partitions(self) -> list[PartitionView]:
        topics = self.admin.describe_topics([TOPIC, BALLAST])
        return [part for topic in topics.values() for part in topic.partitions.values()]

    @contextmanager
    def _tool(
        self, kill: Kill, before: tuple[int, ...], after: tuple[int, ...]
    ) -> Iterator["subprocess.Popen[bytes] | None"]:
        """The process of ours; Kafka's has ended when it has begun the move."""
        if kill.like_kafka:
            self._begin_like_kafka(before, after)
            yield None
            return
        write_plan(self._folder / "plan.json", dict.fromkeys(TPS, after))
        options = ["--throttle", str(RATE), "--at-a-time", "3", "-b", self._addresses]
        with (self._folder / "tool.log").open("wb") as log:
            tool = subprocess.Popen(
                [sys.executable, "-m", "moldau", "cluster", "reassign", "plan.json", *options],
                cwd=self._folder,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": str(SOURCE)},
            )
        try:
            yield tool
        finally:
            tool.kill()
            tool.wait()

    def _begin_like_kafka(self, before: tuple[int, ...], after: tuple[int, ...]) -> None:
        adding = {*after} - {*before}
        for topic in (TOPIC, BALLAST):
            brokers = {LEADERS: before, FOLLOWERS: adding}
            lists = {
                name: ",".join(f"{n}:{one}" for n in range(PARTITIONS) for one in of) for name, of in brokers.items()
            }
            self.admin.alter_topic_configs(topic, lists)
        for broker in self.brokers:
            self.admin.configs.alter("broker", str(broker), dict.fromkeys(RATES, RATE))
        outcome = self.admin.alter_reassignments(dict.fromkeys(TPS, after))
        assert not any(outcome.values()), outcome

    @property
    def _addresses(self) -> str:
        return ",".join(broker.address for broker in self.brokers.values())

    def _until_copied(self, target: int, share: float) -> None:
        wanted = share * BALLAST_BYTES * PARTITIONS

        def is_copied() -> bool:
            return sum(self.brokers[target].log_bytes(BALLAST, number) for number in range(PARTITIONS)) >= wanted

        assert wait_until(is_copied, 4 * SECONDS, 0.05), self._said()

    def _kill(self, number: int) -> None:
        self.brokers[number].kill()
        time.sleep(self._chance.random() * 2 * SESSION_S)
        self.brokers[number].start()

    def _cancel(self) -> None:
        while under_way := self.admin.list_reassignments():
            self.admin.alter_reassignments(dict.fromkeys(under_way))

    def _said(self) -> str:
        log = self._folder / "tool.log"
        return log.read_text()[-2000:] if log.exists() else ""


@pytest.mark.check
@pytest.mark.timeout(sized(300, 600, 6000))
def test_a_move_ends_or_is_cancelled_whole_whoever_is_killed_in_its_middle(tmp_path: Path) -> None:
    with (
        ZooKeeper(tmp_path / "zookeeper") as zookeeper,
        three_brokers(tmp_path, f"{zookeeper.connect}/moves", SESSION_S, SETTINGS, numbers=(1, 2, 3, 4)) as brokers,
    ):
        addresses = ",".join(broker.address for broker in brokers.values())
        with Admin(addresses) as admin:
            moving = Moving(brokers, admin, tmp_path)
            for topic in (TOPIC, BALLAST):
                admin.create_topic(topic, assignment={number: list(HERE) for number in range(PARTITIONS)})
            _write_ballast(addresses)
            with Sender("ours", addresses, TOPIC, "ours", SENT_RATE, tmp_path) as sender:
                for kill in CHOSEN:
                    began_s = time.monotonic()
                    moving.move(kill)
                    print(f"{kill}: {time.monotonic() - began_s:.1f} s, {sender.acknowledged} acknowledged", flush=True)
                    assert sender.progress(), sender.said()
                places = sender.finish(sender.acknowledged)
            where = moving.where
            ends = {tp.partition: end for tp, (_, end) in admin.watermarks(BALLAST).items()}
        holding = {number: brokers[number] for number in where}
        assert_kept(holding, TOPIC, {"ours": places})
        assert_replicas_are_equal(holding.values(), BALLAST, ends)


def _write_ballast(addresses: str) -> None:
    with Producer(addresses, acks="all") as producer:
        for number in range(BALLAST_BYTES * PARTITIONS // VALUE_BYTES):
            producer.send(BALLAST, os.urandom(VALUE_BYTES), partition=number % PARTITIONS)
