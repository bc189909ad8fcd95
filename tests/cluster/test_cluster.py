"""The cluster as a broker sees it: images, subscribers, and that everything outlives the process."""

import asyncio
import json
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest

from moldau.cluster import layout
from moldau.cluster.alterations import Alteration, OpType
from moldau.cluster.cluster import Cluster
from moldau.cluster.controller import MorePartitions, NewTopic, Refusal
from moldau.cluster.embedded import EmbeddedStore
from moldau.cluster.image import BrokerImage, Endpoint, Image, TopicImage
from moldau.cluster.store import Set
from moldau.errors import ErrorCode, StorageError
from moldau.names import OFFSETS_TOPIC, TopicPartition, long_id, short_id
from tests.cluster.opening import open_cluster

ELSEWHERE = Endpoint("PLAINTEXT", "PLAINTEXT", "elsewhere", 1234)


def test_a_new_cluster_gets_an_id_that_it_keeps(tmp_path: Path) -> None:
    async def scenario() -> list[str]:
        found = []
        for _ in range(2):
            cluster = await open_cluster(tmp_path)
            found.append(cluster.image.cluster_id)
            await cluster.close()
        return found

    first, second = asyncio.run(scenario())
    assert first == second
    assert len(first) == 22
    assert short_id(long_id(first)) == first
    assert not first.startswith("-")


def test_a_registered_broker_is_in_the_image_and_controls(tmp_path: Path) -> None:
    async def scenario() -> Image:
        cluster = await open_cluster(tmp_path, {"broker.rack": "r1"})
        await cluster.registration.register([ELSEWHERE])
        await cluster.close()
        return cluster.image

    image = asyncio.run(scenario())
    assert image.controller_id == 1
    assert list(image.brokers.values()) == [BrokerImage(1, (ELSEWHERE,), "r1")]


def test_everything_that_was_answered_is_there_after_a_restart(tmp_path: Path) -> None:
    async def scenario() -> tuple[Image, Image]:
        cluster = await open_cluster(tmp_path)
        await cluster.topics.create([NewTopic("a", 3, configs=[("retention.ms", "5")]), NewTopic("b"), NewTopic("c")])
        await cluster.topics.create_partitions([MorePartitions("a", 5)])
        await cluster.configs.alter_topic("b", [Alteration("cleanup.policy", OpType.SET, "compact")])
        await cluster.configs.alter_broker("1", [Alteration("log.segment.bytes", OpType.SET, "2000000")])
        await cluster.topics.delete([("c", None)])
        before = cluster.image
        await cluster.close()
        cluster = await open_cluster(tmp_path)
        await cluster.close()
        return before, cluster.image

    before, after = asyncio.run(scenario())
    assert before == after
    assert list(after.topics) == ["a", "b"]
    assert len(after.topics["a"].partitions) == 5
    assert after.topics["a"].overrides == {"retention.ms": "5"}
    assert list(after.deleted.values()) == ["c"]
    assert after.partition(TopicPartition("a", 4)) is not None
    assert after.partition(TopicPartition("a", 5)) is None
    assert after.topics_by_id[after.topics["b"].id].name == "b"


def test_subscribers_see_the_next_image_before_the_change_is_answered(tmp_path: Path) -> None:
    seen: list[tuple[list[str], Sequence[str]]] = []
    finished: list[str] = []

    async def scenario() -> None:
        cluster = await open_cluster(tmp_path)

        async def slow() -> None:
            await asyncio.sleep(0)
            finished.append("made")

        cluster.metadata.subscribe(lambda image, names: seen.append((list(image.topics), names)))
        cluster.metadata.subscribe(lambda image, names: slow())
        await cluster.topics.create([NewTopic("a"), NewTopic("a b")])
        assert finished == ["made"]
        await cluster.topics.create([NewTopic("a")])
        await cluster.topics.create([NewTopic("v")], validate_only=True)
        await cluster.configs.alter_broker("<default>", [Alteration("log.roll.ms", OpType.SET, "77")])
        await cluster.topics.delete([("a", None)])
        await cluster.close()

    asyncio.run(scenario())
    assert seen == [(["a"], ["a"]), (["a"], ["a"]), ([], ["a"])]


def test_settings_of_topics_follow_those_of_the_broker(tmp_path: Path) -> None:
    async def scenario() -> list[int]:
        cluster = await open_cluster(tmp_path)
        await cluster.topics.create([NewTopic("a")])
        found = [cluster.metadata.topic_config("a").segment_bytes]
        for broker, value in (("<default>", "3000000"), ("1", "2000000")):
            await cluster.configs.alter_broker(broker, [Alteration("log.segment.bytes", OpType.SET, value)])
            found.append(cluster.metadata.topic_config("a").segment_bytes)
        await cluster.configs.alter_topic("a", [Alteration("segment.bytes", OpType.SET, "1500000")])
        found.append(cluster.metadata.topic_config("a").segment_bytes)
        await cluster.close()
        return found

    assert asyncio.run(scenario()) == [1 << 30, 3_000_000, 2_000_000, 1_500_000]


def test_settings_that_no_broker_can_have_are_refused(tmp_path: Path) -> None:
    async def scenario() -> list[Refusal | None]:
        cluster = await open_cluster(tmp_path)
        answers = []
        for name, value in (
            ("log.segment.bytes", "x"),
            ("log.cleaner.min.cleanable.ratio", "2"),
            ("log.retention.ms", "0"),
            ("log.cleaner.max.compaction.lag.ms", "10"),
            ("log.cleaner.min.compaction.lag.ms", "11"),
        ):
            answers.append(await cluster.configs.alter_broker("1", [Alteration(name, OpType.SET, value)]))
        await cluster.close()
        return answers

    codes = [answer.code if answer else ErrorCode.NONE for answer in asyncio.run(scenario())]
    bad = ErrorCode.INVALID_REQUEST
    assert codes == [bad, bad, bad, ErrorCode.NONE, bad]


def test_what_a_topic_was_allowed_stays_when_the_broker_changes(tmp_path: Path) -> None:
    async def scenario() -> tuple[int, int]:
        cluster = await open_cluster(tmp_path)
        await cluster.topics.create([NewTopic("a", configs=[("min.compaction.lag.ms", "100")])])
        changed = Alteration("log.cleaner.max.compaction.lag.ms", OpType.SET, "50")
        assert await cluster.configs.alter_broker("1", [changed]) is None
        config = cluster.metadata.topic_config("a")
        await cluster.close()
        return config.min_compaction_lag_ms, config.max_compaction_lag_ms

    assert asyncio.run(scenario()) == (100, 50)


def test_changes_asked_for_at_once_are_made_one_after_the_other(tmp_path: Path) -> None:
    async def scenario() -> list[list[tuple[str, TopicImage | Refusal]]]:
        cluster = await open_cluster(tmp_path)
        results = await asyncio.gather(*(cluster.topics.create([NewTopic("a")]) for _ in range(5)))
        await cluster.close()
        return results

    codes = [made[0][1].code if isinstance(made[0][1], Refusal) else ErrorCode.NONE for made in asyncio.run(scenario())]
    assert codes == [ErrorCode.NONE] + [ErrorCode.TOPIC_ALREADY_EXISTS] * 4


def test_a_change_is_made_to_its_end_even_if_whoever_asked_goes_away(tmp_path: Path) -> None:
    async def scenario() -> tuple[Image, Image]:
        cluster = await open_cluster(tmp_path)
        asking = asyncio.ensure_future(cluster.topics.create([NewTopic("a")]))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        assert asking.cancelled()
        await cluster.topics.create([NewTopic("b")])
        shown = cluster.image
        await cluster.close()
        cluster = await open_cluster(tmp_path)
        await cluster.close()
        return shown, cluster.image

    shown, stored = asyncio.run(scenario())
    assert list(shown.topics) == list(stored.topics) == ["a", "b"]


def test_the_offsets_topic_is_made_once_with_what_it_needs(tmp_path: Path) -> None:
    async def scenario() -> tuple[list[TopicImage | Refusal], Cluster]:
        cluster = await open_cluster(tmp_path)
        made = await asyncio.gather(*(cluster.topics.ensure_offsets_topic() for _ in range(3)))
        await cluster.close()
        return made, cluster

    made, cluster = asyncio.run(scenario())
    topic = cluster.image.topics[OFFSETS_TOPIC]
    assert made == [topic] * 3
    assert len(topic.partitions) == 3
    config = cluster.metadata.topic_config(OFFSETS_TOPIC)
    assert (config.cleanup_policy, config.segment_bytes) == (("compact",), 104_857_600)
    assert len(topic.partitions[0].replicas) == 1


def test_after_an_unclean_stop_partitions_are_led_in_a_new_epoch(tmp_path: Path) -> None:
    async def scenario() -> list[int]:
        epochs = []
        for clean in (True, True, False, False):
            cluster = await open_cluster(tmp_path, clean=clean)
            part = (await cluster.topics.ensure("a")).partitions[0]  # type: ignore[union-attr]
            epochs.append(part.leader_epoch)
            await cluster.close()
        return epochs

    assert asyncio.run(scenario()) == [0, 0, 1, 2]


def test_a_deleted_topic_is_remembered_until_the_disks_have_forgotten_it(tmp_path: Path) -> None:
    async def scenario() -> tuple[uuid.UUID, list[dict[uuid.UUID, str]]]:
        cluster = await open_cluster(tmp_path)
        topic = await cluster.topics.ensure("a")
        assert isinstance(topic, TopicImage)
        await cluster.topics.delete([(None, topic.id)])
        states = [dict(cluster.image.deleted)]
        again = await cluster.topics.ensure("a")
        assert isinstance(again, TopicImage)
        assert again.id != topic.id
        await cluster.topics.forget_deleted([topic.id, again.id])
        states.append(dict(cluster.image.deleted))
        await cluster.close()
        return topic.id, states

    topic_id, states = asyncio.run(scenario())
    assert states == [{topic_id: "a"}, {}]


def test_producer_ids_come_in_blocks_and_a_restart_begins_the_next(tmp_path: Path) -> None:
    async def scenario() -> list[int]:
        found = []
        for count in (2, layout.PRODUCER_IDS_PER_BLOCK + 1, 1):
            cluster = await open_cluster(tmp_path)
            for _ in range(count):
                taken = cluster.producer_ids.next()
                found.append(taken if isinstance(taken, int) else await taken)
            await cluster.close()
        return found

    found = asyncio.run(scenario())
    assert found == [0, 1, *range(1000, 2001), 3000]


def test_producer_ids_taken_at_once_differ(tmp_path: Path) -> None:
    async def scenario() -> list[int]:
        cluster = await open_cluster(tmp_path)

        async def take() -> int:
            taken = cluster.producer_ids.next()
            return taken if isinstance(taken, int) else await taken

        found = await asyncio.gather(*(take() for _ in range(1500)))
        await cluster.close()
        return found

    assert len(set(asyncio.run(scenario()))) == 1500


def test_the_store_holds_the_documents_that_kafka_kept_in_zookeeper(tmp_path: Path) -> None:
    async def scenario() -> TopicImage | Refusal:
        cluster = await open_cluster(tmp_path)
        topic = await cluster.topics.ensure("a")
        taken = cluster.producer_ids.next()
        assert not isinstance(taken, int)
        await taken
        broker = document("/brokers/ids/1")
        assert broker["endpoints"] == ["PLAINTEXT://localhost:9092"]
        assert document("/controller")["brokerid"] == 1
        await cluster.close()
        return topic

    def document(path: str) -> dict[str, object]:
        store = open_again()
        node = store.get(path)
        assert node is not None
        found: dict[str, object] = json.loads(node.data)
        return found

    stores: list[EmbeddedStore] = []

    def open_again() -> EmbeddedStore:
        if not stores:
            stores.append(ReadOnly(tmp_path))
        return stores[0]

    class ReadOnly(EmbeddedStore):
        def _prepare(self) -> None:
            """Looks without ending the ephemeral nodes of the one who is there."""

    topic = asyncio.run(scenario())
    assert isinstance(topic, TopicImage)
    assert document("/brokers/topics/a")["topic_id"] == short_id(topic.id)
    assert document("/brokers/topics/a")["partitions"] == {"0": [1]}
    state = document("/brokers/topics/a/partitions/0/state")
    assert (state["leader"], state["leader_epoch"], state["isr"]) == (1, 0, [1])
    assert document("/config/topics/a") == {"version": 1, "config": {}}
    assert document("/latest_producer_id_block")["block_end"] == "999"
    assert open_again().get("/brokers/ids/1") is None
    open_again().close()


def test_metadata_that_is_not_what_it_should_be_is_refused_by_path(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = await open_cluster(tmp_path)
        await cluster.topics.ensure("a")
        await cluster.close()
        store = EmbeddedStore(tmp_path)
        store.multi([Set("/brokers/topics/a", b'{"partitions": []}')])
        store.close()
        await open_cluster(tmp_path)

    with pytest.raises(StorageError, match="/brokers/topics/a"):
        asyncio.run(scenario())
