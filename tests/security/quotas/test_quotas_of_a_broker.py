"""A whole broker with quotas, in virtual time: what clients are told, and for how long they are muted, to the
millisecond. The numbers are those of Apache Kafka 4.3.1, a thousandth of the bytes."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from moldau.broker import Broker
from moldau.errors import ErrorCode
from moldau.protocol import apis, codec
from moldau.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from moldau.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.records.batch import Row, encode_batch
from moldau.simulation.network import Weather
from moldau.simulation.world import PORT, World
from tests.handlers.living import Wire
from tests.handlers.security.test_client_quotas import Entity, alter, entry

BROKER = "one"
RATE = 1000.0
ANYBODY: Entity = {"client-id": None}


class Scene:
    def __init__(self, world: World, broker: Broker):
        self.loop, self.broker, self._world = world.loop, broker, world
        self._wires: list[Wire] = []

    async def dial(self) -> Wire:
        wire = Wire(*await asyncio.open_connection(BROKER, PORT))
        self._wires.append(wire)
        return wire

    def hang_up(self) -> None:
        for wire in self._wires:
            wire.writer.close()

    async def limit(self, entity: Entity, **values: float | None) -> None:
        """Over a connection of its own, which nothing mutes."""
        (answer,) = await alter(await self.dial(), entry(entity, **values))
        assert answer.error_code == 0, answer

    async def make(self, topic: str, partitions: int = 1) -> None:
        request = CreateTopicsRequest(
            topics=[CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)]
        )
        (made,) = (await (await self.dial()).ask(apis.CREATE_TOPICS, 5, request)).topics
        assert made.error_code == 0


def played(scenario: Callable[[Scene], Awaitable[None]], **settings: object) -> None:
    async def play(world: World) -> None:
        scene = Scene(world, await world.start_broker(BROKER, **settings))
        await scenario(scene)
        scene.hang_up()
        await world.stop_broker(BROKER)

    World(1, Weather(0)).run(play)


def produce(size: int, acks: int = 1) -> ProduceRequest:
    """A request whose frame has exactly that size."""

    def with_value(length: int) -> ProduceRequest:
        records = bytes(encode_batch([Row(None, bytes(length), 1_700_000_000_000)]))
        data = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=records)])
        return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[data])

    length = size // 2
    for _ in range(5):
        frame = len(codec.write_request(apis.PRODUCE, 9, 1, "test", with_value(length))) - 4
        length += size - frame
    assert frame == size
    return with_value(length)


def fetch(offset: int = 0, max_bytes: int = 30_000) -> FetchRequest:
    part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    return FetchRequest(max_bytes=max_bytes, topics=[FetchTopic(topic="t", partitions=[part])])


def bytes_of(answer: Any) -> int:
    return sum(len(part.records or b"") for topic in answer.responses for part in topic.partitions)


def test_produce_is_answered_at_once_with_the_time_and_then_muted_for_it() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.make("t")
        await scene.limit(ANYBODY, producer_byte_rate=RATE)
        one, other = await scene.dial(), await scene.dial()
        began = scene.loop.time()
        assert (await one.ask(apis.PRODUCE, 9, produce(5000))).throttle_time_ms == 0
        assert (await other.ask(apis.PRODUCE, 9, produce(15_000))).throttle_time_ms == 10_000
        assert (await one.ask(apis.PRODUCE, 9, produce(20_000))).throttle_time_ms == 30_000
        assert scene.loop.time() - began < 0.1
        await other.ask(apis.METADATA, 9, MetadataRequest(topics=[]))
        assert round(scene.loop.time() - began, 2) == 10
        await one.ask(apis.METADATA, 9, MetadataRequest(topics=[]))
        assert round(scene.loop.time() - began, 2) == 30

    played(scenario)


def test_a_producer_that_wants_no_replies_is_only_muted() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.make("t")
        await scene.limit(ANYBODY, producer_byte_rate=RATE)
        wire, began = await scene.dial(), scene.loop.time()
        wire.send(apis.PRODUCE, 9, produce(20_000, acks=0))
        wire.send(apis.METADATA, 9, MetadataRequest(topics=[]))
        await wire.receive(apis.METADATA, 9)
        assert round(scene.loop.time() - began, 2) == 10

    played(scenario)


def test_a_fetch_is_capped_and_above_the_quota_empty_and_not_counted() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.make("t")
        filling = await scene.dial()
        for _ in range(100):
            await filling.ask(apis.PRODUCE, 9, produce(500))
        await scene.limit(ANYBODY, consumer_byte_rate=RATE)
        first, second, third = [await scene.dial() for _ in range(3)]
        got = await first.ask(apis.FETCH, 12, fetch())
        assert 9000 < bytes_of(got) <= 10_000
        assert got.throttle_time_ms < 100
        began = scene.loop.time()
        for wire in (second, third):  # had the first of these counted, the second would wait for 20 s
            answer = await wire.ask(apis.FETCH, 12, fetch())
            assert (answer.error_code, answer.session_id, answer.responses) == (0, 0, [])
            assert 9000 < answer.throttle_time_ms < 10_200
        assert scene.loop.time() - began < 0.1
        await second.ask(apis.METADATA, 9, MetadataRequest(topics=[]))
        assert 9 < scene.loop.time() - began < 10.2
        await asyncio.sleep(2)
        assert bytes_of(await second.ask(apis.FETCH, 12, fetch())) > 9000

    played(scenario)


def test_a_batch_that_is_larger_than_the_window_allows_is_read_once_the_window_is_empty() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.make("t")
        await (await scene.dial()).ask(apis.PRODUCE, 9, produce(30_000))
        await scene.limit(ANYBODY, consumer_byte_rate=RATE)
        wire = await scene.dial()
        answer = await wire.ask(apis.FETCH, 12, fetch())
        assert bytes_of(answer) > 29_000
        assert 19_000 < answer.throttle_time_ms < 21_000
        assert bytes_of(await (await scene.dial()).ask(apis.FETCH, 12, fetch())) == 0

    played(scenario)


def test_the_longer_throttling_is_told_where_two_quotas_are_broken() -> None:
    """Virtual handlers take no time, so the request's share is 0 % and only bytes throttle."""

    async def scenario(scene: Scene) -> None:
        await scene.make("t")
        await scene.limit(ANYBODY, producer_byte_rate=RATE, request_percentage=0.001)
        answer = await (await scene.dial()).ask(apis.PRODUCE, 9, produce(20_000))
        assert answer.throttle_time_ms == 10_000

    played(scenario)


def test_clients_share_a_quota_by_its_level_and_others_have_none() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.make("t")
        await scene.limit({"user": "ANONYMOUS", "client-id": "test"}, producer_byte_rate=RATE)
        throttled = await (await scene.dial()).ask(apis.PRODUCE, 9, produce(20_000))
        assert throttled.throttle_time_ms == 10_000
        await scene.limit({"user": "ANONYMOUS", "client-id": "test"}, producer_byte_rate=None)
        assert (await (await scene.dial()).ask(apis.PRODUCE, 9, produce(20_000))).throttle_time_ms == 0
        await scene.limit({"user": "bob"}, producer_byte_rate=RATE)
        assert (await (await scene.dial()).ask(apis.PRODUCE, 9, produce(20_000))).throttle_time_ms == 0

    played(scenario)


def creation(name: str, partitions: int) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)])


def test_changes_of_topics_are_refused_while_the_bucket_owes_tokens() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.limit({"user": None}, controller_mutation_rate=1)
        answers = []
        for name in ("a", "b", "c"):
            answers.append(await (await scene.dial()).ask(apis.CREATE_TOPICS, 7, creation(name, 8)))
        assert [(one.topics[0].error_code, one.throttle_time_ms) for one in answers[:2]] == [(0, 0), (0, 0)]
        refused = answers[2]
        assert refused.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert refused.topics[0].error_message is None
        assert 4900 < refused.throttle_time_ms <= 5000
        assert "c" not in scene.broker.cluster.image.topics
        older = await (await scene.dial()).ask(apis.CREATE_TOPICS, 5, creation("c", 8))
        assert older.topics[0].error_code == 0
        assert 12_900 < older.throttle_time_ms <= 13_000
        grown = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name="a", count=9, assignments=None)], timeout_ms=9
        )
        more = await (await scene.dial()).ask(apis.CREATE_PARTITIONS, 3, grown)
        assert more.results[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        gone = DeleteTopicsRequest(topics=[DeleteTopicState(name="a")], timeout_ms=9)
        deleted = await (await scene.dial()).ask(apis.DELETE_TOPICS, 6, gone)
        assert [(one.name, one.error_code) for one in deleted.responses] == [("a", 89)]
        old = DeleteTopicsRequest(topic_names=["a"], timeout_ms=9)
        deleted = await (await scene.dial()).ask(apis.DELETE_TOPICS, 5, old)
        assert [(one.name, one.error_code) for one in deleted.responses] == [("a", 89)]
        wire, began = await scene.dial(), scene.loop.time()
        deleted = await wire.ask(apis.DELETE_TOPICS, 4, old)
        assert [(one.name, one.error_code) for one in deleted.responses] == [("a", 0)]
        await wire.ask(apis.METADATA, 9, MetadataRequest(topics=[]))
        assert round(scene.loop.time() - began) == 21

    played(scenario)


def test_one_request_does_what_the_bucket_allows_and_refuses_the_rest() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.limit({"user": None}, controller_mutation_rate=1)
        request = CreateTopicsRequest(topics=[creation(name, 6).topics[0] for name in "abcd"], validate_only=True)
        answer = await (await scene.dial()).ask(apis.CREATE_TOPICS, 7, request)
        assert [(one.name, one.error_code) for one in answer.topics] == [("a", 0), ("b", 0), ("c", 89), ("d", 89)]
        assert 900 < answer.throttle_time_ms <= 1000
        assert not scene.broker.cluster.image.topics

    played(scenario)


def test_an_address_opens_as_many_connections_as_its_quota_allows() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.limit({"ip": None}, connection_creation_rate=1)
        ask = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
        for _ in range(10):
            await (await scene.dial()).ask(apis.METADATA, 9, ask)
        began = scene.loop.time()
        assert await (await scene.dial()).is_closed()
        assert round(scene.loop.time() - began, 1) == 1

    played(scenario)


def test_quotas_are_kept_over_a_restart() -> None:
    async def play(world: World) -> None:
        scene = Scene(world, await world.start_broker(BROKER))
        await scene.make("t")
        await scene.limit(ANYBODY, producer_byte_rate=RATE)
        scene.hang_up()
        world.kill_broker(BROKER)
        scene = Scene(world, await world.start_broker(BROKER))
        assert (await (await scene.dial()).ask(apis.PRODUCE, 9, produce(20_000))).throttle_time_ms == 10_000
        scene.hang_up()
        await world.stop_broker(BROKER)

    World(1, Weather(0)).run(play)


@pytest.mark.parametrize("settings", [{"quota_window_num": 3, "quota_window_size_seconds": 2}])
def test_the_window_is_a_setting(settings: dict[str, int]) -> None:
    async def scenario(scene: Scene) -> None:
        await scene.make("t")
        await scene.limit(ANYBODY, producer_byte_rate=RATE)
        assert (await (await scene.dial()).ask(apis.PRODUCE, 9, produce(20_000))).throttle_time_ms == 16_000

    played(scenario, **settings)


def test_a_quota_set_at_any_broker_holds_at_all_and_the_controller_throttles_whoever_asks_another() -> None:
    async def play(world: World) -> None:
        brokers = [await world.join_broker(name) for name in ("one", "two")]
        while not all(len(broker.cluster.image.brokers) == 2 for broker in brokers):
            await asyncio.sleep(0.1)
        (follower,) = [broker for broker in brokers if not broker.controls]
        name = "one" if follower is brokers[0] else "two"
        wire = Wire(*await asyncio.open_connection(name, PORT))
        values = {"controller_mutation_rate": 1.0, "consumer_byte_rate": RATE}
        assert [one.error_code for one in await alter(wire, entry({"user": None}, **values))] == [0]
        while not all(broker.cluster.image.quotas for broker in brokers):
            await asyncio.sleep(0.01)
        for topic in ("a", "b"):
            assert (await wire.ask(apis.CREATE_TOPICS, 7, creation(topic, 8))).throttle_time_ms == 0
        began = world.loop.time()
        answer = await wire.ask(apis.CREATE_TOPICS, 7, creation("c", 8))
        assert answer.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert answer.throttle_time_ms > 4000
        await wire.ask(apis.METADATA, 9, MetadataRequest(topics=[]))
        assert world.loop.time() - began >= answer.throttle_time_ms / 1000
        wire.writer.close()
        for name in ("one", "two"):
            await world.stop_broker(name)

    World(1, Weather(0)).run(play)
