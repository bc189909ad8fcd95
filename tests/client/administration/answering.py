"""An admin client without a broker: every request is written as it would be sent, and answered as a test says.

`ADMIN` of `tests.client.programs.calls` has valid arguments of every call; `valid` returns those of one, with something
in each list.
"""

import dataclasses
import functools
import inspect
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

from moldau.client.administration.acls import Acl, AclFilter
from moldau.client.administration.admin import AdminSettings, AsyncAdmin
from moldau.client.administration.scram import ScramUpsertion
from moldau.client.cluster_view import ClusterView, PartitionView, TopicView
from moldau.client.failures import check
from moldau.client.own_loop import OwnLoop
from moldau.errors import ErrorCode
from moldau.names import TopicPartition
from moldau.peers.address import Address
from moldau.protocol.apis import METADATA, Api
from moldau.protocol.codec import write_request
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from moldau.protocol.primitives import ZERO_UUID
from moldau.protocol.schema import specs
from moldau.runtime import Runtime
from tests.client.programs.calls import ADMIN, Draw

T = TypeVar("T")
TOPIC, GROUP = "t", "g"
TP = TopicPartition(TOPIC, 0)
SETTINGS = AdminSettings("localhost:1")
FULLER: dict[str, tuple[Any, ...]] = {
    "elect_leaders": ([TP],),
    "list_reassignments": ([TP],),
    "alter_client_quotas": ({(("user", "ann"),): {"producer_byte_rate": 1e6}},),
    "alter_user_scram_credentials": ([ScramUpsertion("ann", "secret", iterations=1)],),
    "create_acls": ([Acl("topic", TOPIC, "User:ann", "read")],),
    "delete_acls": ([AclFilter()],),
}
Made = Callable[[Any], Any]
"""Makes the reply of a class."""


@functools.cache
def valid(call: str) -> Mapping[str, Any]:
    """Arguments of a call, by name."""
    draw = Draw(random.Random(1), TOPIC, GROUP)
    arguments, named = ADMIN[call](draw)
    bound = inspect.signature(method(call)).bind(None, *FULLER.get(call, arguments), **named)
    return {name: value for name, value in bound.arguments.items() if name != "self"}


def method(call: str) -> Callable[..., Awaitable[Any]]:
    """The coroutine function of the asyncio client."""
    from moldau.client.administration.configs import AsyncConfigs
    from moldau.client.administration.transactions import AsyncTransactions

    place, _, name = call.rpartition(".")
    found: Any = getattr({"": AsyncAdmin, "configs": AsyncConfigs, "transactions": AsyncTransactions}[place], name)
    return found  # type: ignore[no-any-return]


async def called(call: str, arguments: Mapping[str, Any], reply: Made) -> Any:
    """Run the call of a client whose brokers answer with what `reply` makes."""
    admin: Any = AsyncAdmin(SETTINGS)  # type: ignore[arg-type]
    admin._router = AnsweringRouter(reply)
    place, _, name = call.rpartition(".")
    return await getattr(getattr(admin, place) if place else admin, name)(**arguments)


def empty(response: Any) -> Any:
    """A reply without an error and with nothing in it."""
    return response()


def of_others(response: Any) -> Any:
    """A reply with one part in each of its lists, about what nobody has asked for."""
    fields = {}
    for name, spec, _ in specs(response):
        if spec.array and dataclasses.is_dataclass(spec.kind):
            fields[name] = [of_others(spec.kind)]
    return response(**fields)


class AnsweringRouter:
    """The connections of a client to one broker, which leads two partitions of `TOPIC`."""

    request_timeout_ms = 1_000
    is_outdated = False
    closed = False

    def __init__(self, reply: Made):
        self.runtime = Runtime()
        self.own_loop = OwnLoop("the client")
        self.view = ClusterView(brokers={1: Address("localhost", 1)}, controller_id=1)
        led = PartitionView(1, 0, (1,), (1,))
        self.view.topics[TOPIC] = TopicView(TOPIC, ZERO_UUID, False, {0: led, 1: led})
        self._link = AnsweringLink(reply)

    async def refresh(self, topics: Iterable[str] | None) -> None:
        asked = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        await self._link.call(METADATA, MetadataRequest(topics=asked))

    async def any(self) -> "AnsweringLink":
        return self._link

    async def broker(self, broker_id: int) -> "AnsweringLink":
        check(0 if broker_id in self.view.brokers else ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker_id}")
        return self._link

    async def coordinator(self, key: str, key_type: int = 0) -> int:
        return 1

    async def leader(self, tp: TopicPartition) -> int:
        leader = self.view.leader(tp)
        if isinstance(leader, ErrorCode):
            check(leader, f"{tp}")
        return leader

    async def retrying(self, attempt: Callable[[], Awaitable[T]], *, timeout_ms: int | None = None) -> T:
        return await attempt()

    async def close(self) -> None:
        pass


class AnsweringLink:
    """A connection to that broker, in the newest version of each API."""

    def __init__(self, reply: Made):
        self._reply = reply
        self.versions = self
        self.connection = self

    def of(self, api: Api) -> int:
        return api.high

    async def call(self, api: Api, request: Any, *_: Any, **__: Any) -> Any:
        write_request(api, api.high, 1, "admin", request)
        return self._reply(api.response)
