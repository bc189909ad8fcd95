import asyncio

import pytest

from moldau.client.admin import Admin, AsyncAdmin
from moldau.client.configs import ConfigEntry
from moldau.client.consumer import Consumer
from moldau.client.membership import OffsetAndMetadata
from moldau.client.producer import Producer
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition
from tests.newer_members import joined


def code_of(refused: "pytest.ExceptionInfo[KafkaError]") -> ErrorCode:
    return refused.value.code


def test_a_topic_is_made_described_grown_and_deleted(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=2)
        assert list(admin.describe_topics([topic])[topic].partitions) == [0, 1]
        assert topic in admin.list_topics()
        admin.create_partitions(topic, 5)
        assert list(admin.describe_topics([topic])[topic].partitions) == [0, 1, 2, 3, 4]
        admin.delete_topic(topic)
        assert topic not in admin.list_topics()


def test_what_cannot_be_is_refused_with_the_code_and_a_sentence(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic)
        with pytest.raises(KafkaError, match=topic) as again:
            admin.create_topic(topic)
        assert code_of(again) == ErrorCode.TOPIC_ALREADY_EXISTS
        with pytest.raises(KafkaError) as unknown:
            admin.delete_topic("not-there")
        assert code_of(unknown) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        with pytest.raises(KafkaError) as missing:
            admin.describe_topics([topic, "not-there"])
        assert code_of(missing) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        with pytest.raises(KafkaError) as fewer:
            admin.create_partitions(topic, 1)
        assert code_of(fewer) == ErrorCode.INVALID_PARTITIONS
        with pytest.raises(KafkaError) as setting:
            admin.alter_topic_configs(topic, {"no.such.setting": "1"})
        assert code_of(setting) == ErrorCode.INVALID_CONFIG


def test_settings_are_set_and_taken_back(bootstrap: str, topic: str) -> None:
    def changed() -> list[ConfigEntry]:
        return [entry for entry in admin.topic_configs(topic) if not entry.is_default]

    with Admin(bootstrap) as admin:
        admin.create_topic(topic, configs={"retention.ms": "1000"})
        assert changed() == [ConfigEntry("retention.ms", "1000", False, False, "topic")]
        admin.alter_topic_configs(topic, {"retention.ms": None, "cleanup.policy": "compact"})
        assert changed() == [ConfigEntry("cleanup.policy", "compact", False, False, "topic")]


def test_records_are_deleted_from_the_front(bootstrap: str, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    with Producer(bootstrap) as producer:
        for _ in range(10):
            producer.send(topic, b"x")
    with Admin(bootstrap) as admin:
        assert admin.watermarks(topic) == {tp: (0, 10)}
        assert admin.delete_records({tp: 4}) == {tp: 4}
        assert admin.watermarks(topic) == {tp: (4, 10)}


def test_a_group_is_listed_described_and_deleted(bootstrap: str, topic: str, group: str) -> None:
    tp = TopicPartition(topic, 0)
    with Producer(bootstrap) as producer:
        producer.send(topic, b"x")
    with Admin(bootstrap) as admin:
        with Consumer(bootstrap, group_id=group, client_id="reader", auto_offset_reset="earliest") as consumer:
            consumer.subscribe([topic])
            while not consumer.poll(100):
                pass
            consumer.commit()
            described = admin.describe_group(group)
            assert (described.type, described.state, described.protocol) == ("classic", "Stable", "range")
            assert [(m.client_id, m.client_host, m.partitions) for m in described.members] == [
                ("reader", "127.0.0.1", [tp])
            ]
            with pytest.raises(KafkaError) as busy:
                admin.delete_group(group)
            assert code_of(busy) == ErrorCode.NON_EMPTY_GROUP
        assert admin.group_offsets(group) == {tp: OffsetAndMetadata(1)}
        assert [listed.state for listed in admin.list_groups() if listed.group_id == group] == ["Empty"]
        admin.delete_group(group)
        assert group not in [listed.group_id for listed in admin.list_groups()]
        assert admin.group_offsets(group) == {}
        with pytest.raises(KafkaError) as unknown:
            admin.describe_group(group)
        assert code_of(unknown) == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_of_the_newer_protocol_is_listed_and_described(bootstrap: str, topic: str, group: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=2)
        admin.group_offsets(group)  # its coordinator is there, and has loaded
        with joined(bootstrap, group, topic):
            described = admin.describe_group(group)
            assert (described.type, described.state, described.protocol) == ("consumer", "Stable", "uniform")
            both = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
            assert [(m.member_id, m.client_id, m.client_host, m.partitions) for m in described.members] == [
                ("m", "reader", "127.0.0.1", both)
            ]
            assert [one.type for one in admin.list_groups() if one.group_id == group] == ["consumer"]


def test_a_cluster_has_brokers_and_a_controller(bootstrap: str) -> None:
    async def run() -> None:
        async with AsyncAdmin(bootstrap) as admin:
            cluster = await admin.describe_cluster()
            assert cluster.controller_id in cluster.brokers
            assert cluster.cluster_id
            assert [str(address) for address in cluster.brokers.values()] == [bootstrap]

    asyncio.run(run())
