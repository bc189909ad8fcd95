"""The log folders of several brokers: the controller knows where each partition is, and a lost one is noticed."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from harness.patience import stretched
from moldau.aio import Producer
from moldau.broker import Broker
from moldau.cluster.controlling.controller import MorePartitions, NewTopic
from moldau.cluster.joined import JoinedCluster
from moldau.cluster.membership import SharedStore
from moldau.cluster.state.image import PartitionImage, TopicImage
from moldau.config import broker_config
from moldau.errors import ConfigError, StorageError
from moldau.log.checkpoints import HIGH_WATERMARKS
from moldau.metadata_store.embedded import EmbeddedStore
from moldau.metadata_store.embedded_session import EmbeddedSession
from moldau.runtime import Runtime


class Brokers:
    """Brokers of one cluster in one loop, each with two log folders."""

    def __init__(self, folder: Path):
        (folder / "metadata").mkdir(exist_ok=True, parents=True)
        self.folder = folder
        self.store = EmbeddedStore(folder / "metadata", is_durable=False)
        self.running: dict[int, Broker] = {}

    def log_dirs(self, number: int) -> list[Path]:
        return [self.folder / f"{number}-{name}" for name in ("left", "right")]

    async def start(self, number: int, accept_empty: Sequence[str] = ()) -> Broker:
        async def opened() -> EmbeddedSession:
            return EmbeddedSession(self.store, Runtime())

        properties = {
            "node.id": str(number),
            "log.dirs": ",".join(map(str, self.log_dirs(number))),
            "listeners": "PLAINTEXT://127.0.0.1:0",
        }
        config, _ = broker_config(properties)
        broker = Broker(config, Runtime(), shared=SharedStore(opened, 5.0), accept_empty=accept_empty)
        await broker.start()
        self.running[number] = broker
        return broker

    async def stop(self, number: int) -> None:
        await self.running.pop(number).stop()

    @property
    def controller(self) -> JoinedCluster:
        found = next(one.cluster for one in self.running.values() if one.controls)
        assert isinstance(found, JoinedCluster)
        return found

    async def make(self, name: str, count: int, replicas: int = 1) -> None:
        [(_, made)] = await self.controller.topics.create([NewTopic(name, count, replicas)])
        assert isinstance(made, TopicImage)

    def parts(self, name: str) -> tuple[PartitionImage, ...]:
        """As the broker that has been up longest shows them."""
        return next(iter(self.running.values())).cluster.image.topics[name].partitions

    async def until_recorded(self, name: str) -> None:
        while any(not part.directory_of(one) for part in self.parts(name) for one in part.replicas):
            await asyncio.sleep(0.01)

    async def until_led(self, name: str, leaders: Sequence[int]) -> None:
        while [part.leader for part in self.parts(name)] != list(leaders):
            await asyncio.sleep(0.01)

    async def until_gone(self, number: int) -> None:
        """Wait until the other log folder of this broker has no partition any more."""
        while list(self.log_dirs(number)[0].glob("*-?")):
            await asyncio.sleep(0.01)

    def place(self, name: str, number: int) -> Path:
        """The folder of a partition, which is in one log folder."""
        [found] = self.folder.glob(f"*-*/{name}-{number}")
        return found

    async def fill(self, name: str, numbers: Sequence[int]) -> None:
        """One record in each of these partitions."""
        address = next(f"127.0.0.1:{broker.port}" for broker in self.running.values())
        async with Producer(address) as producer:
            for number in numbers:
                await producer.send(name, b"x", partition=number)

    def end(self, name: str, number: int) -> int:
        return next(
            int(broker.replicas.hosted[name, number].log.log_end_offset)
            for broker in self.running.values()
            if (name, number) in broker.replicas.hosted
        )


@contextlib.asynccontextmanager
async def two(folder: Path) -> AsyncIterator[Brokers]:
    brokers = Brokers(folder)
    async with asyncio.timeout(stretched(60)):
        try:
            for number in (1, 2):
                await brokers.start(number)
            while any(len(broker.cluster.image.brokers) < 2 for broker in brokers.running.values()):
                await asyncio.sleep(0.01)
            yield brokers
        finally:
            for number in sorted(brokers.running, reverse=True):
                await brokers.stop(number)
            brokers.store.close()


def test_the_controller_knows_the_log_folder_of_every_partition(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with two(tmp_path) as brokers:
            await brokers.make("t", 6)
            await brokers.controller.topics.create_partitions([MorePartitions("t", 8)])
            await brokers.until_recorded("t")
            for number, part in enumerate(brokers.parts("t")):
                owner = brokers.running[part.leader]
                folder = next(one for one in owner.folders.folders if one.path == brokers.place("t", number).parent)
                assert part.directories == (folder.directory_id,)
            assert {broker: len(ids) for broker, ids in _used(brokers).items()} == {1: 2, 2: 2}

    asyncio.run(scenario())


def _used(brokers: Brokers) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for part in brokers.parts("t"):
        found.setdefault(part.leader, set()).update(part.directories)
    return found


def test_a_lost_folder_refuses_the_start_until_the_loss_is_accepted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with two(tmp_path) as brokers:
            await brokers.make("t", 4)
            await brokers.fill("t", range(4))
            await brokers.until_recorded("t")
            lost, kept = (number for number, part in enumerate(brokers.parts("t")) if part.leader == 2)
            place = brokers.place("t", lost)
            await brokers.stop(2)
            shutil.rmtree(place)
            checkpoint = place.parent / HIGH_WATERMARKS  # without it nothing but the choice shows the loss
            checkpoint.write_text("0\n0\n")
            for misspelt in ("u", f"t_{lost}", f"t-{lost}/", "t-9", "ALL"):
                with pytest.raises(ConfigError, match=f"^--accept-empty {misspelt}: this broker has no replica of "):
                    await brokers.start(2, [f"t-{lost}", misspelt])
            for accepted in ((), [f"t-{kept}"]):
                with pytest.raises(StorageError) as refused:
                    await brokers.start(2, accepted)
                assert str(refused.value) == (
                    f"1 partition has no folder ({place}): restore what is missing, or start once with --accept-empty "
                    "TOPIC-N (or `all`), and what is lost starts empty"
                )
            assert brokers.parts("t")[lost].leader == -1
            again = await brokers.start(2, [f"t-{lost}"])
            assert [folder.kept_since == -1 for folder in again.folders.folders] == [
                folder.path == place.parent for folder in again.folders.folders
            ]
            await brokers.until_led("t", [one.replicas[0] for one in brokers.parts("t")])
            assert [brokers.end("t", number) for number in (lost, kept)] == [0, 1]
            await brokers.fill("t", [lost])
            await brokers.stop(2)
            await brokers.start(2)

    asyncio.run(scenario())


def test_a_log_folder_that_fails_takes_its_leaderships_and_gets_them_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with two(tmp_path) as brokers:
            await brokers.make("t", 8)
            await brokers.fill("t", range(8))
            await brokers.until_recorded("t")
            for number in (2, 1):  # another broker than the controller, and the controller
                before = [part.leader for part in brokers.parts("t")]
                broker = brokers.running[number]
                right = broker.folders.folders[1]
                after = [
                    -1 if part.directory_of(number) == right.directory_id else part.leader
                    for part in brokers.parts("t")
                ]
                right.fail(OSError(5, "Input/output error"))
                await brokers.until_led("t", after)
                assert after.count(-1) == 2
                await brokers.stop(number)
                await brokers.start(number)
                await brokers.until_led("t", before)
                assert [brokers.end("t", part) for part in range(8)] == [1] * 8

    asyncio.run(scenario())


def test_idle_replicas_in_a_log_folder_that_fails_leave_the_in_sync_replicas_for_good(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with two(tmp_path) as brokers:
            await brokers.make("t", 8, 2)
            await brokers.fill("t", range(8))
            await brokers.until_recorded("t")
            while any(len(part.isr) < 2 for part in brokers.parts("t")):
                await asyncio.sleep(0.01)
            right = brokers.running[2].folders.folders[1]
            right.fail(OSError(5, "Input/output error"))
            expected = [1 if part.directory_of(2) == right.directory_id else 2 for part in brokers.parts("t")]
            assert expected.count(1) == 4
            while [len(part.isr) for part in brokers.parts("t")] != expected:
                await asyncio.sleep(0.01)
            # Their leaders remember them as caught up, and propose them again while nothing is written.
            leaders = brokers.running[1].replicas
            asked_ms = brokers.running[1].runtime.clock.elapsed_s()
            while brokers.running[1].runtime.clock.elapsed_s() < asked_ms + 2:
                assert [len(part.isr) for part in brokers.parts("t")] == expected, leaders
                await asyncio.sleep(0.05)
            await brokers.fill("t", range(8))

    asyncio.run(scenario())


def test_partitions_of_a_log_folder_that_was_replaced_have_no_leader(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with two(tmp_path) as brokers:
            await brokers.make("t", 4)
            await brokers.fill("t", range(4))
            await brokers.until_recorded("t")
            right = brokers.log_dirs(2)[1]
            [gone] = [number for number in range(4) if brokers.place("t", number).parent == right]
            before = [part.leader for part in brokers.parts("t")]
            await brokers.stop(2)
            right.rename(tmp_path / "away")
            caplog.clear()
            await brokers.start(2)
            directory = brokers.parts("t")[gone].directory_of(2)
            [said] = [line for line in caplog.messages if directory in line]
            assert said.startswith("1 partition is offline with the log folder that has directory.id=")
            assert "start once with --accept-empty all (or TOPIC-N)" in said
            await brokers.until_led("t", [-1 if number == gone else leader for number, leader in enumerate(before)])
            assert not list(tmp_path.glob(f"2-*/t-{gone}"))
            await brokers.stop(2)
            await brokers.start(2, ["all"])
            await brokers.until_led("t", before)
            assert [brokers.end("t", number) for number in range(4)] == [int(number != gone) for number in range(4)]

    asyncio.run(scenario())


def test_a_topic_that_was_deleted_while_its_log_folder_was_away_is_removed_when_it_is_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with two(tmp_path) as brokers:
            await brokers.make("t", 8)
            await brokers.until_recorded("t")
            brokers.running[2].folders.folders[1].fail(OSError(5, "Input/output error"))
            await brokers.controller.topics.delete([("t", None)])
            deleted = brokers.controller.acting.metadata.image.deleted
            assert list(deleted.values()) == ["t"]
            await brokers.stop(1)  # the other controller reads what is left to delete
            await brokers.start(1)
            await brokers.until_gone(2)
            left = sorted(path.parent.name for path in tmp_path.glob("*-*/t-?"))
            assert left == ["2-right", "2-right"]
            await brokers.make("t", 4)
            await brokers.until_recorded("t")  # in the log folder that is left
            assert len(list(tmp_path.glob("2-left/t-?"))) == 2
            await brokers.stop(2)
            await brokers.start(2)
            while brokers.controller.acting.metadata.image.deleted:
                await asyncio.sleep(0.01)
            assert len(list(tmp_path.glob("*-*/t-?"))) == 4

    asyncio.run(scenario())


def test_a_partition_is_not_begun_anew_because_its_folder_failed_before_the_controller_knew_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with two(tmp_path) as brokers:
            for number in (1, 2):
                await brokers.running[number].cluster.directories.stop()
            await brokers.make("t", 4)
            while len(list(tmp_path.glob("2-right/t-?"))) < 1:
                await asyncio.sleep(0.01)
            brokers.running[2].folders.folders[1].fail(OSError(5, "Input/output error"))
            await brokers.controller.topics.create_partitions([MorePartitions("t", 6)])
            while len({path.name for path in tmp_path.glob("*-*/t-?")}) < 6:
                await asyncio.sleep(0.01)
            assert len(list(tmp_path.glob("*-*/t-?"))) == 6

    asyncio.run(scenario())
