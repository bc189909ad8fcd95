"""A follower that fetches from a broker in this process, played by the test."""

import uuid
from collections.abc import Awaitable, Callable
from operator import attrgetter
from pathlib import Path
from typing import Any, cast

from moldau.cluster.state.image import BrokerImage, Image
from moldau.handlers.following.follower_fetch import FollowerFetch
from moldau.handlers.following.follower_sessions import FollowerSession
from moldau.names import BrokerId
from moldau.net.server import Peer
from moldau.protocol import codec
from moldau.protocol.apis import FETCH, PRODUCE
from moldau.protocol.fetch_request import Fetch
from moldau.protocol.hot_fetch import pack_fetch, positions_of
from moldau.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from moldau.records.batch import batches
from moldau.replication.quota import ReplicationQuota
from moldau.replication.throttling import Throttle
from moldau.replies import FileSlice, awaited
from moldau.requests.gate import Pending
from moldau.requests.session import Call, Introduction, Session
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
        self.epoch = EPOCH
        """The broker epoch that it names in its requests."""
        self.up = {FOLLOWER: EPOCH}
        replicas, runtime = alive.broker.replicas, alive.broker.runtime
        self.asked: list[object] = []
        self.quota = ReplicationQuota(11, 1000)
        self.throttle = Throttle(BrokerId(1), attrgetter("leader_replication_throttled_replicas"), self.quota)
        self._handler = FollowerFetch(
            replicas,
            self._image,
            50 << 20,
            runtime.random,
            self.asked.append,
            self.throttle,
            tells_watermarks=tells_watermarks,
        )
        self._call = Call(Session("PLAINTEXT", Peer("here", 1)), FETCH.key, VERSION, 1, None)
        self._call.session.introduction = Introduction(introduced, EPOCH)

    @property
    def sessions(self) -> list[FollowerSession]:
        return list(self._handler._sessions)

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
            replica_state=ReplicaState(replica_id=FOLLOWER, replica_epoch=self.epoch),
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=max_bytes,
            session_id=self.session[0],
            session_epoch=self.session[1],
            topics=topics,
        )
        forgotten_now = [] if forgotten is None else [(None, forgotten[0], [forgotten[1]])]
        fetch = Fetch(
            FOLLOWER, wait_ms, min_bytes, max_bytes, 0, *self.session, [], forgotten_now, False, positions_of(request)
        )
        answer = self._handler(fetch, self._call)
        answer = await awaited(answer.response) if isinstance(answer, Pending) else answer
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


def play(
    folder: Path, scenario: Callable[[Living, Asking, bytes], Awaitable[None]], throttled: str | None = None
) -> None:
    """`throttled`: the leader's throttled replicas of the topic, at a byte a second."""

    async def live(alive: Living) -> None:
        settings = {} if throttled is None else {"leader_replication_throttled_replicas": throttled}
        topic = await alive.make("a", 2, **settings)
        for number in range(2):
            in_sync(alive.replica("a", number), 1)
        follower = Asking(alive)
        follower.throttle.quota.limit = None if throttled is None else 1
        await scenario(alive, follower, topic)

    run(live, folder)


async def write(alive: Living, partition: int = 0) -> Any:
    return await (await alive.dial()).ask(PRODUCE, 9, produce(("a", partition, batch(b"x")), acks=1))
