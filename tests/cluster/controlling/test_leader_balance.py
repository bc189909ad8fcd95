"""When preferred replicas lead again by the clock, and which."""

import asyncio
import uuid

import pytest

from moldau.cluster.controlling.controller import NewTopic
from moldau.cluster.controlling.leader_balance import LeaderBalance, led_elsewhere
from moldau.cluster.state.image import BrokerImage, Endpoint, Image, PartitionImage, TopicImage
from moldau.config import broker_config
from tests.cluster.connected import Brokers, played
from tests.cluster.several import SETTINGS

THERE = (Endpoint("PLAINTEXT", "PLAINTEXT", "host", 9092),)
INTERVAL_S = 300


def image(*leaders: int, isr: tuple[int, ...] = (1, 2), leaving: bool = False) -> Image:
    """Partitions whose preferred replica is broker 1."""
    partitions = tuple(PartitionImage(leader, 3, (1, 2), isr) for leader in leaders)
    brokers = {1: BrokerImage(1, THERE, leaving=leaving), 2: BrokerImage(2, THERE)}
    return Image("c", 1, brokers).with_topics({"t": TopicImage("t", uuid.UUID(int=1), partitions, {})})


def test_a_broker_leads_again_if_it_misses_more_than_the_percentage() -> None:
    assert led_elsewhere(image(*[1] * 9, 2), (), 10) == []
    assert [tp.partition for tp in led_elsewhere(image(*[1] * 8, 2, 2), (), 10)] == [8, 9]
    assert [tp.partition for tp in led_elsewhere(image(1, 2), (), 0)] == [1]


def test_only_brokers_that_are_up_and_in_sync_lead_again() -> None:
    assert led_elsewhere(image(2, 2, isr=(2,)), (), 10) == []
    assert led_elsewhere(image(2, 2), [1], 10) == []
    assert led_elsewhere(image(2, 2, leaving=True), (), 10) == []


def test_it_looks_once_in_each_interval_and_never_if_that_is_off() -> None:
    balance = LeaderBalance(broker_config({})[0])
    assert balance.look(image(2), (), 1e9) == [], "not the controller"
    balance.begin(5)
    assert balance.due_in_s(10) == INTERVAL_S - 5
    assert balance.look(image(2), (), 5 + INTERVAL_S - 1) == []
    assert len(balance.look(image(2), (), 5 + INTERVAL_S)) == 1
    assert balance.look(image(2), (), 5 + INTERVAL_S) == []
    off = LeaderBalance(broker_config({"auto.leader.rebalance.enable": "false"})[0])
    off.begin(5)
    assert off.look(image(2), (), 1e9) == []


def test_a_broker_that_is_in_every_isr_again_leads_at_once_if_that_is_on() -> None:
    config, _ = broker_config({"auto.leader.rebalance.in.sync.enable": "true"})
    balance = LeaderBalance(config)
    balance.begin(5)
    assert balance.due_in_s(5) == 1
    led_by_1 = [1] * 30
    almost = image(*led_by_1, 2)
    assert balance.look(almost, (), 5.5) == []
    assert [tp.partition for tp in balance.look(almost, (), 6)] == [30], "below the percentage, too"
    assert balance.look(almost, (), 8) == [], "the same image"
    assert balance.look(image(*led_by_1, 2, isr=(2,)), (), 10) == []
    assert balance.look(image(2, 2), [1], 12) == []
    behind = image(2).with_topics({"u": image(2, isr=(2,)).topics["t"]._replace(name="u")})
    assert balance.look(behind, (), 14) == [], "in sync in t, and not in u"
    whole = behind.with_topics({"u": image(2).topics["t"]._replace(name="u")})
    assert [tp.topic for tp in balance.look(whole, (), 16)] == ["t", "u"]


def test_it_is_off_where_preferred_replicas_do_not_lead_again_by_themselves() -> None:
    both = {"auto.leader.rebalance.enable": "false", "auto.leader.rebalance.in.sync.enable": "true"}
    for settings in ({}, both):
        balance = LeaderBalance(broker_config(settings)[0])
        balance.begin(5)
        assert balance.look(image(2), (), 100) == []


@pytest.mark.parametrize("at_once", [False, True])
def test_leaders_are_back_at_their_preferred_replicas_after_a_while(
    at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SETTINGS, "auto.leader.rebalance.in.sync.enable", str(at_once).lower())

    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2, 3)
        await brokers.controller.acting.topics.create([NewTopic("t", 3, 3)])
        before = brokers.controller.image.topics["t"].partitions
        left = brokers.others[0]
        assert await left.following.leave(15)
        parts = brokers.controller.image.topics["t"].partitions
        assert left.broker_id not in [part.leader for part in parts]
        await left.membership.close()
        left.kill()
        await brokers.start(left.broker_id)
        image = brokers.controller.image
        whole = image.topics["t"]._replace(partitions=tuple(part._replace(isr=part.replicas) for part in parts))
        acting = brokers.controller.acting
        await acting.queue.made(lambda: acting.metadata.show(image.with_topics({"t": whole}), ["t"]))
        in_sync_s = asyncio.get_running_loop().time()
        await brokers.until(
            lambda image: [part.leader for part in image.topics["t"].partitions] == [part.leader for part in before]
        )
        assert (asyncio.get_running_loop().time() - in_sync_s < 3) == at_once

    played(scenario)
