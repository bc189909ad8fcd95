"""Positions that are kept outside the cluster, compared with it on blocking sockets."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import pytest

from harness.patience import within
from moldau.client.blocking import Caller
from moldau.client.epoch_look_ups import epochs_before, lost_since
from moldau.names import TopicPartition
from tests.client.scripted_cluster import TOPIC, ScriptedCluster

TP = TopicPartition(TOPIC, 0)
T = TypeVar("T")


def asked(scripted: ScriptedCluster, question: Callable[[Caller], T]) -> T:
    """What the brokers answer."""

    def ask(bootstrap: str) -> T:
        with Caller(bootstrap) as caller:
            return question(caller)

    async def run() -> T:
        async with scripted.running() as cluster:
            return await asyncio.to_thread(ask, cluster.bootstrap)

    async def limited() -> T:
        return await within(run())

    return asyncio.run(limited())


def scripted(*log: int, leader_epoch: int) -> ScriptedCluster:
    cluster = ScriptedCluster()
    cluster.log, cluster.leader_epoch = list(log), leader_epoch
    return cluster


@pytest.mark.parametrize(("offset", "epoch"), [(1, 0), (3, 0), (4, 2), (5, 2), (6, 5)])
def test_the_epoch_of_the_record_before_an_offset_is_found(offset: int, epoch: int) -> None:
    cluster = scripted(0, 0, 0, 2, 2, 5, leader_epoch=7)
    assert asked(cluster, lambda caller: epochs_before(caller, {TP: offset}, {})) == {TP: epoch}


def test_the_first_leader_is_asked_whether_its_log_has_epochs_at_all() -> None:
    cluster = scripted(0, 0, 0, leader_epoch=0)
    assert asked(cluster, lambda caller: epochs_before(caller, {TP: 3}, {})) == {TP: 0}
    cluster = scripted(0, 0, 0, leader_epoch=0)
    cluster.knows_epochs = False  # as where the format of a topic's records is that of Kafka before 0.11
    assert asked(cluster, lambda caller: epochs_before(caller, {TP: 3}, {})) == {}


def test_a_position_of_a_newer_epoch_than_any_is_lost_when_metadata_have_stayed_older(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("moldau.client.epoch_look_ups.AHEAD_S_MAX", 0.2)
    cluster = scripted(*[0] * 20, leader_epoch=0)
    assert asked(cluster, lambda caller: lost_since(caller, {TP: (15, 4)})) == {TP: None}
    assert {leader for _, leader in cluster.compared} == {4, 0}, "at first it may be the metadata that are old"


def test_a_log_that_lacks_an_epoch_lacks_its_record_only_if_another_is_in_its_place() -> None:
    cluster = scripted(*[2] * 12, 4, 4, 4, leader_epoch=4)
    assert asked(cluster, lambda caller: lost_since(caller, {TP: (10, 3)})) == {TP: 9}
    cluster.gone = {7, 8, 9, 10, 11}
    assert asked(cluster, lambda caller: lost_since(caller, {TP: (10, 3)})) == {}
