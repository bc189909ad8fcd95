"""Two brokers' replicas of one partition, of which a test plays the other broker and the controller."""

import asyncio
import random
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path

from harness.logs import append
from harness.patience import stretched
from moldau.cluster.state.isr_changes import ProposedIsr
from moldau.config import broker_config
from moldau.errors import ErrorCode, KafkaError
from moldau.names import BrokerId, LeaderEpoch, Offset
from moldau.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from moldau.replication.exchange import ReplicaExchange
from moldau.replication.leader_session import follower_settings
from moldau.replication.leadership import PartitionRoles
from moldau.replication.quota import ReplicationQuota
from moldau.replication.replica import Replica
from moldau.replication.replicas import elapsed_ms
from moldau.replication.throttling import Throttle
from moldau.runtime import Runtime
from moldau.simulation.loop import SimulatedLoop
from moldau.simulation.network import Network
from tests.replication.transcripts import Room

ME, OTHER = BrokerId(1), BrokerId(2)
SETTINGS = follower_settings(
    broker_config(
        {
            "replica.fetch.wait.max.ms": "400",
            "replica.fetch.min.bytes": "7",
            "replica.fetch.max.bytes": "1000",
            "replica.fetch.response.max.bytes": "2000",
            "replica.fetch.backoff.ms": "10",
            "replica.socket.timeout.ms": "900",
            "node.id": "1",
        }
    )[0]
)
UP = {ME: 10, OTHER: 20}


class Stage:
    """`answers` are what the controller says to one proposal after the other (an exception: asking it raises that),
    `replies` what the leader says to one Fetch after the other; both wait when there is none."""

    def __init__(self, folder: Path):
        room = Room(folder)
        self.replica: Replica = room.replicas["A"]
        self.leading: Replica = room.replicas["B"]
        self.quota = ReplicationQuota(11, 1000)
        self.throttle = Throttle(ME, attrgetter("follower_replication_throttled_replicas"), self.quota)
        self.answers: asyncio.Queue[ErrorCode | Exception] = asyncio.Queue()
        self.replies: asyncio.Queue[FetchResponse | KafkaError] = asyncio.Queue()
        self.proposals: list[ProposedIsr] = []
        self.requests: list[FetchRequest] = []
        self.exchange = ReplicaExchange(
            self._fetch,
            self._alter,
            lambda: (ME, UP[ME]),
            lambda: UP,
            lambda _: True,
            lambda: None,
            SETTINGS,
            Runtime(),
            self.throttle,
        )

    async def _alter(self, proposals: Sequence[ProposedIsr]) -> list[ErrorCode]:
        self.proposals += proposals
        answer = await self.answers.get()
        if isinstance(answer, Exception):
            raise answer
        return [answer] * len(proposals)

    async def _fetch(self, leader: BrokerId, request: FetchRequest, timeout_ms: int) -> FetchResponse:
        assert (leader, timeout_ms) == (OTHER, 900)
        assert (request.min_bytes, request.max_bytes) == (7, 2000)
        assert all(part.partition_max_bytes == 1000 for topic in request.topics for part in topic.partitions)
        self.requests.append(request)
        reply = await self.replies.get()
        if isinstance(reply, KafkaError):
            raise reply
        return reply

    def roles(self, leader: BrokerId, *isr: BrokerId, epoch: int = 0) -> None:
        leadership = self.replica.leadership
        both = (ME, OTHER)
        roles = PartitionRoles(leader, LeaderEpoch(epoch), isr, both, leadership.partition_epoch + 1)
        self.replica.take_roles(roles, elapsed_ms())
        self.exchange.changed(self.replica)

    def follower_asks(self) -> None:
        assert self.replica.follower_asked(OTHER, Offset(0), UP[OTHER], True, elapsed_ms())
        self.exchange.consider(self.replica)

    async def asked(self, count: int) -> FetchRequest:
        while len(self.requests) < count:
            await asyncio.sleep(0.001)
        return self.requests[count - 1]

    async def proposed(self, count: int) -> ProposedIsr:
        while len(self.proposals) < count:
            await asyncio.sleep(0.001)
        return self.proposals[count - 1]

    def throttled(self, *listed: str) -> None:
        """The topic lists these replicas, and the rate is one byte a second."""
        self.replica.configure(replace(self.replica.config, follower_replication_throttled_replicas=listed))
        self.throttle.quota.limit = 1

    async def held_back(self) -> None:
        """The throttle is exceeded when the replica begins to follow: the first request does not name it."""
        self.throttled("*")
        self.quota.record(1 << 20, elapsed_ms())
        self.roles(OTHER, OTHER)
        self.replies.put_nowait(FetchResponse(session_id=7))
        assert (await self.asked(1)).topics == []

    def records(self) -> bytes:
        """The leader's next record."""
        end = append(self.leading.log, 1, leader_epoch=0).base_offset
        return self.leading.log.read_batches(end, 1 << 20)

    def reply(self, **fields: object) -> FetchResponse:
        """An answer for the replica's partition."""
        part = PartitionData(partition_index=0, log_start_offset=0, high_watermark=0, records=b"")
        for name, value in fields.items():
            setattr(part, name, value)
        topic = FetchableTopicResponse(topic_id=self.replica.topic_id, partitions=[part])
        return FetchResponse(session_id=7, responses=[topic])


def followed(folder: Path, number: int) -> Replica:
    """A partition of a topic of its own, which the other broker leads."""
    replica = Room(folder / str(number)).replicas["A"]
    replica.topic_id = uuid.UUID(int=number)
    replica.take_roles(PartitionRoles(OTHER, LeaderEpoch(0), (OTHER,), (ME, OTHER)), 0)
    return replica


def play(
    folder: Path,
    scenario: Callable[[Stage], Awaitable[None]],
    new_loop: Callable[[], asyncio.AbstractEventLoop] = lambda: SimulatedLoop(Network(random.Random(1))),
) -> None:
    """In virtual time, unless `new_loop` makes a loop whose executor has threads."""

    async def live() -> None:
        stage = Stage(folder)
        stage.exchange.start()
        try:
            async with asyncio.timeout(stretched()):
                await scenario(stage)
        finally:
            await stage.exchange.stop()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(live())
