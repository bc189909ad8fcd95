"""The topic of a schema registry is mirrored like others: the ids stay, and the target's registry only reads."""

import asyncio

import pytest

from moldau.errors import SchemaInvalid
from moldau.mirror.ends import SETTING
from moldau.mirror.failing_over import fail_over
from moldau.names import TopicPartition
from moldau.serializers import Schema, SchemaRegistry
from moldau.testing import Broker, RunningRegistry
from tests.mirror.mirroring import Mirroring, mirroring

TP = TopicPartition("_schemas", 0)
FIRST, SECOND, THIRD = (Schema(f'{{"type":"enum","name":"E","symbols":["{name}"]}}') for name in "ABC")


def test_schemas_keep_their_ids_and_are_registered_at_the_source_until_the_fail_over() -> None:
    with Broker() as source, Broker() as target, RunningRegistry(source) as running:
        origin = SchemaRegistry(running.url)
        ids = [origin.register("one-value", FIRST), origin.register("other-value", SECOND)]

        async def scenario() -> None:
            async with mirroring(source, target, "_schemas") as mirror:
                await mirror.until_equal(TP)
                await asyncio.to_thread(at_the_target, mirror)

        def at_the_target(mirror: Mirroring) -> None:
            with RunningRegistry(target) as other:
                there = SchemaRegistry(other.url)
                assert [there.schema(one) for one in ids] == [FIRST, SECOND]
                with pytest.raises(SchemaInvalid, match=r"42205: .* read-only mode: .* is a mirror"):
                    there.register("third-value", THIRD)
                asyncio.run(take_over())
                assert there.register("third-value", THIRD) == max(ids) + 1

        async def take_over() -> None:
            async with mirroring(source, target, "nothing") as end:
                await fail_over(end.target, TP.topic, (await end.target.own_settings(TP.topic))[SETTING])

        asyncio.run(scenario())
