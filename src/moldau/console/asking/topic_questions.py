"""`TopicQuestions`: what pages ask about many topics at once: names, partitions, offsets, sizes.

Names are asked for without what belongs to them, and the rest only for the topics that are shown.
"""

import asyncio
from collections.abc import Iterable
from functools import partial

from moldau.client.administration.configs import Resource
from moldau.client.administration.records import EARLIEST, LATEST, ListedOffset
from moldau.client.cluster_view import TopicView
from moldau.console.asking.sharing_admin import SharingAdmin
from moldau.errors import ErrorCode, KafkaError, TopicAuthorizationFailed, UnknownTopicOrPartition
from moldau.names import TopicPartition


class TopicQuestions(SharingAdmin):
    """The part of the console's admin client for topics."""

    async def topic_names(self) -> list[str]:
        """The names of all topics, sorted; without their partitions where brokers can tell them (Kafka 4.1)."""
        return await self._once("topics", self._topic_names)

    async def every_topic(self) -> dict[str, TopicView]:
        """All topics with their partitions."""
        return await self._once("every topic", lambda: self.list_topics(internal=True))

    async def _topic_names(self) -> list[str]:
        try:
            return await self.configs.list_resources(Resource.TOPIC)
        except KafkaError as refused:
            if refused.code not in (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.CLUSTER_AUTHORIZATION_FAILED):
                raise
            return sorted(await self.list_topics(internal=True))

    async def topics_named(self, names: Iterable[str]) -> dict[str, TopicView]:
        """Those of these topics that exist and that the user may describe."""
        wanted = [*names]
        if not wanted:
            return {}
        await self._router.retrying(lambda: self._router.refresh(wanted))
        known = self._router.view.topics
        return {name: known[name] for name in wanted if name in known}

    async def ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The end of each partition that exists and has a leader who knows it."""
        return {tp: one.offset for tp, one in (await self.listed(partitions, LATEST)).items()}

    async def starts(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of each partition that exists and has a leader."""
        return {tp: one.offset for tp, one in (await self.listed(partitions, EARLIEST)).items()}

    async def listed(self, partitions: Iterable[TopicPartition], position: int) -> dict[TopicPartition, ListedOffset]:
        """The offset at this position of each partition that the user may describe and that has a leader who knows it,
        if it has a record there. A topic may have been deleted since the page asked for its partitions."""
        wanted = [*partitions]
        while True:
            try:
                found = await self.list_offsets(dict.fromkeys(wanted, position), known_only=True)
            except (UnknownTopicOrPartition, TopicAuthorizationFailed):
                views = await self.topics_named({tp.topic for tp in wanted})
                there = [tp for tp in wanted if tp.topic in views and tp.partition in views[tp.topic].partitions]
                if len(there) == len(wanted):
                    raise
                wanted = there
            else:
                return {tp: one for tp, one in found.items() if one is not None}

    async def sizes(self, topics: Iterable[str]) -> dict[TopicPartition, dict[int, int]]:
        """Partition -> broker -> bytes of its replica there, for these topics. Brokers that do not answer are left
        out."""
        views = await self.topics_named(topics)
        partitions = {name: sorted(view.partitions) for name, view in views.items()}
        found: dict[TopicPartition, dict[int, int]] = {}

        async def ask(broker_id: int) -> None:
            for folder in await self.heard(broker_id, partial(self._log_dirs, broker_id, partitions)) or ():
                for tp, replica in folder.replicas.items():
                    if not replica.is_future:
                        found.setdefault(tp, {})[broker_id] = replica.size_bytes

        if partitions:
            brokers = [*self._router.view.brokers]  # as the same metadata have them
            self.silent.intersection_update(brokers)
            await asyncio.gather(*map(ask, brokers))
        return found

    async def known_sizes(self, topics: Iterable[str]) -> dict[TopicPartition, dict[int, int]]:
        """As `sizes`; empty for a user who may not see log folders, for which Describe on the cluster is needed."""
        try:
            return await self.sizes(topics)
        except KafkaError as failure:
            if failure.retriable:
                raise
            return {}
