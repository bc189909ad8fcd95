"""A batch that is damaged in the source is never skipped, and holds up its own partition only: in a mirror byte by
byte, and in one by MirrorMaker's rules."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.client.producing.producer import Producer
from moldau.mirror import mirror_leaders
from moldau.names import TopicPartition
from moldau.testing import Broker
from tests.mirror.damaging import damage
from tests.mirror.foreign.foreign_mirroring import contents, foreign_mirroring
from tests.mirror.mirroring import log_of, mirroring

DAMAGED, SOUND = TopicPartition("orders", 0), TopicPartition("orders", 1)
AT = 7
"""The offset of the damaged batch, each of which has one record."""


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Broker]:
    with Broker(data_dir=tmp_path) as broker:
        broker.create_topic("orders", 2)
        for tp in (DAMAGED, SOUND):
            produce(broker, tp, 10)
        damage(broker, DAMAGED, AT)
        yield broker


@pytest.fixture(scope="module")
def target() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def produce(broker: Broker, tp: TopicPartition, count: int) -> None:
    with Producer(broker.address) as producer:
        for number in range(count):
            producer.send(*tp[:1], b"%d" % number, partition=tp.partition).result()


def test_what_is_before_it_is_mirrored_and_what_is_behind_it_once_the_source_is_mended(
    source: Broker, target: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror_leaders, "DAMAGED_AGAIN_S", 0.2)

    async def scenario() -> None:
        async with mirroring(source, target, "orders") as mirror:
            await mirror.until_end(DAMAGED, AT)
            await mirror.until(lambda: mirror.worker.gauges.stopped == 1)
            assert mirror.worker.copying.copies[DAMAGED].damaged == "the source's batch behind offset 7 is damaged"
            await asyncio.to_thread(produce, source, SOUND, 10)
            await mirror.until_equal(SOUND)
            await mirror.source.admin.delete_records({DAMAGED: AT + 1})
            await mirror.until_end(DAMAGED, 10)
            assert mirror.worker.gauges.stopped == 0
            assert await log_of(mirror.target, DAMAGED) == await log_of(mirror.source, DAMAGED)

    asyncio.run(scenario())


def test_a_lane_goes_on_without_the_partition_and_tries_it_again(source: Broker, target: Broker) -> None:
    async def scenario() -> None:
        async with foreign_mirroring(source.address, target.address, "orders", lanes=1) as mirror:
            board = mirror.worker.board
            why = await mirror.until(lambda: board.stopped.get(DAMAGED))
            assert why.startswith("the source's records cannot be read from offset 7 on: reading orders-0: "), why
            await asyncio.to_thread(produce, source, SOUND, 10)
            await mirror.until_equal(SOUND)
            there = TopicPartition("A.orders", 0)
            assert [one[2] for one in await contents(mirror.target, there)] == [b"%d" % number for number in range(AT)]
            await mirror.source.admin.delete_records({DAMAGED: AT + 1})
            board._again_s[DAMAGED] = 0.0  # a minute has passed

            async def goes_on() -> bool:
                return [one[2] for one in await contents(mirror.target, there)][AT:] == [b"8", b"9"]

            await mirror.until(goes_on)
            assert not board.stopped and board.pauses

    asyncio.run(scenario())
