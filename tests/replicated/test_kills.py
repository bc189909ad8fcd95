"""Leaders, the controller, any brokers and ZooKeeper's leader are killed and stopped while idempotent producers send
keyed records to a topic with three replicas: every acknowledged record is where it was acknowledged, none comes twice,
those of a key are in order, the replicas are the same bytes, and every fault is followed by progress.

`MOLDAU_SEED` repeats the order of the faults; `-s` shows the figures. `MOLDAU_PIECES=3` is a third of the long mode.
"""

import os
import random
import statistics
import time
from array import array
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.brokers import Broker
from harness.patience import stretched
from harness.tiers import LONG, seed_or
from harness.zookeeper import ZooKeeper
from moldau.client.administration.admin import Admin
from tests.replicated.judging import assert_kept
from tests.replicated.senders import Probe, Sender
from tests.zookeeper.faults import BROKER, CONTROLLER, KILL, LEADER, STOP, ZOOKEEPER, Faults, Kind
from tests.zookeeper.three_brokers import three_brokers

PIECES = int(os.environ.get("MOLDAU_PIECES") or 1)
"""The number of runs, at different times or side by side, that are the long mode together."""
KILLS, STOPS = (-(-1000 // PIECES), -(-300 // PIECES)) if LONG else (6, 2)
RECORDS = -(-10_000_000 // PIECES) if LONG else 40_000
SEED = seed_or(17)
SESSION_S = 3.0
FAULT_S = 6.0
"""About as long a fault takes, with its end."""
STOPS_SESSIONS = (0.3, 2.3)
OUTLASTS = 0.5
TOPIC, PARTITIONS = "kept", 6
SENDERS = {"ours": "ours", "ours-too": "ours", "librdkafka": "confluent"}
RATE = round(RECORDS / (KILLS + STOPS) / FAULT_S / len(SENDERS))
HEALED_S = 60
SETTINGS = {"default.replication.factor": "3", "min.insync.replicas": "2", "log.segment.bytes": str(4 << 20)}


def kinds(chance: random.Random) -> list[Kind]:
    """Each target is killed, and most hit a partition's leader."""
    targets = (LEADER, LEADER, CONTROLLER, BROKER, ZOOKEEPER)
    drawn = [(KILL, target) for target in (*targets, *chance.choices(targets, k=KILLS))[:KILLS]]
    drawn += [(STOP, chance.choice(targets)) for _ in range(STOPS)]
    chance.shuffle(drawn)
    return drawn


@pytest.mark.check
@pytest.mark.timeout(20_000 if LONG else 1500)
def test_nothing_acknowledged_is_lost_doubled_or_moved_whatever_is_killed_or_stopped(tmp_path: Path) -> None:
    with (
        ZooKeeper(tmp_path / "zookeeper", 3) as zookeeper,
        three_brokers(tmp_path, f"{zookeeper.connect}/kept", SESSION_S, SETTINGS) as brokers,
    ):
        addresses = ",".join(broker.address for broker in brokers.values())
        with Admin(addresses) as admin:
            admin.create_topic(TOPIC, partitions=PARTITIONS)
        probe = Probe(addresses, TOPIC, PARTITIONS)
        with ExitStack() as stack:
            stack.callback(probe.close)
            senders = [
                stack.enter_context(Sender(client, addresses, TOPIC, name, RATE, tmp_path))
                for name, client in SENDERS.items()
            ]
            faults = hit(brokers, zookeeper, senders, probe)
            places = {one.name: one.finish(-(-RECORDS // len(senders))) for one in senders}
        report(faults, places)
        assert sum(map(len, places.values())) >= RECORDS
        assert_kept(brokers, TOPIC, {**places, probe.name: probe.places})


def hit(brokers: dict[int, Broker], zookeeper: ZooKeeper, senders: list[Sender], probe: Probe) -> Faults:
    def progress(_: int) -> float:
        probe.wait()
        all_s = time.monotonic()
        for sender in senders:
            assert sender.progress(), f"{sender.name}: {sender.acknowledged} are acknowledged; {sender.said()}"
        return all_s

    chance = random.Random(SEED)
    faults = Faults(brokers, zookeeper, SESSION_S, chance, progress, stops=STOPS_SESSIONS, outlasts=OUTLASTS)
    progress(0)
    for kind in kinds(chance):
        faults.next(kind)
    last_s = time.monotonic()
    faults.wait_until_whole()
    assert not LONG or time.monotonic() - last_s < stretched(HEALED_S)  # a time of this machine
    return faults


def report(faults: Faults, places: dict[str, "array[int]"]) -> None:
    count = sum(map(len, places.values()))
    print(f"\nseed {SEED}: {KILLS} kills, {STOPS} stops, {count:,} records; seconds until all partitions took records")
    for kind, every in sorted(faults.seconds.items()):
        print(f"{' '.join(kind):<24}{spread(every)}   of single faults {spread(faults.single.get(kind, []))}")


def spread(seconds: list[float]) -> str:
    took = sorted(seconds) or [0.0]
    return f"{len(seconds):>4}  p50 {statistics.median(took):5.2f}  max {took[-1]:5.2f}"
