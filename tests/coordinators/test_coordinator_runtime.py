"""The host loads, decides, appends, applies and answers in that order, whatever the log does; in virtual time."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from moldau.coordinators.classic.messages import Joined, Leaver, Left, Synced
from moldau.coordinators.coordinator_runtime import PASSED_IN_TURN, CoordinatorRuntime, LedPartition
from moldau.errors import ErrorCode, KafkaError
from moldau.records import rows
from tests.coordinators.fake_log import (
    FakeLog,
    answered,
    coordinator,
    in_virtual_time,
    join,
    leading,
    stable_member,
    sync,
)
from tests.coordinators.offsets import committing
from tests.coordinators.offsets.committing import TP

commit = partial(committing.commit, group="simple")


def stand_still(seconds: float) -> None:
    """The process does not run for so long, and then finds timers that are long due."""
    loop: Any = asyncio.get_running_loop()
    loop._selector.now += seconds


def test_who_spoke_while_the_broker_stood_still_is_heard_before_it_is_thrown_out() -> None:
    async def play() -> None:
        log = FakeLog()
        groups = await leading(log, "g")
        member = await stable_member(groups)
        stand_still(100)
        await asyncio.sleep(0.2)
        assert groups.heartbeat("g", 1, member, None) is ErrorCode.NONE
        stand_still(100)
        await asyncio.sleep(5)
        assert groups.heartbeat("g", 1, member, None) is ErrorCode.UNKNOWN_MEMBER_ID
        await groups.stop()

    in_virtual_time(play())


def test_a_partition_answers_once_it_is_loaded() -> None:
    async def play() -> None:
        log = FakeLog()
        groups = coordinator(log)
        assert (await answered(groups.join(join()))).error is ErrorCode.NOT_COORDINATOR
        with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
            groups.offsets("g")
        log.reading.clear()
        groups.lead(groups.partition_of("g"), 0)
        await asyncio.sleep(1)
        assert (await answered(groups.join(join()))).error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert groups.heartbeat("g", 1, "m", None) is ErrorCode.NONE, "nobody is thrown out while we do not know"
        with pytest.raises(KafkaError, match="LOAD_IN_PROGRESS"):
            list(groups.listed())
        log.reading.set()
        await groups.loaded("g")
        assert groups.heartbeat("g", 1, "m", None) is ErrorCode.UNKNOWN_MEMBER_ID
        assert list(groups.listed()) == []
        await groups.stop()

    in_virtual_time(play())


def test_state_after_a_restart_is_what_the_log_gives() -> None:
    async def play() -> None:
        log = FakeLog()
        groups = await leading(log, "g", "simple")
        member = await stable_member(groups)
        assert await answered(groups.commit(commit(5))) == [ErrorCode.NONE]
        described, offsets = groups.describe("g"), groups.offsets("simple")
        await groups.stop()
        again = await leading(log, "g", "simple")
        assert again.describe("g") == described
        assert again.offsets("simple") == offsets
        assert again.heartbeat("g", 1, member, None) is ErrorCode.NONE
        await again.stop()

    in_virtual_time(play())


def test_an_answer_waits_for_the_commit_and_what_gathers_meanwhile_goes_into_one_batch() -> None:
    async def play() -> None:
        log = FakeLog()
        groups = await leading(log, "simple")
        log.gate.clear()
        answers = [asyncio.ensure_future(answered(groups.commit(commit(n)))) for n in range(10)]
        await asyncio.sleep(1)
        assert not any(answer.done() for answer in answers)
        assert groups.offsets("simple") == {}
        log.gate.set()
        assert await asyncio.gather(*answers) == [[ErrorCode.NONE]] * 10
        assert groups.offsets("simple")[TP].offset == 9
        batches = log.batches[groups.partition_of("simple")]
        assert [len(list(rows.iterate(batch))) for batch in batches] == [10]
        await groups.stop()

    in_virtual_time(play())


def test_one_decision_that_is_too_large_does_not_spoil_those_beside_it() -> None:
    async def play() -> None:
        log = FakeLog()
        log.sizes_max = 2000
        groups = await leading(log, "simple")
        asked = [commit(1), commit(2, metadata="x" * 3000), commit(3)]
        answers = await asyncio.gather(*(answered(groups.commit(one)) for one in asked))
        assert answers == [[ErrorCode.NONE], [ErrorCode.UNKNOWN_SERVER_ERROR], [ErrorCode.NONE]]
        assert groups.offsets("simple")[TP].offset == 3
        assert log.loads == 1
        await groups.stop()

    in_virtual_time(play())


@pytest.mark.parametrize(
    ("refusal", "told", "loads"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE, 1),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.COORDINATOR_NOT_AVAILABLE, 2),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE, 2),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR, 2),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR, 2),
    ],
)
def test_a_refusal_is_told_and_a_doubt_loads_the_partition_anew(
    refusal: ErrorCode, told: ErrorCode, loads: int
) -> None:
    async def play() -> None:
        log = FakeLog()
        groups = await leading(log, "simple")
        log.refusals = [refusal]
        assert await answered(groups.commit(commit(1))) == [told]
        await groups.loaded("simple")
        assert log.loads == loads
        assert groups.offsets("simple") == {}
        assert await answered(groups.commit(commit(2))) == [ErrorCode.NONE]
        await groups.stop()

    in_virtual_time(play())


class DamagedLog(FakeLog):
    """Reading it fails with this, until it is mended."""

    damage: Exception | None = None

    async def read_all(self, partition: int) -> AsyncIterator[bytes]:
        async for batch in super().read_all(partition):
            if self.damage is not None:
                raise self.damage
            yield batch


@pytest.mark.parametrize("damage", [KafkaError(ErrorCode.CORRUPT_MESSAGE), ValueError("no record at all")])
def test_a_partition_that_cannot_be_loaded_is_named_once_and_loaded_when_it_is_mended(
    damage: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def play() -> None:
        log = DamagedLog()
        log.name = f"__broken_{type(damage).__name__}"
        groups = await leading(log, "simple")
        assert await answered(groups.commit(commit(1))) == [ErrorCode.NONE]
        partition = groups.partition_of("simple")
        groups.resign(partition)
        log.damage = damage
        groups.lead(partition, 0)
        await asyncio.sleep(5)
        assert log.loads > 5
        with pytest.raises(KafkaError, match="LOAD_IN_PROGRESS"):
            groups.offsets("simple")
        lines = [line for line in caplog.messages if f"{log.name}-{partition} cannot be loaded" in line]
        assert len(lines) == 1 and str(damage) in lines[0] and "moldau log verify" in lines[0]
        log.damage = None
        await groups.loaded("simple")
        assert list(groups.offsets("simple")) == [TP]
        await groups.stop()

    in_virtual_time(play())


def test_a_topic_that_takes_no_record_is_named(caplog: pytest.LogCaptureFixture) -> None:
    async def play() -> None:
        log = FakeLog()
        log.name = "__too_small"
        groups = await leading(log, "simple")
        log.sizes_max = 10
        for _ in range(3):
            assert await answered(groups.commit(commit(1))) == [ErrorCode.UNKNOWN_SERVER_ERROR]
        (line,) = [line for line in caplog.messages if "__too_small" in line]
        assert "cannot be written" in line and "MESSAGE_TOO_LARGE" in line and "Change its settings" in line
        await groups.stop()

    in_virtual_time(play())


def test_everybody_who_waits_is_told_when_the_partition_goes_elsewhere() -> None:
    async def play() -> None:
        log = FakeLog()
        groups = await leading(log)
        await stable_member(groups)
        waiting = [asyncio.ensure_future(answered(groups.join(join()))) for _ in range(3)]
        log.gate.clear()
        writing = asyncio.ensure_future(answered(groups.commit(commit(1, group="g3"))))
        await asyncio.sleep(0.1)
        groups.resign(groups.partition_of("g"))
        answers: list[Joined] = await asyncio.gather(*waiting)
        assert [answer.error for answer in answers] == [ErrorCode.NOT_COORDINATOR] * 3
        assert await writing == [ErrorCode.NOT_COORDINATOR]
        assert (await answered(groups.join(join()))).error is ErrorCode.NOT_COORDINATOR
        await groups.stop()

    in_virtual_time(play())


def test_a_coordinator_answers_for_the_partitions_it_is_told_and_no_others() -> None:
    async def play() -> None:
        groups = await leading(FakeLog(), "g", "simple")
        groups.lead_only({groups.partition_of("simple"): 0, groups.partition_of("conn"): 0})
        await groups.loaded("conn")
        assert groups.offsets("simple") == groups.offsets("conn") == {}
        with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
            groups.offsets("g")
        groups.lead_only({})
        assert list(groups.listed()) == []
        await groups.stop()

    in_virtual_time(play())


def test_a_commit_in_flight_is_answered_when_the_partition_goes_elsewhere() -> None:
    async def play() -> None:
        log = FakeLog()
        groups = await leading(log, "simple")
        log.gate.clear()
        first = asyncio.ensure_future(answered(groups.commit(commit(1))))
        await asyncio.sleep(0.1)
        second = asyncio.ensure_future(answered(groups.commit(commit(2))))
        await asyncio.sleep(0.1)
        groups.resign(groups.partition_of("simple"))
        assert [await first, await second] == [[ErrorCode.NOT_COORDINATOR]] * 2
        await groups.stop()

    in_virtual_time(play())


def test_a_silent_member_is_out_after_its_session_and_a_parked_join_ends_with_the_rebalance() -> None:
    async def play() -> None:
        loop = asyncio.get_running_loop()
        log = FakeLog()
        groups = await leading(log)
        silent = await stable_member(groups)
        began = loop.time()
        joined: Joined = await answered(groups.join(join()))
        assert loop.time() - began == pytest.approx(6, abs=0.01), (
            "the session, which is shorter than the rebalance timeout"
        )
        assert joined.generation == 2
        assert [member.member_id for member in joined.members] == [joined.member_id]
        assert groups.heartbeat("g", 1, silent, None) is ErrorCode.UNKNOWN_MEMBER_ID
        await groups.stop()

    in_virtual_time(play())


def test_deadlines_that_pass_together_are_handled_in_several_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    expected, left = dict[str, Any](), list[int]()
    tick = CoordinatorRuntime._tick

    def counted(self: CoordinatorRuntime[Any], led: LedPartition[Any]) -> None:
        tick(self, led)
        left.append(len(expected))

    async def play() -> None:
        nonlocal expected
        monkeypatch.setattr(CoordinatorRuntime, "_tick", counted)
        groups = await leading(FakeLog())
        for _ in range(3 * PASSED_IN_TURN):
            assert (await answered(groups.join(join(wait_for_id=True)))).error is ErrorCode.MEMBER_ID_REQUIRED
        expected = groups.shard(groups.partition_of("g")).classic.live["g"].expected
        left.clear()
        await asyncio.sleep(7)
        assert left == [2 * PASSED_IN_TURN, PASSED_IN_TURN, 0]
        await groups.stop()

    in_virtual_time(play())


def test_a_member_that_keeps_up_its_heartbeats_stays() -> None:
    async def play() -> None:
        groups = await leading(FakeLog())
        member = await stable_member(groups)
        for _ in range(100):
            await asyncio.sleep(5)
            assert groups.heartbeat("g", 1, member, None) is ErrorCode.NONE
        await asyncio.sleep(7)
        assert groups.heartbeat("g", 1, member, None) is ErrorCode.UNKNOWN_MEMBER_ID
        await groups.stop()

    in_virtual_time(play())


def test_followers_hear_their_part_once_it_is_committed() -> None:
    async def play() -> None:
        log = FakeLog()
        groups = await leading(log)
        one, two = await asyncio.gather(answered(groups.join(join())), answered(groups.join(join())))
        log.gate.clear()
        parts = {one.member_id: b"1", two.member_id: b"2"}
        follower = asyncio.ensure_future(answered(groups.sync(sync(two.member_id, 1))))
        leader = asyncio.ensure_future(answered(groups.sync(sync(one.member_id, 1, **parts))))
        await asyncio.sleep(1)
        assert not follower.done()
        assert not leader.done()
        log.gate.set()
        synced: list[Synced] = await asyncio.gather(leader, follower)
        assert [answer.assignment for answer in synced] == [b"1", b"2"]
        await groups.stop()

    in_virtual_time(play())


def test_a_caller_that_goes_away_costs_nothing() -> None:
    async def play() -> None:
        log = FakeLog()
        groups = await leading(log)
        await stable_member(groups)
        impatient = asyncio.ensure_future(answered(groups.join(join())))
        await asyncio.sleep(0.1)
        impatient.cancel()
        await asyncio.sleep(20)
        assert next(groups.listed()).state == "Empty"
        await groups.stop()

    in_virtual_time(play())


def test_leaving_and_deleting_go_through_the_log() -> None:
    async def play() -> None:
        log = FakeLog()
        groups = await leading(log)
        member = await stable_member(groups)
        assert await answered(groups.leave("g", [Leaver(member, None)])) == Left(ErrorCode.NONE, [ErrorCode.NONE])
        [(lot, errors)] = groups.delete_groups(["g", "g"])
        assert (lot, await answered(errors)) == (["g"], [ErrorCode.NONE])
        await groups.stop()
        assert list((await leading(log)).listed()) == []

    in_virtual_time(play())


def test_groups_are_listed_one_by_one_and_those_deleted_meanwhile_are_not() -> None:
    async def play() -> None:
        groups = await leading(FakeLog(), "a", "b", "c")
        for group in ("a", "b", "c"):
            await answered(groups.commit(commit(1, group=group)))
        listed = iter(groups.listed())
        left = {"a", "b", "c"} - {next(listed).group_id}
        gone = min(left)
        for _, errors in groups.delete_groups([gone]):
            assert await answered(errors) == [ErrorCode.NONE]
        assert {one.group_id for one in listed} == left - {gone}
        await groups.stop()

    in_virtual_time(play())


def test_a_log_that_cannot_be_read_is_read_again() -> None:
    async def play() -> None:
        log = FakeLog()
        groups = await leading(log, "simple")
        await answered(groups.commit(commit(1)))
        await groups.stop()
        broken = log.batches[groups.partition_of("simple")]
        whole = broken[0]
        broken[0] = whole[:-1] + b"\x07"
        groups = coordinator(log)
        groups.lead(groups.partition_of("simple"), 0)
        await asyncio.sleep(3)
        assert log.loads > 2
        broken[0] = whole
        await groups.loaded("simple")
        assert groups.offsets("simple")[TP].offset == 1
        await groups.stop()

    in_virtual_time(play())


def test_a_defect_at_the_end_of_loading_is_named_and_the_partition_is_loaded_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def play() -> None:
        log = FakeLog()
        log.name = "__with_a_defect"
        groups = coordinator(log)

        def explode(*_: Any) -> None:
            raise ZeroDivisionError("a defect")

        with monkeypatch.context() as broken:
            broken.setattr("moldau.coordinators.groups.shard.GroupShard.start", explode)
            groups.lead(groups.partition_of("simple"), 0)
            await asyncio.sleep(3)
        assert log.loads > 2
        assert any("cannot be loaded: a defect" in line for line in caplog.messages)
        await groups.loaded("simple")
        assert await answered(groups.commit(commit(1))) == [ErrorCode.NONE]
        await groups.stop()

    in_virtual_time(play())


def test_a_defect_answers_with_an_error_and_starts_over(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play() -> None:
        log = FakeLog()
        groups = await leading(log, "simple")

        def explode(*_: Any) -> None:
            raise ZeroDivisionError

        with monkeypatch.context() as broken:
            broken.setattr("moldau.coordinators.offsets.committed.CommittedOffsets.apply", explode)
            assert await answered(groups.commit(commit(1))) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
        await groups.loaded("simple")
        assert groups.offsets("simple")[TP].offset == 1, "it was in the log, though nobody was told"
        await groups.stop()

    in_virtual_time(play())
