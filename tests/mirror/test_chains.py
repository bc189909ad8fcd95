"""A mirror may be the source of another mirror; a topic never comes back to where it comes from."""

import asyncio
from collections.abc import Iterator

import pytest

from moldau.client.producing.producer import Producer
from moldau.mirror.ends import SETTING
from moldau.mirror.failing_over import fail_over
from moldau.names import TopicPartition
from moldau.testing import Broker
from tests.mirror.mirroring import Mirroring, log_of, mirroring

TP = TopicPartition("passed-on", 0)


@pytest.fixture(scope="module")
def three() -> Iterator[tuple[Broker, Broker, Broker]]:
    with Broker() as one, Broker() as two, Broker() as three:
        yield one, two, three


def produce(broker: Broker, *values: bytes) -> None:
    with Producer(broker.address, acks="all") as producer:
        for value in values:
            producer.send(TP.topic, value)


def test_what_a_mirror_has_is_mirrored_on_also_when_it_has_taken_over(three: tuple[Broker, Broker, Broker]) -> None:
    first, second, third = three
    first.create_topic(TP.topic, 1)
    produce(first, b"1", b"2")

    async def scenario() -> None:
        async with (
            mirroring(first, second, TP.topic) as here,
            mirroring(second, third, TP.topic) as onward,
            mirroring(third, first, TP.topic) as around,
            mirroring(second, first, TP.topic) as back,
        ):
            wanted = await here.until_equal(TP)
            while await log_of(onward.target, TP) != wanted:
                await asyncio.sleep(0.01)
            await around.until(lambda: "exists in the target cluster and is not a mirror" in refusal(around, TP.topic))
            await back.until(lambda: "it is not mirrored back" in refusal(back, TP.topic))
            await fail_over(here.target, TP.topic, (await here.target.own_settings(TP.topic))[SETTING])
            await asyncio.to_thread(produce, second, b"3")
            await onward.until_equal(TP)
            assert await log_of(onward.target, TP) != wanted
            assert not onward.stopped(TP)

    asyncio.run(scenario())


def refusal(mirror: Mirroring, topic: str) -> str:
    return mirror.worker.refused.get(topic, "")
