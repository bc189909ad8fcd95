"""CreateTopics (key 19, versions 2 to 7), DeleteTopics (20, 1 to 6), CreatePartitions (37, 0 to 3).

The controller decides; these handlers turn its decisions into replies. A request with `timeout_ms` of 0 or less changes
nothing and is answered with REQUEST_TIMED_OUT; errors in the request itself come first, as in Kafka. Any other reply
means that the change is on the disk. From version 5 on CreateTopics returns the new topic's settings (KIP-525). From
version 6 on DeleteTopics names topics by id (KIP-516); names of older versions are converted into the same list.
"""

import uuid
from collections.abc import Sequence

from moldau.cluster.controlling.controller import MorePartitions, NewTopic, Refusal
from moldau.cluster.controlling.topic_changes import TopicChanges
from moldau.cluster.state.image import TopicImage
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.errors import ErrorCode, KafkaError, StorageError
from moldau.handlers.responding import not_made
from moldau.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from moldau.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from moldau.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from moldau.protocol.primitives import ZERO_UUID
from moldau.requests.session import Call
from moldau.turns import Steps, in_turns

_NAMES_UNTIL = 5
_DISABLED_SINCE = 3


class TopicAdministration:
    def __init__(self, metadata: MetadataCache, changes: TopicChanges):
        self._metadata = metadata
        self._changes = changes

    async def create(self, request: CreateTopicsRequest, call: Call) -> Steps[CreateTopicsResponse]:
        wanted = [_wish(topic) async for topic in in_turns(request.topics)]
        late = request.timeout_ms <= 0
        made: Sequence[tuple[str, TopicImage | Refusal]]
        try:
            made = await self._changes.create(wanted, validate_only=request.validate_only or late)
        except (StorageError, KafkaError) as error:
            broken = not_made(error)
            made = [(name, broken) for name in dict.fromkeys(wish.name for wish in wanted)]
        return self._all_created([(name, _too_late(result)) for name, result in made] if late else made)

    def _all_created(self, made: Sequence[tuple[str, TopicImage | Refusal]]) -> Steps[CreateTopicsResponse]:
        response = CreateTopicsResponse()
        for name, result in made:
            response.topics.append((yield from self._created(name, result)))
        return response

    def _created(self, name: str, result: TopicImage | Refusal) -> Steps[CreatableTopicResult]:
        yield
        if isinstance(result, Refusal):
            return CreatableTopicResult(name=name, error_code=result.code, error_message=result.message)
        configs = []
        for one in self._metadata.config_sources.topic(result.overrides):
            configs.append(
                CreatableTopicConfigs(
                    name=one.setting.name,
                    value=one.value,
                    read_only=one.setting.read_only,
                    config_source=one.source,
                    is_sensitive=one.setting.sensitive,
                )
            )
            yield
        return CreatableTopicResult(
            name=name,
            topic_id=result.id,
            error_message=None,
            num_partitions=len(result.partitions),
            replication_factor=len(result.partitions[0].replicas),
            configs=configs,
        )

    async def delete(self, request: DeleteTopicsRequest, call: Call) -> Steps[DeleteTopicsResponse]:
        if call.version <= _NAMES_UNTIL:
            asked = [DeleteTopicState(name=name) for name in request.topic_names]
        else:
            asked = request.topics
        if not self._metadata.config.delete_topic_enable:
            old = call.version < _DISABLED_SINCE
            code = ErrorCode.INVALID_REQUEST if old else ErrorCode.TOPIC_DELETION_DISABLED
            return _deleted([(one.name, one.topic_id, Refusal(code, "topics cannot be deleted here")) for one in asked])
        wanted = [(one.name, one.topic_id if one.topic_id.int else None) async for one in in_turns(asked)]
        late = request.timeout_ms <= 0
        try:
            results = await self._changes.delete(wanted, validate_only=late)
            if not late:
                return _deleted(results)
            return _deleted([(name, topic_id, _too_late(result)) for name, topic_id, result in results])
        except (StorageError, KafkaError) as error:
            broken = not_made(error)
            return _deleted([(name, topic_id, broken) for name, topic_id in wanted])

    async def create_partitions(self, request: CreatePartitionsRequest, call: Call) -> Steps[CreatePartitionsResponse]:
        wanted = [
            MorePartitions(
                topic.name,
                topic.count,
                None if topic.assignments is None else [tuple(one.broker_ids) for one in topic.assignments],
            )
            async for topic in in_turns(request.topics)
        ]
        late = request.timeout_ms <= 0
        grown: Sequence[tuple[str, TopicImage | Refusal]]
        try:
            grown = await self._changes.create_partitions(wanted, validate_only=request.validate_only or late)
        except (StorageError, KafkaError) as error:
            broken = not_made(error)
            grown = [(name, broken) for name in dict.fromkeys(wish.name for wish in wanted)]
        return _grown([(name, _too_late(result)) for name, result in grown] if late else grown)


def _too_late(result: TopicImage | Refusal) -> Refusal:
    """The answer to a request with `timeout_ms` of 0 or less: errors in the request itself, else REQUEST_TIMED_OUT."""
    if isinstance(result, Refusal) and result.code is ErrorCode.INVALID_REQUEST:
        return result
    return Refusal(ErrorCode.REQUEST_TIMED_OUT)


def _wish(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        [(one.partition_index, tuple(one.broker_ids)) for one in topic.assignments],
        [(one.name, one.value) for one in topic.configs],
    )


def _grown(grown: Sequence[tuple[str, TopicImage | Refusal]]) -> Steps[CreatePartitionsResponse]:
    response = CreatePartitionsResponse()
    for name, result in grown:
        refusal = result if isinstance(result, Refusal) else Refusal(ErrorCode.NONE)
        response.results.append(
            CreatePartitionsTopicResult(name=name, error_code=refusal.code, error_message=refusal.message)
        )
        yield
    return response


def _deleted(
    results: Sequence[tuple[str | None, uuid.UUID | None, TopicImage | Refusal]],
) -> Steps[DeleteTopicsResponse]:
    responses = []
    for name, topic_id, result in results:
        yield
        if isinstance(result, Refusal):
            responses.append(
                DeletableTopicResult(
                    name=name, topic_id=topic_id or ZERO_UUID, error_code=result.code, error_message=result.message
                )
            )
        else:
            responses.append(DeletableTopicResult(name=result.name, topic_id=result.id))
    return DeleteTopicsResponse(responses=responses)
