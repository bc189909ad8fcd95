"""Administration of a cluster: topics, partitions, groups, settings (in `configs`) and transactions (in
`transactions`). `AsyncAdmin` runs on the caller's loop; `Admin` is its synchronous form.

Every method sends one request to the broker that is responsible for it. A retriable error is retried until `timeout_ms`
is over. Any other error is raised as `KafkaError`, with the broker's message if the reply has one.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from moldau.client.background import LoopThread
from moldau.client.cluster_view import TopicView
from moldau.client.configs import AsyncConfigs, ConfigEntry, Configs, Resource
from moldau.client.failures import Missing, check, error_of
from moldau.client.lag import Lag, lags
from moldau.client.membership import GroupSettings, Membership, OffsetAndMetadata, read_assignment
from moldau.client.offsets import EARLIEST, LATEST, offsets_at
from moldau.client.routing import router_of
from moldau.client.settings import ClientSettings, configured, setting, settings
from moldau.client.transactions import AsyncTransactions, Transactions
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition
from moldau.peers.address import Address
from moldau.protocol.apis import (
    CONSUMER_GROUP_DESCRIBE,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_GROUPS,
    DELETE_RECORDS,
    DELETE_TOPICS,
    DESCRIBE_GROUPS,
    LIST_GROUPS,
    OFFSET_DELETE,
    OFFSET_FETCH,
    Api,
)
from moldau.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from moldau.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from moldau.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from moldau.protocol.messages.delete_groups import DeleteGroupsRequest
from moldau.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest
from moldau.protocol.messages.list_groups import ListGroupsRequest
from moldau.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from moldau.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

T = TypeVar("T")


@dataclass(frozen=True)
class ClusterDescription:
    """The brokers, and which of them is the controller."""

    cluster_id: str | None
    controller_id: int
    brokers: dict[int, Address]


class GroupListing(NamedTuple):
    """One group. `type`: "classic" or "consumer" (KIP-848); "" if the broker does not report it."""

    group_id: str
    protocol_type: str
    state: str
    type: str


@dataclass(frozen=True)
class GroupMember:
    member_id: str
    client_id: str
    client_host: str
    partitions: list[TopicPartition]


@dataclass(frozen=True)
class GroupDescription:
    """One group and its members. `type`: "classic" or "consumer" (KIP-848); `protocol` is the name of its assignor."""

    group_id: str
    type: str
    state: str
    protocol: str
    members: list[GroupMember]


@settings
class AdminSettings(ClientSettings):
    """The settings of an admin client; times are in ms."""

    client_id: str = setting(default="moldau-admin", about="The name of this client in the broker's logs and quotas.")
    default_api_timeout_ms: int = setting(default=30_000, low=1, about="Retry this long before a call fails.")


class AsyncAdmin:
    """An admin client. Use it in `async with`, on one loop."""

    @configured(AdminSettings)
    def __init__(self, settings: AdminSettings):
        self.settings = settings
        self._timeout_ms = settings.default_api_timeout_ms

    async def __aenter__(self) -> "AsyncAdmin":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Bind the client to the running loop; it dials no broker yet."""
        self._router = router_of(self.settings)
        self.transactions = AsyncTransactions(self._router)
        self.configs = AsyncConfigs(self._router, self._timeout_ms)

    async def close(self) -> None:
        await self._router.close()

    async def describe_cluster(self) -> ClusterDescription:
        await self._router.retrying(lambda: self._router.refresh([]))
        view = self._router.view
        return ClusterDescription(view.cluster_id, view.controller_id, dict(sorted(view.brokers.items())))

    async def list_topics(self, *, internal: bool = False) -> dict[str, TopicView]:
        """All topics, sorted by name. Internal topics such as `__consumer_offsets` are included only with
        `internal`."""
        await self._router.retrying(lambda: self._router.refresh(None))
        return {n: t for n, t in sorted(self._router.view.topics.items()) if internal or not t.internal}

    async def describe_topics(self, topics: Iterable[str]) -> dict[str, TopicView]:
        """These topics, by name. Raises `KafkaError` if one does not exist."""
        names = list(topics)
        await self._router.retrying(lambda: self._router.refresh(names))
        view = self._router.view
        for name in names:
            if name not in view.topics:
                check(view.missing.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), f"topic {name}")
        return {name: view.topics[name] for name in names}

    async def create_topic(
        self,
        topic: str,
        *,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic; -1 means the broker's default. Raises `KafkaError(TOPIC_ALREADY_EXISTS)` and others."""
        wanted = CreatableTopic(
            name=topic,
            num_partitions=partitions,
            replication_factor=replication_factor,
            configs=[CreatableTopicConfig(name=n, value=v) for n, v in (configs or {}).items()],
        )
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=self._timeout_ms)
        await self._ask_controller(CREATE_TOPICS, request, lambda reply: reply.topics, topic)

    async def delete_topic(self, topic: str) -> None:
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=topic)], topic_names=[topic], timeout_ms=self._timeout_ms
        )
        await self._ask_controller(DELETE_TOPICS, request, lambda reply: reply.responses, topic)

    async def create_partitions(self, topic: str, count: int) -> None:
        """Raise the topic's total number of partitions to `count`."""
        wanted = CreatePartitionsTopic(name=topic, count=count, assignments=None)
        request = CreatePartitionsRequest(topics=[wanted], timeout_ms=self._timeout_ms)
        await self._ask_controller(CREATE_PARTITIONS, request, lambda reply: reply.results, topic)

    async def topic_configs(self, topic: str) -> list[ConfigEntry]:
        """Every setting of a topic."""
        return await self.configs.describe(Resource.TOPIC, topic)

    async def alter_topic_configs(self, topic: str, changes: Mapping[str, str | None]) -> None:
        """Change settings of a topic; None resets a setting to its default."""
        await self.configs.alter(Resource.TOPIC, topic, changes)

    async def offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The offset of each partition at `EARLIEST`, `LATEST`, `MAX_TIMESTAMP` or a time in ms since 1970."""
        return await offsets_at(self._router, wanted)

    async def watermarks(self, topic: str) -> dict[TopicPartition, tuple[int, int]]:
        """The log start offset and the end offset of each partition."""
        view = (await self.describe_topics([topic]))[topic]
        partitions = [TopicPartition(topic, p) for p in view.partitions]
        first = await self.offsets(dict.fromkeys(partitions, EARLIEST))
        end = await self.offsets(dict.fromkeys(partitions, LATEST))
        return {tp: (first[tp], end[tp]) for tp in partitions}

    async def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Delete the records below these offsets (-1: all records). Returns each partition's new log start offset."""
        low: dict[TopicPartition, int] = {}
        for tp, offset in before.items():
            partition = DeleteRecordsPartition(partition_index=tp.partition, offset=offset)
            topic = DeleteRecordsTopic(name=tp.topic, partitions=[partition])
            request = DeleteRecordsRequest(topics=[topic], timeout_ms=self._timeout_ms)

            async def attempt(tp: TopicPartition = tp, request: DeleteRecordsRequest = request) -> int:
                link = await self._router.broker(await self._router.leader(tp))
                result = (await link.call(DELETE_RECORDS, request, self._timeout_ms)).topics[0].partitions[0]
                check(result.error_code, f"deleting records of {tp}")
                return int(result.low_watermark)

            low[tp] = await self._router.retrying(attempt)
        return low

    async def list_groups(self) -> list[GroupListing]:
        """The groups of all brokers, sorted by name."""
        await self._router.retrying(lambda: self._router.refresh([]))
        found: dict[str, GroupListing] = {}
        for broker_id in sorted(self._router.view.brokers):

            async def attempt(broker_id: int = broker_id) -> Any:
                link = await self._router.broker(broker_id)
                reply = await link.call(LIST_GROUPS, ListGroupsRequest(), self._timeout_ms)
                check(reply.error_code, "listing groups")
                return reply

            for group in (await self._router.retrying(attempt)).groups:
                found[group.group_id] = GroupListing(
                    group.group_id, group.protocol_type, group.group_state, group.group_type
                )
        return [found[name] for name in sorted(found)]

    async def describe_group(self, group_id: str) -> GroupDescription:
        """State and members of a classic group or a consumer group. Raises `KafkaError(GROUP_ID_NOT_FOUND)` if the
        group does not exist."""
        return await self._describe_newer(group_id) or await self._describe_classic(group_id)

    async def _describe_newer(self, group_id: str) -> GroupDescription | None:
        """The description of a consumer group (KIP-848); None if the group is classic or the broker lacks this API."""
        request = ConsumerGroupDescribeRequest(group_ids=[group_id])
        try:
            reply = await self._ask_coordinator(
                group_id, CONSUMER_GROUP_DESCRIBE, request, lambda r: r.groups[0].error_code
            )
        except KafkaError as failure:
            if failure.code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
                return None
            raise
        group = reply.groups[0]
        members = [
            GroupMember(
                m.member_id,
                m.client_id,
                m.client_host.lstrip("/"),
                sorted(TopicPartition(t.topic_name, p) for t in m.assignment.topic_partitions for p in t.partitions),
            )
            for m in group.members
        ]
        return GroupDescription(group_id, "consumer", group.group_state, group.assignor_name, members)

    async def _describe_classic(self, group_id: str) -> GroupDescription:
        reply = await self._ask_coordinator(
            group_id, DESCRIBE_GROUPS, DescribeGroupsRequest(groups=[group_id]), lambda r: r.groups[0].error_code
        )
        group: DescribedGroup = reply.groups[0]
        if group.group_state == "Dead":
            check(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group_id}")
        members = [
            GroupMember(m.member_id, m.client_id, m.client_host.lstrip("/"), _partitions(group, m.member_assignment))
            for m in group.members
        ]
        return GroupDescription(group_id, "classic", group.group_state, group.protocol_data, members)

    async def group_offsets(self, group_id: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """All offsets the group has committed, by topic and partition."""
        group = OffsetFetchRequestGroup(group_id=group_id, topics=None)
        request = OffsetFetchRequest(group_id=group_id, topics=None, groups=[group])
        reply = await self._ask_coordinator(
            group_id, OFFSET_FETCH, request, lambda r: r.groups[0].error_code if r.groups else r.error_code
        )
        found: dict[TopicPartition, OffsetAndMetadata] = {}
        for topic in (reply.groups[0] if reply.groups else reply).topics:
            for p in topic.partitions:
                if p.committed_offset >= 0:
                    found[TopicPartition(topic.name, p.partition_index)] = OffsetAndMetadata(
                        p.committed_offset, p.metadata or ""
                    )
        return dict(sorted(found.items()))

    async def lags(self, committed: Mapping[TopicPartition, int | None]) -> dict[TopicPartition, Lag]:
        """Lag of these committed offsets behind their partitions' ends; every partition must exist."""
        return await lags(self._router, committed, self._router.runtime.clock.now_ms())

    async def alter_group_offsets(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit these offsets for a group without members. Raises `KafkaError`: UNKNOWN_MEMBER_ID if it has
        members."""
        membership = Membership(self._router, GroupSettings(group_id=group_id), lambda: None)
        await membership.commit({tp: OffsetAndMetadata(offset) for tp, offset in offsets.items()})

    async def delete_group_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Delete a group's committed offsets of these partitions, which no member may subscribe to. Raises
        `KafkaError`."""
        topics: dict[str, OffsetDeleteRequestTopic] = {}
        for tp in partitions:
            topic = topics.setdefault(tp.topic, OffsetDeleteRequestTopic(name=tp.topic))
            topic.partitions.append(OffsetDeleteRequestPartition(partition_index=tp.partition))
        request = OffsetDeleteRequest(group_id=group_id, topics=list(topics.values()))
        await self._ask_coordinator(group_id, OFFSET_DELETE, request, lambda r: r.error_code or _first_error(r))

    async def delete_group(self, group_id: str) -> None:
        """Delete a group without members. Raises `KafkaError(NON_EMPTY_GROUP)` and others."""
        request = DeleteGroupsRequest(groups_names=[group_id])
        await self._ask_coordinator(group_id, DELETE_GROUPS, request, lambda r: r.results[0].error_code)

    async def _ask_controller(self, api: Api, request: Any, results: Callable[[Any], list[Any]], topic: str) -> Any:
        async def attempt() -> Any:
            await self._router.refresh([])
            controller = self._router.view.controller_id
            known = controller in self._router.view.brokers
            link = await (self._router.broker(controller) if known else self._router.any())
            return _checked(await link.call(api, request, self._timeout_ms * 2), results, f"topic {topic}")

        return await self._router.retrying(attempt)

    async def _ask_coordinator(self, group_id: str, api: Api, request: Any, error: Callable[[Any], int]) -> Any:
        membership = Membership(self._router, GroupSettings(group_id=group_id), lambda: None)
        reply = await membership.retrying(api, request, lambda r: [error(r)])
        check(error(reply), f"group {group_id}")
        return reply


def _checked(reply: Any, results: Callable[[Any], list[Any]], about: str) -> Any:
    for result in results(reply):
        if error_of(result.error_code) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise Missing(about)
        check(result.error_code, about, result.error_message)
    return reply


def _first_error(reply: Any) -> int:
    """The first error code among the partitions of a reply, else 0."""
    return next((p.error_code for topic in reply.topics for p in topic.partitions if p.error_code), ErrorCode.NONE)


def _partitions(group: DescribedGroup, assignment: bytes) -> list[TopicPartition]:
    return sorted(read_assignment(assignment)) if group.protocol_type == "consumer" else []


class Admin:
    """The synchronous form of `AsyncAdmin`, with the same methods. Use it in a with-statement."""

    @configured(AdminSettings)
    def __init__(self, settings: AdminSettings):
        self._core = AsyncAdmin(settings)
        self._thread = LoopThread("moldau-admin")
        self._thread.start()
        self._thread.run(self._core.start())
        self.transactions = Transactions(self._core.transactions, self._thread)
        self.configs = Configs(self._core.configs, self._thread)

    def __enter__(self) -> "Admin":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def describe_cluster(self) -> ClusterDescription:
        return self._thread.run(self._core.describe_cluster())

    def list_topics(self, *, internal: bool = False) -> dict[str, TopicView]:
        return self._thread.run(self._core.list_topics(internal=internal))

    def describe_topics(self, topics: Iterable[str]) -> dict[str, TopicView]:
        return self._thread.run(self._core.describe_topics(topics))

    def create_topic(
        self,
        topic: str,
        *,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        core = self._core
        self._thread.run(
            core.create_topic(topic, partitions=partitions, replication_factor=replication_factor, configs=configs)
        )

    def delete_topic(self, topic: str) -> None:
        self._thread.run(self._core.delete_topic(topic))

    def create_partitions(self, topic: str, count: int) -> None:
        self._thread.run(self._core.create_partitions(topic, count))

    def topic_configs(self, topic: str) -> list[ConfigEntry]:
        return self._thread.run(self._core.topic_configs(topic))

    def alter_topic_configs(self, topic: str, changes: Mapping[str, str | None]) -> None:
        self._thread.run(self._core.alter_topic_configs(topic, changes))

    def offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return self._thread.run(self._core.offsets(wanted))

    def watermarks(self, topic: str) -> dict[TopicPartition, tuple[int, int]]:
        return self._thread.run(self._core.watermarks(topic))

    def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return self._thread.run(self._core.delete_records(before))

    def list_groups(self) -> list[GroupListing]:
        return self._thread.run(self._core.list_groups())

    def describe_group(self, group_id: str) -> GroupDescription:
        return self._thread.run(self._core.describe_group(group_id))

    def group_offsets(self, group_id: str) -> dict[TopicPartition, OffsetAndMetadata]:
        return self._thread.run(self._core.group_offsets(group_id))

    def lags(self, committed: Mapping[TopicPartition, int | None]) -> dict[TopicPartition, Lag]:
        return self._thread.run(self._core.lags(committed))

    def alter_group_offsets(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        self._thread.run(self._core.alter_group_offsets(group_id, offsets))

    def delete_group_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        self._thread.run(self._core.delete_group_offsets(group_id, partitions))

    def delete_group(self, group_id: str) -> None:
        self._thread.run(self._core.delete_group(group_id))

    def close(self) -> None:
        if self._thread.running:
            try:
                self._thread.run(self._core.close())
            finally:
                self._thread.stop()
