"""The audit of a mirror of `moldau mirror` compares offsets, since they are those of the origin."""

import asyncio

from moldau.client.producing.producer import Producer
from moldau.mirror.ends import ClusterEnd, source_of
from moldau.mirror.requests import Appending, append, fetch
from moldau.names import TopicPartition
from moldau.records.batch import batches
from moldau.testing import Broker
from tests.cli.conftest import Moldau

TP = TopicPartition("sales", 0)
LONG_AGO_MS = 1_767_268_800_000


async def mirror_but(origin: Broker, backup: Broker, lost: int) -> None:
    """A mirror that lacks the batch at this offset: compaction or a fault could have taken it."""
    async with ClusterEnd(origin.address, "--from") as source, ClusterEnd(backup.address, "--to") as target:
        topic_id = (await source.topics())[TP.topic].topic_id
        setting = source_of(source.cluster_id, topic_id)
        await target.admin.create_topic(TP.topic, partitions=1, configs={"mirror.source": setting, "retention.ms": -1})
        answer = await fetch(source.router, await source.router.leader(TP), {TP: 0}, {TP.topic: topic_id}, 0)
        data = answer[TP].records
        kept = b"".join(data[at : at + header.size] for at, header in batches(data) if header.base_offset != lost)
        await target.topics()
        sent = {TP: Appending(setting, 0, 0, memoryview(kept))}
        assert not (await append(target.router, await target.router.leader(TP), sent))[TP].error


def test_of_equal_records_the_one_that_is_missing_is_named(offline: Moldau) -> None:
    with Broker() as origin, Broker() as backup:
        origin.create_topic(TP.topic, 1, retention_ms=-1)
        origin.create_topic("_audit", 1, retention_ms=-1)
        with Producer(origin.address, acks="all", audit_topic="_audit") as producer:
            for _ in range(9):
                producer.send(TP.topic, b"sold", timestamp_ms=LONG_AGO_MS).result()  # a batch each
        asyncio.run(mirror_but(origin, backup, lost=3))
        audited = offline("pipeline", "audit", "--topics", TP.topic, "-b", origin.address, "--mirror", backup.address)
        assert "1 of 9 records missing: partition 0 offset 3 in origin" in audited.out, audited
