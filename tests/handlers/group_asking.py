"""A group coordinator behind its handlers, asked as the wire would, in any version and in virtual time."""

import uuid
from collections.abc import Callable, Coroutine
from typing import Any, cast

from moldau.cluster.state.image import BrokerImage, Endpoint, Image, PartitionImage, TopicImage
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.errors import ErrorCode, KafkaError
from moldau.handlers.cluster.find_coordinator import GROUP, TRANSACTION, CoordinatorType, FindCoordinator
from moldau.handlers.groups.consumer_group_describe import ConsumerGroupDescribe
from moldau.handlers.groups.consumer_group_heartbeat import ConsumerGroupHeartbeat
from moldau.handlers.groups.delete_groups import DeleteGroups
from moldau.handlers.groups.describe_groups import DescribeGroups
from moldau.handlers.groups.heartbeat import Heartbeat
from moldau.handlers.groups.join_group import JoinGroup
from moldau.handlers.groups.leave_group import LeaveGroup
from moldau.handlers.groups.list_groups import ListGroups
from moldau.handlers.groups.offset_commit import OffsetCommit
from moldau.handlers.groups.offset_delete import OffsetDelete
from moldau.handlers.groups.offset_fetch import OffsetFetch
from moldau.handlers.groups.sync_group import SyncGroup
from moldau.names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from moldau.protocol import apis
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from moldau.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from moldau.requests.session import Call
from moldau.runtime import Runtime
from tests.coordinators.fake_log import PARTITIONS, FakeLog, LoopClock, in_virtual_time
from tests.coordinators.groups.scene import subscription
from tests.coordinators.settings import group_settings
from tests.handlers.asking import Asked

ME = BrokerImage(
    1, (Endpoint("PLAINTEXT", "PLAINTEXT", "here", 9092), Endpoint("OUTSIDE", "PLAINTEXT", "example.org", 19092))
)
T_ID = uuid.UUID(int=77)


def topic(name: str, topic_id: uuid.UUID, count: int) -> TopicImage:
    return TopicImage(name, topic_id, tuple(PartitionImage(1, 0, (1,), (1,)) for _ in range(count)), {})


class Group(Asked):
    """A broker that knows topic `t` of three partitions, and makes the offsets topic when first asked."""

    def __init__(self) -> None:
        self.log = FakeLog()
        self.image = Image("cluster", brokers={1: ME}).with_topics({"t": topic("t", T_ID, 3)})
        settings = group_settings(initial_rebalance_delay_ms=0)
        self.coordinator = GroupCoordinator(
            settings, self.log, Runtime(clock=LoopClock()), PARTITIONS, lambda: self.image
        )
        self.creation_error: ErrorCode | None = None
        groups = self.coordinator
        self._handlers: dict[apis.Api, Callable[[Any, Call], Any]] = {
            apis.FIND_COORDINATOR: FindCoordinator(
                {
                    GROUP: CoordinatorType(OFFSETS_TOPIC, self.make_offsets_topic),
                    TRANSACTION: CoordinatorType(TRANSACTIONS_TOPIC, self.make_transactions_topic),
                },
                lambda: self.image,
            ),
            apis.JOIN_GROUP: JoinGroup(groups),
            apis.SYNC_GROUP: SyncGroup(groups),
            apis.HEARTBEAT: Heartbeat(groups),
            apis.LEAVE_GROUP: LeaveGroup(groups),
            apis.OFFSET_COMMIT: OffsetCommit(groups, cast(MetadataCache, self)),
            apis.OFFSET_FETCH: OffsetFetch(groups, lambda: self.image),
            apis.OFFSET_DELETE: OffsetDelete(groups, lambda: self.image),
            apis.LIST_GROUPS: ListGroups(groups),
            apis.DESCRIBE_GROUPS: DescribeGroups(groups),
            apis.DELETE_GROUPS: DeleteGroups(groups),
            apis.CONSUMER_GROUP_HEARTBEAT: ConsumerGroupHeartbeat(groups),
            apis.CONSUMER_GROUP_DESCRIBE: ConsumerGroupDescribe(groups, lambda: self.image),
        }

    async def make_offsets_topic(self) -> None:
        if self.creation_error is not None:
            raise KafkaError(self.creation_error)
        self.image = self.image.with_topics({OFFSETS_TOPIC: topic(OFFSETS_TOPIC, uuid.UUID(int=78), PARTITIONS)})

    async def make_transactions_topic(self) -> None:
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR)

    async def load(self, *groups: str) -> None:
        for group in groups:
            self.coordinator.lead(self.coordinator.partition_of(group), 0)
            await self.coordinator.loaded(group)

    async def join(self, group: str = "g", version: int = 3, member: str = "", **fields: Any) -> JoinGroupResponse:
        request = {
            "group_id": group,
            "session_timeout_ms": 6000,
            "rebalance_timeout_ms": 9000,
            "member_id": member,
            "protocol_type": "consumer",
            "protocols": [JoinGroupRequestProtocol(name="range", metadata=subscription("t"))],
            **fields,
        }
        joined = await self.ask(apis.JOIN_GROUP, version, JoinGroupRequest(**request))
        assert isinstance(joined, JoinGroupResponse)
        return joined

    async def stable(self, group: str = "g") -> str:
        """Make the group stable with one member, whose id this returns."""
        await self.load(group)
        joined = await self.join(group)
        part = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all")
        sync = SyncGroupRequest(group_id=group, generation_id=1, member_id=joined.member_id, assignments=[part])
        assert (await self.ask(apis.SYNC_GROUP, 0, sync)).assignment == b"all"
        return joined.member_id


def play(scene: Callable[[Group], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        group = Group()
        await scene(group)
        await group.coordinator.stop()

    in_virtual_time(whole())
