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
from moldau.peers.login import login_steps, next_step
from moldau.protocol import apis, codec
from moldau.protocol.apis import APIS, Api
from moldau.replies import FileSlice, Muting, Unanswered, awaited
from moldau.requests.access import CLUSTER_NAME, Operation, ResourceType
from moldau.transport.jaas import Login
from moldau.transport.sasl.exchange import ClientExchange, to_base64
from moldau.transport.sasl.plain import PlainClient
from moldau.transport.sasl.scram import ScramClient
from tests.differential.script import build
from tests.handlers.living import Living, living
from tests.security.table.cases import (
    ANNA,
    CARL,
    CONSUMERS,
    DORA,
    GROUP,
    HERE,
    MADE,
    OF_OWNER,
    OWNER,
    RENEWABLE,
    REQUESTED,
    THEIR_TOKEN,
    TRANSACTION,
    Case,
    Entry,
    Rights,
    Token,
    password_of,
)
from tests.security.table.rows import BATCH, ROWS

ADMIN, CLIENT = "127.0.0.1", "127.0.0.2"
"""The hosts of who makes ACLs, and of who is asked about."""
PLAIN_LISTENER, LOGINS = "PLAINTEXT", "LOGINS"
MEMBER = "AAAAAAAAAAAAAAAAAAAAAg"
ANYBODY = "User:*"
BY_PLAIN, BY_SCRAM = "PLAIN", "SCRAM-SHA-256"
_MODULES = "org.apache.kafka.common.security"
_USERS = " ".join(f'user_{name}="{password_of(name)}"' for name in (ANNA, OWNER, CARL, DORA))
SETTINGS = {
    "node.id": "1",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.ms": "-1",
    "sasl.enabled.mechanisms": f"{BY_PLAIN},{BY_SCRAM}",
    "listener.name.logins.plain.sasl.jaas.config": f"{_MODULES}.plain.PlainLoginModule required {_USERS};",
    "listener.name.logins.scram-sha-256.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;",
    "connection.failed.authentication.delay.ms": "0",
    "delegation.token.secret.key": "the key of the table",
}
OF_KAFKA = {
    "listeners": "PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller},LOGINS://127.0.0.1:%d",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGINS:SASL_PLAINTEXT",
}
OF_OURS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,LOGINS://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,LOGINS:SASL_PLAINTEXT",
}
ANY, LITERAL, ALL, ALLOW = 1, 3, 2, 3
AGAIN_S = 0.02
OVER_S = 0.05
"""A token that expires now is over after this."""


class Line(NamedTuple):
    """A connection: from that host to that listener, and who logs in on it."""

    host: str
    listener: str = PLAIN_LISTENER
    user: str = ""


OF_ADMIN = Line(ADMIN)
BY_TOKEN = "a token"
"""Who logs in on a line by a token of Anna's."""


class Asked(NamedTuple):
    """One request of the table."""

    api: Api
    case: Case
    version: int
    rights: Rights


class Wires(Protocol):
    """Connections to a broker."""

    async def exchange(self, line: Line, frame: bytes) -> bytes | None:
        """The reply to a frame with its size, without its size; None if the connection is closed instead."""

    def drop(self, line: Line) -> None:
        """The next exchange is on a new connection."""

    async def close(self) -> None: ...


class Sockets:
    """To a live broker, whose listeners have these ports."""

    def __init__(self, ports: Mapping[str, int]):
        self._ports = ports
        self._open: dict[Line, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}

    async def exchange(self, line: Line, frame: bytes) -> bytes | None:
        if line not in self._open:
            port = self._ports[line.listener]
            self._open[line] = await asyncio.open_connection("127.0.0.1", port, local_addr=(line.host, 0))
        reader, writer = self._open[line]
        try:
            writer.write(frame)
            async with asyncio.timeout(stretched(20)):
                size = int.from_bytes(await reader.readexactly(4), "big")
                return await reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.drop(line)
            return None

    def drop(self, line: Line) -> None:
        if line in self._open:
            self._open.pop(line)[1].close()

    async def close(self) -> None:
        for _, writer in self._open.values():
            writer.close()


class InProcess:
    """To a broker of ours in this loop."""

    def __init__(self, alive: Living):
        self._server = alive.broker.server
        self._handles: dict[Line, Handle] = {}

    async def exchange(self, line: Line, frame: bytes) -> bytes | None:
        handle = self._handles.get(line)
        if handle is None:
            handle = self._handles[line] = self._server.connected(Peer(line.host, 50_000), line.listener)
        try:
            answer: Any = handle(memoryview(bytearray(frame))[4:])
            async with asyncio.timeout(stretched(20)):
                while isinstance(answer, Awaitable | Unanswered | Muting):
                    if isinstance(answer, Unanswered):
                        answer = answer.pack(await awaited(answer.response))
                    else:
                        answer = answer.reply if isinstance(answer, Muting) else await answer
        except ProtocolViolation:
            self.drop(line)
            return None
        return b"".join(map(_bytes_of, answer))[4:]

    def drop(self, line: Line) -> None:
        self._handles.pop(line, None)

    async def close(self) -> None:
        self._handles.clear()


def _bytes_of(piece: Any) -> bytes:
    return piece.file.read(piece.length, piece.offset) if isinstance(piece, FileSlice) else bytes(piece)


class Player:
    """Makes what the table is about, and asks. `here` is the id of the topic `here`."""

    def __init__(self, wires: Wires):
        self._wires = wires
        self._rights: Rights | None = None
        self._logged_in: set[Line] = set()
        self._known: dict[str, Any] = {}
        self._token_of_anna: Any = None
        self.here = uuid.UUID(int=0)
        self.versions: dict[int, tuple[int, int]] = {}
        """The lowest and highest version of each API that the broker offers."""

    async def ask(self, api: Api, version: int, fields: Mapping[str, Any], line: Line = OF_ADMIN) -> Any:
        """The reply; None if the connection is closed."""
        frame = await self.exchange(api, version, fields, line)
        return None if frame is None else codec.read_reply(api, version, frame)

    async def exchange(self, api: Api, version: int, fields: Mapping[str, Any], line: Line) -> bytes | None:
        frame = await self._send(api, version, build(api.request, fields, self._known), line)
        if frame is None:
            self._logged_in.discard(line)
        return frame

    async def _send(self, api: Api, version: int, message: Any, line: Line) -> bytes | None:
        return await self._wires.exchange(line, codec.write_request(api, version, 7, "asker", message))

    async def prepare(self) -> None:
        """A topic with a record, a group with an offset, a transactional id, tokens; and ACLs for the administrator
        only."""
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
        renewed = await self._new_token(OWNER, renewers=[{"principal_type": "User", "principal_name": DORA}])
        asked = await self._new_token(ANNA, owner_principal_type="User", owner_principal_name=OWNER)
        other = await self._new_token(OWNER)
        secrets = {RENEWABLE: renewed, REQUESTED: asked, OF_OWNER: other}
        self._known = {name: bytes(token.hmac) for name, token in secrets.items()} | {THEIR_TOKEN: other.token_id}
        self._token_of_anna = await self._new_token(ANNA)

    async def _new_token(self, requester: str, is_over: bool = False, **fields: Any) -> Any:
        """A token that the broker knows of; it may be over already."""
        line = await self._user(Line(ADMIN, LOGINS, requester))
        token = await self.ask(apis.CREATE_DELEGATION_TOKEN, 3, {"max_lifetime_ms": -1, "renewers": [], **fields}, line)
        assert token.error_code == 0, token
        await self._until_known(token.token_id, token.expiry_timestamp_ms, line)
        if is_over:
            now = {"hmac": bytes(token.hmac), "expiry_time_period_ms": 0}
            expired = await self.ask(apis.EXPIRE_DELEGATION_TOKEN, 2, now, line)
            assert expired.error_code == 0, expired
            await self._until_known(token.token_id, expired.expiry_timestamp_ms, line, is_over)
            await asyncio.sleep(OVER_S)
        return token

    async def _until_known(self, token_id: str, expires_ms: int, line: Line, is_over: bool = False) -> None:
        """A Kafka shows a change of a token a moment after it has answered. Ours does not show one that is over."""
        async with asyncio.timeout(stretched(20)):
            while True:
                tokens = (await self.ask(apis.DESCRIBE_DELEGATION_TOKEN, 3, {"owners": None}, line)).tokens
                shown = [one.expiry_timestamp for one in tokens if one.token_id == token_id]
                if shown == [expires_ms] or (is_over and not shown):
                    return
                await asyncio.sleep(AGAIN_S)

    async def line_of(self, case: Case) -> Line:
        """The connection of a case, as far as its entry says."""
        match case.entry:
            case Entry.OPEN:
                return Line(CLIENT)
            case Entry.PASSWORD:
                return await self._user(Line(CLIENT, LOGINS, case.user))
            case Entry.TOKEN:
                return await self._user(Line(CLIENT, LOGINS, BY_TOKEN))
        line = Line(CLIENT, LOGINS)
        self._wires.drop(line)
        if case.entry is Entry.HANDSHAKE:
            begun = await self.ask(apis.SASL_HANDSHAKE, 1, {"mechanism": BY_PLAIN}, line)
            assert begun.error_code == 0, begun
        return line

    async def _user(self, line: Line) -> Line:
        """The same line, logged in."""
        if line not in self._logged_in:
            self._wires.drop(line)
            mechanism, exchange = self._exchange_of(line.user)
            steps = login_steps(mechanism, exchange)
            step: Any = next(steps)
            while not isinstance(step, int):
                api, request = step
                frame = await self._send(api, 1, request, line)
                assert frame is not None, f"{line} cannot log in"
                step = next_step(steps, codec.read_reply(api, 1, frame))
            self._logged_in.add(line)
        return line

    def _exchange_of(self, user: str) -> tuple[str, ClientExchange]:
        if user != BY_TOKEN:
            return BY_PLAIN, PlainClient(Login(user, password_of(user)))
        token = self._token_of_anna
        login = Login(token.token_id, to_base64(bytes(token.hmac)))
        return BY_SCRAM, ScramClient(BY_SCRAM, login, "nonce", by_token=True)

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
        await self._make([self._creation_of(one) for one in rights], CLIENT)
        self._rights = rights

    async def _make(self, creations: list[dict[str, Any]], host: str) -> None:
        made = await self.ask(apis.CREATE_ACLS, 3, {"creations": creations})
        assert not any(one.error_code for one in made.results), made
        wanted = {(one["resource_type"], one["resource_name"], one["operation"]) for one in creations}
        async with asyncio.timeout(stretched(20)):
            while True:
                resources = (await self.ask(apis.DESCRIBE_ACLS, 3, every_acl(host))).resources
                known = [(of.resource_type, of.resource_name, acl.operation) for of in resources for acl in of.acls]
                if len(known) == len(creations) and {*known} == wanted:
                    return
                await asyncio.sleep(AGAIN_S)

    def _creation_of(self, right: str) -> dict[str, Any]:
        words = right.split()
        kind = ResourceType[words[0].upper()]
        name = CLUSTER_NAME if kind is ResourceType.CLUSTER else self._known.get(words[1], words[1])
        return creation(kind, name, Operation[words[-1].upper()], CLIENT)

    async def answer(self, asked: Asked) -> Any:
        """The reply to one request of the table."""
        case = asked.case
        await self.grant(asked.rights)
        if case.token is not None:
            self._known[MADE] = bytes((await self._new_token(ANNA, is_over=case.token is Token.OVER)).hmac)
        line = await self.line_of(case)
        try:
            return await self.ask(asked.api, asked.version, case.of(asked.version, self.here), line)
        except TimeoutError:
            raise AssertionError(f"no answer to {asked.api.name} {asked.version}, {asked.case.name}") from None


def creation(kind: int, name: str, operation: int, host: str) -> dict[str, Any]:
    return {
        "resource_type": kind, "resource_name": name, "resource_pattern_type": LITERAL, "principal": ANYBODY,
        "host": host, "operation": operation, "permission_type": ALLOW,
    }  # fmt: skip


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
    settings = {name.replace(".", "_"): value for name, value in (SETTINGS | OF_OURS).items()}
    async with living(folder, **settings) as alive:
        player = Player(InProcess(alive))
        await player.prepare()
        yield player
