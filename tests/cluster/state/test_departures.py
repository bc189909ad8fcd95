"""What a broker hands over before it stops, and what it has to wait for."""

import uuid
from collections.abc import Collection

import pytest

from moldau.cluster.state import elections
from moldau.cluster.state.departures import is_in_sync
from moldau.cluster.state.image import BrokerImage, Endpoint, Image, PartitionImage, TopicImage
from moldau.names import TopicPartition

THERE = (Endpoint("PLAINTEXT", "PLAINTEXT", "host", 9092),)
ALL = (1, 2, 3)


def image(part: PartitionImage, leaving: Collection[int], up: Collection[int] = ALL) -> Image:
    topic = TopicImage("t", uuid.UUID(int=1), (part,), {})
    brokers = {number: BrokerImage(number, THERE, leaving=number in leaving) for number in up}
    return Image("cluster", 1, brokers).with_topics({"t": topic})


def after(
    part: PartitionImage,
    leaving: Collection[int],
    least: int = 2,
    up: Collection[int] = ALL,
    silent: Collection[int] = (),
) -> tuple[int, int, tuple[int, ...], tuple[int, ...]]:
    """Leader, leader epoch, ISR and ELR."""
    found = elections.elections(image(part, leaving, up), lambda _: least, silent)
    now = found[0].partition if found else part
    assert not elections.elections(image(now, leaving, up), lambda _: least, silent), "all at once"
    return now.leader, now.leader_epoch, now.isr, now.elr


@pytest.mark.parametrize(
    ("leader", "leaving", "expected"),
    [(1, [1], (2, 6, (2, 3))), (1, [2], (1, 5, (1, 3))), (3, [3], (1, 6, (1, 2)))],
)
def test_a_leaving_broker_leads_nothing_and_is_in_no_isr_if_the_others_suffice(
    leader: int, leaving: list[int], expected: tuple[int, int, tuple[int, ...]]
) -> None:
    assert after(PartitionImage(leader, 5, ALL, ALL), leaving) == (*expected, ())


def test_it_stays_in_sync_while_another_replica_may_join_in_its_place() -> None:
    assert after(PartitionImage(1, 5, ALL, (1, 2)), [1]) == (2, 6, (1, 2), ()), "but does not lead"
    assert after(PartitionImage(2, 5, ALL, (1, 2)), [1]) == (2, 5, (1, 2), ())
    assert after(PartitionImage(1, 5, ALL, (1,)), [1]) == (1, 5, (1,), ()), "nobody else can lead yet"
    assert after(PartitionImage(1, 5, ALL, (1, 2)), [1], least=1) == (2, 6, (2,), ())


@pytest.mark.parametrize(("up", "silent"), [((1, 2), ()), (ALL, (3,))])
def test_it_does_not_wait_for_replicas_that_are_down(up: tuple[int, ...], silent: tuple[int, ...]) -> None:
    assert after(PartitionImage(1, 5, ALL, (1, 2)), [1], up=up, silent=silent) == (2, 6, (2,), (1,))


def test_the_only_replica_leaves_at_once() -> None:
    assert after(PartitionImage(1, 5, (1,), (1,)), [1], least=1) == (-1, 6, (), (1,))


def test_nobody_waits_if_all_brokers_leave() -> None:
    assert after(PartitionImage(1, 5, ALL, ALL), ALL) == (-1, 6, (), ALL)
    assert after(PartitionImage(-1, 6, ALL, (), elr=ALL), ALL) == (-1, 6, (), ALL)


def test_one_that_leaves_leads_nothing_anew() -> None:
    assert after(PartitionImage(-1, 6, ALL, (), elr=(1, 2)), [1]) == (2, 7, (2,), (1,))
    part = PartitionImage(2, 6, ALL, ALL)
    assert elections.preferred_elections(image(part, [1]), [TopicPartition("t", 0)]) == []


def test_a_broker_is_in_sync_as_long_as_it_is_in_an_isr() -> None:
    part = PartitionImage(1, 5, ALL, (1, 2))
    assert [is_in_sync(image(part, ()), broker) for broker in ALL] == [True, True, False]
