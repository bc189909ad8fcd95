"""Our own client, both faces, against the broker under test: the same with Moldau and with Apache Kafka.

`MOLDAU_TEST_BROKER=HOST:PORT` names another broker than ours.
"""

import asyncio
import uuid
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

from harness.brokers import Broker, ForeignBroker
from harness.patience import stretched
from moldau import NewTopic, OffsetAndMetadata, Record, TopicPartition, errors
from moldau.admin import Acl, AclFilter, ScramDeletion, ScramUpsertion
from moldau.client.fetching import LATEST, list_offsets, read_columns
from tests.clients.faces import SECONDS, Client, Face, soon, taken

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
MEMBERS = [
    *(pytest.param({"partition_assignment_strategy": one}, id=one) for one in ASSIGNORS),
    pytest.param({"group_protocol": "consumer"}, id="consumer-protocol"),
]
"""Settings of a group's members: each assignor of the classic protocol, and the newer protocol."""


@pytest.fixture(params=["sync", "asyncio"])
def face(request: pytest.FixtureRequest, broker: Broker | ForeignBroker) -> Face:
    return Face(request.param, broker.address)


async def made(face: Face, topic: str, partitions: int = 1, **configs: object) -> list[TopicPartition]:
    async with face.admin() as admin:
        await admin.create_topic(
            topic, partitions=partitions, configs={n.replace("_", "."): v for n, v in configs.items()}
        )
    return [TopicPartition(topic, number) for number in range(partitions)]


async def filled(face: Face, topic: str, values: Iterable[bytes | None], **settings: Any) -> list[Any]:
    """Send these values to partition 0; returns what became of them."""
    async with face.producer(**settings) as producer:
        return [await producer.send(topic, value, partition=0) for value in values]


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
        count = 5_000

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


class TestAdministration:
    def test_topics_are_made_described_expanded_and_deleted_each_with_its_outcome(self, face: Face, topic: str) -> None:
        names = one, two, wrong = f"{topic}-1", f"{topic}-2", f"{topic}-3"

        async def run() -> None:
            async with face.admin() as admin:
                outcome = await admin.create_topics(
                    [NewTopic(one, 1, 1), NewTopic(two, 2, 1, {"retention.ms": 5_000}), NewTopic(wrong, 1, 7)]
                )
                assert (outcome[one], outcome[two]) == (None, None)
                assert isinstance(outcome[wrong], errors.InvalidReplicationFactor)
                with pytest.raises(errors.TopicAlreadyExists):
                    await admin.create_topic(one)
                with pytest.raises(errors.InvalidConfig):
                    await admin.create_topic(wrong, configs={"no.such.setting": 1})
                with pytest.raises(errors.InvalidTopic):
                    await admin.create_topic("no/slash")
                expanded = await admin.expand_topics({one: 3, two: 1})
                assert expanded[one] is None and isinstance(expanded[two], errors.InvalidPartitions)

                async def expanded_there() -> bool:
                    views = await admin.describe_topics([one, two])
                    return {name: len(view.partitions) for name, view in views.items()} == {one: 3, two: 2}

                assert await soon(expanded_there)
                views = await admin.describe_topics([one, two])
                leaders = {p.leader for view in views.values() for p in view.partitions.values()}
                assert leaders == {*(await admin.describe_cluster()).brokers}
                assert {one, two} <= {*await admin.list_topics()}
                deleted = await admin.delete_topics(names)
                assert (deleted[one], deleted[two]) == (None, None)
                assert isinstance(deleted[wrong], errors.UnknownTopicOrPartition)

        asyncio.run(run())

    def test_settings_are_described_and_altered(self, face: Face, topic: str) -> None:
        async def run() -> None:
            await made(face, topic, segment_ms=60_000)
            async with face.admin() as admin:
                await admin.alter_topic_configs(topic, {"cleanup.policy": ["compact", "delete"], "segment.ms": None})

                async def changed() -> bool:
                    entries = await admin.topic_configs(topic)
                    found = {entry.name: entry.value for entry in entries if not entry.is_default}
                    return found == {"cleanup.policy": "compact,delete"}

                assert await soon(changed), "a broker of Apache Kafka learns of it a moment later"
                with pytest.raises(errors.InvalidConfig):
                    await admin.alter_topic_configs(topic, {"retention.ms": "soon"})
                with pytest.raises(errors.UnknownTopicOrPartition):
                    await admin.topic_configs(f"{topic}-absent")

        asyncio.run(run())

    def test_offsets_are_listed_by_position_and_time_and_records_deleted(self, face: Face, topic: str) -> None:
        async def run() -> None:
            [tp] = await made(face, topic, retention_ms=-1)
            noon = datetime(2026, 5, 17, 12, tzinfo=UTC)
            noon_ms = int(noon.timestamp() * 1000)
            async with face.producer() as producer:
                for minute in (0, 5, 3):
                    await producer.send(topic, b"x", partition=0, timestamp_ms=noon_ms + minute * 60_000)
            async with face.admin() as admin:
                assert await admin.watermarks(topic) == {tp: (0, 3)}
                at_noon = (await admin.list_offsets({tp: noon}))[tp]
                assert (at_noon.offset, at_noon.timestamp_ms) == (0, noon_ms)
                assert (await admin.list_offsets({tp: "max_timestamp"}))[tp].offset == 1
                assert await admin.list_offsets({tp: noon_ms + 300_001}) == {tp: None}
                assert await admin.delete_records({tp: 2}) == {tp: 2}
                assert await admin.watermarks(topic) == {tp: (2, 3)}
                with pytest.raises(errors.OffsetOutOfRange):
                    await admin.delete_records({tp: 9})
                with pytest.raises(errors.UnknownTopicOrPartition):
                    await admin.list_offsets({TopicPartition(topic, 9): "latest"})

        asyncio.run(run())

    def test_the_cluster_tells_its_versions_folders_producers_and_more(self, face: Face, topic: str) -> None:
        async def run() -> None:
            [tp] = await made(face, topic)
            await filled(face, topic, [b"x" * 1_000])
            async with face.admin() as admin:
                cluster = await admin.describe_cluster()
                assert cluster.cluster_id and cluster.brokers
                [broker_id, *_] = cluster.brokers
                assert (await admin.api_versions(broker_id))["Metadata"].high >= 12
                features = await admin.describe_features()
                assert features.finalized["transaction.version"].high <= features.supported["transaction.version"].high
                folders = await admin.describe_log_dirs(topics=[topic])
                sizes = [d.replicas[tp].size_bytes for dirs in folders.values() for d in dirs if tp in d.replicas]
                assert sizes and min(sizes) > 1_000
                assert isinstance((await admin.elect_leaders([tp]))[tp], errors.ElectionNotNeeded)
                assert await admin.list_reassignments([tp]) == {}
                assert await admin.describe_client_quotas({"user": f"nobody-{uuid.uuid4().hex}"}) == {}
                with pytest.raises(errors.ResourceNotFound):
                    await admin.describe_user_scram_credentials([f"nobody-{uuid.uuid4().hex}"])

        asyncio.run(run())

    def test_rights_quotas_users_and_moves_are_altered_or_refused_with_a_sentence(self, face: Face, topic: str) -> None:
        """Moldau enforces no quota and has no users; a Kafka without an authorizer has no ACLs either."""
        reads = Acl("topic", topic, f"User:{topic}", "read")
        quota = (("user", topic),)

        async def run() -> None:
            here, absent = await made(face, topic, 2)
            async with face.admin() as admin:
                created = (await admin.create_acls([reads]))[reads]
                found = AclFilter(principal=reads.principal)
                if created is None:
                    deleted = (await admin.delete_acls([found]))[found]
                    assert deleted == [reads]
                else:
                    assert isinstance(created, errors.SecurityDisabled)
                    with pytest.raises(errors.SecurityDisabled):
                        await admin.describe_acls(found)
                limited = (await admin.alter_client_quotas({quota: {"producer_byte_rate": 1e6}}))[quota]
                assert limited is None or isinstance(limited, errors.InvalidRequest)
                assert await admin.alter_client_quotas({quota: {"producer_byte_rate": None}}) == {quota: None}
                given = await admin.alter_user_scram_credentials([ScramUpsertion(topic, "secret")])
                if given[topic] is None:
                    assert await admin.alter_user_scram_credentials([ScramDeletion(topic)]) == {topic: None}
                else:
                    assert isinstance(given[topic], errors.SecurityDisabled)
                [broker_id, *_] = (await admin.describe_cluster()).brokers
                moved = await admin.alter_reassignments({here: [broker_id], absent: [broker_id, 9_999]})
                assert moved[here] is None and isinstance(moved[absent], errors.InvalidReplicaAssignment)
                [cancelled] = (await admin.alter_reassignments({here: None})).values()
                assert isinstance(cancelled, errors.NoReassignmentInProgress)

        asyncio.run(run())

    def test_transactions_are_listed_and_described(self, face: Face, topic: str) -> None:
        name = f"{topic}-writer"

        async def run() -> None:
            [tp] = await made(face, topic)
            async with face.admin() as admin:
                part = Client(admin.client.transactions, face.name == "sync")
                async with face.producer(transactional_id=name) as producer:
                    await producer.begin_transaction()
                    await face.outcome(await producer.send(topic, b"x", partition=0))
                    described = await part.describe(name)
                    assert (described.state, described.partitions) == ("Ongoing", (tp,))
                    [known] = (await part.producers([tp]))[tp]
                    assert (known.producer_id, known.start_offset) == (described.producer_id, 0)
                    assert name in [listed.transactional_id for listed in await part.list(states=["Ongoing"])]
                    await producer.commit_transaction()
                with pytest.raises(errors.TransactionalIdNotFound):
                    await part.describe(f"{name}-absent")

        asyncio.run(run())
