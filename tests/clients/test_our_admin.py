"""Our own admin client, both faces, against the broker under test: the same with Moldau and with Apache Kafka.

`MOLDAU_TEST_BROKER=HOST:PORT` names another broker than ours.
"""

import asyncio
import uuid
from datetime import UTC, datetime

import pytest

from moldau import NewTopic, TopicPartition, errors
from moldau.admin import Acl, AclFilter, ScramDeletion, ScramUpsertion
from tests.clients.faces import Client, Face, filled, made, soon


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
        """Without an authorizer neither has ACLs."""
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
                assert await admin.alter_client_quotas({quota: {"producer_byte_rate": 1e6}}) == {quota: None}
                assert await admin.describe_client_quotas(dict(quota)) == {quota: {"producer_byte_rate": 1e6}}
                assert await admin.alter_client_quotas({quota: {"producer_byte_rate": None}}) == {quota: None}
                given = await admin.alter_user_scram_credentials([ScramUpsertion(topic, "secret")])
                assert given == {topic: None}
                assert await admin.alter_user_scram_credentials([ScramDeletion(topic)]) == {topic: None}
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
