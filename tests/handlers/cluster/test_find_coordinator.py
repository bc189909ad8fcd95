"""The first FindCoordinator waits until what serves the coordinator is there; later ones are answered at once."""

import asyncio
import uuid
from collections.abc import Awaitable
from types import GeneratorType
from typing import Any

from moldau.cluster.state.image import BrokerImage, Endpoint, Image, PartitionImage, TopicImage
from moldau.handlers.cluster.find_coordinator import GROUP, CoordinatorType, FindCoordinator
from moldau.names import OFFSETS_TOPIC
from moldau.protocol.apis import FIND_COORDINATOR
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.turns import ELEMENTS, turn
from tests.requests.calling import call

HERE = BrokerImage(1, (Endpoint("PLAINTEXT", "PLAINTEXT", "host1", 9092),), epoch=7)
PARTS = (PartitionImage(1, 0, (1,), (1,)),) * 3
IMAGE = Image("c", brokers={1: HERE}).with_topics(
    {OFFSETS_TOPIC: TopicImage(OFFSETS_TOPIC, uuid.UUID(int=1), PARTS, {})}
)


def test_a_topic_that_exists_is_served_before_its_coordinator_is_named() -> None:
    async def scenario() -> None:
        imported = asyncio.Event()

        async def make() -> None:
            await imported.wait()

        handler = FindCoordinator({GROUP: CoordinatorType(OFFSETS_TOPIC, make)}, lambda: IMAGE)

        def ask() -> Any:
            return handler(FindCoordinatorRequest(key_type=GROUP, coordinator_keys=["g"]), call(FIND_COORDINATOR, 6))

        answers = [asyncio.ensure_future(ask()) for _ in range(2)]
        await asyncio.sleep(0)
        assert not any(answer.done() for answer in answers)
        imported.set()
        found = [turn(await answer).coordinators[0] for answer in answers]
        assert {(one.node_id, one.host, one.error_code) for one in found} == {(1, "host1", 0)}
        later = ask()
        assert not isinstance(later, Awaitable)
        assert turn(later).coordinators == found[:1]

    asyncio.run(scenario())


def test_keys_of_thousands_of_characters_take_more_turns_than_short_ones() -> None:
    """A thousand of them would hold the loop for seconds: each is hashed in Python."""

    def turns_for(key: str) -> int:
        handler = FindCoordinator({}, lambda: IMAGE)
        kind = CoordinatorType(OFFSETS_TOPIC, lambda: asyncio.sleep(0))
        asked = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=[f"{key}{number}" for number in range(20)])
        steps, count = handler._find(asked, call(FIND_COORDINATOR, 6), kind), 1
        while isinstance(steps := turn(steps), GeneratorType):
            count += 1
        assert {one.node_id for one in steps.coordinators} == {1}
        return count

    assert turns_for("g") == 1
    assert turns_for("g" * 10 * ELEMENTS) == 3
