"""ACLs are changed by clients and by Kafka's tools, which write into the store themselves."""

import asyncio
import json
from collections.abc import Iterable

import pytest

from moldau.cluster.controlling import acl_changes
from moldau.cluster.controlling.acl_changes import AclChanges
from moldau.cluster.state.acls import AclEntry, AclPattern, AclPatternType, AclPermission, path_of
from moldau.metadata_store.store import Create, Delete, NodeOperation, Set, node_at
from moldau.simulation.zookeeper_session import ModelSession
from tests.cluster import several
from tests.cluster.several import TIMEOUT_S, Member, Members, play

TOPIC, READ, WRITE = 2, 3, 4
T, PREFIX = AclPattern(TOPIC, "t"), AclPattern(TOPIC, "t", AclPatternType.PREFIXED)
ANN, BOB, EVE = (AclEntry(f"User:{name}", "*", READ, AclPermission.ALLOW) for name in ("ann", "bob", "eve"))
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@pytest.fixture(autouse=True)
def with_an_authorizer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(several.SETTINGS, "authorizer.class.name", STANDARD)


def changes_of(member: Member) -> AclChanges:
    return AclChanges(member.acting.metadata, member.acting.queue)


def by_tool(pattern: AclPattern, entries: Iterable[AclEntry], *, is_new: bool, number: int = 0) -> list[NodeOperation]:
    """What `kafka-acls` of Kafka 2.8 writes. It makes the nodes above when it starts."""
    acls = [
        {"principal": one.principal, "permissionType": "Allow", "operation": "Read", "host": one.host}
        for one in entries
    ]
    data = json.dumps({"version": 1, "acls": acls}).encode()
    node = Create(path_of(pattern), data) if is_new else Set(path_of(pattern), data)
    return [node, Create(f"/kafka-acl-changes/acl_changes_{number:010}", f"TOPIC:{pattern.name}".encode())]


async def shown(member: Member, acls: dict[AclPattern, tuple[AclEntry, ...]]) -> None:
    while dict(member.image.acls) != acls:
        await asyncio.sleep(0.01)


def test_acls_are_added_and_deleted_with_their_nodes() -> None:
    async def scenario(members: Members) -> None:
        await members.join(1)
        controller = await members.controller()
        changes = changes_of(controller)
        assert await changes.create([(T, ANN), (PREFIX, BOB), (T, ANN), (T, EVE)]) == {}
        assert controller.image.acls == {T: (ANN, EVE), PREFIX: (BOB,)}
        position = controller.acting.stream.position  # type: ignore[union-attr]
        assert await changes.create([(T, ANN)]) == {}
        assert controller.acting.stream.position == position  # type: ignore[union-attr]
        is_ann, is_topic = (lambda _, entry: entry == ANN), (lambda pattern, _: pattern.name == "t")
        assert await changes.delete([is_ann, lambda *_: False]) == [[(T, ANN)], []]
        assert controller.image.acls == {T: (EVE,), PREFIX: (BOB,)}
        assert await changes.delete([is_topic, is_topic]) == [[(T, EVE), (PREFIX, BOB)]] * 2
        assert controller.image.acls == {}
        session = ModelSession(members.store, TIMEOUT_S)
        assert await session.read(node_at(path_of(T))) is None
        await session.close()

    play(scenario)


def test_the_next_controller_has_them() -> None:
    async def scenario(members: Members) -> None:
        for number in (1, 2):
            await members.join(number)
        first = await members.controller()
        await changes_of(first).create([(T, ANN), (PREFIX, BOB)])
        del members[first.broker_id]
        first.die()
        second = await members.controller()
        assert second.image.acls == {T: (ANN,), PREFIX: (BOB,)}

    play(scenario)


def test_what_a_tool_writes_is_taken_over_and_its_notes_are_removed() -> None:
    async def scenario(members: Members) -> None:
        await members.join(1)
        controller = await members.controller()
        tool = ModelSession(members.store, TIMEOUT_S)
        above = [Create(path) for path in ("/kafka-acl", "/kafka-acl/Topic", "/kafka-acl-changes")]
        await tool.multi([*above, *by_tool(T, [ANN], is_new=True)])
        await shown(controller, {T: (ANN,)})
        await tool.multi(by_tool(T, [ANN, BOB], is_new=False, number=1))
        await shown(controller, {T: (ANN, BOB)})
        await tool.multi([Delete(path_of(T)), Create("/kafka-acl-changes/acl_changes_0000000002", b"TOPIC:t")])
        await shown(controller, {})
        while await tool.read(node_at("/kafka-acl-changes/acl_changes_0000000002")) is not None:
            await asyncio.sleep(0.01)
        await tool.close()

    play(scenario)


def test_a_change_is_decided_on_what_a_tool_has_written_meanwhile() -> None:
    async def scenario(members: Members) -> None:
        await members.join(1)
        controller = await members.controller()
        changes = changes_of(controller)
        await changes.create([(T, ANN)])
        tool = ModelSession(members.store, TIMEOUT_S)
        await tool.multi(by_tool(T, [ANN, BOB], is_new=False)[:1])
        await changes.create([(T, EVE)])
        assert controller.image.acls == {T: (ANN, BOB, EVE)}
        await tool.close()

    play(scenario)


def test_a_resource_with_too_many_acls_is_refused_and_others_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acl_changes, "NODE_BYTES_MAX", 1000)

    async def scenario(members: Members) -> None:
        await members.join(1)
        controller = await members.controller()
        many = [(T, AclEntry(f"User:{number}", "*", READ, AclPermission.ALLOW)) for number in range(50)]
        refused = await changes_of(controller).create([*many, (PREFIX, BOB)])
        assert list(refused) == [T] and controller.image.acls == {PREFIX: (BOB,)}

    play(scenario)
