"""The answer to a request that is refused as a whole, with an error code.

The code goes where clients look for it: at the top level of the response, or else into every element that the request
names. The elements of a response mirror those of its request (topics and their partitions, groups, resources), so one
walk over the tables of both messages builds the reply of every API.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from moldau.error_codes import error_of
from moldau.errors import ProtocolViolation
from moldau.protocol.apis import (
    ALTER_PARTITION_REASSIGNMENTS,
    ALTER_REPLICA_LOG_DIRS,
    CONSUMER_GROUP_HEARTBEAT,
    DESCRIBE_CLIENT_QUOTAS,
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    ELECT_LEADERS,
    FETCH,
    JOIN_GROUP,
    PRODUCE,
    SUPPORTED,
    Api,
)
from moldau.protocol.fetch_request import Fetch
from moldau.protocol.hot_fetch import FetchReply, FetchResult
from moldau.protocol.hot_produce import Produce
from moldau.protocol.schema import Spec, specs
from moldau.requests.session import Call

ERROR_CODES = ("error_code", "partition_error_code")
IDENTITIES = {
    **{name: name for name in ("name", "topic", "topic_id", "partition_index", "partition", "group_id", "producer_id")},
    **{name: name for name in ("resource_type", "resource_name", "entity")},
    "topic_name": "name",
    "user": "name",
}
"""What an element of a response is about: its fields, and the fields of the request's element that they repeat."""

IN_ELEMENTS_TOO = (ALTER_PARTITION_REASSIGNMENTS, ELECT_LEADERS)
"""APIs whose responses have the error at the top level and in each element."""
WITHOUT_WORDS = (CONSUMER_GROUP_HEARTBEAT, DESCRIBE_CLIENT_QUOTAS, DESCRIBE_USER_SCRAM_CREDENTIALS)
"""Their responses have no message beside the error, as in Kafka."""

NOTHING = ("node_id", "port", "committed_offset", "low_watermark", "producer_epoch")
"""Numbers that are -1 beside an error, as Kafka answers."""


def refused(request: Any, call: Call, error: int, message: str | None = None) -> Any:
    """A response that carries the error: in every partition for Produce and Fetch (Fetch also at the top level), at the
    top level for all others that have a place there, and else in each element that the request names. `message` takes
    the place of the error's sentence, where the response has one.

    Raises `ProtocolViolation`, which closes the connection, for a Produce with acks=0: it has no reply.
    """
    api = SUPPORTED[call.key]
    if api is FETCH:
        return _refused_fetch(request, error)
    if api is PRODUCE:
        if not request.acks:
            raise ProtocolViolation(f"{api.name} is refused with error {error}")
        return _refused_produce(request, error)
    return _refused_by_table(api, request, call.version, error, message)


def _refused_produce(request: Produce, error: int) -> list[tuple[int, int, int, int, int]]:
    return [(index, error, -1, -1, -1) for _, _, parts in request.topics for index, _ in parts]


def _refused_fetch(request: Fetch, error: int) -> FetchReply:
    results = [FetchResult(part[0], error, -1, -1, -1) for _, _, parts in request.topics for part in parts]
    return FetchReply(error, 0, request.topics, results)


def _refused_by_table(api: Api, request: Any, version: int, error: int, message: str | None) -> Any:
    response = api.response()
    asked = list(_elements(request, version))
    if api is ALTER_REPLICA_LOG_DIRS:  # asks by folder and topic, and is answered by topic
        asked = [topic for folder in asked for topic in folder.topics]
    message = None if api in WITHOUT_WORDS else message or error_of(error).sentence
    _refuse(response, asked, version, error, message, api in IN_ELEMENTS_TOO)
    if api is JOIN_GROUP and version >= 7:
        response.protocol_name = None
    elif api is DESCRIBE_CLIENT_QUOTAS:
        response.entries = None
    elif api is DESCRIBE_USER_SCRAM_CREDENTIALS:  # one user without a name, as in Kafka
        response.results = [api.messages.DescribeUserScramCredentialsResult(error_code=error, error_message=None)]
    return response


def _refuse(
    answer: Any, asked: Sequence[Any], version: int, error: int, message: str | None, everywhere: bool = False
) -> None:
    """Put the error into `answer`, or else into one element of it for each of those that were `asked` for; with
    `everywhere` into both."""
    fields = _fields(type(answer), version)
    name = next((name for name in ERROR_CODES if name in fields), None)
    if name is not None:
        setattr(answer, name, error)
        if "error_message" in fields:
            answer.error_message = message
        for other in fields.keys() & NOTHING:
            setattr(answer, other, -1)
        if not everywhere:
            return
    for name, spec in fields.items():
        if _holds_errors(spec, version):
            setattr(answer, name, [_element(spec.kind, one, version, error, message) for one in asked])
            return


def _element(kind: type, asked: Any, version: int, error: int, message: str | None) -> Any:
    """The element of a response that answers this element of the request: a message, or the name or number itself."""
    answer = kind()
    if isinstance(asked, str | int):
        named = "string" if isinstance(asked, str) else "int32"
        name = next(n for n, s in _fields(kind, version).items() if s.kind == named and n != "error_message")
        setattr(answer, name, asked)
        _refuse(answer, (), version, error, message)
        return answer
    for name in _fields(kind, version):
        if name in IDENTITIES and hasattr(asked, IDENTITIES[name]):
            setattr(answer, name, getattr(asked, IDENTITIES[name]))
    _refuse(answer, list(_elements(asked, version)), version, error, message)
    return answer


def _elements(asked: Any, version: int) -> Iterator[Any]:
    """The elements of all arrays of a request, or of one of its elements."""
    for name, spec in _fields(type(asked), version).items():
        if spec.array:
            elements: Iterable[Any] = getattr(asked, name) or ()
            yield from elements


def _fields(message: type, version: int) -> dict[str, Spec]:
    return {name: spec for name, spec, _ in specs(message) if spec.since <= version <= spec.until}


def _holds_errors(spec: Spec, version: int) -> bool:
    """Whether it is an array of messages that have error codes, themselves or in an array of theirs."""
    if not (spec.array and isinstance(spec.kind, type)):
        return False
    fields = _fields(spec.kind, version)
    return any(name in fields for name in ERROR_CODES) or any(
        _holds_errors(inner, version) for inner in fields.values()
    )
