"""Offsets of transactions and the markers that end these go into one log, in one order with everything else, whatever
that log does; in virtual time."""

import asyncio
from collections.abc import Awaitable

import pytest

from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.coordinators.offsets.messages import NewOffset, TransactionalOffsetCommit
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition
from moldau.records.batch import read_header
from tests.coordinators.fake_log import FakeLog, answered, coordinator, in_virtual_time, leading
from tests.coordinators.groups.scene import TOPIC_ID
from tests.coordinators.test_coordinator_runtime import commit

NONE = ErrorCode.NONE
TP = TopicPartition("t", 0)
GROUP = "simple"


def offsets(number: int, producer: int = 7, epoch: int = 0, group: str = GROUP) -> TransactionalOffsetCommit:
    return TransactionalOffsetCommit(
        group_id=group,
        producer_id=producer,
        epoch=epoch,
        member_id="",
        instance_id=None,
        generation=-1,
        offsets=[NewOffset(TP, number, -1, "", TOPIC_ID)],
    )


def agreed() -> ErrorCode:
    return NONE


async def write(groups: GroupCoordinator, ask: TransactionalOffsetCommit) -> ErrorCode:
    (error,) = await answered(groups.commit_in_transaction(ask, agreed))
    assert isinstance(error, ErrorCode)
    return error


async def end(
    groups: GroupCoordinator, commits: bool = True, producer: int = 7, epoch: int = 0, of: int = 0, version: int = 0
) -> ErrorCode:
    partition = groups.partition_of(GROUP)
    answer = groups.end_transaction(partition, producer, epoch, of, commits, version)
    return await answer if not isinstance(answer, ErrorCode) else answer


def shown(groups: GroupCoordinator) -> tuple[int | None, bool]:
    """The committed offset, and whether a transaction is about to change it."""
    value = groups.offsets(GROUP).get(TP)
    return None if value is None else value.offset, TP in groups.pending(GROUP)


def test_an_offset_of_a_transaction_counts_with_its_marker() -> None:
    async def play() -> None:
        log = FakeLog()
        groups = await leading(log, GROUP)
        assert await write(groups, offsets(5)) is NONE
        assert shown(groups) == (None, True)
        assert await end(groups) is NONE
        assert shown(groups) == (5, False)
        assert await write(groups, offsets(6)) is NONE
        assert await end(groups, commits=False) is NONE
        assert shown(groups) == (5, False)
        headers = [read_header(batch) for batch in log.batches[groups.partition_of(GROUP)]]
        assert [header.is_control for header in headers] == [False, True, False, True]
        assert {(h.is_transactional, h.producer_id, h.producer_epoch, h.base_sequence) for h in headers} == {
            (True, 7, 0, -1)
        }
        await groups.stop()

    in_virtual_time(play())


def test_what_gathers_while_the_log_is_slow_keeps_its_order() -> None:
    """A commit behind the marker counts, one between a transaction's and its marker too, and the batches are apart."""

    async def play() -> None:
        log = FakeLog()
        groups = await leading(log, GROUP)
        assert await write(groups, offsets(1)) is NONE
        log.gate.clear()
        asked = [groups.commit(commit(2)), groups.commit_in_transaction(offsets(3), agreed), groups.commit(commit(4))]
        ended = asyncio.ensure_future(end(groups))
        await asyncio.sleep(1)
        asked += [groups.commit(commit(5)), groups.commit(commit(6))]
        await asyncio.sleep(1)
        assert shown(groups) == (None, True)
        log.gate.set()
        assert [await answered(answer) for answer in asked] == [[NONE]] * 5
        assert await ended is NONE
        assert shown(groups) == (6, False)
        kinds = [(h.is_transactional, h.count) for h in map(read_header, log.batches[groups.partition_of(GROUP)])]
        assert kinds == [(True, 1), (False, 1), (True, 1), (False, 1), (True, 1), (False, 2)]
        await groups.stop()

    in_virtual_time(play())


@pytest.mark.parametrize("commits", [True, False])
def test_a_transaction_that_was_open_goes_on_after_a_restart(commits: bool) -> None:
    async def play() -> None:
        log = FakeLog()
        groups = await leading(log, GROUP)
        assert await answered(groups.commit(commit(1))) == [NONE]
        assert await write(groups, offsets(2)) is NONE
        await groups.stop()
        again = await leading(log, GROUP)
        assert shown(again) == (1, True)
        assert await end(again, commits) is NONE
        assert shown(again) == (2 if commits else 1, False)
        await again.stop()
        assert shown(await leading(log, GROUP)) == (2 if commits else 1, False)

    in_virtual_time(play())


def test_the_log_says_who_is_fenced() -> None:
    async def play() -> None:
        log = FakeLog()
        groups = await leading(log, GROUP)
        assert await write(groups, offsets(1, epoch=3)) is NONE
        assert await write(groups, offsets(2, epoch=2)) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert await end(groups, epoch=2) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert await end(groups, epoch=3, version=2) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert await end(groups, epoch=4, of=5, version=2) is NONE
        assert await end(groups, epoch=4, of=4, version=2) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
        assert await write(groups, offsets(3, epoch=3)) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert shown(groups) == (1, False)
        assert log.loads == 1
        await groups.stop()

    in_virtual_time(play())


def test_the_coordinator_is_asked_before_the_first_offset_of_a_transaction_only() -> None:
    async def play() -> None:
        groups = await leading(FakeLog(), GROUP)
        asked: list[ErrorCode] = []

        def says(error: ErrorCode, later: bool = False) -> ErrorCode | Awaitable[ErrorCode]:
            asked.append(error)
            return asyncio.sleep(1, error) if later else error

        refusals = [ErrorCode.INVALID_TXN_STATE, ErrorCode.CONCURRENT_TRANSACTIONS]
        for later in (False, True):
            for error in refusals:
                answer = groups.commit_in_transaction(offsets(1), lambda e=error, when=later: says(e, when))
                assert (await answer if later else answer) == [error]
        assert asked == refusals * 2
        assert shown(groups) == (None, False)
        asked.clear()
        later = groups.commit_in_transaction(offsets(1), lambda: says(NONE, True))
        assert not isinstance(later, list) and await later == [NONE]
        assert await answered(groups.commit_in_transaction(offsets(2), lambda: says(NONE))) == [NONE]
        assert asked == [NONE]
        assert await end(groups) is NONE
        assert await answered(groups.commit_in_transaction(offsets(3), lambda: says(NONE))) == [NONE]
        assert asked == [NONE, NONE]
        await groups.stop()

    in_virtual_time(play())


def test_an_answer_of_before_a_marker_begins_nothing_after_it() -> None:
    """Or an offset would wait for a marker that never comes."""

    async def play() -> None:
        log = FakeLog()
        groups = await leading(log, GROUP)
        told: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        late = asyncio.ensure_future(answered_later(groups.commit_in_transaction(offsets(1), lambda: told)))
        await asyncio.sleep(1)
        assert await end(groups, commits=False) is NONE
        told.set_result(NONE)
        assert await late == [ErrorCode.INVALID_TXN_STATE]
        assert shown(groups) == (None, False)
        assert await write(groups, offsets(2)) is NONE
        await groups.stop()

    async def answered_later(answer: list[ErrorCode] | Awaitable[list[ErrorCode]]) -> list[ErrorCode]:
        return answer if isinstance(answer, list) else await answer

    in_virtual_time(play())


def test_a_late_offset_never_joins_the_transaction_that_has_ended_in_line_before_it() -> None:
    async def play() -> None:
        log = FakeLog()
        groups = await leading(log, GROUP)
        assert await write(groups, offsets(1)) is NONE
        log.gate.clear()
        ending = asyncio.ensure_future(end(groups))
        await asyncio.sleep(1)
        late = groups.commit_in_transaction(offsets(2), agreed)
        log.gate.set()
        assert await ending is NONE
        assert await answered(late) == [ErrorCode.INVALID_TXN_STATE]
        assert shown(groups) == (1, False)
        await groups.stop()

    in_virtual_time(play())


def test_partitions_that_are_not_ours_are_so_for_markers_as_for_any_other() -> None:
    async def play() -> None:
        log = FakeLog()
        groups = coordinator(log)
        assert await end(groups) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert await write(groups, offsets(1)) is ErrorCode.NOT_COORDINATOR
        log.reading.clear()
        groups.lead(groups.partition_of(GROUP), 0)
        await asyncio.sleep(1)
        assert await end(groups) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert await write(groups, offsets(1)) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        with pytest.raises(KafkaError, match="LOAD_IN_PROGRESS"):
            groups.pending(GROUP)
        log.reading.set()
        await groups.loaded(GROUP)
        assert await write(groups, offsets(1)) is NONE
        log.gate.clear()
        ending = asyncio.ensure_future(end(groups))
        await asyncio.sleep(1)
        groups.resign(groups.partition_of(GROUP))
        assert await ending is ErrorCode.NOT_LEADER_OR_FOLLOWER
        await groups.stop()

    in_virtual_time(play())


@pytest.mark.parametrize("error", [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.REQUEST_TIMED_OUT])
def test_where_nobody_knows_what_the_log_took_it_is_read_again(error: ErrorCode) -> None:
    async def play() -> None:
        log = FakeLog()
        groups = await leading(log, GROUP)
        assert await write(groups, offsets(1)) is NONE
        log.refusals = [error]
        assert await end(groups) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        await groups.loaded(GROUP)
        assert (log.loads, shown(groups)) == (2, (None, True))
        assert await end(groups) is NONE
        assert shown(groups) == (1, False)
        await groups.stop()

    in_virtual_time(play())


def test_nobody_has_no_transactions() -> None:
    """Also where no transaction coordinator is asked."""

    async def play() -> None:
        log = FakeLog()
        groups = await leading(log, GROUP)
        assert await write(groups, offsets(1, producer=-1)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert await write(groups, offsets(1, epoch=-1)) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert log.batches == {}
        await groups.stop()

    in_virtual_time(play())


def test_a_group_without_a_name_has_no_transactions() -> None:
    async def play() -> None:
        groups = await leading(FakeLog(), "")
        for group in ("", "g" * 40_000):
            assert await write(groups, offsets(1, group=group)) is ErrorCode.INVALID_GROUP_ID
        await groups.stop()

    in_virtual_time(play())
