"""The one order of changes; two sessions on one store: a second broker does not take over, and each sees what the other
changes."""

import asyncio
import threading
import uuid
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from harness.patience import within
from moldau.cluster import layout
from moldau.cluster.beginning import BrokerConflict
from moldau.cluster.cluster import Cluster
from moldau.cluster.controller import NewTopic, Refusal
from moldau.cluster.image import BrokerImage, Endpoint, Image, PartitionImage, TopicImage
from moldau.cluster.store import Create, Delete, Operation, Set
from moldau.config import broker_config
from moldau.errors import ErrorCode, KafkaError
from moldau.runtime import Runtime
from moldau.simulation.store import ModelStore, StoreSession
from tests.cluster.opening import HERE, open_cluster

THERE = Endpoint("PLAINTEXT", "PLAINTEXT", "there", 9092)
TOPIC = TopicImage("t", uuid.UUID(int=5), (PartitionImage(1, 0, (1,), (1,)),), {})


async def opened(session: StoreSession, broker_id: int = 1) -> Cluster:
    config, _ = broker_config({"node.id": str(broker_id)})
    return await Cluster.open(session, config, Runtime())


def with_one(scenario: Callable[[ModelStore, Cluster], Awaitable[None]]) -> None:
    """Run a scenario with a store, and the cluster of broker 1 in a session of its own."""

    async def whole() -> None:
        store = ModelStore()
        cluster = await opened(store.session())
        await cluster.registration.register([HERE])
        await scenario(store, cluster)
        await cluster.close()

    asyncio.run(within(whole()))


async def shown(cluster: Cluster, condition: Callable[[Image], bool]) -> list[str]:
    """Wait for an image like that, without asking for a change; the topics that were named as changed meanwhile."""
    seen = asyncio.Event()
    names: list[str] = []

    def look(image: Image, changed: Sequence[str]) -> None:
        if not seen.is_set():
            names.extend(changed)
            if condition(image):
                seen.set()

    cluster.metadata.subscribe(look)
    look(cluster.image, [])
    await seen.wait()
    return names


def test_a_second_broker_does_not_take_over_from_a_living_controller() -> None:
    async def scenario(store: ModelStore, cluster: Cluster) -> None:
        controller = store.nodes[layout.CONTROLLER]
        with pytest.raises(BrokerConflict, match=r"broker 1 \(PLAINTEXT://localhost:9092\) is running"):
            await opened(store.session(), 2)
        assert store.nodes[layout.CONTROLLER] is controller
        assert len(store.sessions) == 1, "the session of the one that was refused is over"
        await cluster.topics.create([NewTopic("a")])
        assert list(cluster.image.topics) == ["a"]

    with_one(scenario)


def test_a_second_broker_with_the_same_id_is_refused_with_the_address_of_the_first() -> None:
    async def scenario(store: ModelStore, cluster: Cluster) -> None:
        node = store.nodes["/brokers/ids/1"]
        with pytest.raises(BrokerConflict, match=r"the id 1 is running at PLAINTEXT://localhost:9092"):
            await opened(store.session(), 1)
        assert store.nodes["/brokers/ids/1"] is node

    with_one(scenario)


def test_a_broker_that_registers_leaves_the_node_of_another_one_alone() -> None:
    async def scenario() -> None:
        store = ModelStore()
        cluster, other = await opened(store.session()), store.session()
        other.multi([layout.broker(BrokerImage(1, (THERE,)), 0)])
        with pytest.raises(BrokerConflict, match="PLAINTEXT://there:9092"):
            await cluster.registration.register([HERE])
        assert cluster.image.brokers[1].endpoints == (THERE,)
        other.close()
        await cluster.registration.register([HERE])
        assert cluster.image.brokers[1].endpoints == (HERE,)
        await cluster.close()

    asyncio.run(within(scenario()))


def test_a_broker_follows_when_the_session_of_the_first_is_over() -> None:
    async def scenario() -> None:
        store = ModelStore()
        first = await opened(store.session())
        await first.registration.register([HERE])
        await first.topics.ensure("a")
        await first.close()
        second = await opened(store.session(), 2)
        assert second.image.controller_id == 2
        assert list(second.image.topics) == ["a"]
        await second.close()

    asyncio.run(within(scenario()))


def test_topics_and_settings_of_another_session_are_shown_without_being_asked_for() -> None:
    async def scenario(store: ModelStore, cluster: Cluster) -> None:
        other = store.session()
        other.multi(layout.topic_created(TOPIC))
        assert await shown(cluster, lambda image: image.topics.get("t") == TOPIC) == ["t"]
        other.multi([layout.config("/config/topics/t", {"segment.ms": "7"}, is_new=False)])
        await shown(cluster, lambda image: image.topics["t"].overrides == {"segment.ms": "7"})
        assert cluster.metadata.topic_config("t").segment_ms == 7
        other.multi([layout.config("/config/brokers/1", {"log.segment.bytes": "2000000"}, is_new=True)])
        await shown(cluster, lambda image: "1" in image.broker_overrides)
        assert cluster.metadata.config.log_segment_bytes == 2_000_000
        other.multi(layout.topic_deleted(cluster.image.topics["t"]))
        await shown(cluster, lambda image: not image.topics and list(image.deleted.values()) == ["t"])

    with_one(scenario)


def test_settings_of_another_session_that_cannot_be_in_force_leave_the_present_ones(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(store: ModelStore, cluster: Cluster) -> None:
        other = store.session()
        other.multi([layout.config("/config/brokers/1", {"log.segment.bytes": "many"}, is_new=True)])
        await shown(cluster, lambda image: "1" in image.broker_overrides)
        assert cluster.metadata.config.log_segment_bytes == 1 << 30

    with_one(scenario)
    assert "the previous ones stay in force" in caplog.text


def test_a_change_that_another_session_made_first_is_decided_again() -> None:
    async def scenario(store: ModelStore, cluster: Cluster) -> None:
        other, [own] = store.session(), [one for one in store.sessions if one is store.owners[layout.CONTROLLER]]
        multi = own.multi
        rival = threading.Thread(target=other.multi, args=(layout.topic_created(TOPIC),))

        def late(operations: Sequence[Operation]) -> None:
            if rival.ident is None:
                rival.start()
                rival.join()
            multi(operations)

        own.multi = late  # type: ignore[method-assign]
        [(_, result)] = await cluster.topics.create([NewTopic("t")])
        assert isinstance(result, Refusal)
        assert result.code is ErrorCode.TOPIC_ALREADY_EXISTS
        assert cluster.image.topics["t"] == TOPIC
        own.multi = multi  # type: ignore[method-assign]

    with_one(scenario)


def test_producer_ids_of_two_sessions_differ() -> None:
    async def scenario(store: ModelStore, cluster: Cluster) -> None:
        first = cluster.producer_ids.next()
        assert not isinstance(first, int)
        assert await first == 0
        store.session().multi([layout.producer_ids(2, 1000, 1999, 0)])
        ids = []
        for _ in range(layout.PRODUCER_IDS_PER_BLOCK):
            taken = cluster.producer_ids.next()
            ids.append(taken if isinstance(taken, int) else await taken)
        assert ids == [*range(1, 1000), 2000]

    with_one(scenario)


def test_a_broker_that_is_no_longer_the_controller_changes_nothing() -> None:
    async def scenario(store: ModelStore, cluster: Cluster) -> None:
        other = store.session()
        other.multi([Delete(layout.CONTROLLER), layout.controller(2, 0)])
        await shown(cluster, lambda image: image.controller_id == 2)
        with pytest.raises(KafkaError, match="broker 2 is the controller") as refused:
            await cluster.topics.create([NewTopic("a")])
        assert refused.value.code is ErrorCode.NOT_CONTROLLER
        other.close()
        await shown(cluster, lambda image: image.controller_id == -1)
        with pytest.raises(KafkaError, match="no broker is the controller"):
            await cluster.topics.create([NewTopic("a")])
        assert cluster.image.topics == {}

    with_one(scenario)


def test_metadata_of_another_session_that_cannot_be_read_is_read_when_it_can(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(store: ModelStore, cluster: Cluster) -> None:
        other = store.session()
        other.multi([Create("/brokers/topics/t", b"not JSON")])
        other.multi([Delete("/brokers/topics/t"), *layout.topic_created(TOPIC)])
        await shown(cluster, lambda image: "t" in image.topics)
        other.multi([Set("/brokers/topics/t", b"not JSON")])
        while "/brokers/topics/t is not JSON" not in caplog.text:
            await asyncio.sleep(0)
        assert cluster.image.topics["t"] == TOPIC
        other.multi([Delete("/brokers/topics/t/partitions/0/state")])
        other.multi([Delete("/brokers/topics/t/partitions/0"), Delete("/brokers/topics/t/partitions")])
        other.multi([Delete("/brokers/topics/t")])
        await shown(cluster, lambda image: not image.topics)

    with_one(scenario)


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
