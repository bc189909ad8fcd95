"""`TopicQuestions`: what pages ask about many topics at once: names, partitions, offsets, sizes.

Names are asked for without what belongs to them, and the rest only for the topics that are shown.
"""

import asyncio
from collections.abc import Iterable

from moldau.client.administration.configs import Resource
from moldau.client.administration.records import EARLIEST, LATEST
from moldau.client.cluster_view import TopicView
from moldau.console.asking.sharing_admin import SharingAdmin
from moldau.errors import ErrorCode, KafkaError
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
        """The end of each partition that has a leader who knows it."""
        return await self.offsets(dict.fromkeys(partitions, LATEST), known_only=True)

    async def starts(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of each partition that has a leader."""
        return await self.offsets(dict.fromkeys(partitions, EARLIEST), known_only=True)

    async def sizes(self, topics: Iterable[str]) -> dict[TopicPartition, dict[int, int]]:
        """Partition -> broker -> bytes of its replica there, for these topics. Brokers that do not answer are left
        out."""
        views = await self.topics_named(topics)
        partitions = {name: sorted(view.partitions) for name, view in views.items()}
        found: dict[TopicPartition, dict[int, int]] = {}

        async def ask(broker_id: int) -> None:
            try:
                folders = await self._log_dirs(broker_id, partitions)
            except KafkaError as failure:
                if not failure.retriable:
                    raise
                return
            for folder in folders:
                for tp, replica in folder.replicas.items():
                    if not replica.is_future:
                        found.setdefault(tp, {})[broker_id] = replica.size_bytes

        if partitions:
            await asyncio.gather(*map(ask, [*self._router.view.brokers]))  # as the same metadata have them
        return found

    async def known_sizes(self, topics: Iterable[str]) -> dict[TopicPartition, dict[int, int]]:
        """As `sizes`; empty for a user who may not see log folders, for which Describe on the cluster is needed."""
        try:
            return await self.sizes(topics)
        except KafkaError as failure:
            if failure.retriable:
                raise
            return {}
