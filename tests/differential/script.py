"""How the script of requests is written: steps as plain data, in the order they are sent.

    step("make a topic", CREATE_TOPICS, 5, {"topics": [{"name": "t", "num_partitions": 1, "replication_factor": 1}]})
    step("ask for it", METADATA, 12, {"topics": [{"name": "t"}]}, until=has_leaders, save={"t": "topics[0].topic_id"})
    step("by its id", FETCH, 13, {"topics": [{"topic_id": V("t"), "partitions": [{"fetch_offset": 0}]}]})

Fields that are not named have the message's defaults. `V(name)` stands for a variable saved by an earlier step, one
value for each broker; a function of the variables makes what needs one inside, such as a batch with a producer's id.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from moldau.protocol.apis import Api
from moldau.protocol.schema import specs

Tree = Any
"""A reply as dicts, lists and values: only the fields that its version has."""
Variables = Mapping[str, Any]


@dataclass(frozen=True)
class V:
    """The value of a variable."""

    name: str


@dataclass(frozen=True)
class Step:
    """One request, or what is done instead of one.

    `until`: send it again until the reply is so (at most 15 s). `connection`: which one it goes over; a closed one is
    opened anew. `later`: do not wait for the reply, a step made by `collect` does. `frame`: the bytes of the request,
    header included, instead of `fields`, its size put in front if `sized`; `read_as`: the version in which its reply is
    read. `patient`: send it again while a coordinator says that it is starting. `since`: the first version of Kafka
    that is asked it.
    """

    name: str
    api: Api
    version: int
    fields: Mapping[str, Any] = field(default_factory=dict)
    save: Mapping[str, str] = field(default_factory=dict)
    until: Callable[[Tree], bool] | None = None
    connection: str = "main"
    client_id: str = "differential"
    later: bool = False
    collects: bool = False
    frame: bytes | Callable[[Variables], bytes] | None = None
    sized: bool = True
    read_as: int | None = None
    wait_s: float = 10.0
    patient: bool = True
    since: str = ""

    @property
    def request(self) -> str:
        return f"{self.api.name} v{self.version}"


def steps_of(version: str, steps: Sequence[Step]) -> list[Step]:
    """The steps that this version of Kafka is asked."""
    return [one for one in steps if not one.since or _numbers(one.since) <= _numbers(version)]


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


def step(name: str, api: Api, version: int, fields: Mapping[str, Any] | None = None, **options: Any) -> Step:
    """A request that is sent and answered. An unknown field is an error when the script is loaded."""
    check_fields(api.request, fields or {}, name)
    return Step(name, api, version, fields or {}, **options)


def send(name: str, api: Api, version: int, fields: Mapping[str, Any], **options: Any) -> Step:
    """A request whose reply is collected later."""
    return step(name, api, version, fields, later=True, **options)


def collect(name: str, api: Api, version: int, **options: Any) -> Step:
    """The reply to the oldest unanswered request of that connection."""
    return Step(name, api, version, collects=True, **options)


def raw(
    name: str, api: Api, version: int, frame: bytes | Callable[[Variables], bytes], wait_s: float = 3, **options: Any
) -> Step:
    """A frame as it is, without its size, which is put in front; what comes back is read as a reply of that API."""
    return Step(name, api, version, frame=frame, wait_s=wait_s, **options)


def silent(name: str, api: Api, version: int, fields: Mapping[str, Any], **options: Any) -> Step:
    """A request that gets no reply: half a second of silence is what is compared."""
    return step(name, api, version, fields, wait_s=0.5, **options)


def check_fields(message: type, fields: Mapping[str, Any], where: str) -> None:
    known = {name: spec for name, spec, _ in specs(message)}
    for name, value in fields.items():
        if name not in known:
            raise ValueError(f"step {where!r}: {message.__name__} has no field {name!r}")
        kind = known[name].kind
        if isinstance(kind, type):
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, Mapping):
                    check_fields(kind, item, where)


def build(message: type, fields: Mapping[str, Any], variables: Variables) -> Any:
    """The message of these fields, variables filled in."""
    known = {name: spec for name, spec, _ in specs(message)}
    return message(**{name: _build_value(known[name].kind, value, variables) for name, value in fields.items()})


def _build_value(kind: Any, value: Any, variables: Variables) -> Any:
    if isinstance(value, V):
        return variables[value.name]
    if callable(value):
        return value(variables)
    if isinstance(value, list):
        return [_build_value(kind, item, variables) for item in value]
    if isinstance(value, Mapping):
        return build(kind, value, variables)
    return value


PART = re.compile(r"(?P<name>\w+)|\[(?P<index>\d+)\]|\[(?P<key>\w+)=(?P<value>[^\]]*)\]")


def find(tree: Tree, path: str) -> Any:
    """The value at a path such as `topics[0].partitions[partition_index=1].error_code`. Raises `LookupError`."""
    for part in PART.finditer(path):
        if part["name"]:
            tree = tree[part["name"]]
        elif part["index"]:
            tree = tree[int(part["index"])]
        else:
            tree = next((item for item in tree if str(item[part["key"]]) == part["value"]), None)
            if tree is None:
                raise LookupError(f"nothing at {path}")
    return tree
