"""A coordinator knows what it has read in this leader epoch, once that is committed; in virtual time."""

import asyncio
from functools import partial

import pytest

from moldau.coordinators.partitioning import partition_of
from moldau.errors import ErrorCode, KafkaError
from tests.coordinators.fake_log import PARTITIONS, FakeLog, answered, coordinator, in_virtual_time, join, leading
from tests.coordinators.offsets import committing
from tests.coordinators.offsets.committing import TP

commit = partial(committing.commit, group="simple")


class HalfCommitted(FakeLog):
    """All partitions but that of group g are committed at once."""

    async def until_committed(self, partition: int) -> None:
        if partition == partition_of("g", PARTITIONS):
            await super().until_committed(partition)


def test_a_partition_answers_once_what_was_loaded_is_committed_and_keeps_no_other_from_loading() -> None:
    async def play() -> None:
        log = HalfCommitted()
        log.committed.clear()
        groups = coordinator(log)
        groups.lead_only({groups.partition_of("g"): 0, groups.partition_of("simple"): 0})
        await groups.loaded("simple")
        await asyncio.sleep(60)
        assert (await answered(groups.join(join()))).error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        with pytest.raises(KafkaError, match="LOAD_IN_PROGRESS"):
            groups.offsets("g")
        log.committed.set()
        await groups.loaded("g")
        assert groups.offsets("g") == {}
        await groups.stop()

    in_virtual_time(play())


def test_a_partition_that_was_led_elsewhere_in_between_is_loaded_anew() -> None:
    async def play() -> None:
        log = FakeLog()
        groups = await leading(log, "simple")
        partition, another = groups.partition_of("simple"), FakeLog()
        assert await answered(groups.commit(commit(1))) == [ErrorCode.NONE]
        elsewhere = await leading(another, "simple")
        assert await answered(elsewhere.commit(commit(7))) == [ErrorCode.NONE]
        log.batches = another.batches
        loads = log.loads
        groups.lead_only({partition: 0})
        assert groups.offsets("simple")[TP].offset == 1 and log.loads == loads
        groups.lead_only({partition: 2})
        with pytest.raises(KafkaError, match="LOAD_IN_PROGRESS"):
            groups.offsets("simple")
        await groups.loaded("simple")
        assert groups.offsets("simple")[TP].offset == 7
        await groups.stop()
        await elsewhere.stop()

    in_virtual_time(play())


class LostLog(FakeLog):
    """Once it is lost, another broker leads it."""

    name = "__led_elsewhere"
    is_lost = False

    async def until_committed(self, partition: int) -> None:
        if self.is_lost:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)


def test_a_leader_that_lost_its_partition_while_it_loads_is_no_damage(caplog: pytest.LogCaptureFixture) -> None:
    async def play() -> None:
        log = LostLog()
        groups = await leading(log, "simple")
        assert await answered(groups.commit(commit(1))) == [ErrorCode.NONE]
        log.is_lost = True
        groups.lead_only({groups.partition_of("simple"): 1})
        await asyncio.sleep(1)
        groups.lead_only({})
        assert not [line for line in caplog.messages if "cannot be loaded" in line]
        await groups.stop()

    in_virtual_time(play())
