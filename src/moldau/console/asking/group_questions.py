"""`GroupQuestions`: what pages ask about many groups at once: committed offsets, members, lag.

An admin client answers about one group; here one request asks a coordinator for up to a hundred of its groups.
"""

import asyncio
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from moldau.client.administration.groups import GroupListing
from moldau.client.failures import check, error_of
from moldau.client.lag import KnownTimestamps, Lag, Place, waiting_seconds, waiting_since
from moldau.console.asking import keeping
from moldau.console.asking.topic_questions import TopicQuestions
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition
from moldau.peers.address import Address
from moldau.protocol.apis import CONSUMER_GROUP_DESCRIBE, DESCRIBE_GROUPS, FIND_COORDINATOR, OFFSET_FETCH, Api
from moldau.records.lag import lag_records

GROUPS_AT_ONCE = 100
WAITING_S = 5.0
"""How long the ages of unread records are waited for: offsets and lags are shown without them."""
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
        """The groups of all brokers that answer, sorted by name. Raises `KafkaError` if none does."""
        return await self._once("groups", self._listed, times=self._times(keeping.KEPT_TIMES))

    async def _listed(self) -> list[GroupListing]:
        brokers = await self._brokers()
        self.silent.intersection_update(brokers)
        listed = await asyncio.gather(
            *(self.heard(one, partial(self.list_groups, broker_ids=[one])) for one in brokers)
        )
        if not any(one is not None for one in listed):
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "no broker told its groups")
        found = {group.group_id: group for of_broker in listed for group in of_broker or ()}
        return [found[name] for name in sorted(found)]

    async def committed_in(self, topics: Iterable[str]) -> Committed:
        """The committed offsets of the groups that have some in these topics. A group that reads one of them only now
        is found as soon as all groups are asked anew."""
        times = self._times(keeping.KEPT_TIMES)
        readers = await self._once("readers", self._readers, keeping.READERS_KEPT_S, times)
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
        """The committed offsets of these groups. Groups are left out that the user may not describe, or whose
        coordinator does not answer."""
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
                committed |= await self.heard(broker_id, partial(self._committed, broker_id, of_broker)) or {}
        return committed

    async def member_counts(self, groups: Iterable[GroupListing]) -> dict[str, int]:
        """How many members each of these groups has, for one page of them. Groups are left out that the user may not
        describe, or whose coordinator does not answer."""
        asked = {one.group_id: one.type.lower() for one in groups if one.type.lower() in WITH_CLIENTS}
        if not asked or not await self._takes_several():
            return {}
        counts: dict[str, int] = {}
        for broker_id, ids in (await self._coordinators([*asked])).items():
            newer = [one for one in ids if asked[one] == CONSUMER]
            for api, some in ((CONSUMER_GROUP_DESCRIBE, newer), (DESCRIBE_GROUPS, [*set(ids).difference(newer)])):
                if some:
                    counts |= await self.heard(broker_id, partial(self._counts, broker_id, api, some)) or {}
        return counts

    async def _counts(self, broker_id: int, api: Api, group_ids: list[str]) -> dict[str, int]:
        by_name = {"group_ids": group_ids} if api is CONSUMER_GROUP_DESCRIBE else {"groups": group_ids}
        reply = await self._ask(api, api.request(**by_name), "the members of groups", broker_id)
        return {one.group_id: len(one.members) for one in reply.groups if not one.error_code}

    async def _takes_several(self) -> bool:
        """Whether brokers answer for several groups at once."""
        versions = (await self._router.any()).versions
        return versions.of(FIND_COORDINATOR) >= BATCHED[0] and versions.of(OFFSET_FETCH) >= BATCHED[1]

    async def _coordinators(self, group_ids: list[str]) -> dict[int, list[str]]:
        """The groups by the broker that coordinates them, except those that have no coordinator now."""
        request = FIND_COORDINATOR.request(key_type=0, coordinator_keys=group_ids)
        reply = await self._ask(FIND_COORDINATOR, request, "the coordinators of groups")
        found: dict[int, list[str]] = {}
        for one in reply.coordinators:
            code = error_of(one.error_code)
            if code is ErrorCode.GROUP_AUTHORIZATION_FAILED or code.retriable:
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
        """The lag behind the ends of those of these partitions that still exist and have a leader that answers."""
        starts = await self.starts(sorted(offsets))
        ends = await self.ends(starts)
        known = [tp for tp in starts if tp in ends]
        at = {tp: max(offset, starts[tp]) for tp in known if (offset := offsets[tp]) is not None}
        since = await self.waiting_since({(tp, place): ends[tp] for tp, place in at.items() if place < ends[tp]})
        now_ms, found = self.now_ms(), dict[TopicPartition, Lag]()
        for tp in known:
            records, seconds = None, None
            if tp in at:
                records = lag_records(at[tp], starts[tp], ends[tp])
                place = tp, at[tp]
                seconds = waiting_seconds(now_ms, since[place]) if place in since else None if records else 0.0
            found[tp] = Lag(starts[tp], ends[tp], records, seconds)
        return found

    async def waiting_since(self, wanted: Mapping[Place, int]) -> dict[Place, int | None]:
        """The timestamps of the first records from these places on, each with the end of its partition; of those that
        were known before if a leader does not answer in `WAITING_S`."""
        known = self._known_times()
        try:
            async with asyncio.timeout(WAITING_S):
                return await waiting_since(self._router, wanted, known)
        except KafkaError as failure:
            if not failure.retriable:
                raise
        except TimeoutError:
            pass
        return {place: known[place] for place in wanted if place in known}

    def now_ms(self) -> int:
        """The time of day, with which timestamps are compared."""
        return self._router.runtime.clock.now_ms()

    def _known_times(self) -> KnownTimestamps:
        now_s = asyncio.get_running_loop().time()
        if now_s - self._known_since_s > keeping.LAGS_KEPT_S or len(self._known) > keeping.LAGS_MAX:
            self._known, self._known_since_s = {}, now_s
        return self._known
