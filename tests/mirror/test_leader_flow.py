"""What of a leader's answer goes to the mirrors, and what is fetched next."""

import asyncio
from typing import Any, cast
from uuid import UUID

import pytest

from harness.patience import until
from moldau.error_codes import ErrorCode
from moldau.mirror import leader_flow
from moldau.mirror.copied_partitions import CopiedPartitions, CopiedTopic
from moldau.mirror.copies import PartitionCopy
from moldau.mirror.leader_flow import LeaderFlow
from moldau.mirror.requests import Appending
from moldau.mirror.source_session import FetchedBatches
from moldau.names import TopicPartition
from moldau.records.batch import MAGIC_AT, Row, encode_batch, place

TP, ID = TopicPartition("t", 0), UUID(int=1)


@pytest.fixture
def flow() -> LeaderFlow:
    copied = CopiedPartitions()
    copied.mirror({"t": CopiedTopic("source/id", ID, ID)})
    copied.assign([TP])
    flow = LeaderFlow(1, cast(Any, None), cast(Any, None), copied)
    copy = copied.copies[TP]
    copy.end, copy.source_epoch = 10, 3
    copy.join(flow.session, ID)
    return flow


def copy_of(flow: LeaderFlow) -> PartitionCopy:
    return flow._copied.copies[TP]


def log(*offsets: int) -> bytearray:
    found = bytearray()
    for offset in offsets:
        batch = encode_batch([Row(b"k", b"v", 1)])
        place(batch, offset, 0)
        found += batch
    return found


def answer(records: bytes | bytearray, start: int = 0, error: ErrorCode = ErrorCode.NONE) -> FetchedBatches:
    return FetchedBatches(error, memoryview(records), start, 100)


def test_whole_batches_are_sent_and_the_next_ones_are_fetched_meanwhile(flow: LeaderFlow) -> None:
    whole = log(10, 15)
    wanted = flow._to_append({TP: answer(whole + log(20)[:30])})
    assert (wanted[TP].end, bytes(wanted[TP].records)) == (10, whole)
    copy = copy_of(flow)
    assert (copy.end, copy.position, copy.records_behind) == (10, 16, 90)
    assert flow.session.request(0).topics[0].partitions[0].fetch_offset == 16


def test_a_mirror_gets_the_start_of_its_source_once_it_has_come_so_far(flow: LeaderFlow) -> None:
    wanted = flow._to_append({TP: answer(log(10, 20), start=18)})
    assert wanted[TP].source_start == 10, "the log starts within a batch"
    assert flow._to_append({}) == {}
    copy_of(flow).end = 21  # the mirror has the batches now
    wanted = flow._to_append({})
    assert (wanted[TP].end, wanted[TP].source_start, bytes(wanted[TP].records)) == (21, 18, b"")
    copy_of(flow).mirror_start = 18
    assert flow._to_append({}) == {}


def test_a_mirror_begins_where_a_source_without_records_does(flow: LeaderFlow) -> None:
    copy = copy_of(flow)
    copy.forget()
    copy.end, copy.source_epoch, copy.source_start = 10, 3, 100
    copy.join(flow.session, ID)
    wanted = flow._to_append({TP: answer(b"", start=100)})
    assert (wanted[TP].end, wanted[TP].source_start, bytes(wanted[TP].records)) == (10, 100, b"")


def test_records_of_an_old_format_stop_the_partition(flow: LeaderFlow) -> None:
    records = log(10)
    records[MAGIC_AT] = 1
    assert flow._to_append({TP: answer(records)}) == {}
    assert copy_of(flow).stopped.startswith("the source has records of format 1 at offset 10")
    assert not len(flow.session)


def test_a_mirror_that_does_not_answer_holds_up_no_other(flow: LeaderFlow, monkeypatch: pytest.MonkeyPatch) -> None:
    slow, other = TP, TopicPartition("t", 1)
    copied = flow._copied
    copied.assign([slow, other])
    one = copied.copies[other]
    one.end, one.source_epoch = 10, 3
    one.join(flow.session, ID)
    script = [{slow: answer(log(10)), other: answer(log(10))}]
    script += [{other: answer(log(offset))} for offset in range(11, 30)]
    sent: list[dict[TopicPartition, Appending]] = []

    class Mirrors:
        async def append(self, wanted: dict[TopicPartition, Appending], _: str) -> None:
            sent.append(wanted)
            one.end = one.position
            if slow in wanted:
                await asyncio.Event().wait()

    async def next_answer(*_: object) -> dict[TopicPartition, FetchedBatches]:
        await asyncio.sleep(0)
        if not script:
            await asyncio.Event().wait()
        return script.pop(0)

    monkeypatch.setattr(leader_flow, "fetch_next", next_answer)
    monkeypatch.setattr(leader_flow, "SLOW_S", 0.01)
    flow._mirrors = cast(Any, Mirrors())

    async def played() -> None:
        running = asyncio.ensure_future(flow.run())
        await until(lambda: len(sent) == 20)
        assert all([*some] == [other] for some in sent[1:]) and slow not in flow.session and other in flow.session
        assert copied.counters.pauses == 1
        running.cancel()
        await asyncio.wait([running])

    asyncio.run(played())


def test_what_was_forgotten_meanwhile_is_not_sent(flow: LeaderFlow) -> None:
    copy_of(flow).forget()
    assert flow._to_append({TP: answer(log(10))}) == {}
