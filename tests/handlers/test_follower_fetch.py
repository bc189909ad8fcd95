"""Fetch of a follower: what it is told, when, and what its request tells the leader."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from moldau import turns
from moldau.cluster.state.image import BrokerImage, Image
from moldau.errors import ErrorCode
from moldau.handlers.follower_fetch import FollowerFetch
from moldau.names import Offset
from moldau.net.server import Peer
from moldau.protocol import codec
from moldau.protocol.apis import FETCH, PRODUCE
from moldau.protocol.hot_fetch import Fetch, pack_fetch
from moldau.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from moldau.records.batch import batches
from moldau.requests.session import Call, Introduction, Session
from moldau.runtime import FileSlice
from tests.handlers.in_sync import FOLLOWER, in_sync
from tests.handlers.living import Living, batch, produce, run

EPOCH = 7
VERSION = FETCH.high
HOUR_MS = 3_600_000


class Asking:
    """A follower of a broker alone, whose books say that the partitions have another replica."""

    def __init__(self, alive: Living, introduced: int = FOLLOWER, tells_watermarks: bool = False):
        self.alive = alive
        self.session = (0, 0)
        self.up = {FOLLOWER: EPOCH}
        replicas, runtime = alive.broker.replicas, alive.broker.runtime
        self.asked: list[object] = []
        self._handler = FollowerFetch(
            replicas, self._image, 50 << 20, runtime.random, self.asked.append, tells_watermarks=tells_watermarks
        )
        self._call = Call(Session("PLAINTEXT", Peer("here", 1)), FETCH.key, VERSION, 1, None)
        self._call.session.introduction = Introduction(introduced, EPOCH)

    def _image(self) -> Image:
        return Image("c", brokers={one: BrokerImage(one, (), epoch=epoch) for one, epoch in self.up.items()})

    async def ask(
        self,
        *parts: tuple[bytes, int, int, int],
        start: int = 0,
        forgotten: tuple[bytes, int] | None = None,
        wait_ms: int = 0,
        max_bytes: int = 1 << 20,
        min_bytes: int = 1,
    ) -> FetchResponse:
        """Each part is a topic's id, partition, offset and last fetched epoch; all logs begin at `start`. Returns the
        reply as it is read on the wire."""
        topics = [
            FetchTopic(
                topic_id=uuid.UUID(bytes=topic),
                partitions=[
                    FetchPartition(
                        partition=index,
                        current_leader_epoch=self.alive.replica("a", index).leadership.leader_epoch,
                        fetch_offset=offset,
                        last_fetched_epoch=last,
                        log_start_offset=start,
                        partition_max_bytes=1 << 20,
                    )
                ],
            )
            for topic, index, offset, last in parts
        ]
        request = FetchRequest(
            replica_state=ReplicaState(replica_id=FOLLOWER, replica_epoch=EPOCH),
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=max_bytes,
            session_id=self.session[0],
            session_epoch=self.session[1],
            topics=topics,
            forgotten_topics_data=[]
            if forgotten is None
            else [ForgottenTopic(topic_id=uuid.UUID(bytes=forgotten[0]), partitions=[forgotten[1]])],
        )
        fetch = Fetch(FOLLOWER, wait_ms, min_bytes, max_bytes, 0, *self.session, [], [], False, request)
        answer = self._handler(fetch, self._call)
        answer = await answer if isinstance(answer, Awaitable) else answer
        pieces = pack_fetch(VERSION, 1, fetch, answer)
        whole = b"".join(one.file.read(one.length, one.offset) if isinstance(one, FileSlice) else one for one in pieces)
        reply = cast(FetchResponse, codec.read_reply(FETCH, VERSION, memoryview(whole)[4:]))
        if not reply.error_code:
            self.session = reply.session_id, self.session[1] + 1
        return reply


def parts(reply: FetchResponse) -> list[PartitionData]:
    return [part for topic in reply.responses for part in topic.partitions]


def offsets(part: PartitionData) -> list[int]:
    return [header.base_offset for _, header in batches(bytes(part.records or b""))]


def play(folder: Path, scenario: Callable[[Living, Asking, bytes], Awaitable[None]]) -> None:
    async def live(alive: Living) -> None:
        topic = await alive.make("a", 2)
        for number in range(2):
            in_sync(alive.replica("a", number), 1)
        await scenario(alive, Asking(alive), topic)

    run(live, folder)


async def write(alive: Living, partition: int = 0) -> Any:
    return await (await alive.dial()).ask(PRODUCE, 9, produce(("a", partition, batch(b"x")), acks=1))


def test_a_leader_waits_until_it_has_as_many_bytes_as_its_follower_asks_for(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        in_sync(alive.replica("a"), 1, FOLLOWER)
        await write(alive)
        size = len(batch(b"x"))
        asking = asyncio.ensure_future(follower.ask((topic, 0, 0, -1), wait_ms=HOUR_MS, min_bytes=size + 1))
        await asyncio.sleep(0)
        assert not asking.done()
        await write(alive)
        (part,) = parts(await asking)
        assert offsets(part) == [0, 1]
        await write(alive)
        (part,) = parts(await follower.ask((topic, 0, 2, 0), wait_ms=1, min_bytes=size + 1))
        assert offsets(part) == [2]

    play(tmp_path, scenario)


def test_a_follower_gets_what_is_not_committed_and_its_next_request_commits_it(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        in_sync(alive.replica("a"), 1, FOLLOWER)
        await write(alive)
        (part,) = parts(await follower.ask((topic, 0, 0, -1)))
        assert (offsets(part), part.high_watermark, part.error_code) == ([0], 0, 0)
        (part,) = parts(await follower.ask((topic, 0, 1, 0)))
        assert (offsets(part), part.high_watermark) == ([], 1)
        assert alive.replica("a").high_watermark == 1
        assert follower.asked == [alive.replica("a")] * 2

    play(tmp_path, scenario)


def test_the_next_request_of_a_session_ends_the_wait_of_the_one_before(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        await follower.ask((topic, 0, 0, -1))
        first = asyncio.ensure_future(follower.ask(wait_ms=HOUR_MS))
        await asyncio.sleep(0.01)
        session_id, epoch = follower.session
        follower.session = session_id, epoch + 1
        second = asyncio.ensure_future(follower.ask((topic, 1, 0, -1), wait_ms=HOUR_MS))
        assert parts(await first) == []
        await asyncio.sleep(0.01)
        assert not second.done()
        await write(alive, 1)
        (part,) = parts(await second)
        assert (part.partition_index, offsets(part)) == (1, [0])

    play(tmp_path, scenario)


def test_what_a_request_had_read_when_the_next_one_came_is_in_a_later_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "ELEMENTS", 1)

    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        await follower.ask((topic, 0, 0, -1), (topic, 1, 0, -1))
        await write(alive)
        await write(alive, 1)
        first = asyncio.ensure_future(follower.ask(wait_ms=HOUR_MS))
        await asyncio.sleep(0)
        session_id, epoch = follower.session
        follower.session = session_id, epoch + 1
        second = asyncio.ensure_future(follower.ask((topic, 1, 0, -1), wait_ms=HOUR_MS))
        assert parts(await first) == []
        told = parts(await second)
        follower.session = session_id, epoch + 2
        told += parts(await follower.ask(wait_ms=1))
        assert sorted((part.partition_index, *offsets(part)) for part in told) == [(0, 0), (1, 0)]

    play(tmp_path, scenario)


def test_a_request_waits_for_records_and_not_for_the_high_watermark(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        await follower.ask((topic, 0, 0, -1), (topic, 1, 0, -1))
        waiting = asyncio.ensure_future(follower.ask(wait_ms=HOUR_MS))
        while not alive.replica("a", 1).waiters.followers:
            await asyncio.sleep(0)
        alive.replica("a")._committed(alive.replica("a").log.log_end_offset, None)
        await asyncio.sleep(0.01)
        assert not waiting.done()
        await write(alive, 1)
        (part,) = parts(await waiting)
        assert (part.partition_index, offsets(part)) == (1, [0])

    play(tmp_path, scenario)


def test_a_high_watermark_that_moved_is_told_at_once_and_once_if_followers_serve_readers(tmp_path: Path) -> None:
    async def scenario(alive: Living, _: Asking, topic: bytes) -> None:
        follower, replica = Asking(alive, tells_watermarks=True), alive.replica("a")
        await follower.ask((topic, 0, 0, -1))
        waiting = asyncio.ensure_future(follower.ask(wait_ms=HOUR_MS))
        await asyncio.sleep(0.01)
        await write(alive)
        (part,) = parts(await waiting)
        assert (offsets(part), part.high_watermark) == ([0], 0)
        (part,) = parts(await follower.ask((topic, 0, 1, 0), wait_ms=HOUR_MS))
        assert (offsets(part), part.high_watermark) == ([], 1)
        waiting = asyncio.ensure_future(follower.ask((topic, 0, 1, 0), wait_ms=HOUR_MS))
        await asyncio.sleep(0.01)
        assert not waiting.done(), "it knows the high watermark"
        await write(alive)
        (part,) = parts(await waiting)
        assert (offsets(part), part.high_watermark) == ([1], 1)
        (part,) = parts(await follower.ask((topic, 0, 2, 0), wait_ms=HOUR_MS))
        assert (offsets(part), part.high_watermark) == ([], 2)
        waiting = asyncio.ensure_future(follower.ask(wait_ms=HOUR_MS))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        replica._committed(Offset(3), None)
        (part,) = parts(await waiting)
        assert (offsets(part), part.high_watermark) == ([], 3)

    play(tmp_path, scenario)


def test_a_partition_that_has_not_changed_is_not_looked_at(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        await follower.ask((topic, 0, 0, -1), (topic, 1, 0, -1))
        follower.asked.clear()
        assert parts(await follower.ask()) == []
        assert follower.asked == []
        await write(alive, 1)
        assert [part.partition_index for part in parts(await follower.ask())] == [1]
        assert follower.asked == [alive.replica("a", 1)]

    play(tmp_path, scenario)


def test_where_the_follower_differs_the_answer_says_only_that(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        in_sync(alive.replica("a"), 1, FOLLOWER)
        await write(alive)
        (part,) = parts(await follower.ask((topic, 0, 3, 0)))
        assert (part.diverging_epoch.epoch, part.diverging_epoch.end_offset) == (0, 1)
        assert (offsets(part), alive.replica("a").high_watermark) == ([], 0)
        (part,) = parts(await follower.ask((topic, 0, 3, -1)))
        assert (part.diverging_epoch.epoch, part.diverging_epoch.end_offset) == (-1, 1)

    play(tmp_path, scenario)


def test_a_follower_below_the_logs_start_hears_where_that_is(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        await write(alive)
        alive.replica("a").delete_records_before(1)
        (part,) = parts(await follower.ask((topic, 0, 0, -1)))
        assert (part.error_code, part.log_start_offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, 1)

    play(tmp_path, scenario)


def test_a_log_start_ahead_of_the_followers_ends_its_wait_once(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        replica = alive.replica("a")
        await write(alive)
        await follower.ask((topic, 0, 1, 0))
        waiting = asyncio.ensure_future(follower.ask(wait_ms=HOUR_MS))
        while not replica.waiters.followers:
            await asyncio.sleep(0)
        replica.delete_records_before(1)
        (part,) = parts(await waiting)
        assert (part.partition_index, part.log_start_offset) == (0, 1)
        assert replica.leadership.low_watermark(Offset(1), {FOLLOWER: EPOCH}) == 0
        waiting = asyncio.ensure_future(follower.ask((topic, 0, 1, 0), start=1, wait_ms=HOUR_MS))
        while replica.leadership.low_watermark(Offset(1), {FOLLOWER: EPOCH}) != 1:
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        assert not waiting.done()
        waiting.cancel()

    play(tmp_path, scenario)


def test_what_finds_no_room_comes_next_time(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        for number in range(2):
            await write(alive, number)
        first = parts(await follower.ask((topic, 0, 0, -1), (topic, 1, 0, -1), max_bytes=1))
        assert [(part.partition_index, offsets(part)) for part in first] == [(0, [0])]
        second = parts(await follower.ask((topic, 0, 1, 0), max_bytes=1))
        assert [(part.partition_index, offsets(part)) for part in second] == [(1, [0])]

    play(tmp_path, scenario)


def test_forgotten_partitions_are_not_told_of_and_not_watched(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        await follower.ask((topic, 0, 0, -1), (topic, 1, 0, -1))
        await follower.ask(forgotten=(topic, 0))
        assert not alive.replica("a").waiters.followers
        await write(alive)
        assert parts(await follower.ask()) == []

    play(tmp_path, scenario)


def test_a_deleted_topic_is_told_to_who_waits(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        await follower.ask((topic, 0, 0, -1))
        waiting = asyncio.ensure_future(follower.ask(wait_ms=HOUR_MS))
        await asyncio.sleep(0)
        await alive.broker.cluster.topics.delete([("a", None)])
        (part,) = parts(await waiting)
        assert part.error_code == ErrorCode.UNKNOWN_TOPIC_ID

    play(tmp_path, scenario)


def test_sessions_count_and_a_new_one_ends_the_one_before(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        await follower.ask((topic, 0, 0, -1))
        first = follower.session
        follower.session = first[0], first[1] + 1
        assert (await follower.ask()).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        follower.session = (0, 0)
        await follower.ask((topic, 1, 0, -1))
        assert not alive.replica("a").waiters.followers
        follower.session = first
        assert (await follower.ask()).error_code in (
            ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
            ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        )

    play(tmp_path, scenario)


def test_only_the_broker_that_introduced_itself_asks_for_itself(tmp_path: Path) -> None:
    async def scenario(alive: Living, _: Asking, topic: bytes) -> None:
        reply = await Asking(alive, introduced=3).ask((topic, 0, 0, -1))
        assert reply.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    play(tmp_path, scenario)


def test_a_follower_of_an_earlier_life_does_not_count(tmp_path: Path) -> None:
    async def scenario(alive: Living, follower: Asking, topic: bytes) -> None:
        replica = alive.replica("a")
        in_sync(replica, 1, FOLLOWER)
        assert replica.follower_asked(FOLLOWER, replica.log.log_end_offset, EPOCH + 1, True, 0)
        (part,) = parts(await follower.ask((topic, 0, 0, -1)))
        assert part.error_code == ErrorCode.STALE_BROKER_EPOCH

    play(tmp_path, scenario)
