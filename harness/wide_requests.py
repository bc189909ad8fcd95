"""The widest requests of every API, made from its table: an array is long, and every element in it is different."""

import dataclasses
import uuid
from collections.abc import Iterator
from typing import Any

from moldau.protocol.apis import APIS, FETCH, PRODUCE, Api
from moldau.protocol.schema import Spec, specs

WHOLE = {"timeout_ms": 30_000, "response_partition_limit": 30_000}
BY_HAND = (PRODUCE, FETCH)


def arrays(message: type) -> Iterator[tuple[str, Spec]]:
    return ((name, spec) for name, spec, _ in specs(message) if spec.array)


def filled(kind: Any, number: int) -> Any:
    """One element, different from all others."""
    if not isinstance(kind, type):
        texts = {"string": f"wide-{number}", "bytes": b"", "uuid": uuid.UUID(int=number + 1), "bool": False}
        return texts.get(kind, number % 100)
    values: dict[str, Any] = {}
    for name, spec, _ in specs(kind):
        values[name] = [filled(spec.kind, number)] if spec.array else filled(spec.kind, number)
        if not spec.array and spec.kind not in ("string", "uuid") and not isinstance(spec.kind, type):
            del values[name]
    return kind(**values)


def elements_of(kind: Any) -> int:
    nested = arrays(kind) if isinstance(kind, type) else ()
    return 1 + sum(elements_of(spec.kind) for _, spec in nested)


def wide_requests() -> Iterator[tuple[Api, str]]:
    """Each API that is read by its table, and the name of each of its arrays."""
    for api in APIS.values():
        if api not in BY_HAND:
            for name, spec in arrays(api.request):
                if spec.since <= api.high <= spec.until:
                    yield api, name


def request_of(api: Api, array: str, elements: int) -> Any:
    """A request with that many elements in one array, those inside elements counted."""
    (kind,) = (spec.kind for name, spec in arrays(api.request) if name == array)
    request = api.request(**{array: [filled(kind, n) for n in range(elements // elements_of(kind))]})
    known = {field.name for field in dataclasses.fields(request)}
    for name, value in {"group_id": "wide", "member_id": "wide", "transactional_id": "wide", **WHOLE}.items():
        if name in known and array != name:
            setattr(request, name, value)
    return request
