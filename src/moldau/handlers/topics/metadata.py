"""Metadata (key 3), versions 0 to 13: the brokers, and the leader of every partition of the topics.

Which topics are meant: all, if the list is null (in version 0: empty). If any topic is asked for by id (from version
12), ids count and names do not. A topic that is not there is made when the client and `auto.create.topics.enable`
allow it, and the answer then has it already. Answers come from the image; partitions are built once for each image of
a topic and each listener. Each broker has the address of the listener that the request came in on; a broker without
such a listener is left out, and the partitions it leads have no leader: LISTENER_NOT_FOUND, and before version 6
LEADER_NOT_AVAILABLE, as in Kafka.

The controller that is named is the broker that answers: it forwards what only the controller can do. Clients that keep
asking a controller that has died (librdkafka does) thus depend on no other broker than the one that they reach. Kafka
with KRaft names any living broker, for the same reason. DescribeCluster names the controller itself.

A topic that the client may not describe is TOPIC_AUTHORIZATION_FAILED: without its id if it was asked for by name,
without its name if by id. If all topics are meant it is left out. A topic that would be created, and that the client
may describe and not create, has the same error. Topics with that error come last.
"""

import uuid
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import NamedTuple

from moldau.cluster.controlling.controller import Refusal, name_refusal
from moldau.cluster.controlling.topic_changes import TopicChanges
from moldau.cluster.state.image import NO_LEADER, BrokerImage, Image, PartitionImage, TopicImage
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.errors import ErrorCode, KafkaError, StorageError
from moldau.names import INTERNAL_TOPICS, TRANSACTIONS_TOPIC
from moldau.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from moldau.requests.access import CREATE_IN_CLUSTER, CREATE_TOPIC, DESCRIBE_TOPIC, Operation, ResourceType
from moldau.requests.session import Call
from moldau.turns import Steps

_BY_ID_SINCE = 12
_LISTENER_ERROR_SINCE = 6
_DENIED = DESCRIBE_TOPIC.denied
_CREATIONS_MAX = 100
"""How many topics one request may make."""


class ListenerView(NamedTuple):
    """What the clients of one listener see: the brokers that are up, the `reachable` ones among them (they have that
    listener), the error of a partition whose leader is not reachable, and the partitions built so far, by topic."""

    brokers: Mapping[int, BrokerImage]
    reachable: Mapping[int, BrokerImage]
    listener_error: ErrorCode
    partitions: dict[str, list[MetadataResponsePartition]]


class Metadata:
    def __init__(self, metadata: MetadataCache, topics: TopicChanges):
        self._metadata = metadata
        self._topics = topics
        self._brokers = metadata.image.brokers
        self._views: dict[tuple[str, ErrorCode], ListenerView] = {}
        metadata.subscribe(self._forget)

    def _forget(self, image: Image, changed: Sequence[str]) -> None:
        if image.brokers != self._brokers:
            self._brokers = image.brokers
            self._views.clear()
        for view in self._views.values():
            for name in changed:
                view.partitions.pop(name, None)

    def _view(self, call: Call) -> ListenerView:
        code = ErrorCode.LISTENER_NOT_FOUND if call.version >= _LISTENER_ERROR_SINCE else ErrorCode.LEADER_NOT_AVAILABLE
        listener = call.session.listener
        view = self._views.get((listener, code))
        if view is None:
            image = self._metadata.image
            reachable = {broker.id: broker for broker, _ in image.reachable(listener)}
            view = self._views[listener, code] = ListenerView(image.brokers, reachable, code, {})
        return view

    def __call__(
        self, request: MetadataRequest, call: Call
    ) -> Steps[MetadataResponse | Steps[MetadataResponse] | Awaitable[Steps[MetadataResponse]]]:
        image, asked, view = self._metadata.image, request.topics, self._view(call)
        if asked is None or (call.version == 0 and not asked):
            shown = self._topic if call.session.authorizer is None else self._topic_if_visible
            return self._reply(
                image, request, call, (shown(topic, request, call, view) for topic in image.topics.values())
            )
        ids: dict[uuid.UUID, None] = {}
        names: dict[str, None] = {}
        nameless = False
        for one in asked:
            if one.topic_id.int:
                ids[one.topic_id] = None
            if one.name is None:
                nameless = True
            else:
                names[one.name] = None
            yield
        if call.version < _BY_ID_SINCE and (ids or nameless):
            return _invalid(request)
        if ids:
            described = (self._by_id(image, topic_id, request, call, view) for topic_id in ids)
            return self._reply(image, request, call, described)
        if nameless:
            return _invalid(request)
        missing, refused = yield from self._judged(names, image, request, call)
        if missing:
            return self._create(names, missing[:_CREATIONS_MAX], refused, request, call)
        described = (self._by_name(image, name, refused, request, call, view) for name in names)
        return self._reply(image, request, call, described)

    def _judged(
        self, names: Iterable[str], image: Image, request: MetadataRequest, call: Call
    ) -> Steps[tuple[Sequence[str], dict[str, ErrorCode]]]:
        """The topics to create, and those that the client may not describe or create."""
        missing: list[str] = []
        refused: dict[str, ErrorCode] = {}
        for name in names:
            if not call.may(DESCRIBE_TOPIC, name):
                refused[name] = _DENIED
            elif name not in image.topics and self._may_create(name, request):
                missing.append(name)
            yield
        if not missing or call.may(CREATE_IN_CLUSTER, logged=False):
            return missing, refused
        creatable = []
        for name in missing:
            if call.may(CREATE_TOPIC, name):
                creatable.append(name)
            else:
                refused[name] = _DENIED
            yield
        return creatable, refused

    def _may_create(self, name: str, request: MetadataRequest) -> bool:
        allowed = request.allow_auto_topic_creation and self._metadata.config.auto_create_topics_enable
        return allowed and name != TRANSACTIONS_TOPIC and name_refusal(name) is None

    async def _create(
        self,
        names: Iterable[str],
        missing: Sequence[str],
        refused: dict[str, ErrorCode],
        request: MetadataRequest,
        call: Call,
    ) -> Steps[MetadataResponse]:
        try:
            made = await self._topics.create_needed([self._topics.automatic(name) for name in missing])
            refused |= {name: result.code for name, result in made if isinstance(result, Refusal)}
        except (StorageError, KafkaError):
            refused |= dict.fromkeys(missing, ErrorCode.LEADER_NOT_AVAILABLE)
        image, view = self._metadata.image, self._view(call)
        described = (self._by_name(image, name, refused, request, call, view) for name in names)
        return self._reply(image, request, call, described)

    def _by_name(
        self,
        image: Image,
        name: str,
        refused: Mapping[str, ErrorCode],
        request: MetadataRequest,
        call: Call,
        view: ListenerView,
    ) -> Steps[MetadataResponseTopic]:
        code = refused.get(name)
        if code is _DENIED:  # before anything that tells whether the topic exists
            yield
            return MetadataResponseTopic(error_code=code, name=name)
        topic = image.topics.get(name)
        if topic is not None:
            return (yield from self._topic(topic, request, call, view))
        yield
        refusal = name_refusal(name)
        code = code or (refusal.code if refusal else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return MetadataResponseTopic(error_code=code, name=name, is_internal=name in INTERNAL_TOPICS)

    def _by_id(
        self, image: Image, topic_id: uuid.UUID, request: MetadataRequest, call: Call, view: ListenerView
    ) -> Steps[MetadataResponseTopic]:
        topic = image.topics_by_id.get(topic_id)
        if topic is not None and call.may(DESCRIBE_TOPIC, topic.name):
            return (yield from self._topic(topic, request, call, view))
        yield
        code = ErrorCode.UNKNOWN_TOPIC_ID if topic is None else _DENIED
        return MetadataResponseTopic(error_code=code, name=None, topic_id=topic_id)

    def _topic_if_visible(
        self, topic: TopicImage, request: MetadataRequest, call: Call, view: ListenerView
    ) -> Steps[MetadataResponseTopic | None]:
        if call.may(DESCRIBE_TOPIC, topic.name, logged=False):
            return (yield from self._topic(topic, request, call, view))
        yield
        return None

    def _topic(
        self, topic: TopicImage, request: MetadataRequest, call: Call, view: ListenerView
    ) -> Steps[MetadataResponseTopic]:
        partitions = view.partitions.get(topic.name)
        yield
        if partitions is None:
            partitions = []
            for number, part in enumerate(topic.partitions):
                partitions.append(described_partition(number, part, view.reachable, view.brokers, view.listener_error))
                yield
            if self._metadata.image.topics.get(topic.name) is topic:
                view.partitions[topic.name] = partitions
        response = MetadataResponseTopic(
            name=topic.name, topic_id=topic.id, is_internal=topic.name in INTERNAL_TOPICS, partitions=partitions
        )
        if request.include_topic_authorized_operations:
            response.topic_authorized_operations = call.operations(ResourceType.TOPIC, topic.name)
        return response

    def _reached(self, image: Image, call: Call) -> int:
        """This broker, or the first one if it is not registered: a controller that is not listed would be dialled by
        nobody."""
        listed = [broker.id for broker, _ in image.reachable(call.session.listener)]
        me = self._metadata.broker_id
        return me if me in listed else min(listed, default=NO_LEADER)

    def _reply(
        self,
        image: Image,
        request: MetadataRequest,
        call: Call,
        described: Iterable[Steps[MetadataResponseTopic | None]],
    ) -> Steps[MetadataResponse]:
        topics: list[MetadataResponseTopic] = []
        denied: list[MetadataResponseTopic] = []
        for steps in described:
            topic = yield from steps
            if topic is not None:
                (denied if topic.error_code is _DENIED else topics).append(topic)
        response = MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack)
                for broker, endpoint in image.reachable(call.session.listener)
            ],
            cluster_id=image.cluster_id,
            controller_id=self._reached(image, call),
            topics=topics + denied,
        )
        if request.include_cluster_authorized_operations:
            response.cluster_authorized_operations = cluster_operations(call)
        return response


def cluster_operations(call: Call) -> int:
    """The operations that the client may do on the cluster, as bits; 0 if it may not even describe it."""
    operations = call.operations(ResourceType.CLUSTER)
    return operations if operations >> Operation.DESCRIBE & 1 else 0


def described_partition(
    number: int,
    part: PartitionImage,
    reachable: Mapping[int, BrokerImage],
    brokers: Mapping[int, BrokerImage],
    listener_error: ErrorCode = ErrorCode.LISTENER_NOT_FOUND,
) -> MetadataResponsePartition:
    """A partition as the clients of one listener see it. `brokers` are up; the `reachable` ones among them have that
    listener, and any other replica counts as offline. `listener_error` is the code if the leader is up but not
    reachable."""
    led = part.leader in reachable
    unavailable = listener_error if part.leader in brokers else ErrorCode.LEADER_NOT_AVAILABLE
    return MetadataResponsePartition(
        error_code=ErrorCode.NONE if led else unavailable,
        partition_index=number,
        leader_id=part.leader if led else NO_LEADER,
        leader_epoch=part.leader_epoch,
        replica_nodes=list(part.replicas),
        isr_nodes=list(part.isr),
        offline_replicas=[
            replica
            for replica in part.replicas
            if replica not in reachable or not reachable[replica].serves(part.directory_of(replica))
        ],
    )


def _invalid(request: MetadataRequest) -> Steps[MetadataResponse]:
    response = MetadataResponse(error_code=ErrorCode.INVALID_REQUEST)
    for one in request.topics or ():
        response.topics.append(
            MetadataResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=one.name or "", topic_id=one.topic_id)
        )
        yield
    return response
