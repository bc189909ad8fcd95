"""A replica that was away catches up under a throttle (KIP-73), which its topic and the brokers were given while they
ran, beside another topic that has none."""

import os
from pathlib import Path

import pytest

from harness.patience import wait_until
from moldau import Admin, Producer
from moldau.client.administration.admin import Admin as AdminClient
from tests.replicated.broker_processes import broker_processes

RATE = 1000
"""Bytes a second: what was missed takes half an hour."""
FETCH_BYTES = 20_000
VALUES, VALUE_BYTES = 200, 10_000
MISSED_BYTES = VALUES * VALUE_BYTES
SLOW, FREE = "slow", "free"
AWAY = 3


@pytest.mark.parametrize("side", [pytest.param("leader", marks=pytest.mark.check), "follower"])
def test_a_replica_that_was_away_catches_up_as_fast_as_its_throttle_allows(tmp_path: Path, side: str) -> None:
    with broker_processes(tmp_path, 3) as brokers:
        for one in brokers:
            one.settings |= {"replica.fetch.max.bytes": str(FETCH_BYTES), "zookeeper.session.timeout.ms": "2000"}
            one.start()
        everyone, away = ",".join(one.address for one in brokers), brokers[AWAY - 1]
        with Admin(everyone) as admin:
            for topic in (SLOW, FREE):
                admin.create_topic(topic, assignment={0: [1, 2, AWAY]})
            away.kill()
            assert wait_until(lambda: AWAY not in isr(admin, SLOW) + isr(admin, FREE))
            write(everyone)
            listed = "0:1,0:2" if side == "leader" else f"0:{AWAY}"
            admin.alter_topic_configs(SLOW, {f"{side}.replication.throttled.replicas": listed})
            admin.configs.alter("broker", "", {f"{side}.replication.throttled.rate": RATE})
            away.start()
            assert wait_until(lambda: AWAY in isr(admin, FREE))
            assert wait_until(lambda: away.log_bytes(SLOW) > 0), "it is slow, and does not stand still"
            write(everyone, values=1)
            assert wait_until(lambda: away.log_bytes(FREE) >= MISSED_BYTES + VALUE_BYTES)
            assert away.log_bytes(SLOW) <= MISSED_BYTES // 4
            assert AWAY not in isr(admin, SLOW)

            admin.configs.alter("broker", "", {f"{side}.replication.throttled.rate": None})
            assert wait_until(lambda: AWAY in isr(admin, SLOW)), "nothing holds it back any more"
            assert away.log_bytes(SLOW) >= MISSED_BYTES


def isr(admin: AdminClient, topic: str) -> list[int]:
    return list(admin.describe_topics([topic])[topic].partitions[0].isr)


def write(address: str, values: int = VALUES) -> None:
    with Producer(address, acks="all", batch_size=1) as producer:
        for topic in (SLOW, FREE):
            for _ in range(values):
                producer.send(topic, os.urandom(VALUE_BYTES))
