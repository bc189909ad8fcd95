"""What a broker hosts follows the cluster's image: topics made, grown, changed and deleted, over restarts too."""

import asyncio
import threading
import uuid
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from moldau.cluster.cluster import Cluster
from moldau.cluster.controlling.alterations import Alteration
from moldau.cluster.controlling.controller import MorePartitions, NewTopic
from moldau.cluster.state.image import Image, PartitionImage, TopicImage
from moldau.errors import ErrorCode
from moldau.log.folders.folders import LogFolders
from moldau.names import BrokerId, TopicPartition
from moldau.records.batch import Row, encode_batch
from moldau.replication.replicas import Replicas
from moldau.replication.upkeep import Upkeep
from moldau.runtime import Runtime
from tests.cluster.opening import open_cluster
from tests.replication.producing import produce

NOW_MS = 1_700_000_000_000
SET = 0

Scenario = Callable[[Cluster, Replicas, LogFolders], Awaitable[None]]


def in_broker(
    folder: Path, scenario: Scenario, settings: dict[str, str] | None = None, *, clean: bool = True
) -> list[str]:
    """Live through `scenario` with what is in the folder; returns the strays that loading found."""

    async def live() -> list[str]:
        runtime = Runtime()
        logs = LogFolders([folder], runtime)
        cluster = await open_cluster(folder, {"log.segment.delete.delay.ms": "0"}, clean=all(logs.directories.values()))
        partitions = Replicas(BrokerId(1), cluster, logs, runtime)
        strays = await partitions.load()
        cluster.metadata.subscribe(partitions.follow)
        try:
            await scenario(cluster, partitions, logs)
        finally:
            await cluster.close()
            logs.close(high_watermarks=partitions.high_watermarks())
        return [Path(path).name for path in strays if not Path(path).name.startswith("metadata")]

    return asyncio.run(live())


def batch(value: bytes) -> memoryview:
    return memoryview(encode_batch([Row(None, value, NOW_MS)]))


def test_a_topic_that_was_made_can_be_written_to_at_once_and_is_there_after_a_restart(tmp_path: Path):
    async def make(cluster: Cluster, replicas: Replicas, logs: LogFolders) -> None:
        await cluster.topics.create([NewTopic("a", 2, 1)])
        replica = replicas.find("a", None, 1)
        assert replica is not None
        assert replicas.find("a", None, 2) is None
        assert replicas.find("a", None, -1) is None
        assert replicas.find(None, replica.topic_id.bytes, 1) is replica
        assert produce(replica, batch(b"x"), NOW_MS).base_offset == 0  # type: ignore[union-attr]
        assert replica.high_watermark == 1

    async def look(cluster: Cluster, replicas: Replicas, logs: LogFolders) -> None:
        replica = replicas.find("a", None, 1)
        assert replica is not None
        assert replica.high_watermark == 1
        assert len(list(replicas)) == 2

    in_broker(tmp_path, make)
    in_broker(tmp_path, look)


def test_a_partition_whose_log_is_still_being_made_is_not_led_yet_and_no_folder_is_blamed(tmp_path: Path):
    """As Kafka 4.3.1 answers a topic that is deleted and created again under load: 6, and 3 in between."""

    async def scenario(cluster: Cluster, replicas: Replicas, logs: LogFolders) -> None:
        answers: list[ErrorCode] = []

        def look(image: Image, names: Sequence[str]) -> None:  # before `follow` has had a turn
            topic_id = image.topics["a"].id.bytes
            last = len(image.topics["a"].partitions) - 1
            answers.extend([replicas.absence("a", None, last), replicas.absence(None, topic_id, last)])
            answers.append(replicas.absence("a", None, last + 1))

        cluster.metadata.subscribe(look)
        await cluster.topics.create([NewTopic("a", 1, 1)])
        await cluster.topics.create_partitions([MorePartitions("a", 2)])
        not_led, unknown = ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert answers == [not_led, not_led, unknown] * 2
        assert replicas.absence("b", None, 0) is unknown
        assert replicas.absence(None, bytes(16), 0) is ErrorCode.UNKNOWN_TOPIC_ID

    in_broker(tmp_path, scenario)


def test_a_cancelled_change_ends_only_when_its_thread_no_longer_touches_the_folders(tmp_path: Path):
    """A broker of several that is stopped while it makes partitions closes its folders next."""

    async def scenario(cluster: Cluster, replicas: Replicas, logs: LogFolders) -> None:
        goes_on = threading.Event()
        create = logs.folders[0].create

        def slowly(*arguments: Any) -> Any:
            goes_on.wait()
            return create(*arguments)

        logs.folders[0].create = slowly  # type: ignore[method-assign]
        topic = TopicImage("a", uuid.uuid4(), (PartitionImage(1, 0, (1,), (1,)),), {})
        cluster.metadata.image = cluster.image.with_topics({"a": topic})
        following = asyncio.ensure_future(replicas.follow(cluster.image, ["a"]))
        while not replicas._following.locked():
            await asyncio.sleep(0)
        following.cancel()
        for _ in range(10):
            await asyncio.sleep(0)
        is_over = following.done()
        goes_on.set()
        await asyncio.wait([following])
        assert not is_over and following.cancelled()
        assert list(logs.folders[0].logs) == [TopicPartition("a", 0)]

    in_broker(tmp_path, scenario)


def test_a_deleted_topic_is_gone_its_readers_are_woken_and_its_name_is_free(tmp_path: Path):
    async def scenario(cluster: Cluster, replicas: Replicas, logs: LogFolders) -> None:
        await cluster.topics.create([NewTopic("a", 1, 1)])
        first = replicas.find("a", None, 0)
        assert first is not None
        produce(first, batch(b"old"), NOW_MS)
        await cluster.topics.delete([("a", None)])
        assert replicas.find("a", None, 0) is None
        assert first.topic_id.bytes not in replicas.names
        await cluster.topics.create([NewTopic("a", 1, 1)])
        second = replicas.find("a", None, 0)
        assert second is not None
        assert second.high_watermark == 0
        assert second.topic_id != first.topic_id

    in_broker(tmp_path, scenario)


def test_the_log_of_a_topic_that_is_missing_stays_and_is_served_again(tmp_path: Path):
    """The topic was not deleted: nobody can read its metadata now."""

    async def scenario(cluster: Cluster, replicas: Replicas, logs: LogFolders) -> None:
        await cluster.topics.create([NewTopic("a", 1, 1)])
        first = replicas.find("a", None, 0)
        assert first is not None
        produce(first, batch(b"old"), NOW_MS)
        image = cluster.image
        await cluster.metadata.show(image.with_topics({"a": None}), ["a"])
        assert replicas.find("a", None, 0) is None
        assert (tmp_path / "a-0").exists()
        await cluster.metadata.show(image, ["a"])
        again = replicas.find("a", None, 0)
        assert again is not None
        assert (again.high_watermark, again.log.log_end_offset) == (1, 1)
        another = image.topics["a"]._replace(id=uuid.uuid4())
        await cluster.metadata.show(image.with_topics({"a": None}), ["a"])
        await cluster.metadata.show(image.with_topics({"a": another}), ["a"])
        empty = replicas.find("a", None, 0)
        assert empty is not None
        assert (empty.topic_id, empty.log.log_end_offset) == (another.id, 0)

    in_broker(tmp_path, scenario)


def test_more_partitions_and_new_settings_reach_what_is_hosted(tmp_path: Path):
    async def scenario(cluster: Cluster, replicas: Replicas, logs: LogFolders) -> None:
        await cluster.topics.create([NewTopic("a", 1, 1)])
        await cluster.topics.create_partitions([MorePartitions("a", 3)])
        assert replicas.find("a", None, 2) is not None
        await cluster.configs.alter_topics([("a", [Alteration("max.message.bytes", SET, "1000")])])
        replica = replicas.find("a", None, 0)
        assert replica is not None
        assert produce(replica, batch(b"x" * 2000), NOW_MS).error

    in_broker(tmp_path, scenario)


def test_a_folder_that_belongs_to_no_topic_is_left_alone_and_reported(tmp_path: Path):
    async def nothing(cluster: Cluster, replicas: Replicas, logs: LogFolders) -> None:
        assert not list(replicas)

    (tmp_path / "foreign-0").mkdir(parents=True)
    (tmp_path / "foreign-0" / "00000000000000000000.log").write_bytes(b"mine")
    assert in_broker(tmp_path, nothing) == ["foreign-0"]
    assert (tmp_path / "foreign-0" / "00000000000000000000.log").read_bytes() == b"mine"


def test_a_record_of_2013_is_deleted_by_default_and_kept_where_retention_says_so(tmp_path: Path):
    """As Kafka: retention goes by the records' own time, and takes the active segment too."""
    in_2013 = 1_370_000_000_000

    async def scenario(cluster: Cluster, replicas: Replicas, logs: LogFolders) -> None:
        await cluster.topics.create([NewTopic("short", 1, 1), NewTopic("long", 1, 1, (), [("retention.ms", "-1")])])
        upkeep = Upkeep(cluster.metadata, replicas, logs, cluster.metadata.config, Runtime())
        retention = next(job for job in upkeep.jobs if job.name == "retention")
        for name in ("short", "long"):
            replica = replicas.find(name, None, 0)
            assert replica is not None
            records = memoryview(encode_batch([Row(None, b"flight", in_2013)]))
            assert not produce(replica, records, NOW_MS).error
        await retention.work()
        starts = {replica.tp.topic: replica.log.log_start_offset for replica in replicas}
        assert starts == {"short": 1, "long": 0}

    in_broker(tmp_path, scenario)


def test_others_have_a_turn_after_each_log_that_retention_deletes_from(tmp_path: Path):
    async def scenario(cluster: Cluster, replicas: Replicas, logs: LogFolders) -> None:
        await cluster.topics.create([NewTopic("old", 5, 1)])
        upkeep = Upkeep(cluster.metadata, replicas, logs, cluster.metadata.config, Runtime())
        retention = next(job for job in upkeep.jobs if job.name == "retention")
        for replica in replicas:
            assert not produce(replica, memoryview(encode_batch([Row(None, b"old", 1)])), NOW_MS).error
        starts: set[int] = set()

        async def look() -> None:
            while True:
                starts.add(sum(replica.log.log_start_offset for replica in replicas))
                await asyncio.sleep(0)

        looking = asyncio.ensure_future(look())
        await asyncio.sleep(0)
        await retention.work()
        looking.cancel()
        assert starts >= {0, 1, 2, 3, 4}

    in_broker(tmp_path, scenario)


def test_a_topic_that_is_back_takes_records(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster, replicas: Replicas, logs: LogFolders) -> None:
        await cluster.topics.create([NewTopic("a", 1, 1)])
        first = replicas.find("a", None, 0)
        assert first is not None
        assert not produce(first, batch(b"old"), 1_700_000_000_000).error
        image = cluster.image
        await cluster.metadata.show(image.with_topics({"a": None}), ["a"])
        await cluster.metadata.show(image, ["a"])
        again = replicas.find("a", None, 0)
        assert again is not None
        assert not produce(again, batch(b"new"), 1_700_000_000_000).error

    in_broker(tmp_path, scenario)


def moved(image: Image, *replicas: int) -> Image:
    """The partition of `a` is on these brokers, of which the first leads."""
    topic = image.topics["a"]
    [part] = topic.partitions
    after = part._replace(leader=replicas[0], leader_epoch=part.leader_epoch + 1, isr=replicas)
    return image.with_topics({"a": topic._replace(partitions=(after.with_replicas(replicas),))})


def test_a_replica_that_is_moved_to_another_broker_is_not_served_and_begins_empty_if_it_comes_back(
    tmp_path: Path,
) -> None:
    async def scenario(cluster: Cluster, replicas: Replicas, logs: LogFolders) -> None:
        await cluster.topics.create([NewTopic("a", 1, 1)])
        first = replicas.find("a", None, 0)
        assert first is not None
        produce(first, batch(b"old"), NOW_MS)
        image = cluster.image
        await cluster.metadata.show(moved(image, 2), ["a"])
        assert replicas.find("a", None, 0) is None and not list(replicas)
        assert not first.leadership.leads
        for topic_id in (None, first.topic_id.bytes):
            assert replicas.absence("a", topic_id, 0) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        await cluster.metadata.show(moved(cluster.image, 1, 2), ["a"])
        again = replicas.find("a", None, 0)
        assert again is not None and again is not first
        assert (again.log.log_end_offset, again.leadership.leader_epoch) == (0, 2)

    in_broker(tmp_path, scenario)


def test_the_log_of_a_replica_that_is_moved_away_is_deleted_and_no_other(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster, replicas: Replicas, logs: LogFolders) -> None:
        await cluster.topics.create([NewTopic("a", 1, 1), NewTopic("b", 1, 1)])
        await cluster.metadata.show(moved(cluster.image, 2), ["a"])
        assert logs.folder_of(TopicPartition("a", 0)) is None
        assert logs.folder_of(TopicPartition("b", 0)) is not None
        await cluster.topics.delete([("a", None)])
        assert logs.folder_of(TopicPartition("b", 0)) is not None

    in_broker(tmp_path, scenario)
