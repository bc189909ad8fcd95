"""What the controller tells of brokers that partitions without a leader wait for."""

import asyncio
import logging
import uuid

import pytest

from moldau.cluster.controlling.brokers.missed import AGAIN_S, LONG_S, LOOK_S, MissedBrokers
from moldau.cluster.state.image import BrokerImage, Endpoint, Image, PartitionImage, TopicImage
from tests.cluster.controlling.test_acting import three
from tests.cluster.several import Members, followed_by, place, play

LINE = "had no leader for more than"


def image(*up: int) -> Image:
    """Partitions 0 and 1 were on brokers 2 and 3 only."""
    parts = [PartitionImage(-1, 5, (one,), (), elr=(one,)) for one in (2, 3)]
    brokers = {one: BrokerImage(one, (Endpoint("PLAINTEXT", "PLAINTEXT", "host", 9092),)) for one in up}
    return Image("cluster", 1, brokers).with_topics({"t": TopicImage("t", uuid.UUID(int=1), tuple(parts), {})})


def test_brokers_are_named_once_they_have_been_missed_for_long_and_again_much_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    brokers = MissedBrokers()

    def lines(now_s: float, *up: int) -> list[str]:
        caplog.clear()
        brokers.look(image(*up), (), now_s)
        return caplog.messages

    assert lines(0, 1, 2) == lines(LONG_S - 1, 1, 2) == []
    line = f"1 partition {LINE} 30 s, so their clients wait. One is t-1. The replicas that can lead are missing: start "
    assert lines(LONG_S + LOOK_S, 1, 2) == [f"{line}broker 3"]
    assert lines(LONG_S + 2 * LOOK_S, 1, 2) == []
    assert lines(100, 1) == lines(100 + LONG_S - 1, 1) == [], "others are missed now"
    assert len(lines(100 + LONG_S + LOOK_S, 1)) == 1
    assert lines(1000, 2, 3) == lines(1010, 1) == lines(1020, 1) == [], "all were back"
    assert len(lines(1040, 1)) == 1
    assert lines(1040 + AGAIN_S - 1, 1) == []
    assert len(lines(1040 + AGAIN_S + LOOK_S, 1)) == 1


def test_the_controller_names_a_broker_that_a_partition_waits_for(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(members: Members) -> None:
        controller = await three(members)
        asking = asyncio.ensure_future(followed_by(controller, 1, 2))
        await place(controller, "t", PartitionImage(3, 0, (3,), (3,)), PartitionImage(1, 0, (1, 3), (1, 3)))
        members[3].die()
        del members[3]
        await members.shown(lambda image: list(image.brokers) == [1, 2])
        await asyncio.sleep(LONG_S - 1)
        assert LINE not in caplog.text
        await asyncio.sleep(3 * LOOK_S)
        asking.cancel()
        assert [one for one in caplog.messages if LINE in one and "1 partition" in one and "broker 3" in one]

    with caplog.at_level(logging.WARNING):
        play(scenario)
