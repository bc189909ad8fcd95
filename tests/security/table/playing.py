"""Asks the table's requests of a broker: ours in this process, or a live Kafka over sockets.

Before each case the rights of the client are made, and waited for: a Kafka acts by them a moment after it has answered.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from harness.patience import stretched
from moldau.errors import ProtocolViolation
from moldau.net.server import Handle, Peer
from moldau.protocol import apis, codec
from moldau.protocol.apis import APIS, Api
from moldau.replies import FileSlice, Muting, Unanswered, awaited
from moldau.requests.access import CLUSTER_NAME, Operation, ResourceType
from tests.differential.script import build
from tests.handlers.living import Living, living
from tests.security.table.cases import CONSUMERS, GROUP, HERE, TRANSACTION, Case, Rights
from tests.security.table.rows import BATCH, ROWS

ADMIN, CLIENT = "127.0.0.1", "127.0.0.2"
"""The hosts of who makes ACLs, and of who is asked about."""
MEMBER = "AAAAAAAAAAAAAAAAAAAAAg"
ANYBODY = "User:ANONYMOUS"
SETTINGS = {
    "node.id": "1",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.ms": "-1",
}
ANY, LITERAL, ALL, ALLOW = 1, 3, 2, 3
AGAIN_S = 0.02


class Asked(NamedTuple):
    """One request of the table."""

    api: Api
    case: Case
    version: int
    rights: Rights


class Wires(Protocol):
    """Connections to a broker, one from each host."""

    async def exchange(self, host: str, frame: bytes) -> bytes | None:
        """The reply to a frame with its size, without its size; None if the connection is closed instead."""

    async def close(self) -> None: ...


class Sockets:
    """To a live broker."""

    def __init__(self, port: int):
        self._port = port
        self._open: dict[str, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}

    async def exchange(self, host: str, frame: bytes) -> bytes | None:
        if host not in self._open:
            self._open[host] = await asyncio.open_connection("127.0.0.1", self._port, local_addr=(host, 0))
        reader, writer = self._open[host]
        try:
            writer.write(frame)
            async with asyncio.timeout(stretched(20)):
                size = int.from_bytes(await reader.readexactly(4), "big")
                return await reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError):
            self._open.pop(host)[1].close()
            return None

    async def close(self) -> None:
        for _, writer in self._open.values():
            writer.close()


class InProcess:
    """To a broker of ours in this loop."""

    def __init__(self, alive: Living):
        self._server = alive.broker.server
        self._handles: dict[str, Handle] = {}

    async def exchange(self, host: str, frame: bytes) -> bytes | None:
        handle = self._handles.get(host)
        if handle is None:
            handle = self._handles[host] = self._server.connected(Peer(host, 50_000), "PLAINTEXT")
        try:
            answer: Any = handle(memoryview(bytearray(frame))[4:])
            async with asyncio.timeout(stretched(20)):
                while isinstance(answer, Awaitable | Unanswered | Muting):
                    if isinstance(answer, Unanswered):
                        answer = answer.pack(await awaited(answer.response))
                    else:
                        answer = answer.reply if isinstance(answer, Muting) else await answer
        except ProtocolViolation:
            del self._handles[host]
            return None
        return b"".join(map(_bytes_of, answer))[4:]

    async def close(self) -> None:
        self._handles.clear()


def _bytes_of(piece: Any) -> bytes:
    return piece.file.read(piece.length, piece.offset) if isinstance(piece, FileSlice) else bytes(piece)


class Player:
    """Makes what the table is about, and asks. `here` is the id of the topic `here`."""

    def __init__(self, wires: Wires):
        self._wires = wires
        self._rights: Rights | None = None
        self.here = uuid.UUID(int=0)
        self.versions: dict[int, tuple[int, int]] = {}
        """The lowest and highest version of each API that the broker offers."""

    async def ask(self, api: Api, version: int, fields: Mapping[str, Any], host: str = ADMIN) -> Any:
        """The reply; None if the connection is closed."""
        frame = await self.exchange(api, version, fields, host)
        return None if frame is None else codec.read_reply(api, version, frame)

    async def exchange(self, api: Api, version: int, fields: Mapping[str, Any], host: str) -> bytes | None:
        message = build(api.request, fields, {})
        return await self._wires.exchange(host, codec.write_request(api, version, 7, "asker", message))

    async def prepare(self) -> None:
        """A topic with a record, a group with an offset, a transactional id; and ACLs for the administrator only."""
        offered = await self.ask(apis.API_VERSIONS, 3, {"client_software_name": "a", "client_software_version": "1"})
        self.versions = {one.api_key: (one.min_version, one.max_version) for one in offered.api_keys}
        topic = {"name": HERE, "num_partitions": 1, "replication_factor": 1}
        created = await self.ask(apis.CREATE_TOPICS, 7, {"topics": [topic], "timeout_ms": 20_000})
        self.here = created.topics[0].topic_id
        records = {"name": HERE, "partition_data": [{"index": 0, "records": BATCH}]}
        await self._until(apis.PRODUCE, 9, {"acks": -1, "timeout_ms": 9_000, "topic_data": [records]})
        for kind, key in ((0, GROUP), (1, TRANSACTION)):
            await self._until(apis.FIND_COORDINATOR, 4, {"key_type": kind, "coordinator_keys": [key]})
        offset = {"name": HERE, "partitions": [{"partition_index": 0, "committed_offset": 1}]}
        await self._until(apis.OFFSET_COMMIT, 8, {"group_id": GROUP, "topics": [offset]})
        begun = {"transactional_id": TRANSACTION, "transaction_timeout_ms": 60_000}
        await self._until(apis.INIT_PRODUCER_ID, 4, begun)
        member = {"group_id": CONSUMERS, "member_id": MEMBER, "rebalance_timeout_ms": 60_000, "topic_partitions": []}
        await self._until(apis.CONSUMER_GROUP_HEARTBEAT, 0, {**member, "subscribed_topic_names": [HERE]})
        admin = [
            creation(kind, CLUSTER_NAME if kind is ResourceType.CLUSTER else "*", ALL, ADMIN) for kind in ResourceType
        ]
        await self._make(admin, ADMIN)

    async def _until(self, api: Api, version: int, fields: Mapping[str, Any]) -> None:
        """Ask until there is no error."""
        async with asyncio.timeout(stretched(30)):
            while any(_codes(await self.ask(api, version, fields))):
                await asyncio.sleep(AGAIN_S)

    async def grant(self, rights: Rights) -> None:
        """The client has these rights, and no others."""
        if rights == self._rights:
            return
        await self.ask(apis.DELETE_ACLS, 3, {"filters": [every_acl(CLIENT)]})
        await self._make([_creation_of(one) for one in rights], CLIENT)
        self._rights = rights

    async def _make(self, creations: list[dict[str, Any]], host: str) -> None:
        made = await self.ask(apis.CREATE_ACLS, 3, {"creations": creations})
        assert not any(one.error_code for one in made.results), made
        async with asyncio.timeout(stretched(20)):
            while True:
                known = await self.ask(apis.DESCRIBE_ACLS, 3, every_acl(host))
                if sum(len(one.acls) for one in known.resources) == len(creations):
                    return
                await asyncio.sleep(AGAIN_S)

    async def answer(self, asked: Asked) -> Any:
        """The reply to one request of the table."""
        await self.grant(asked.rights)
        try:
            return await self.ask(asked.api, asked.version, asked.case.of(asked.version, self.here), CLIENT)
        except TimeoutError:
            raise AssertionError(f"no answer to {asked.api.name} {asked.version}, {asked.case.name}") from None


def creation(kind: int, name: str, operation: int, host: str) -> dict[str, Any]:
    return {
        "resource_type": kind, "resource_name": name, "resource_pattern_type": LITERAL, "principal": ANYBODY,
        "host": host, "operation": operation, "permission_type": ALLOW,
    }  # fmt: skip


def _creation_of(right: str) -> dict[str, Any]:
    words = right.split()
    kind = ResourceType[words[0].upper()]
    name = CLUSTER_NAME if kind is ResourceType.CLUSTER else words[1]
    return creation(kind, name, Operation[words[-1].upper()], CLIENT)


def every_acl(host: str) -> dict[str, Any]:
    none = dict.fromkeys(("resource_name_filter", "principal_filter"))
    any_of = dict.fromkeys(("resource_type_filter", "pattern_type_filter", "operation", "permission_type"), ANY)
    return {**none, **any_of, "host_filter": host}


def _codes(message: Any) -> Iterator[int]:
    """Every error code of a message."""
    if isinstance(message, list):
        for one in message:
            yield from _codes(one)
    for name in getattr(message, "__slots__", ()):
        value = getattr(message, name)
        if name == "error_code":
            yield value
        else:
            yield from _codes(value)


def table(versions: Mapping[int, tuple[int, int]]) -> list[Asked]:
    """All requests of the table in the versions that a broker offers, those with the same rights together."""
    found = [
        Asked(APIS[key], case, version, rights)
        for key, row in ROWS.items()
        if key in versions and key in APIS and isinstance(row, tuple)
        for case in row
        for rights in case.rights
        for version in range(*_range(case, versions[key], APIS[key]))
    ]
    order = {rights: at for at, rights in enumerate(dict.fromkeys(one.rights for one in found))}
    return sorted(found, key=lambda one: order[one.rights])


def _range(case: Case, offered: tuple[int, int], api: Api) -> tuple[int, int]:
    low, high = max(case.versions[0], offered[0], api.low), min(case.versions[1], offered[1], api.high)
    return low, high + 1


@asynccontextmanager
async def ours(folder: Path) -> AsyncIterator[Player]:
    """A broker of ours with what the table is about."""
    async with living(folder, **{name.replace(".", "_"): value for name, value in SETTINGS.items()}) as alive:
        player = Player(InProcess(alive))
        await player.prepare()
        yield player
