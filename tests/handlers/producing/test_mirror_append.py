"""MirrorAppend: a mirror has the bytes of its source, from where its log ends, and nobody else writes to it."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from moldau.errors import ErrorCode
from moldau.protocol.apis import DELETE_RECORDS, MIRROR_APPEND, PRODUCE, WRITE_TXN_MARKERS
from moldau.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from moldau.protocol.messages.mirror_append import MirrorAppendRequest, MirroredPartition, MirroredTopic
from moldau.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from moldau.records.batch import TRANSACTIONAL_BIT, Row, batches, encode_batch, encode_marker, place
from moldau.requests.access import ALTER_TOPIC, CLUSTER_ACTION
from moldau.requests.gate import Gate
from tests.handlers.in_sync import FOLLOWER, in_sync, reached
from tests.handlers.living import Living, Wire, batch, produce, run
from tests.requests.calling import Denying

SOURCE = "gZW1xyrxToKXBiAjZfFIVg/AAAAAAAAAAAAAAAAAAAAAQ"
OTHER = "another/AAAAAAAAAAAAAAAAAAAAAQ"
OLD_MS = 1_000
SOURCES_EPOCH = 41
Scenario = Callable[[Living, Wire], Awaitable[None]]


def play(folder: Path, scenario: Scenario, gate: Gate | None = None, **settings: object) -> None:
    async def live(alive: Living) -> None:
        await alive.make("a", 2, mirror_source=SOURCE, **settings)
        await scenario(alive, await alive.dial())

    run(live, folder, gate)


def at(offset: int, records: bytes | bytearray) -> bytes:
    """The batch as its source has it: at that offset, in an epoch of the source."""
    own = bytearray(records)
    place(own, offset, SOURCES_EPOCH)
    return bytes(own)


def records(*values: bytes, **options: Any) -> bytearray:
    """Older than any retention, so that only the source decides when they go."""
    return encode_batch([Row(b"k", value, OLD_MS, (("h", b"1"),)) for value in values], **options)


def append(end: int, *pieces: bytes, start: int = 0, source: str = SOURCE, timeout_ms: int = 30_000) -> Any:
    part = MirroredPartition(index=0, log_end_offset=end, source_start_offset=start, records=b"".join(pieces))
    return MirrorAppendRequest(
        topics=[MirroredTopic(name="a", source=source, partitions=[part])], timeout_ms=timeout_ms
    )


async def told(wire: Wire, request: MirrorAppendRequest) -> tuple[int, int, int]:
    """Error code, log start and log end of the one partition."""
    response = await wire.ask(MIRROR_APPEND, 0, request)
    (part,) = response.topics[0].partitions
    return part.error_code, part.log_start_offset, part.log_end_offset


def but_epochs(data: bytes) -> bytes:
    own = bytearray(data)
    for position, header in batches(data):
        place(own, header.base_offset, 0, position)
    return bytes(own)


def test_it_has_the_bytes_offsets_and_gaps_of_its_source_and_an_epoch_of_its_own(tmp_path: Path) -> None:
    sent = [at(0, records(b"1", b"2")), at(7, records(b"3")), at(12, records(b"4", b"5"))]

    async def scenario(alive: Living, wire: Wire) -> None:
        assert await told(wire, append(0, *sent[:2])) == (0, 0, 8)
        assert await told(wire, append(8, sent[2])) == (0, 0, 14)
        replica = alive.replica("a")
        found = replica.log.read_batches(0, 10_000)
        assert but_epochs(found) == but_epochs(b"".join(sent))
        epochs = {header.partition_leader_epoch for _, header in batches(found)}
        assert epochs == {replica.leadership.leader_epoch} != {SOURCES_EPOCH}
        assert replica.high_watermark == 14

    play(tmp_path, scenario)


def test_a_sender_that_is_wrong_about_the_end_hears_it_and_nothing_is_appended(tmp_path: Path) -> None:
    async def scenario(alive: Living, wire: Wire) -> None:
        assert await told(wire, append(0, at(0, records(b"1", b"2")))) == (0, 0, 2)
        for wrong in (0, 1, 3):
            assert await told(wire, append(wrong, at(max(wrong, 2), records(b"x")))) == (1, 0, 2)
        assert await told(wire, append(-1, at(2, records(b"x")))) == (0, 0, 2)  # only asks
        assert alive.replica("a").log.log_end_offset == 2

    play(tmp_path, scenario)


@pytest.mark.parametrize(
    "damaged",
    [
        lambda good: good[:-1] + bytes([good[-1] ^ 1]),
        lambda good: at(1, good),
        lambda good: good + at(3, good),
        lambda good: b"\0" * 100,
    ],
    ids=["checksum", "an offset that is taken", "offsets that go back", "no batch"],
)
def test_damaged_batches_are_refused(tmp_path: Path, damaged: Callable[[bytes], bytes]) -> None:
    async def scenario(alive: Living, wire: Wire) -> None:
        assert (await told(wire, append(0, at(0, records(b"1", b"2")))))[0] == 0
        good = at(4, records(b"3"))
        assert (await told(wire, append(2, damaged(good))))[0] == ErrorCode.CORRUPT_MESSAGE
        assert alive.replica("a").log.log_end_offset == 2
        assert await told(wire, append(2, good)) == (0, 0, 5)

    play(tmp_path, scenario)


def test_a_topic_is_a_mirror_of_one_source_only(tmp_path: Path) -> None:
    async def scenario(alive: Living, wire: Wire) -> None:
        assert (await told(wire, append(0, at(0, records(b"1")), source=OTHER)))[0] == ErrorCode.INVALID_REQUEST
        await alive.make("b")
        request = append(0, at(0, records(b"1")), source="")
        request.topics[0].name = "b"
        assert (await told(wire, request))[0] == ErrorCode.INVALID_REQUEST
        request.topics[0].name = "missing"
        assert (await told(wire, request))[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    play(tmp_path, scenario)


def test_clients_neither_produce_to_it_nor_delete_its_records(tmp_path: Path) -> None:
    async def scenario(alive: Living, wire: Wire) -> None:
        await told(wire, append(0, at(0, records(b"1", b"2"))))
        response = await wire.ask(PRODUCE, 9, produce(("a", 0, batch(b"x"))))
        (part,) = response.responses[0].partition_responses
        assert part.error_code == ErrorCode.INVALID_REQUEST and "is a mirror" in part.error_message
        deletion = DeleteRecordsPartition(partition_index=0, offset=1)
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="a", partitions=[deletion])], timeout_ms=1000)
        response = await wire.ask(DELETE_RECORDS, 2, request)
        assert response.topics[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST
        assert alive.replica("a").log.log_end_offset == 2

    play(tmp_path, scenario)


def test_transactions_and_their_markers_are_those_of_the_source(tmp_path: Path) -> None:
    in_one = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0, "attributes": TRANSACTIONAL_BIT}

    async def scenario(alive: Living, wire: Wire) -> None:
        log, replica = alive.replica("a").log, alive.replica("a")
        assert await told(wire, append(0, at(0, records(b"1", b"2", **in_one)))) == (0, 0, 2)
        assert replica.last_stable_offset == 0
        marked = WritableTxnMarkerTopic(name="a", partition_indexes=[0])
        marker = WritableTxnMarker(producer_id=5, producer_epoch=0, transaction_result=True, topics=[marked])
        response = await wire.ask(WRITE_TXN_MARKERS, 1, WriteTxnMarkersRequest(markers=[marker]))
        assert response.markers[0].topics[0].partitions[0].error_code == 0
        assert log.log_end_offset == 2
        assert await told(wire, append(2, at(2, encode_marker(5, 0, False, 3, OLD_MS)))) == (0, 0, 3)
        assert replica.last_stable_offset == 3
        aborted = replica.read(0, 10_000, committed=True).aborted
        assert aborted == [(5, 0)]
        producer = log.producers.get(5)
        assert producer is not None and (producer.epoch, producer.coordinator_epoch) == (0, 3)

    play(tmp_path, scenario)


def test_its_log_starts_where_the_source_does_and_its_own_retention_deletes_nothing(tmp_path: Path) -> None:
    async def scenario(alive: Living, wire: Wire) -> None:
        for offset in range(3):
            assert (await told(wire, append(offset, at(offset, records(b"1")))))[2] == offset + 1
            alive.replica("a").log.roll(OLD_MS)
        log = alive.replica("a").log
        assert not log.retain(OLD_MS * 10**9, 3) and len(log.segments) == 4
        assert await told(wire, append(3, start=2)) == (0, 2, 3)
        assert len(log.retain(OLD_MS * 10**9, 3)) == 2

    play(tmp_path, scenario, retention_ms=1)


@pytest.mark.parametrize("start", [5, 5_000_000_000])
def test_it_begins_where_a_source_begins_that_has_deleted_what_the_mirror_lacks(tmp_path: Path, start: int) -> None:
    async def scenario(alive: Living, wire: Wire) -> None:
        assert await told(wire, append(0, at(start, records(b"1")), start=start)) == (0, start, start + 1)
        assert await told(wire, append(start + 1, start=start * 2)) == (0, start * 2, start * 2)
        assert await told(wire, append(start * 2, at(start * 2, records(b"2")), start=start * 2)) == (
            0, start * 2, start * 2 + 1,
        )  # fmt: skip

    play(tmp_path, scenario)

    async def again(alive: Living) -> None:
        assert await told(await alive.dial(), append(-1)) == (0, start * 2, start * 2 + 1)
        assert len(alive.replica("a").log.read_batches(start * 2, 10_000)) == len(records(b"2"))

    run(again, tmp_path)


def test_it_is_answered_when_the_in_sync_replicas_have_it(tmp_path: Path) -> None:
    async def scenario(alive: Living, wire: Wire) -> None:
        replica = alive.replica("a")
        in_sync(replica, 1, FOLLOWER)
        late = await told(wire, append(0, at(0, records(b"1")), timeout_ms=1))
        assert late[0] == ErrorCode.REQUEST_TIMED_OUT
        answer = asyncio.ensure_future(told(wire, append(1, at(1, records(b"2")))))
        while not replica.waiters.until_committed:
            await asyncio.sleep(0)
        assert not answer.done()
        reached(replica, 2)
        assert await answer == (0, 0, 2)

    play(tmp_path, scenario)


def test_the_sender_needs_a_right_on_the_topic_or_that_of_a_broker(tmp_path: Path) -> None:
    authorizer = Denying()

    async def scenario(alive: Living, wire: Wire) -> None:
        for denied in ([(ALTER_TOPIC, "a")], [(CLUSTER_ACTION, "*")]):
            authorizer.deny(*denied)
            assert (await told(wire, append(-1)))[0] == 0
        authorizer.deny((ALTER_TOPIC, "a"), (CLUSTER_ACTION, "*"))
        assert (await told(wire, append(0, at(0, records(b"1")))))[0] == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert authorizer.logged == [(ALTER_TOPIC, "a")]
        assert alive.replica("a").log.log_end_offset == 0

    play(tmp_path, scenario, Gate(authorizer=authorizer))
