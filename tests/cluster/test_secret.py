"""The cluster's secret: made once, the same for all brokers, read again with each session; with a file, or without."""

import asyncio

import pytest

from moldau.cluster.secret import cluster_secret
from moldau.cluster.state import layout
from moldau.errors import StorageError
from moldau.metadata_store.store import Create, Delete, Set
from moldau.runtime import Runtime
from moldau.simulation.zookeeper_session import ModelSession
from tests.cluster.several import Members, play


def test_brokers_that_begin_a_cluster_together_have_one_secret() -> None:
    async def scenario(members: Members) -> None:
        joined = await asyncio.gather(*(members.join(number) for number in (1, 2, 3)))
        secrets = {member.membership.secret for member in joined}
        assert len(secrets) == 1
        assert len(secrets.pop()) == 32
        await members.join(4)
        assert members[4].membership.secret == members[1].membership.secret

    play(scenario)


def test_a_cluster_of_an_earlier_version_gets_a_secret_when_a_broker_joins() -> None:
    async def scenario(members: Members) -> None:
        await members.join(1)
        outside = ModelSession(members.store)
        node = members.store.nodes[layout.SECRET]
        await outside.multi([Delete(layout.SECRET, node.version)])
        await members.join(2)
        assert members[2].membership.secret not in (b"", members[1].membership.secret)
        await outside.close()

    play(scenario)


@pytest.mark.parametrize(
    "data", [b"", b"{}", b'{"secret": 5}', b'{"secret": "not hexadecimal"}', b'{"secret": "00", "file": 7}']
)
def test_a_secret_that_cannot_be_read_is_named_without_being_told(data: bytes) -> None:
    async def scenario(members: Members) -> None:
        await members.join(1)
        outside = ModelSession(members.store)
        await outside.multi([Set(layout.SECRET, data, members.store.nodes[layout.SECRET].version)])
        with pytest.raises(StorageError, match=layout.SECRET) as wrong:
            await members.join(2)
        assert "not hexadecimal" not in str(wrong.value)
        await outside.close()

    play(scenario)


def test_a_store_with_something_else_is_refused_in_a_sentence() -> None:
    async def scenario(members: Members) -> None:
        session = ModelSession(members.store)
        await session.multi([Create("/cluster"), layout.cluster("c")])
        with pytest.raises(StorageError, match="this is not a cluster of Moldau's"):
            await cluster_secret(session, Runtime())
        await session.close()

    play(scenario)


FILE, OTHER = b"the secret of one file" * 2, b"the secret of another file" * 2


def test_brokers_that_share_a_file_have_one_secret_which_the_store_does_not_tell() -> None:
    async def scenario(members: Members) -> None:
        await members.join(1)
        session = ModelSession(members.store)
        await session.multi([Delete(layout.SECRET, members.store.nodes[layout.SECRET].version)])
        secrets = await asyncio.gather(*(cluster_secret(session, Runtime(), FILE) for _ in range(3)))
        assert len(set(secrets)) == 1
        stored = members.store.nodes[layout.SECRET].data
        assert FILE not in stored
        assert FILE.hex().encode() not in stored
        assert secrets[0].hex().encode() not in stored
        assert await cluster_secret(session, Runtime(), FILE) == secrets[0]
        await session.close()

    play(scenario)


def test_a_broker_with_another_file_or_without_one_is_refused_with_a_sentence() -> None:
    async def scenario(members: Members) -> None:
        await members.join(1)
        session = ModelSession(members.store)
        await session.multi([Delete(layout.SECRET, members.store.nodes[layout.SECRET].version)])
        await cluster_secret(session, Runtime(), FILE)
        with pytest.raises(StorageError, match=r"cluster\.secret\.file names has another secret .*: copy the file"):
            await cluster_secret(session, Runtime(), OTHER)
        with pytest.raises(StorageError, match=r"share a secret: set cluster\.secret\.file to a copy of the file"):
            await cluster_secret(session, Runtime())
        await session.close()

    play(scenario)


def test_the_first_broker_with_a_file_makes_the_others_need_it(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(members: Members) -> None:
        await members.join(1)
        session = ModelSession(members.store)
        secrets = await asyncio.gather(*(cluster_secret(session, Runtime(), FILE) for _ in range(2)))
        assert secrets[0] == secrets[1] != members[1].membership.secret
        with pytest.raises(StorageError, match=r"set cluster\.secret\.file"):
            await members.join(2)
        await session.close()

    play(scenario)
    assert caplog.text.count("from now on the brokers of this cluster need the file") == 1
