"""CreateTopics (key 19, versions 2 to 7), DeleteTopics (20, 1 to 6), CreatePartitions (37, 0 to 3).

The controller decides; these handlers turn its decisions into replies. A request with `timeout_ms` of 0 or less changes
nothing and is answered with REQUEST_TIMED_OUT; errors in the request itself come first, as in Kafka. Any other reply
means that the change is on the disk. From version 5 on CreateTopics returns the new topic's settings (KIP-525). From
version 6 on DeleteTopics names topics by id (KIP-516); names of older versions are converted into the same list.

A topic for which the client lacks the right is TOPIC_AUTHORIZATION_FAILED, after the others. It is not passed on to the
controller's decisions: what else is wrong with it would tell whether it exists. A topic that the request names twice is
refused without asking for rights, as in Kafka.
"""

import uuid
from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias, TypeVar

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
from moldau.requests.access import (
    ALTER_TOPIC,
    CREATE_IN_CLUSTER,
    CREATE_TOPIC,
    DELETE_IN_CLUSTER,
    DELETE_TOPIC,
    DESCRIBE_TOPIC,
    DESCRIBE_TOPIC_CONFIGS,
    Right,
)
from moldau.requests.session import Call
from moldau.turns import Steps, in_turns

_NAMES_UNTIL = 5
_DISABLED_SINCE = 3
_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_NO_CREATION = Refusal(_DENIED, "Authorization failed.")
_NO_DELETION = Refusal(_DENIED, _DENIED.sentence)
_NO_GROWTH = Refusal(_DENIED)
"""Kafka has a text of its own for a creation, and none for more partitions."""
_ABSENT = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "this topic does not exist")
Wish = TypeVar("Wish", NewTopic, MorePartitions)
TopicToDelete: TypeAlias = tuple[str | None, uuid.UUID | None]
"""A topic to delete, by its name or by its id."""
NotDeleted: TypeAlias = tuple[str | None, uuid.UUID | None, Refusal]


class TopicAdministration:
    def __init__(self, metadata: MetadataCache, changes: TopicChanges):
        self._metadata = metadata
        self._changes = changes

    async def create(self, request: CreateTopicsRequest, call: Call) -> Steps[CreateTopicsResponse]:
        wanted = [_wish(topic) async for topic in in_turns(request.topics)]
        denied: Sequence[str] = ()
        if not call.may(CREATE_IN_CLUSTER, logged=False):
            wanted, denied = await _permitted(wanted, CREATE_TOPIC, call)
        late = request.timeout_ms <= 0
        made: Sequence[tuple[str, TopicImage | Refusal]]
        try:
            made = await self._changes.create(wanted, validate_only=request.validate_only or late)
        except (StorageError, KafkaError) as error:
            broken = not_made(error)
            made = [(name, broken) for name in dict.fromkeys(wish.name for wish in wanted)]
        made = [(name, _too_late(result)) for name, result in made] if late else made
        return self._all_created([*made, *((name, _NO_CREATION) for name in denied)], call)

    def _all_created(self, made: Sequence[tuple[str, TopicImage | Refusal]], call: Call) -> Steps[CreateTopicsResponse]:
        response = CreateTopicsResponse()
        for name, result in made:
            response.topics.append((yield from self._created(name, result, call)))
        return response

    def _created(self, name: str, result: TopicImage | Refusal, call: Call) -> Steps[CreatableTopicResult]:
        yield
        if isinstance(result, Refusal):
            return CreatableTopicResult(name=name, error_code=result.code, error_message=result.message)
        if not call.may(DESCRIBE_TOPIC_CONFIGS, name, logged=False):
            return CreatableTopicResult(
                name=name, topic_id=result.id, error_message=None, topic_config_error_code=_DENIED
            )
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
        denied: Sequence[NotDeleted] = ()
        if not call.may(DELETE_IN_CLUSTER, logged=False):
            wanted, denied = await self._deletable(wanted, call)
        late = request.timeout_ms <= 0
        try:
            results = await self._changes.delete(wanted, validate_only=late)
            if late:
                results = [(name, topic_id, _too_late(result)) for name, topic_id, result in results]
            return _deleted([*results, *denied])
        except (StorageError, KafkaError) as error:
            broken = not_made(error)
            return _deleted([*((name, topic_id, broken) for name, topic_id in wanted), *denied])

    async def _deletable(
        self, wanted: Sequence[TopicToDelete], call: Call
    ) -> tuple[list[TopicToDelete], list[NotDeleted]]:
        """The topics that the controller decides on, and the answers for those that the client may not delete."""
        counts = Counter[TopicToDelete]()
        async for one in in_turns(wanted):
            counts[one] += 1
        deletable: list[TopicToDelete] = []
        denied: list[NotDeleted] = []
        async for one in in_turns(wanted):
            answer = self._denied(*one, call) if counts[one] == 1 else None
            if answer is None:
                deletable.append(one)
            else:
                denied.append(answer)
        return deletable, denied

    def _denied(self, name: str | None, topic_id: uuid.UUID | None, call: Call) -> NotDeleted | None:
        """The answer for a topic that the client may not delete: no more than what it may know. None if it may, or if
        the controller refuses this whoever asks."""
        if (name is None) == (topic_id is None):
            return None
        if name is None:
            topic = self._metadata.image.topic(None, topic_id)
            # An id that is unknown here is unknown to the decision too: nobody can know the id of a topic to come.
            if topic is None or call.may(DELETE_TOPIC, topic.name):
                return None
            shown = topic.name if call.may(DESCRIBE_TOPIC, topic.name, logged=False) else None
            return shown, topic_id, _NO_DELETION
        if not call.may(DESCRIBE_TOPIC, name):
            return name, None, _NO_DELETION
        if call.may(DELETE_TOPIC, name):
            return None
        return name, None, _NO_DELETION if name in self._metadata.image.topics else _ABSENT

    async def create_partitions(self, request: CreatePartitionsRequest, call: Call) -> Steps[CreatePartitionsResponse]:
        wanted = [
            MorePartitions(
                topic.name,
                topic.count,
                None if topic.assignments is None else [tuple(one.broker_ids) for one in topic.assignments],
            )
            async for topic in in_turns(request.topics)
        ]
        wanted, denied = await _permitted(wanted, ALTER_TOPIC, call)
        late = request.timeout_ms <= 0
        grown: Sequence[tuple[str, TopicImage | Refusal]]
        try:
            grown = await self._changes.create_partitions(wanted, validate_only=request.validate_only or late)
        except (StorageError, KafkaError) as error:
            broken = not_made(error)
            grown = [(name, broken) for name in dict.fromkeys(wish.name for wish in wanted)]
        grown = [(name, _too_late(result)) for name, result in grown] if late else grown
        return _grown([*grown, *((name, _NO_GROWTH) for name in denied)])


async def _permitted(wanted: list[Wish], right: Right, call: Call) -> tuple[list[Wish], Sequence[str]]:
    """The wishes for topics on which the client has that right, or that are named twice; the names of the others."""
    if call.session.authorizer is None:
        return wanted, ()
    counts = Counter[str]()
    async for wish in in_turns(wanted):
        counts[wish.name] += 1
    permitted, denied = [], []
    async for wish in in_turns(wanted):
        if counts[wish.name] > 1 or call.may(right, wish.name):
            permitted.append(wish)
        else:
            denied.append(wish.name)
    return permitted, denied


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
