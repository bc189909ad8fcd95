import asyncio
import inspect
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from moldau import errors
from moldau.client.administration.admin import Admin, AsyncAdmin, ListedOffset, NewTopic
from moldau.client.administration.configs import AsyncConfigs, ConfigEntry, Configs, Resource
from moldau.client.administration.transactions import AsyncTransactions, Transactions
from moldau.client.consuming.consumer import Consumer
from moldau.client.producing.producer import Producer
from moldau.errors import ConfigError, ErrorCode, KafkaError
from moldau.names import OffsetAndMetadata, TopicPartition
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
        assert admin.group_offsets(group) == {tp: OffsetAndMetadata(1, leader_epoch=0)}
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


LIFE = {"start", "close"}


@pytest.mark.parametrize(
    ("face", "core"), [(Admin, AsyncAdmin), (Configs, AsyncConfigs), (Transactions, AsyncTransactions)]
)
def test_both_faces_have_the_same_methods_with_the_same_parameters_and_docstrings(face: type, core: type) -> None:
    methods = {n: m for n, m in inspect.getmembers(core, inspect.iscoroutinefunction) if not n.startswith("_")}
    faces = {n: m for n, m in inspect.getmembers(face, inspect.isfunction) if not n.startswith("_")}
    assert {*methods} - LIFE == {*faces} - LIFE
    for name, method in methods.items():
        assert method.__doc__, name
        if name not in LIFE:
            blocking: Any = faces[name]
            assert blocking.__doc__ == method.__doc__
            assert inspect.signature(blocking) == inspect.signature(method)
            assert not inspect.iscoroutinefunction(blocking)


def test_a_wrong_address_is_refused_at_once_and_a_closed_client_says_so(bootstrap: str) -> None:
    for face in (Admin, AsyncAdmin):
        with pytest.raises(ConfigError, match="'nowhere:x' is not HOST:PORT"):
            face("nowhere:x")
    admin = Admin(bootstrap)
    assert repr(admin) == f"<moldau.Admin 'moldau-admin' at {bootstrap}, open>"
    admin.close()
    admin.close()
    with pytest.raises(errors.ClientClosed):
        admin.list_topics()


def test_several_topics_are_made_expanded_and_deleted_at_once_each_with_its_own_outcome(
    bootstrap: str, topic: str
) -> None:
    one, two, wrong = f"{topic}-one", f"{topic}-two", f"{topic}-wrong"
    with Admin(bootstrap) as admin:
        wanted = [one, NewTopic(two, 2, 1, {"retention.ms": 5}), NewTopic(wrong, configs={"no.such": 1})]
        assert admin.create_topics(wanted, validate_only=True)[two] is None
        assert two not in admin.list_topics()
        made = admin.create_topics(wanted)
        assert list(made) == [one, two, wrong]
        assert (made[one], made[two]) == (None, None)
        assert isinstance(made[wrong], errors.InvalidConfig)
        assert isinstance(admin.create_topics([two, wrong])[two], errors.TopicAlreadyExists)
        expanded = admin.expand_topics({one: 3, two: 1})
        assert expanded[one] is None and isinstance(expanded[two], errors.InvalidPartitions)
        views = admin.describe_topics([one, two])
        assert {name: len(view.partitions) for name, view in views.items()} == {one: 3, two: 2}
        assert views[two].partitions[1].isr == (views[two].partitions[1].leader,)
        deleted = admin.delete_topics([one, two, "absent"])
        assert (deleted[one], deleted[two]) == (None, None)
        assert isinstance(deleted["absent"], errors.UnknownTopicOrPartition)


def test_errors_have_a_type_for_each_meaning(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, configs={"cleanup.policy": ["compact"], "preallocate": False})
        with pytest.raises(errors.TopicAlreadyExists):
            admin.create_topic(topic)
        with pytest.raises(errors.InvalidReplicationFactor):
            admin.create_topic(f"{topic}-2", replication_factor=3)
        with pytest.raises(errors.InvalidReplicaAssignment):
            admin.create_topic(f"{topic}-2", assignment={0: [7]})
        with pytest.raises(errors.InvalidTopic):
            admin.create_topic("no/slash")
        with pytest.raises(errors.PolicyViolation):
            admin.delete_records({TopicPartition(topic, 0): -1})
        for ask in (admin.watermarks, admin.topic_configs, admin.delete_topic, lambda t: admin.describe_topics([t])):
            with pytest.raises(errors.UnknownTopicOrPartition):
                ask("absent")
        with pytest.raises(errors.UnknownTopicOrPartition):
            admin.list_offsets({TopicPartition(topic, 7): "latest"})
        with pytest.raises(errors.GroupIdNotFound):
            admin.group_lag("absent")
        with pytest.raises(errors.TransactionalIdNotFound):
            admin.transactions.describe("absent")
        with pytest.raises(ConfigError, match="'middle' is not a time, nor one of earliest, latest, max_timestamp"):
            admin.list_offsets({TopicPartition(topic, 0): "middle"})  # type: ignore[dict-item]


def test_a_partition_that_metadata_do_not_have_is_named_long_before_the_time_out(bootstrap: str, topic: str) -> None:
    absent = TopicPartition(topic, 7)
    with Admin(bootstrap, default_api_timeout_ms=7 * 86_400_000) as admin:
        admin.create_topic(topic)
        asked: list[Callable[[], object]] = [
            lambda: admin.lags({absent: 0}),
            lambda: admin.transactions.producers([absent]),
            lambda: admin.transactions.hanging([absent], 0),
            lambda: admin.transactions.abort(absent, 1, 0, 0),
        ]
        for ask in asked:
            with pytest.raises(errors.NoSuchPartition, match=f"partition 7 of topic {topic}: unknown topic"):
                ask()


def test_offsets_are_listed_by_position_and_by_time(bootstrap: str, topic: str) -> None:
    tp, noon = TopicPartition(topic, 0), datetime(2026, 5, 17, 12, tzinfo=UTC)
    noon_ms = int(noon.timestamp() * 1000)
    with Producer(bootstrap) as producer:
        for minute in (0, 5, 3):
            producer.send(topic, b"x", timestamp_ms=noon_ms + minute * 60_000)
    with Admin(bootstrap) as admin:
        assert admin.list_offsets({tp: "earliest"}) == {tp: ListedOffset(0, None, 0)}
        assert admin.list_offsets({tp: "latest"}, isolation_level="read_committed") == {tp: ListedOffset(3, None, 0)}
        assert admin.list_offsets({tp: noon}) == {tp: ListedOffset(0, noon_ms, 0)}
        assert admin.list_offsets({tp: "max_timestamp"}) == {tp: ListedOffset(1, noon_ms + 300_000, 0)}
        assert admin.offsets({tp: noon_ms + 60_000}) == {tp: 1}
        assert admin.list_offsets({tp: noon_ms + 300_001}) == {tp: None}
        assert admin.offsets({tp: noon_ms + 300_001}) == {tp: -1}
        with pytest.raises(errors.OffsetOutOfRange):
            admin.delete_records({tp: 4})


def test_offsets_of_a_group_are_altered_lag_behind_and_are_deleted(bootstrap: str, topic: str, group: str) -> None:
    tp, other = TopicPartition(topic, 0), TopicPartition(topic, 1)
    with Admin(bootstrap) as admin, Producer(bootstrap) as producer:
        admin.create_topic(topic, partitions=2)
        for _ in range(3):
            producer.send(topic, b"x", partition=0)
        producer.flush()
        admin.alter_group_offsets(group, {tp: 1, other: OffsetAndMetadata(0, "by hand")})
        assert admin.group_offsets(group) == {tp: OffsetAndMetadata(1), other: OffsetAndMetadata(0, "by hand")}
        assert {p: lag.records for p, lag in admin.group_lag(group).items()} == {tp: 2, other: 0}
        assert admin.list_groups(states=["Empty"], types=["classic"])
        assert group not in [one.group_id for one in admin.list_groups(states=["Stable"])]
        assert admin.describe_groups([group])[group].state == "Empty"
        admin.delete_group_offsets(group, [tp])
        assert admin.group_offsets(group) == {other: OffsetAndMetadata(0, "by hand")}
        outcomes = admin.delete_groups([group, "absent"])
        assert outcomes[group] is None and isinstance(outcomes["absent"], errors.GroupIdNotFound)


def test_settings_are_described_by_the_kind_of_resource(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic)
        [broker_id] = admin.describe_cluster().brokers
        found = admin.configs.describe_all([("broker", str(broker_id)), (Resource.TOPIC, topic)])
        assert "num.partitions" in [one.name for one in found[Resource.BROKER, str(broker_id)]]
        assert found[Resource.TOPIC, topic] == admin.topic_configs(topic)
        admin.configs.alter("topic", topic, {"retention.ms": 7}, validate_only=True)
        assert not [one for one in admin.topic_configs(topic) if not one.is_default]
        admin.configs.alter("group", topic, {"consumer.session.timeout.ms": 50_000})
        assert topic in admin.configs.list_resources("group")
        with pytest.raises(ConfigError, match="'bridge' is not one of topic, broker, logger, client_metrics, group"):
            admin.configs.describe("bridge", "1")  # type: ignore[arg-type]


def test_a_broker_tells_its_versions_features_and_log_folders(bootstrap: str, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    with Producer(bootstrap) as producer:
        producer.send(topic, b"x" * 1000)
    with Admin(bootstrap) as admin:
        [broker_id] = admin.describe_cluster().brokers
        assert admin.api_versions()["Metadata"].high >= 12
        features = admin.describe_features(broker_id)
        assert features.finalized["transaction.version"] == features.supported["transaction.version"]._replace(low=2)
        [folder] = admin.describe_log_dirs()[broker_id]
        assert folder.error is None and (folder.total_bytes or 0) > (folder.usable_bytes or 0) > 0
        assert folder.replicas[tp].size_bytes > 1000
        assert [*admin.describe_log_dirs([broker_id], topics=[topic])[broker_id][0].replicas] == [tp]


def test_elections_reassignments_quotas_and_credentials_of_one_broker(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic)
        tp, absent = TopicPartition(topic, 0), TopicPartition("absent", 0)
        elected = admin.elect_leaders([tp, absent])
        assert isinstance(elected[tp], errors.ElectionNotNeeded)
        assert isinstance(elected[absent], errors.UnknownTopicOrPartition)
        assert admin.list_reassignments() == {} == admin.list_reassignments([tp])
        assert admin.describe_client_quotas() == {} == admin.describe_client_quotas({"user": None}, strict=True)
        assert admin.describe_user_scram_credentials() == {}
        with pytest.raises(errors.ResourceNotFound):
            admin.describe_user_scram_credentials(["nobody"])
