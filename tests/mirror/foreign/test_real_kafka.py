"""Into Apache Kafka itself: records once though workers are killed, and MirrorMaker's own clients read what we tell."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from harness import apache_kafka
from harness.patience import stretched
from harness.tiers import sized
from moldau.client.producing.producer import Producer
from moldau.names import OffsetAndMetadata, TopicPartition
from moldau.testing import Broker
from tests.environments import jars, java_class
from tests.mirror.foreign.foreign_mirroring import ForeignMirroring, foreign_mirroring, records_of
from tests.versions import KAFKA_BEFORE, MIRROR_MAKER

RECORDS = sized(900, 900, 20_000)
SETTINGS = {"node.id": "1", "offsets.topic.replication.factor": "1", "offsets.topic.num.partitions": "3"}
TP = TopicPartition("orders", 0)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_kafka_has_each_record_once_and_java_finds_where_groups_are() -> None:
    with (
        Broker() as source,
        apache_kafka.running({**SETTINGS, **apache_kafka.FOR_KAFKA}, version=KAFKA_BEFORE) as kafka,
    ):
        address = f"{kafka.host}:{kafka.port}"
        source.create_topic("orders", 3, retention_ms=777_000)

        def fill(first: int, count: int) -> None:
            with Producer(source.address, acks="all", compression_type="zstd") as producer:
                for number in range(first, first + count):
                    producer.send("orders", b"%d" % number, headers=[("n", b"1")], partition=number % 3)

        async def scenario(mirror: ForeignMirroring) -> None:
            third = RECORDS // 3
            for part in range(3):
                await asyncio.to_thread(fill, part * third, third)
                worker = mirror.worker
                await mirror.until(lambda worker=worker: worker.board.records > 0)  # type: ignore[misc]
                await mirror.stop()  # at any point of a transaction
                await mirror.start()
            for partition in range(3):
                await mirror.until_equal(TopicPartition("orders", partition))
            await mirror.source.admin.alter_group_offsets("billing", {TP: OffsetAndMetadata(RECORDS // 3, "note")})

            async def unread() -> bool:
                at = (await mirror.target.admin.group_offsets("billing")).get(TopicPartition("A.orders", 0))
                records = [] if at is None else await records_of(mirror.target, "A.orders")
                return (
                    at is not None and at.offset > 0 and len([one for one in records if one.offset >= at.offset]) <= 1
                )

            await mirror.until(unread)
            committed = (await mirror.target.admin.group_offsets("billing"))[TopicPartition("A.orders", 0)]
            said = await asyncio.to_thread(java, address, "A", "billing")
            assert said == [
                "upstream [A]",
                "hops 1",
                "heartbeats [A.heartbeats, heartbeats]",
                "checkpoints [A.checkpoints.internal]",
                "remote [A.heartbeats, A.orders]",
                f"A.orders-0 {committed.offset} note",
            ]
            assert (await mirror.target.own_settings("A.orders"))["retention.ms"] == "777000"

        async def played() -> None:
            changes = {"sync_groups": True, "source_heartbeats": True, "replication_factor": 1}
            async with foreign_mirroring(source.address, address, "orders", **changes) as mirror:
                await scenario(mirror)

        asyncio.run(played())


def java(*arguments: str) -> list[str]:
    class_path = java_class(Path(__file__).parent / "RemoteClusters.java", jars(MIRROR_MAKER))
    command = ["java", *apache_kafka.JVM, "-cp", class_path, "RemoteClusters", *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=stretched(60), check=True)
    return ran.stdout.splitlines()
