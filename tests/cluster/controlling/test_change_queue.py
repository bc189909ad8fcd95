"""The one order of changes; two sessions on one store: a second broker does not take over, and each sees that the other
comes and goes."""

import asyncio
import errno
import uuid
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.patience import within
from moldau.cluster.beginning import BrokerConflict
from moldau.cluster.cluster import Cluster
from moldau.cluster.controlling import change_queue
from moldau.cluster.controlling.controller import MorePartitions, NewTopic, Refusal
from moldau.cluster.state import layout
from moldau.cluster.state.image import BrokerImage, Endpoint, Image, PartitionImage, TopicImage
from moldau.config import broker_config
from moldau.errors import ErrorCode, KafkaError, StorageError
from moldau.metadata_store.store import Delete, OutcomeUnknown, Set
from moldau.runtime import Runtime
from moldau.simulation.zookeeper import ModelZooKeeper
from moldau.simulation.zookeeper_session import ModelSession
from tests.cluster.opening import HERE, open_cluster

THERE = Endpoint("PLAINTEXT", "PLAINTEXT", "there", 9092)
TOPIC = TopicImage("t", uuid.UUID(int=5), (PartitionImage(1, 0, (1,), (1,)),), {})


async def opened(session: ModelSession, broker_id: int = 1) -> Cluster:
    config, _ = broker_config({"node.id": str(broker_id)})
    return await Cluster.open(session, config, Runtime())


def with_one(scenario: Callable[[ModelZooKeeper, Cluster], Awaitable[None]]) -> None:
    """Run a scenario with a store, and the cluster of broker 1 in a session of its own."""

    async def whole() -> None:
        store = ModelZooKeeper()
        cluster = await opened(ModelSession(store))
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
    async def scenario(store: ModelZooKeeper, cluster: Cluster) -> None:
        controller = store.nodes[layout.CONTROLLER]
        with pytest.raises(BrokerConflict, match=r"broker 1 \(PLAINTEXT://localhost:9092\) is running"):
            await opened(ModelSession(store), 2)
        assert store.nodes[layout.CONTROLLER] is controller
        assert len(store.links) == 1, "the session of the one that was refused is over"
        await cluster.topics.create([NewTopic("a")])
        assert list(cluster.image.topics) == ["a"]

    with_one(scenario)


def test_a_second_broker_with_the_same_id_is_refused_with_the_address_of_the_first() -> None:
    async def scenario(store: ModelZooKeeper, cluster: Cluster) -> None:
        node = store.nodes["/brokers/ids/1"]
        with pytest.raises(BrokerConflict, match=r"the id 1 is running at PLAINTEXT://localhost:9092"):
            await opened(ModelSession(store), 1)
        assert store.nodes["/brokers/ids/1"] is node

    with_one(scenario)


def test_a_broker_that_registers_leaves_the_node_of_another_one_alone() -> None:
    async def scenario() -> None:
        store = ModelZooKeeper()
        cluster, other = await opened(ModelSession(store)), ModelSession(store)
        await other.multi([layout.broker(BrokerImage(1, (THERE,)), 0)])
        with pytest.raises(BrokerConflict, match="PLAINTEXT://there:9092"):
            await cluster.registration.register([HERE])
        assert cluster.image.brokers[1].endpoints == (THERE,)
        await other.close()
        await cluster.registration.register([HERE])
        assert cluster.image.brokers[1].endpoints == (HERE,)
        await cluster.close()

    asyncio.run(within(scenario()))


def test_a_broker_follows_when_the_session_of_the_first_is_over() -> None:
    async def scenario() -> None:
        store = ModelZooKeeper()
        first = await opened(ModelSession(store))
        await first.registration.register([HERE])
        await first.topics.ensure("a")
        await first.close()
        second = await opened(ModelSession(store), 2)
        assert second.image.controller_id == 2
        assert list(second.image.topics) == ["a"]
        await second.close()

    asyncio.run(within(scenario()))


def test_brokers_that_come_and_go_are_shown_without_being_asked_for() -> None:
    async def scenario(store: ModelZooKeeper, cluster: Cluster) -> None:
        other = ModelSession(store)
        await other.multi([layout.broker(BrokerImage(2, (THERE,)), 0)])
        await shown(cluster, lambda image: list(image.brokers) == [1, 2])
        assert cluster.image.brokers[2].endpoints == (THERE,)
        await other.close()
        await shown(cluster, lambda image: list(image.brokers) == [1])

    with_one(scenario)


def test_what_another_session_has_changed_is_seen_after_a_conflict_with_it() -> None:
    async def scenario(store: ModelZooKeeper, cluster: Cluster) -> None:
        other = ModelSession(store)
        await cluster.topics.ensure("kept")
        await other.multi(layout.topic_created(TOPIC, 1))
        names: list[str] = []
        cluster.metadata.subscribe(lambda _, changed: names.extend(changed))
        [(_, result)] = await cluster.topics.create([NewTopic("t")])
        assert isinstance(result, Refusal)
        assert result.code is ErrorCode.TOPIC_ALREADY_EXISTS
        assert cluster.image.topics["t"] == TOPIC
        assert names == ["t"]
        await other.multi([layout.config("/config/brokers/1", {"log.segment.bytes": "2000000"}, is_new=True)])
        await other.multi(layout.topic_deleted(TOPIC))
        names.clear()
        await cluster.topics.create_partitions([MorePartitions("t", 2)])
        assert list(cluster.image.topics) == ["kept"]
        assert list(cluster.image.deleted.values()) == ["t"]
        assert cluster.metadata.config.log_segment_bytes == 2_000_000
        assert names == ["kept", "t"], "settings of a broker concern every topic"

    with_one(scenario)


def test_settings_of_another_session_that_cannot_be_in_force_leave_the_present_ones(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(store: ModelZooKeeper, cluster: Cluster) -> None:
        other = ModelSession(store)
        await other.multi([layout.config("/config/brokers/1", {"log.segment.bytes": "many"}, is_new=True)])
        await other.multi([layout.broker(BrokerImage(2, (THERE,)), 0)])
        await shown(cluster, lambda image: "1" in image.broker_overrides)
        assert cluster.metadata.config.log_segment_bytes == 1 << 30

    with_one(scenario)
    assert "the previous ones stay in effect" in caplog.text


def test_a_change_whose_outcome_is_unknown_is_refused_and_then_looked_for(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(store: ModelZooKeeper, cluster: Cluster) -> None:
        own = store.links[store.nodes[layout.CONTROLLER].owner]
        store.lose_next_answer(own)
        with pytest.raises(OutcomeUnknown, match="before a write was answered"):
            await cluster.topics.create([NewTopic("done")])
        await shown(cluster, lambda image: list(image.topics) == ["done"])
        await cluster.topics.create([NewTopic("next")])
        assert list(cluster.image.topics) == ["done", "next"]

    with_one(scenario)
    assert "The request may have been carried out or not" in caplog.text


def test_producer_ids_of_two_sessions_differ() -> None:
    async def scenario(store: ModelZooKeeper, cluster: Cluster) -> None:
        first = cluster.producer_ids.next()
        assert not isinstance(first, int)
        assert await first == 0
        await ModelSession(store).multi([layout.producer_ids(2, 1000, 1999, 0)])
        ids = []
        for _ in range(layout.PRODUCER_IDS_PER_BLOCK):
            taken = cluster.producer_ids.next()
            ids.append(taken if isinstance(taken, int) else await taken)
        assert ids == [*range(1, 1000), 2000]

    with_one(scenario)


def test_a_broker_that_is_no_longer_the_controller_changes_nothing() -> None:
    async def scenario(store: ModelZooKeeper, cluster: Cluster) -> None:
        other = ModelSession(store)
        await other.multi([Delete(layout.CONTROLLER), layout.controller(2, 0)])
        await shown(cluster, lambda image: image.controller_id == 2)
        with pytest.raises(KafkaError, match="broker 2 is the controller") as refused:
            await cluster.topics.create([NewTopic("a")])
        assert refused.value.code is ErrorCode.NOT_CONTROLLER
        await other.close()
        await shown(cluster, lambda image: image.controller_id == -1)
        with pytest.raises(KafkaError, match="no broker is the controller"):
            await cluster.topics.create([NewTopic("a")])
        assert cluster.image.topics == {}

    with_one(scenario)


def test_a_controller_that_was_replaced_and_has_not_heard_of_it_changes_nothing() -> None:
    async def scenario(store: ModelZooKeeper, cluster: Cluster) -> None:
        other = ModelSession(store)
        unheard = [Delete(layout.CONTROLLER), layout.controller(2, 0), layout.controller_epoch(2, 0)]
        decide = cluster.queue.decided

        async def late(elements: int, decision: Callable[[], Any]) -> Any:
            if store.nodes[layout.CONTROLLER_EPOCH].version == 0:
                await other.multi(unheard)
            return await decide(elements, decision)

        cluster.queue.decided = late  # type: ignore[method-assign]
        with pytest.raises(KafkaError, match="broker 2 is the controller") as refused:
            await cluster.topics.create([NewTopic("a")])
        assert refused.value.code is ErrorCode.NOT_CONTROLLER
        assert "/brokers/topics/a" not in store.nodes

    with_one(scenario)


def test_metadata_of_another_session_that_cannot_be_read_is_read_when_it_can(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(store: ModelZooKeeper, cluster: Cluster) -> None:
        other = ModelSession(store)
        await cluster.topics.ensure("t")
        sound = store.nodes["/brokers/topics/t"].data
        await other.multi([Set("/brokers/topics/t", b"not JSON"), layout.broker(BrokerImage(2, (THERE,)), 0)])
        while "/brokers/topics/t is not JSON" not in caplog.text:
            await asyncio.sleep(0)
        with pytest.raises(StorageError, match="is not JSON"):
            await cluster.topics.create([NewTopic("a")])
        assert list(cluster.image.topics) == ["t"]
        await other.multi([Set("/brokers/topics/t", sound)])
        await other.close()
        await shown(cluster, lambda image: list(image.brokers) == [1])
        await cluster.topics.create([NewTopic("a")])
        assert list(cluster.image.topics) == ["t", "a"]

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


def test_a_change_that_no_file_can_be_opened_for_is_shown_when_one_can_and_a_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is in the store by then, and no later change would name its topics."""
    monkeypatch.setattr(change_queue, "SHOW_AGAIN_S", 0)
    failures, seen = [OSError(errno.EMFILE, "Too many open files") for _ in range(3)], list[str]()

    def follow(image: Image, names: Sequence[str]) -> None:
        if failures:
            raise failures.pop()
        seen.extend(names)

    async def scenario() -> None:
        cluster = await open_cluster(tmp_path)
        cluster.metadata.subscribe(follow)
        await cluster.topics.create([NewTopic("a")])
        assert (seen, failures) == (["a"], [])
        failures.extend(OSError(errno.EIO, "Input/output error") for _ in range(2))
        with pytest.raises(OSError, match="Input/output error"):
            await cluster.topics.create([NewTopic("b")])
        failures.clear()
        await cluster.close()

    asyncio.run(within(scenario()))
    (line,) = [one for one in caplog.messages if "changes of the cluster" in one]
    assert "wait until this process can open files: Too many open files. Raise the limit" in line


def test_a_stop_does_not_wait_until_a_file_can_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        cluster, tried = await open_cluster(tmp_path), asyncio.Event()

        def fail(image: Image, names: Sequence[str]) -> None:
            tried.set()
            raise OSError(errno.EMFILE, "Too many open files")

        cluster.metadata.subscribe(fail)
        asking = asyncio.ensure_future(cluster.topics.create([NewTopic("a")]))
        await tried.wait()
        await cluster.close()
        with pytest.raises(OSError, match="Too many open files"):
            await asking
        cluster = await open_cluster(tmp_path)
        assert list(cluster.image.topics) == ["a"]
        await cluster.close()

    monkeypatch.setattr(change_queue, "SHOW_AGAIN_S", 0)
    asyncio.run(within(scenario()))
