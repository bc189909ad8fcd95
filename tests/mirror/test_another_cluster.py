"""The source's address leads to another cluster for a while: nothing of it is copied, and then the mirror goes on."""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.patience import Deadline
from moldau.client.producing.producer import Producer
from moldau.names import OffsetAndMetadata, TopicPartition
from moldau.testing import Broker
from tests.mirror.foreign.foreign_mirroring import foreign_mirroring
from tests.mirror.mirroring import mirroring

TP = TopicPartition("orders", 0)


class Address:
    """A broker whose folder can be changed for another one, which makes it another cluster."""

    def __init__(self, folder: Path):
        self._folders = [folder / "source", folder / "other"]
        for one in self._folders:
            one.mkdir()
        self.broker = Broker(data_dir=self._folders[0])

    def change(self) -> None:
        """To the other cluster, or back."""
        self.broker.kill()
        here, there, aside = *self._folders, self._folders[0].with_name("aside")
        here.rename(aside)
        there.rename(here)
        aside.rename(there)
        self.broker.start()


@pytest.fixture
def address(tmp_path: Path) -> Iterator[Address]:
    made = Address(tmp_path)
    with made.broker:
        yield made


@pytest.fixture(scope="module")
def target() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def fill(broker: Broker, first: int, count: int, topic: str = TP.topic) -> None:
    with Producer(broker.address, acks="all") as producer:
        for number in range(first, first + count):
            producer.send(topic, b"%d" % number, partition=0)


def become_another(address: Address) -> None:
    """With the same topic, of more records, and one more topic."""
    address.change()
    for name in (TP.topic, "more"):
        address.broker.create_topic(name, 1)
        fill(address.broker, 1000, 50, name)


async def until_told(caplog: pytest.LogCaptureFixture) -> None:
    deadline = Deadline()
    while not any("Nothing is mirrored until" in one.getMessage() for one in caplog.records):
        assert not deadline.passed
        await asyncio.sleep(0.01)


def test_a_mirror_waits_until_its_source_is_the_same_cluster_again(
    address: Address, target: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    address.broker.create_topic(TP.topic, 1)
    fill(address.broker, 0, 10)

    async def scenario() -> None:
        async with mirroring(address.broker, target, "orders|more") as mirror:
            has = await mirror.until_equal(TP)
            await asyncio.to_thread(become_another, address)
            await mirror.source.admin.alter_group_offsets("billing", {TP: OffsetAndMetadata(9)})
            await until_told(caplog)
            await mirror.until(lambda: not mirror.worker.copying.topics)
            assert "more" not in await mirror.target.topics()
            assert await mirror.target.admin.list_groups() == [] or not await mirror.target.admin.group_offsets(
                "billing"
            )
            await asyncio.to_thread(address.change)
            await asyncio.to_thread(fill, address.broker, 10, 10)
            assert (await mirror.until_equal(TP)).startswith(has)
            assert not mirror.stopped(TP)

    asyncio.run(scenario())


@pytest.mark.check
def test_a_mirror_in_a_foreign_cluster_waits_as_well(
    address: Address, target: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    address.broker.create_topic(TP.topic, 1)
    fill(address.broker, 0, 10)

    async def scenario() -> None:
        async with foreign_mirroring(address.broker.address, target.address, "orders|more") as mirror:
            await mirror.until_equal(TP)
            await asyncio.to_thread(become_another, address)
            await until_told(caplog)
            await mirror.until(lambda: not mirror.worker.board.topics)
            assert "A.more" not in await mirror.target.topics()
            await asyncio.to_thread(address.change)
            await asyncio.to_thread(fill, address.broker, 10, 10)
            assert len(await mirror.until_equal(TP)) == 20

    asyncio.run(scenario())
