"""Our own client, both faces, against the broker under test: the same with Moldau and with Apache Kafka.

`MOLDAU_TEST_BROKER=HOST:PORT` names another broker than ours.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

from harness.patience import stretched
from harness.tiers import sized
from moldau import OffsetAndMetadata, Record, TopicPartition, errors
from moldau.client.fetching import LATEST, list_offsets, read_columns
from tests.clients.faces import SECONDS, Client, Face, filled, made, taken

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
MEMBERS = [
    *(pytest.param({"partition_assignment_strategy": one}, id=one) for one in ASSIGNORS),
    pytest.param({"group_protocol": "consumer"}, id="consumer-protocol"),
]
"""Settings of a group's members: each assignor of the classic protocol, and the newer protocol."""


def earliest(face: Face, **settings: Any) -> Client:
    return face.consumer(auto_offset_reset="earliest", **settings)


def contents(records: Iterable[Record]) -> list[tuple[Any, ...]]:
    return [(r.key, r.value, r.headers, r.timestamp_ms) for r in records]


class TestRecords:
    @pytest.mark.parametrize("codec", CODECS)
    def test_records_of_every_kind_come_back_as_they_were(self, face: Face, topic: str, codec: str) -> None:
        noon_ms = int(datetime(2026, 5, 17, 12, tzinfo=UTC).timestamp() * 1000)
        sent: list[tuple[Any, ...]] = [
            (None, b"no key", [], noon_ms),
            (b"tombstone", None, [], noon_ms + 1),
            (b"", b"", [("empty", b""), ("null", None)], noon_ms + 2),
            ("Říp".encode(), "hora ☀".encode(), [("twice", b"1"), ("twice", b"2"), ("klíč", b"\xff\x00")], 0),
            (b"long", bytes(range(256)) * 400, [], noon_ms - 5),
        ]

        async def run() -> None:
            await made(face, topic, retention_ms=-1)
            async with face.producer(compression_type=codec) as producer:
                for key, value, headers, timestamp_ms in sent:
                    await producer.send(topic, value, key, partition=0, headers=headers, timestamp_ms=timestamp_ms)
            async with earliest(face) as consumer:
                await consumer.assign([TopicPartition(topic, 0)])
                records = await taken(consumer, len(sent))
                assert contents(records) == sent
                assert [record.offset for record in records] == list(range(len(sent)))

        asyncio.run(run())

    @pytest.mark.parametrize("codec", CODECS)
    def test_thousands_of_keyed_records_arrive_once_and_in_order(self, face: Face, topic: str, codec: str) -> None:
        count = sized(2_000, 5_000, 5_000)

        async def run() -> None:
            partitions = await made(face, topic, 3)
            async with face.producer(compression_type=codec, batch_size=4_000) as producer:
                deliveries = [await producer.send(topic, str(n), f"key-{n % 10}") for n in range(count)]
            places = [await face.outcome(delivery) for delivery in deliveries]
            assert len({(place.partition, place.offset) for place in places}) == count
            async with earliest(face) as consumer:
                await consumer.assign(partitions)
                records = await taken(consumer, count)
            assert sorted(int(record.value) for record in records) == list(range(count))
            of_key: dict[bytes, list[int]] = defaultdict(list)
            for record in records:
                of_key[record.key].append(int(record.value))
                place = places[int(record.value)]
                assert (place.partition, place.offset) == (record.partition, record.offset)
            assert all(values == sorted(values) for values in of_key.values())

        asyncio.run(run())

    @pytest.mark.parametrize("acks", ["all", "1", "0"])
    def test_each_kind_of_acknowledgement_delivers(self, face: Face, topic: str, acks: str) -> None:
        async def run() -> None:
            [tp] = await made(face, topic)
            deliveries = await filled(face, topic, [b"1", b"2"], acks=acks)
            offsets = [(await face.outcome(delivery)).offset for delivery in deliveries]
            assert offsets == ([-1, -1] if acks == "0" else [0, 1])
            async with earliest(face) as consumer:
                await consumer.assign([tp])
                assert [record.value for record in await taken(consumer, 2)] == [b"1", b"2"]

        asyncio.run(run())

    def test_a_record_that_the_topic_refuses_fails_alone(self, face: Face, topic: str) -> None:
        async def run() -> None:
            [tp] = await made(face, topic, max_message_bytes=2_000)
            async with face.producer() as producer:
                deliveries = [await producer.send(topic, b"x" * size, partition=0) for size in (10, 5_000, 20)]
                with pytest.raises(errors.MessageTooLarge):
                    await face.outcome(deliveries[1])
                assert [(await face.outcome(deliveries[n])).offset for n in (0, 2)] == [0, 1]
            async with earliest(face) as consumer:
                await consumer.assign([tp])
                assert [len(record.value) for record in await taken(consumer, 2)] == [10, 20]

        asyncio.run(run())

    @pytest.mark.parametrize("codec", CODECS)
    def test_tables_go_in_and_columns_come_out(self, face: Face, topic: str, codec: str) -> None:
        pyarrow = pytest.importorskip("pyarrow")
        values = [b"%d" % number for number in range(3_000)]
        table = pyarrow.table({"value": values, "key": [b"k%d" % (n % 7) for n in range(3_000)]})

        async def run() -> None:
            await made(face, topic)
            async with face.producer(compression_type=codec) as producer:
                rows = await face.outcome(await producer.send_table(topic, table))
            assert sum(part.rows for part in rows) == 3_000

        asyncio.run(run())
        tp = TopicPartition(topic, 0)
        end = list_offsets(face.address, {tp: LATEST})[tp]
        found = pyarrow.concat_tables(
            pyarrow.Table.from_batches([batch]) if isinstance(batch, pyarrow.RecordBatch) else batch
            for batch in read_columns(face.address, topic, 0, 0, end)
        )
        assert found.column("value").to_pylist() == values
        assert found.column("key").to_pylist() == table.column("key").to_pylist()


class TestReading:
    def test_positions_are_sought_by_offset_and_by_time(self, face: Face, topic: str) -> None:
        async def run() -> None:
            [tp] = await made(face, topic, retention_ms=-1)
            async with face.producer() as producer:
                for number in range(10):
                    await producer.send(topic, b"%d" % number, partition=0, timestamp_ms=1_000_000 + number * 1_000)
            async with earliest(face) as consumer:
                await consumer.assign([tp])
                await consumer.seek(tp, 7)
                assert await consumer.position(tp) == 7
                assert [record.value for record in await taken(consumer, 3)] == [b"7", b"8", b"9"]
                [found] = (await consumer.offsets_for_times({tp: 1_004_500})).values()
                assert (found.offset, found.timestamp_ms) == (5, 1_005_000)
                assert await consumer.offsets_for_times({tp: 2_000_000}) == {tp: None}
                await consumer.seek_to({tp: 1_008_000})
                assert [record.value for record in await taken(consumer, 2)] == [b"8", b"9"]
                assert (await consumer.beginning_offsets([tp]), await consumer.end_offsets([tp])) == ({tp: 0}, {tp: 10})

        asyncio.run(run())

    def test_paused_partitions_return_nothing_until_they_are_resumed(self, face: Face, topic: str) -> None:
        async def run() -> None:
            one, two = await made(face, topic, 2)
            async with face.producer() as producer:
                for tp in (one, two):
                    await producer.send(topic, b"%d" % tp.partition, partition=tp.partition)
            async with earliest(face) as consumer:
                await consumer.assign([one, two])
                await consumer.pause([one])
                assert [record.partition for record in await taken(consumer, 1)] == [1]
                assert await consumer.poll(300) == []
                await consumer.resume([one])
                assert [record.partition for record in await taken(consumer, 1)] == [0]

        asyncio.run(run())

    def test_an_offset_out_of_range_follows_auto_offset_reset(self, face: Face, topic: str) -> None:
        async def run() -> None:
            [tp] = await made(face, topic)
            await filled(face, topic, [b"1", b"2", b"3"])
            async with face.admin() as admin:
                assert await admin.delete_records({tp: 2}) == {tp: 2}
            async with earliest(face) as consumer:
                await consumer.assign([tp])
                await consumer.seek(tp, 0)
                assert [record.offset for record in await taken(consumer, 1)] == [2]
            async with face.consumer(auto_offset_reset="none") as consumer:
                await consumer.assign([tp])
                await consumer.seek(tp, 99)
                with pytest.raises(errors.OffsetOutOfRange):
                    await taken(consumer, 1)

        asyncio.run(run())

    def test_only_committed_transactions_are_read_by_those_who_ask_for_it(self, face: Face, topic: str) -> None:
        async def run() -> None:
            [tp] = await made(face, topic)
            async with face.producer(transactional_id=f"{topic}-writer") as producer:
                for number, ends in enumerate(("commit", "abort", "commit")):
                    await producer.begin_transaction()
                    await producer.send(topic, b"%d" % number, partition=0)
                    await producer.flush()  # an abort drops what is not sent yet
                    await (producer.commit_transaction() if ends == "commit" else producer.abort_transaction())
            for level, values in (("read_committed", [b"0", b"2"]), ("read_uncommitted", [b"0", b"1", b"2"])):
                async with earliest(face, isolation_level=level) as consumer:
                    await consumer.assign([tp])
                    assert [record.value for record in await taken(consumer, len(values))] == values

        asyncio.run(run())


class TestGroups:
    @pytest.mark.parametrize("member", MEMBERS)
    def test_members_share_partitions_and_the_next_goes_on_where_they_were(
        self, face: Face, topic: str, group: str, member: dict[str, Any]
    ) -> None:
        async def run() -> None:
            partitions = await made(face, topic, 4)
            async with face.producer() as producer:
                for number in range(40):
                    await producer.send(topic, b"%d" % number, partition=number % 4)
            one = earliest(face, group_id=group, enable_auto_commit=False, **member)
            two = earliest(face, group_id=group, enable_auto_commit=False, **member)
            async with one, two:
                for consumer in (one, two):
                    await consumer.subscribe([topic])
                shared = await self._read_by_all([one, two], partitions, 10)
                assert sorted(map(len, shared)) == [2, 2]
                for consumer in (one, two):
                    await consumer.commit()
            async with face.admin() as admin:
                committed = await admin.group_offsets(group)
                assert {tp: one.offset for tp, one in committed.items()} == dict.fromkeys(partitions, 10)
                assert {lag.records for lag in (await admin.group_lag(group)).values()} == {0}
            await filled(face, topic, [b"next"])
            async with earliest(face, group_id=group, **member) as consumer:
                await consumer.subscribe([topic])
                assert [record.value for record in await taken(consumer, 1)] == [b"next"]

        asyncio.run(run())

    async def _read_by_all(
        self, members: list[Client], partitions: list[TopicPartition], end: int
    ) -> list[list[TopicPartition]]:
        """Poll until the members have shared the partitions out, and each has read its own to the end; the partitions
        of each."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + stretched(SECONDS)
        while loop.time() < deadline_s:
            for member in members:
                await member.poll(100)
            shared = [list(await member.assignment()) for member in members]
            if sorted(tp for one in shared for tp in one) == partitions and all(shared):
                pairs = [(member, tp) for member, own in zip(members, shared, strict=True) for tp in own]
                if {await member.position(tp) for member, tp in pairs} == {end}:
                    return shared
        raise AssertionError(f"the partitions are not shared out and read: {shared}")

    def test_offsets_of_a_group_are_altered_and_deleted_and_so_is_the_group(
        self, face: Face, topic: str, group: str
    ) -> None:
        async def run() -> None:
            one, two = await made(face, topic, 2)
            await filled(face, topic, [b"1", b"2", b"3"])
            async with face.admin() as admin:
                await admin.alter_group_offsets(group, {one: 1, two: OffsetAndMetadata(0, "by hand")})
                assert (await admin.group_offsets(group))[two] == OffsetAndMetadata(0, "by hand")
                lag = await admin.group_lag(group)
                assert (lag[one].records, lag[two].records) == (2, 0)
                described = await admin.describe_group(group)
                assert (described.type, described.state, described.members) == ("classic", "Empty", [])
                assert group in [listed.group_id for listed in await admin.list_groups(states=["Empty"])]
                await admin.delete_group_offsets(group, [one])
                assert list(await admin.group_offsets(group)) == [two]
                gone = await admin.delete_groups([group, f"{group}-absent"])
                assert gone[group] is None and isinstance(gone[f"{group}-absent"], errors.GroupIdNotFound)
                with pytest.raises(errors.GroupIdNotFound):
                    await admin.describe_group(group)

        asyncio.run(run())
