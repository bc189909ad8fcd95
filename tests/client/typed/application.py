"""A program as a user writes it: both faces, records, columns, administration and tests. It is checked and run."""

import asyncio
import json
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import moldau
from moldau import aio, serializers
from moldau.testing import Broker


class Tracing(moldau.ProducerInterceptor):
    """Adds a header to each record."""

    def on_send(self, record: moldau.OutgoingRecord) -> moldau.OutgoingRecord:
        return record._replace(headers={"trace": "4bf92f35"})


def by_length(topic: str, key: bytes | None, partitions: int) -> int:
    return len(key or topic) % partitions


def on_delivery(error: moldau.errors.MoldauError | None, delivered: moldau.Delivered | None) -> None:
    if error is not None:
        raise error
    assert delivered is not None
    print(delivered.partition, delivered.offset)


def administer(address: str) -> list[moldau.TopicPartition]:
    with moldau.Admin(address) as admin:
        admin.create_topic("orders", partitions=3, configs={"retention.ms": -1})
        outcomes = admin.create_topics([moldau.NewTopic("prices", partitions=1), "orders"])
        assert isinstance(outcomes["orders"], moldau.errors.TopicAlreadyExists)
        admin.alter_topic_configs("prices", {"cleanup.policy": "compact"})
        changed = {entry.name: entry.value for entry in admin.topic_configs("prices") if not entry.is_default}
        assert changed == {"cleanup.policy": "compact"}
        leaders: set[int] = {p.leader for p in admin.describe_topics(["orders"])["orders"].partitions.values()}
        assert leaders <= set(admin.describe_cluster().brokers)
        transactions: list[str] = [listed.transactional_id for listed in admin.transactions.list()]
        assert not transactions
        return sorted(admin.watermarks("orders"))


def produce(address: str) -> int:
    settings = {"bootstrap.servers": address, "linger.ms": 5, "compression.type": "lz4"}
    with moldau.Producer(settings, partitioner=by_length, interceptors=[Tracing()]) as producer:
        delivery: moldau.Delivery = producer.send("orders", b"one", key="a", on_delivery=on_delivery)
        where: moldau.Delivered = delivery.result(timeout_s=60)
        rows: moldau.TableDelivery = producer.send_many("orders", ["two", "three"], keys=["b", "c"])
        delivered: list[moldau.DeliveredRows] = rows.result()
        counted: moldau.ProducerMetrics = producer.metrics()
        assert counted.records_delivered == 3
    with moldau.Producer(address, value_serializer=serializers.to_json, transactional_id="writer") as writer:
        with writer.transaction():
            writer.send("prices", {"price": 5}, key="tea", headers=[("unit", b"EUR")])
    return where.offset + sum(part.rows for part in delivered)


def consume(address: str, partitions: list[moldau.TopicPartition]) -> list[bytes | None]:
    def assigned(new: list[moldau.TopicPartition]) -> None:
        print(f"assigned: {new}")

    values: list[bytes | None] = []
    with moldau.Consumer(address, group_id="billing", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["orders"], on_assigned=assigned)
        for record in consumer:
            values.append(record.value)
            if len(values) == 2:
                record.commit()
            if len(values) == 3:
                break
        consumer.commit()
        committed: dict[moldau.TopicPartition, moldau.OffsetAndMetadata] = consumer.committed(partitions)
        assert sum(at.offset for at in committed.values()) == 3
        assert consumer.lag().total == 0
        counted: moldau.ConsumerMetrics = consumer.metrics()
        assert counted.records_lag_max == 0
    with moldau.Consumer(address, group_id="streams", auto_offset_reset="earliest") as consumer:
        [stream] = consumer.create_message_streams({"orders": 1})["orders"]
        first: moldau.Record = next(iter(stream))
        assert first.timestamp is not None and first.timestamp > datetime.now(UTC) - timedelta(days=1)
    with moldau.Consumer(address) as consumer:
        only: moldau.Record = consumer.log("prices")[0]
        price: Any = json.loads(only.value or b"")
        assert price == {"price": 5} and only.headers == [moldau.Header("unit", b"EUR")]
    return values


def columns(address: str) -> int:
    table = moldau.read_table("orders", address)
    with moldau.Producer(address) as producer:
        sent = producer.send_table("prices", table, partition=0).result()
    with moldau.Consumer(address, auto_offset_reset="earliest") as consumer:
        consumer.assign([("prices", 0)])
        count = sum(len(one) for one in consumer.tables(idle_ms=500))
    assert count == 1 + sum(part.rows for part in sent)
    return count


async def with_asyncio(address: str) -> list[str]:
    async with aio.Producer(address) as producer:
        delivery = await producer.send("orders", b"four", key=b"d")
        where = await delivery
        rows = await (await producer.send_many("orders", [b"five"]))
        assert where.offset >= 0 and rows[0].rows == 1
    values: list[str] = []
    async with aio.Consumer(address, group_id="web", auto_offset_reset="earliest") as consumer:
        [stream] = consumer.create_message_streams({"orders": 1})["orders"]
        async for record in stream:
            values.append((record.value or b"").decode())
            if len(values) == 5:
                break
    async with aio.Admin(address) as admin:
        groups = [listed.group_id for listed in await admin.list_groups()]
        assert set(groups) == {"billing", "streams", "web"}
    return sorted(values)


def main() -> int:
    with Broker(num_partitions=3) as broker:
        partitions = administer(broker.bootstrap_servers)
        assert produce(broker.bootstrap_servers) == 2
        assert len(consume(broker.bootstrap_servers, partitions)) == 3
        assert columns(broker.bootstrap_servers) == 4
        assert asyncio.run(with_asyncio(broker.bootstrap_servers)) == ["five", "four", "one", "three", "two"]
        with broker.fault("Metadata", error="LEADER_NOT_AVAILABLE", times=1):
            with moldau.Admin(broker.bootstrap_servers) as admin:
                assert "orders" in admin.list_topics()
        broker.clock.advance(hours=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
