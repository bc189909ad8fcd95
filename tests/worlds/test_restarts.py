"""A producer and a broker that is killed again and again, in virtual time with slow turns: it goes on when it can."""

import logging
from dataclasses import replace

import pytest

from harness.tiers import sized
from moldau.client.administration.admin import AsyncAdmin
from moldau.client.cluster_view import ClusterView
from moldau.client.producing.producer import AsyncProducer
from moldau.errors import ErrorCode, KafkaError
from moldau.peers.link import Link
from moldau.protocol.messages.metadata import MetadataResponse
from moldau.simulation.network import Weather
from moldau.simulation.world import World
from tests.worlds.scenarios import BOOTSTRAP, BROKER, TOPIC, restarts

GOES_ON_WITHIN_S = 10.0
"""Of virtual time: the producer's request time-out, and as much again for slow turns."""


def lived(seed: int) -> float:
    world = World(seed, Weather(delay_ms_max=30, loss=0.02))
    world.loop.set_exception_handler(lambda loop, context: None)
    return world.run(restarts)


@pytest.mark.parametrize("seed", range(1, 1 + sized(10, 30, 30)))
def test_a_producer_goes_on_when_its_broker_is_back_at_the_same_address(seed: int) -> None:
    assert lived(seed) <= GOES_ON_WITHIN_S


def test_a_producer_that_keeps_a_dead_connection_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Link, "closed", property(lambda link: False))
    with pytest.raises(KafkaError, match="not acknowledged within the delivery time-out"):
        lived(1)


def test_a_broker_that_leaves_out_the_topic_it_is_asked_about_is_asked_again_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = 0
    apply = ClusterView.apply

    async def story(world: World) -> None:
        def apply_for_ten_seconds_without_topics(view: ClusterView, reply: MetadataResponse, everything: bool) -> None:
            nonlocal asked
            asked += 1
            apply(view, reply if world.loop.time() > until_s else replace(reply, topics=[]), everything)

        await world.start_broker(BROKER)
        async with AsyncProducer(BOOTSTRAP, runtime=world.runtime(world.host("producer"))) as producer:
            await (await producer.send(TOPIC, "first"))
            until_s = world.loop.time() + 10
            monkeypatch.setattr(ClusterView, "apply", apply_for_ten_seconds_without_topics)
            producer._router.stale(TOPIC)
            assert (await (await producer.send(TOPIC, "second"))).offset == 1

    World(1).run(story)
    assert 8 < asked < 30, "after 100 ms first, once a second in the end"


def test_a_broker_that_stays_away_is_named_by_log_and_by_what_was_not_delivered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "moldau.client")

    async def story(world: World) -> str:
        await world.start_broker(BROKER)
        async with AsyncAdmin(BOOTSTRAP, runtime=world.runtime(world.host("admin"))) as admin:
            await admin.create_topic(TOPIC)
        runtime = world.runtime(world.host("producer"))
        async with AsyncProducer(BOOTSTRAP, runtime=runtime, client_id="shop") as producer:
            await (await producer.send(TOPIC, "first"))
            caplog.clear()
            world.kill_broker(BROKER)
            delivery = await producer.send(TOPIC, "second")
            with pytest.raises(KafkaError) as failed:
                await delivery
            assert failed.value.code is ErrorCode.REQUEST_TIMED_OUT
            return str(failed.value)

    why = "refreshing metadata: cannot connect to broker:9092: Connection refused"
    assert World(1).run(story).endswith(f"; the last failure: {why}")
    lines = [record for record in caplog.records if record.getMessage().startswith(f"shop: {why} (attempt ")]
    loud = [record for record in lines if record.levelno == logging.WARNING]
    assert 100 < len(lines) < 200, "for two minutes, once a second in the end"
    assert 20 <= len(loud) <= 25, "a warning every five seconds"
