"""The answer to a request that is refused as a whole, with an error code."""

from typing import Any

from moldau.errors import ProtocolViolation
from moldau.protocol.apis import APIS, FETCH, PRODUCE
from moldau.protocol.hot_fetch import Fetch, FetchReply, FetchResult
from moldau.protocol.hot_produce import Produce
from moldau.protocol.schema import specs
from moldau.requests.session import Call


def refused(request: Any, call: Call, error: int) -> Any:
    """A response that carries the error: in every partition for Produce and Fetch, at the top level for all other APIs.

    Raises `ProtocolViolation`, which closes the connection, if the reply has no place for the error: a Produce with
    acks=0 has no reply, and some responses have errors only in their elements.
    """
    api = APIS[call.key]
    if api is FETCH:
        return _refused_fetch(request, error)
    if api is PRODUCE:
        if request.acks:
            return _refused_produce(request, error)
    elif _has_error_code(api.response, call.version):
        return api.response(error_code=error)
    raise ProtocolViolation(f"{api.name} is refused with error {error}")


def _has_error_code(response: type, version: int) -> bool:
    return any(name == "error_code" and spec.since <= version <= spec.until for name, spec, _ in specs(response))


def _refused_produce(request: Produce, error: int) -> list[tuple[int, int, int, int, int]]:
    return [(index, error, -1, -1, -1) for _, _, parts in request.topics for index, _ in parts]


def _refused_fetch(request: Fetch, error: int) -> FetchReply:
    results = [FetchResult(part[0], error, -1, -1, -1) for _, _, parts in request.topics for part in parts]
    return FetchReply(error, 0, request.topics, results)
