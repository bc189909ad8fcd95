"""Topics: list, describe, create, expand, delete, and their settings."""

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from moldau.client.administration.asking import AdminPart, Outcomes, only, texts_of
from moldau.client.cluster_view import TopicView
from moldau.client.failures import check, missing
from moldau.client.values import value
from moldau.errors import ErrorCode
from moldau.protocol.apis import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS


@value
class NewTopic:
    """A topic to create; -1 means the broker's default. `configs` are settings in Kafka's names. `assignment` names the
    brokers of each partition, the preferred leader first, instead of `partitions` and `replication_factor`."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, object] = field(default_factory=dict)
    assignment: Mapping[int, Iterable[int]] | None = None


class TopicsPart(AdminPart):
    """The part of an admin client for topics."""

    async def list_topics(self, *, internal: bool = False) -> dict[str, TopicView]:
        """All topics, sorted by name, with their partitions' leaders and replicas. Internal topics such as
        `__consumer_offsets` are included only with `internal`."""
        await self._router.retrying(lambda: self._router.refresh(None))
        return {n: t for n, t in sorted(self._router.view.topics.items()) if internal or not t.internal}

    async def describe_topics(self, topics: str | Iterable[str]) -> dict[str, TopicView]:
        """These topics, or this one, by name: ids, partitions, leaders, replicas and in-sync replicas. Raises
        `UnknownTopicOrPartition` if one does not exist."""
        names = [topics] if isinstance(topics, str) else [*dict.fromkeys(topics)]
        await self._router.retrying(lambda: self._router.refresh(names))
        view = self._router.view
        for name in names:
            if name not in view.topics:
                why = view.missing.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                if why is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise missing(f"topic {name}")
                check(why, f"topic {name}")
        return {name: view.topics[name] for name in names}

    async def create_topic(
        self,
        topic: str,
        *,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, object] | None = None,
        assignment: Mapping[int, Iterable[int]] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Create a topic; -1 means the broker's default. `configs` are settings in Kafka's names, such as
        `{"retention.ms": 86_400_000}`; `assignment` names the brokers of each partition. With `validate_only` the
        request is only checked. Raises `TopicAlreadyExists`, `InvalidConfig`, `InvalidReplicationFactor` and others."""
        wanted = NewTopic(topic, partitions, replication_factor, configs or {}, assignment)
        only(await self.create_topics([wanted], validate_only=validate_only))

    async def create_topics(self, topics: Iterable[NewTopic | str], *, validate_only: bool = False) -> Outcomes:
        """Create several topics in one request. Returns None or the error of each, by name."""
        named = [NewTopic(one) if isinstance(one, str) else one for one in topics]
        wanted = {one.name: one for one in named}
        messages = CREATE_TOPICS.messages

        def request(names: list[str]) -> Any:
            return messages.CreateTopicsRequest(
                topics=[_creatable(wanted[name]) for name in names],
                timeout_ms=self._timeout_ms,
                validate_only=validate_only,
            )

        return await self._each(CREATE_TOPICS, wanted, request, lambda reply: [(t.name, t) for t in reply.topics])

    async def create_partitions(self, topic: str, count: int) -> None:
        """Raise the topic's total number of partitions to `count`. Raises `InvalidPartitions` and others."""
        only(await self.expand_topics({topic: count}))

    async def expand_topics(self, counts: Mapping[str, int], *, validate_only: bool = False) -> Outcomes:
        """Raise the total number of partitions of several topics. Returns None or the error of each, by name."""
        messages = CREATE_PARTITIONS.messages

        def request(names: list[str]) -> Any:
            topics = [messages.CreatePartitionsTopic(name=n, count=counts[n], assignments=None) for n in names]
            return messages.CreatePartitionsRequest(
                topics=topics, timeout_ms=self._timeout_ms, validate_only=validate_only
            )

        return await self._each(CREATE_PARTITIONS, counts, request, lambda reply: [(t.name, t) for t in reply.results])

    async def delete_topic(self, topic: str) -> None:
        """Delete a topic with all its records. Raises `UnknownTopicOrPartition` and others."""
        only(await self.delete_topics([topic]))

    async def delete_topics(self, topics: Iterable[str]) -> Outcomes:
        """Delete several topics in one request. Returns None or the error of each, by name."""
        messages = DELETE_TOPICS.messages

        def request(names: list[str]) -> Any:
            states = [messages.DeleteTopicState(name=name) for name in names]
            return messages.DeleteTopicsRequest(topics=states, topic_names=names, timeout_ms=self._timeout_ms)

        return await self._each(DELETE_TOPICS, topics, request, lambda reply: [(t.name, t) for t in reply.responses])


def _creatable(topic: NewTopic) -> Any:
    messages = CREATE_TOPICS.messages
    assignments = [
        messages.CreatableReplicaAssignment(partition_index=partition, broker_ids=[*brokers])
        for partition, brokers in (topic.assignment or {}).items()
    ]
    return messages.CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        assignments=assignments,
        configs=[messages.CreatableTopicConfig(name=n, value=v) for n, v in texts_of(topic.configs).items()],
    )
