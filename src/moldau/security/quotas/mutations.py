"""The quota on changes of topics: partitions that a client makes and deletes, in a bucket of tokens, as in Kafka.

A rule of the gate at the controller. Newer versions of CreateTopics, DeleteTopics and CreatePartitions refuse each
topic for which the bucket already owes tokens (THROTTLING_QUOTA_EXCEEDED); in older ones everything is done and the
client throttled. Only what the client has the right to change counts. Checking a request (`validate_only`) counts, too.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from types import GeneratorType
from typing import Any, TypeAlias

from moldau.cluster.state import quotas
from moldau.cluster.state.image import Image
from moldau.errors import ErrorCode
from moldau.protocol.apis import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS
from moldau.rates import RateWindow
from moldau.requests.access import ALTER_TOPIC, CREATE_IN_CLUSTER, CREATE_TOPIC, DELETE_IN_CLUSTER, DELETE_TOPIC
from moldau.requests.gate import Handler, Verdict
from moldau.requests.session import Call
from moldau.security.quotas.buckets import TokenBucket
from moldau.security.quotas.client_use import THROTTLE_MS_MAX, client_of
from moldau.security.quotas.entities import QuotaTable
from moldau.security.quotas.sensors import Sensors
from moldau.turns import Steps

STRICT_SINCE = {CREATE_TOPICS.key: 6, DELETE_TOPICS.key: 5, CREATE_PARTITIONS.key: 3}
_NAMES_UNTIL = 5
"""The last version of DeleteTopics that lists names alone."""
Changed: TypeAlias = tuple[Any, int]
"""A topic in a request, and how many partitions it changes."""
_REFUSED = ErrorCode.THROTTLING_QUOTA_EXCEEDED


class Mutations:
    """`image` returns what the controller decides on, None if this broker is not the controller; `partitions` returns
    how many a new topic has by default."""

    def __init__(
        self,
        window: RateWindow,
        now: Callable[[], float],
        image: Callable[[], Image | None],
        partitions: Callable[[], int],
    ):
        self._now = now
        self._image = image
        self._partitions = partitions
        self._table = QuotaTable({})
        self._buckets: Sensors[TokenBucket] = Sensors(lambda: TokenBucket(window))

    def follow(self, table: QuotaTable) -> None:
        """These quotas hold from now on."""
        self._table = table

    def __call__(self, request: Any, call: Call) -> Verdict | None:
        since = STRICT_SINCE[call.key]
        limit = self._table.limit(quotas.MUTATION, *client_of(call))
        image = None if limit is None else self._image()
        if limit is None or image is None:
            return None
        now_ms = int(self._now() * 1000)
        bucket = self._buckets.of((limit.user, limit.client_id), now_ms)
        refused = []
        for topic, partitions in self._changed(request, call, image):
            if call.version >= since and bucket.throttle_ms(limit.value, now_ms):
                refused.append(topic)
            else:
                bucket.spend(partitions, limit.value, now_ms)
        if not refused and call.version >= since:
            return None
        throttle_ms = min(bucket.throttle_ms(limit.value, now_ms), THROTTLE_MS_MAX)
        return Verdict(throttle_ms=throttle_ms, around=_without(refused) if refused else None)

    def _changed(self, request: Any, call: Call, image: Image) -> Iterable[Changed]:
        if call.key == CREATE_TOPICS.key:
            may_all = call.may(CREATE_IN_CLUSTER, logged=False)
            for topic in request.topics:
                if may_all or call.may(CREATE_TOPIC, topic.name, logged=False):
                    asked = len(topic.assignments) or topic.num_partitions
                    yield topic, max(asked if asked != -1 else self._partitions(), 0)
        elif call.key == CREATE_PARTITIONS.key:
            for topic in request.topics:
                known = image.topics.get(topic.name)
                if known is not None and call.may(ALTER_TOPIC, topic.name, logged=False):
                    yield topic, max(topic.count - len(known.partitions), 0)
        else:
            may_all = call.may(DELETE_IN_CLUSTER, logged=False)
            for topic in _deleted(request, call):
                name, topic_id = (topic, None) if isinstance(topic, str) else (topic.name, topic.topic_id)
                known = image.topic(name, topic_id)
                if known is not None and (may_all or call.may(DELETE_TOPIC, known.name, logged=False)):
                    yield topic, len(known.partitions)


def _deleted(request: Any, call: Call) -> Sequence[Any]:
    named: Sequence[Any] = request.topic_names if call.version <= _NAMES_UNTIL else request.topics
    return named


def _without(refused: Sequence[Any]) -> Callable[[Handler, Any, Call], Any]:
    """Answer a request as if it did not have these topics, and say of each that it was refused."""

    async def around(handler: Handler, request: Any, call: Call) -> Any:
        is_refused = {id(topic) for topic in refused}
        field = "topic_names" if call.key == DELETE_TOPICS.key and call.version <= _NAMES_UNTIL else "topics"
        asked = getattr(request, field)
        stripped = type(request)(**{name: getattr(request, name) for name in request.__slots__})
        setattr(stripped, field, [topic for topic in asked if id(topic) not in is_refused])
        answer = handler(stripped, call)
        if isinstance(answer, Awaitable):
            answer = await answer
        if type(answer) is GeneratorType:
            return _with_refusals(answer, refused, call)
        return _told(answer, refused, call)

    return around


def _with_refusals(steps: Steps[Any], refused: Collection[Any], call: Call) -> Steps[Any]:
    response = yield from steps
    return _told(response, refused, call)


def _told(response: Any, refused: Collection[Any], call: Call) -> Any:
    from moldau.protocol.messages.create_partitions import CreatePartitionsTopicResult
    from moldau.protocol.messages.create_topics import CreatableTopicResult
    from moldau.protocol.messages.delete_topics import DeletableTopicResult

    for topic in refused:
        if call.key == CREATE_TOPICS.key:
            response.topics.append(CreatableTopicResult(name=topic.name, error_code=_REFUSED, error_message=None))
        elif call.key == CREATE_PARTITIONS.key:
            response.results.append(
                CreatePartitionsTopicResult(name=topic.name, error_code=_REFUSED, error_message=None)
            )
        elif isinstance(topic, str):
            response.responses.append(DeletableTopicResult(name=topic, error_code=_REFUSED, error_message=None))
        else:
            response.responses.append(
                DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=_REFUSED, error_message=None)
            )
    return response
