"""`GroupQuestions`: what pages ask about many groups at once: committed offsets, members, lag.

An admin client answers about one group; here one request asks a coordinator for up to a hundred of its groups.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from moldau.client.administration.groups import GroupListing
from moldau.client.failures import check, error_of
from moldau.client.lag import KnownTimestamps, Lag, Place, lags, waiting_since
from moldau.console.asking import keeping
from moldau.console.asking.topic_questions import TopicQuestions
from moldau.errors import ErrorCode
from moldau.names import TopicPartition
from moldau.peers.address import Address
from moldau.protocol.apis import CONSUMER_GROUP_DESCRIBE, DESCRIBE_GROUPS, FIND_COORDINATOR, OFFSET_FETCH

GROUPS_AT_ONCE = 100
BATCHED = 4, 8
"""The first versions of FindCoordinator and OffsetFetch that take several groups (Kafka 3.0)."""
CONSUMER, WITH_CLIENTS = "consumer", ("", "classic", "consumer")
"""Types of groups: that of KIP-848, and those whose members are counted; "" is that of brokers before Kafka 3.8."""
Committed = dict[str, dict[TopicPartition, int]]
"""Group -> partition -> committed offset."""


class GroupQuestions(TopicQuestions):
    """The part of the console's admin client for groups."""

    def __init__(self, client: Mapping[str, Any]):
        super().__init__(client)
        self._known: KnownTimestamps = {}
        self._known_since_s = 0.0

    async def groups(self) -> list[GroupListing]:
        """All groups, sorted by name."""
        return await self._once("groups", self.list_groups)

    async def committed_in(self, topics: Iterable[str]) -> Committed:
        """The committed offsets of the groups that have some in these topics. A group that reads one of them only now
        is found as soon as all groups are asked anew."""
        readers = await self._once("readers", self._readers, keeping.READERS_KEPT_S)
        return await self.committed(group_id for topic in topics for group_id in readers.get(topic, ()))

    async def _readers(self) -> dict[str, list[str]]:
        """Topic -> the groups with a committed offset there: no broker can tell them without being asked for all
        groups."""
        ids, readers = [one.group_id for one in await self.groups()], dict[str, list[str]]()
        for at in range(0, len(ids), GROUPS_AT_ONCE):
            for group_id, offsets in (await self.committed(ids[at : at + GROUPS_AT_ONCE])).items():
                for topic in {tp.topic for tp in offsets}:
                    readers.setdefault(topic, []).append(group_id)
        return readers

    async def committed(self, group_ids: Iterable[str]) -> Committed:
        """The committed offsets of these groups; those of groups that the user may not describe are left out."""
        ids = [*dict.fromkeys(group_ids)]
        committed: Committed = {}
        for at in range(0, len(ids), GROUPS_AT_ONCE):
            some = ids[at : at + GROUPS_AT_ONCE]
            if not await self._takes_several():
                for group_id in some:
                    offsets = await self.group_offsets(group_id)
                    committed[group_id] = {tp: one.offset for tp, one in offsets.items()}
                continue
            for broker_id, of_broker in (await self._coordinators(some)).items():
                committed |= await self._committed(broker_id, of_broker)
        return committed

    async def member_counts(self, groups: Iterable[GroupListing]) -> dict[str, int]:
        """How many members each of these groups has, for one page of them; groups that the user may not describe are
        left out."""
        asked = {one.group_id: one.type.lower() for one in groups if one.type.lower() in WITH_CLIENTS}
        if not asked or not await self._takes_several():
            return {}
        counts: dict[str, int] = {}
        for broker_id, ids in (await self._coordinators([*asked])).items():
            newer = [one for one in ids if asked[one] == CONSUMER]
            for api, some in ((CONSUMER_GROUP_DESCRIBE, newer), (DESCRIBE_GROUPS, [*set(ids).difference(newer)])):
                if some:
                    by_name = {"group_ids": some} if api is CONSUMER_GROUP_DESCRIBE else {"groups": some}
                    reply = await self._ask(api, api.request(**by_name), "the members of groups", broker_id)
                    counts |= {one.group_id: len(one.members) for one in reply.groups if not one.error_code}
        return counts

    async def _takes_several(self) -> bool:
        """Whether brokers answer for several groups at once."""
        versions = (await self._router.any()).versions
        return versions.of(FIND_COORDINATOR) >= BATCHED[0] and versions.of(OFFSET_FETCH) >= BATCHED[1]

    async def _coordinators(self, group_ids: list[str]) -> dict[int, list[str]]:
        """The groups by the broker that coordinates them."""
        request = FIND_COORDINATOR.request(key_type=0, coordinator_keys=group_ids)
        reply = await self._ask(FIND_COORDINATOR, request, "the coordinators of groups")
        found: dict[int, list[str]] = {}
        for one in reply.coordinators:
            if error_of(one.error_code) is ErrorCode.GROUP_AUTHORIZATION_FAILED:
                continue
            check(one.error_code, f"the coordinator of group {one.key}", one.error_message)
            self._router.view.brokers[one.node_id] = Address(one.host, one.port)
            found.setdefault(one.node_id, []).append(one.key)
        return found

    async def _committed(self, broker_id: int, group_ids: list[str]) -> Committed:
        group = OFFSET_FETCH.messages.OffsetFetchRequestGroup
        groups = [group(group_id=one, topics=None) for one in group_ids]
        reply = await self._ask(OFFSET_FETCH, OFFSET_FETCH.request(groups=groups), "the offsets of groups", broker_id)
        return {
            one.group_id: {
                TopicPartition(topic.name, p.partition_index): p.committed_offset
                for topic in one.topics
                for p in topic.partitions
                if p.committed_offset >= 0
            }
            for one in reply.groups
            if not one.error_code
        }

    async def lag_of(self, offsets: Mapping[TopicPartition, int | None]) -> dict[TopicPartition, Lag]:
        """The lag behind the ends of those of these partitions that still exist."""
        there = await self.topics_named({tp.topic for tp in offsets})
        wanted = {
            tp: offset
            for tp, offset in sorted(offsets.items())
            if tp.topic in there and tp.partition in there[tp.topic].partitions
        }
        return await lags(self._router, wanted, self.now_ms(), self._known_times())

    async def waiting_since(self, wanted: Mapping[Place, int]) -> dict[Place, int | None]:
        """The timestamps of the first records from these places on, each with the end of its partition."""
        return await waiting_since(self._router, wanted, self._known_times())

    def now_ms(self) -> int:
        """The time of day, with which timestamps are compared."""
        return self._router.runtime.clock.now_ms()

    def _known_times(self) -> KnownTimestamps:
        now_s = asyncio.get_running_loop().time()
        if now_s - self._known_since_s > keeping.LAGS_KEPT_S or len(self._known) > keeping.LAGS_MAX:
            self._known, self._known_since_s = {}, now_s
        return self._known
