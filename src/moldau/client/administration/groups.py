"""Groups: list and describe them, their committed offsets and their lag; alter and delete offsets, delete groups."""

import asyncio
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from moldau.client.administration.asking import AdminPart, Outcomes, leader_of
from moldau.client.failures import check
from moldau.client.given_positions import position_of
from moldau.client.values import value
from moldau.errors import ErrorCode, GroupIdNotFound, KafkaError, UnsupportedVersion
from moldau.names import OffsetAndMetadata, TopicPartition, by_topic
from moldau.protocol.apis import (
    CONSUMER_GROUP_DESCRIBE,
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    LIST_GROUPS,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
)

if TYPE_CHECKING:
    from moldau.client.lag import Lag


class GroupListing(NamedTuple):
    """One group. `type`: "classic" or "consumer" (KIP-848); "" if the broker does not report it."""

    group_id: str
    protocol_type: str
    state: str
    type: str


@value
class GroupMember:
    """A member of a group and its partitions; `instance_id` is its `group.instance.id`."""

    member_id: str
    client_id: str
    client_host: str
    partitions: list[TopicPartition]
    instance_id: str | None = None


@value
class GroupDescription:
    """One group and its members. `type`: "classic" or "consumer" (KIP-848); `protocol` is the name of its assignor;
    `epoch` is -1 for a classic group."""

    group_id: str
    type: str
    state: str
    protocol: str
    members: list[GroupMember]
    epoch: int = -1


class GroupsPart(AdminPart):
    """The part of an admin client for groups."""

    async def list_groups(
        self, *, states: Iterable[str] = (), types: Iterable[str] = (), broker_ids: Iterable[int] | None = None
    ) -> list[GroupListing]:
        """The groups of all brokers, sorted by name; only those in one of the states and of one of the types, if any is
        given. With `broker_ids`, the groups that these brokers coordinate: each broker knows its own only."""
        request = LIST_GROUPS.request(states_filter=[*dict.fromkeys(states)], types_filter=[*dict.fromkeys(types)])
        asked = [
            self._ask(LIST_GROUPS, request, f"listing the groups of broker {broker_id}", broker_id)
            for broker_id in (await self._brokers() if broker_ids is None else broker_ids)
        ]
        groups = {
            group.group_id: GroupListing(group.group_id, group.protocol_type, group.group_state, group.group_type)
            for reply in await asyncio.gather(*asked)
            for group in reply.groups
        }
        return [groups[name] for name in sorted(groups)]

    async def describe_group(self, group_id: str) -> GroupDescription:
        """State and members of a classic group or a consumer group. Raises `GroupIdNotFound` and others."""
        return await self._describe_newer(group_id) or await self._describe_classic(group_id)

    async def describe_groups(self, group_ids: Iterable[str]) -> dict[str, GroupDescription]:
        """State and members of these groups. Raises `GroupIdNotFound` if one does not exist, and others."""
        return {group_id: await self.describe_group(group_id) for group_id in dict.fromkeys(group_ids)}

    async def _describe_newer(self, group_id: str) -> GroupDescription | None:
        """The description of a consumer group (KIP-848); None if the group is classic or the broker lacks this API."""
        api = CONSUMER_GROUP_DESCRIBE
        try:
            reply = await self._ask_coordinator(
                group_id, api, api.request(group_ids=[group_id]), lambda r: int(r.groups[0].error_code)
            )
        except (GroupIdNotFound, UnsupportedVersion):
            return None
        group = reply.groups[0]
        members = [
            GroupMember(
                m.member_id,
                m.client_id,
                m.client_host.lstrip("/"),
                sorted(TopicPartition(t.topic_name, p) for t in m.assignment.topic_partitions for p in t.partitions),
                m.instance_id,
            )
            for m in group.members
        ]
        return GroupDescription(
            group_id, "consumer", group.group_state, group.assignor_name, members, group.group_epoch
        )

    async def _describe_classic(self, group_id: str) -> GroupDescription:
        request = DESCRIBE_GROUPS.request(groups=[group_id])
        reply = await self._ask_coordinator(group_id, DESCRIBE_GROUPS, request, lambda r: int(r.groups[0].error_code))
        group = reply.groups[0]
        if group.group_state == "Dead":
            check(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group_id}")
        members = [
            GroupMember(
                m.member_id,
                m.client_id,
                m.client_host.lstrip("/"),
                _assigned(m.member_assignment) if group.protocol_type == "consumer" else [],
                m.group_instance_id,
            )
            for m in group.members
        ]
        return GroupDescription(group_id, "classic", group.group_state, group.protocol_data, members)

    async def group_offsets(self, group_id: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """All offsets the group has committed, by topic and partition, with their leader epochs: given to
        `alter_group_offsets`, they restore the group."""
        messages = OFFSET_FETCH.messages
        group = messages.OffsetFetchRequestGroup(group_id=group_id, topics=None)
        request = messages.OffsetFetchRequest(group_id=group_id, topics=None, groups=[group])
        reply = await self._ask_coordinator(
            group_id, OFFSET_FETCH, request, lambda r: int(r.groups[0].error_code if r.groups else r.error_code)
        )
        offsets = {
            TopicPartition(topic.name, p.partition_index): OffsetAndMetadata(
                p.committed_offset,
                p.metadata or "",
                p.committed_leader_epoch if p.committed_leader_epoch >= 0 else None,
            )
            for topic in (reply.groups[0] if reply.groups else reply).topics
            for p in topic.partitions
            if p.committed_offset >= 0
        }
        return dict(sorted(offsets.items()))

    async def lags(self, committed: Mapping[TopicPartition, int | None]) -> "dict[TopicPartition, Lag]":
        """Lag of these committed offsets behind their partitions' ends. Raises `UnknownTopicOrPartition` if a partition
        does not exist."""
        from moldau.client.lag import lags

        for tp in committed:
            if self._router.view.leader(tp) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                await self._router.retrying(partial(leader_of, self._router, tp))
        return await lags(self._router, committed, self._router.runtime.clock.now_ms())

    async def group_lag(self, group_id: str) -> "dict[TopicPartition, Lag]":
        """The lag of a group in each partition that it has committed an offset for or that a member owns, in records
        and seconds; partitions that no longer exist are left out. Raises `GroupIdNotFound` if there is no such group
        and no committed offset."""
        offsets: dict[TopicPartition, int | None] = {
            tp: one.offset for tp, one in (await self.group_offsets(group_id)).items()
        }
        try:
            for member in (await self.describe_group(group_id)).members:
                for tp in member.partitions:
                    offsets.setdefault(tp, None)
        except GroupIdNotFound:
            if not offsets:
                raise
        await self._router.retrying(lambda: self._router.refresh({tp.topic for tp in offsets}))
        topics = self._router.view.topics
        there = {
            tp: offset
            for tp, offset in sorted(offsets.items())
            if tp.topic in topics and tp.partition in topics[tp.topic].partitions
        }
        return await self.lags(there) if there else {}

    async def alter_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int | OffsetAndMetadata]
    ) -> None:
        """Commit these offsets for a group without members. Raises `UnknownMemberId` if it has members, `ConfigError`
        for what is not an offset, and others."""
        messages, topics = OFFSET_COMMIT.messages, []
        for name, numbers in by_topic(offsets).items():
            partitions = []
            for number in numbers:
                tp = TopicPartition(name, number)
                at = position_of(offsets[tp], f"the offset of {tp}")
                partitions.append(
                    messages.OffsetCommitRequestPartition(
                        partition_index=number,
                        committed_offset=at.offset,
                        committed_leader_epoch=-1 if at.leader_epoch is None else at.leader_epoch,
                        committed_metadata=at.metadata,
                    )
                )
            topics.append(messages.OffsetCommitRequestTopic(name=name, partitions=partitions))
        request = messages.OffsetCommitRequest(
            group_id=group_id, generation_id_or_member_epoch=-1, member_id="", topics=topics
        )
        if topics:
            await self._ask_coordinator(group_id, OFFSET_COMMIT, request, _first_error)

    async def delete_group_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Delete a group's committed offsets of these partitions. Raises `GroupSubscribedToTopic` if a member
        subscribes to one of the topics, `GroupIdNotFound`, and others."""
        messages = OFFSET_DELETE.messages
        topics = [
            messages.OffsetDeleteRequestTopic(
                name=name,
                partitions=[messages.OffsetDeleteRequestPartition(partition_index=number) for number in numbers],
            )
            for name, numbers in by_topic(partitions).items()
        ]
        request = messages.OffsetDeleteRequest(group_id=group_id, topics=topics)
        await self._ask_coordinator(group_id, OFFSET_DELETE, request, lambda r: int(r.error_code or _first_error(r)))

    async def delete_group(self, group_id: str) -> None:
        """Delete a group without members, and its offsets. Raises `NonEmptyGroup`, `GroupIdNotFound` and others."""
        request = DELETE_GROUPS.request(groups_names=[group_id])
        await self._ask_coordinator(
            group_id,
            DELETE_GROUPS,
            request,
            lambda r: int(r.results[0].error_code),
            lambda r: r.results[0].error_message,
        )

    async def delete_groups(self, group_ids: Iterable[str]) -> Outcomes:
        """Delete several groups without members. Returns None or the error of each, by group id."""
        outcomes: Outcomes = {}
        for group_id in dict.fromkeys(group_ids):
            outcomes[group_id] = None
            try:
                await self.delete_group(group_id)
            except KafkaError as error:
                outcomes[group_id] = error
        return outcomes


def _assigned(assignment: bytes) -> list[TopicPartition]:
    """A member's partitions; none if the leader of its group sent no assignment. Raises `ProtocolViolation`."""
    from moldau.protocol.consumer import read_assignment

    assigned = read_assignment(assignment).assigned_partitions if assignment else []
    return sorted(TopicPartition(topic.topic, partition) for topic in assigned for partition in topic.partitions)


def _first_error(reply: Any) -> int:
    """The first error code among the partitions of a reply, else 0."""
    return next((p.error_code for topic in reply.topics for p in topic.partitions if p.error_code), ErrorCode.NONE)
