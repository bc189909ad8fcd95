"""Sessions with TLS and with a user, in a real ZooKeeper that asks for both, and nodes that others cannot change."""

import asyncio
import shutil
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from harness.certificates import PASSWORD, Authority
from harness.patience import stretched, within
from harness.proxy import Proxy
from harness.secure_zookeeper import USER, SecureZooKeeper
from moldau.cli.main import main
from moldau.client.consuming.consumer_settings import ConsumerSettings
from moldau.client.settings import read_settings
from moldau.client.zookeeper.sessions import sessions_of
from moldau.cluster.cluster import Cluster
from moldau.cluster.controlling.controller import NewTopic
from moldau.cluster.state import layout
from moldau.config import broker_config
from moldau.errors import KafkaError, StorageError
from moldau.metadata_store.one_session import OneSession
from moldau.metadata_store.store import Create, MetadataStore, Set, node_at, nodes_at
from moldau.metadata_store.zookeeper import ZooKeeperSession
from moldau.metadata_store.zookeeper_access import access_of
from moldau.runtime import Runtime
from moldau.transport.client_tls import ClientTls, TlsSettings
from moldau.transport.key_stores import Store
from tests.cluster.opening import HERE, SETTINGS


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureZooKeeper]:
    with SecureZooKeeper(tmp_path_factory.mktemp("secure")) as started:
        yield started


async def opened(connect: str, settings: dict[str, str], kafka_opts: str = "") -> ZooKeeperSession:
    settings = {"connection.timeout.ms": str(int(stretched(20) * 1000)), **settings}
    config, _ = broker_config({f"zookeeper.{name}": text for name, text in settings.items()})
    access = access_of(replace(config, zookeeper_connect=connect), {"KAFKA_OPTS": kafka_opts})
    return await ZooKeeperSession.open(access, Runtime())


def tls(secure: SecureZooKeeper, key: Path | None = None) -> dict[str, str]:
    mine = key or secure.authority.signed("broker")
    return {
        "ssl.client.enable": "true",
        "clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
        "ssl.keystore.location": str(mine),
        "ssl.keystore.password": PASSWORD,
        "ssl.truststore.location": str(secure.authority.trusted),
    }


def play(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(within(scenario(), 60))


def acls(client: KazooClient, path: str) -> set[tuple[str, str, int]]:
    return {(acl.id.scheme, acl.id.id, acl.perms) for acl in client.get_acls(path)[0]}


ALL, READ = 31, 1
EVERYBODY = ("world", "anyone")


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_a_session_goes_over_tls(secure: SecureZooKeeper, version: str) -> None:
    async def scenario() -> None:
        session = await opened(f"{secure.secure}/tls-{version}", {**tls(secure), "ssl.protocol": version})
        paths = [f"/{number}" for number in range(500)]
        await session.multi([Create(path, path.encode() * 20) for path in paths])
        found = await session.read(nodes_at(paths))
        assert [node.data if node else None for node in found] == [path.encode() * 20 for path in paths]
        await session.close()

    play(scenario)


def test_an_answer_that_came_in_one_record_of_tls_with_another_is_not_waited_for(tmp_path: Path) -> None:
    """It is in no socket any more, where kazoo alone looks for it."""
    authority = Authority(tmp_path)
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(authority.signed("server", "localhost"), password=PASSWORD)
    ours = ClientTls(TlsSettings(Store(str(authority.trusted), "PEM", None, "zookeeper.ssl.truststore")))
    with socket.create_server(("localhost", 0)) as listener:

        def serve() -> None:
            with theirs.wrap_socket(listener.accept()[0], server_side=True) as accepted:
                accepted.sendall(b"ab")
                accepted.recv(1)

        serving = threading.Thread(target=serve)
        serving.start()
        handler = OneSession(ours)
        with handler.create_connection(listener.getsockname(), hostname="localhost", timeout=stretched()) as sock:
            assert sock.recv(1) == b"a"
            assert handler.select([sock], [], [], stretched())[0] == [sock]
            assert sock.recv(1) == b"b"
            assert handler.select([sock], [], [], 0)[0] == []
            assert sock.pending() == 0
            sock.sendall(b".")
        serving.join()


def test_a_changed_certificate_is_shown_from_the_next_connection_on_and_a_broken_one_is_not(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(authority.signed("server", "localhost"), password=PASSWORD)
    theirs.load_verify_locations(authority.trusted)
    theirs.verify_mode = ssl.CERT_REQUIRED
    used = tmp_path / "used.pem"
    shutil.copy(authority.signed("before"), used)
    trusted = Store(str(authority.trusted), "PEM", None, "zookeeper.ssl.truststore")
    handler = OneSession(ClientTls(TlsSettings(trusted, Store(str(used), "PEM", PASSWORD, "zookeeper.ssl.keystore"))))
    with socket.create_server(("localhost", 0)) as listener:

        def shown() -> str:
            """The name in the certificate that a new connection shows."""
            found: list[str] = []

            def serve() -> None:
                with theirs.wrap_socket(listener.accept()[0], server_side=True) as accepted:
                    accepted.recv(1)
                    [[(_, name)]] = accepted.getpeercert()["subject"]  # type: ignore[index]
                    found.append(str(name))

            serving = threading.Thread(target=serve)
            serving.start()
            with handler.create_connection(listener.getsockname(), hostname="localhost", timeout=stretched()) as sock:
                sock.sendall(b".")
                serving.join()
            return found[0]

        assert shown() == "before"
        shutil.copy(authority.signed("after"), used)
        assert shown() == "after"
        used.write_text("half of it")
        assert shown() == "after"


def test_a_session_over_tls_lives_through_a_lost_connection(secure: SecureZooKeeper) -> None:
    async def scenario() -> None:
        with Proxy(secure.secure) as proxy:
            connect = proxy.address.replace("127.0.0.1", "localhost")
            session = await opened(
                f"{connect}/lost", tls(secure, secure.authority.signed("broker").with_suffix(".p12"))
            )
            await session.multi([Create("/e", b"1", ephemeral=True)])
            proxy.cut()
            node = await session.read(node_at("/e"))
            assert node is not None
            assert node.owner == session.session_id
            await session.close()

    play(scenario)


def test_a_server_that_is_not_the_one_is_not_talked_to(secure: SecureZooKeeper, tmp_path: Path) -> None:
    soon = {"connection.timeout.ms": str(int(stretched(1.5) * 1000))}
    other = {"ssl.truststore.location": str(Authority(tmp_path, "other").trusted)}

    async def scenario() -> None:
        with pytest.raises(StorageError, match=r"did not answer within .* s: .*(self-signed|issuer|verify)"):
            await opened(secure.secure, {**tls(secure), **other, **soon})
        address = secure.secure.replace("localhost", "127.0.0.2")
        with pytest.raises(StorageError, match="IP address mismatch"):
            await opened(address, {**tls(secure), **soon})
        session = await opened(address, {**tls(secure), "ssl.endpoint.identification.algorithm": ""})
        await session.close()
        with pytest.raises(StorageError, match=r"did not answer within .* s"):
            await opened(secure.connect, {**tls(secure), **soon})

    play(scenario)


def test_a_user_with_the_wrong_password_is_refused_in_one_sentence(secure: SecureZooKeeper) -> None:
    async def scenario() -> None:
        for root in ("", "/chroot"):
            with pytest.raises(StorageError, match=rf"{secure.connect} has expired: it refuses the user '{USER}'"):
                await opened(secure.connect + root, {}, secure.jaas("wrong", "guess"))

    play(scenario)


def test_nodes_of_a_protected_cluster_are_readable_and_only_its_user_changes_them(secure: SecureZooKeeper) -> None:
    async def scenario() -> None:
        session = await opened(f"{secure.connect}/sasl", {"set.acl": "true"}, secure.kafka_opts)
        cluster = await Cluster.open(session, broker_config(SETTINGS)[0], Runtime())
        await cluster.registration.register([HERE])
        await cluster.topics.create([NewTopic("a")])
        await asyncio.to_thread(look, session)
        again = await opened(f"{secure.connect}/sasl", {"set.acl": "true"}, secure.kafka_opts)
        await again.multi([Set("/config/topics/a", b"{}")])
        await again.close()
        await cluster.close()

    def look(session: ZooKeeperSession) -> None:
        client = KazooClient(f"{secure.connect}/sasl")
        client.start(stretched())
        try:
            mine, readable = ("sasl", USER, ALL), {("sasl", USER, ALL), (*EVERYBODY, READ)}
            for path in (
                "",
                "/brokers/topics/a/partitions/0/state",
                "/brokers/ids/1",
                "/controller",
                layout.TOPIC_CONFIGS,
            ):
                assert acls(client, path or "/") == readable, path
            for path in ("/config/users", "/config/brokers"):
                with pytest.raises(NoAuthError):
                    client.get_acls(path)
                assert acls(session._client, f"/sasl{path}") == {mine}, path
            assert acls(client, "/consumers") == {(*EVERYBODY, ALL)}
            assert client.get("/config/topics/a")[0]
            for change in (lambda: client.set("/config/topics/a", b""), lambda: client.get("/config/brokers")):
                with pytest.raises(NoAuthError):
                    change()
        finally:
            client.stop()
            client.close()

    play(scenario)


def test_a_certificate_is_a_user_too(secure: SecureZooKeeper) -> None:
    async def scenario() -> None:
        session = await opened(f"{secure.secure}/x509", {**tls(secure), "set.acl": "true"})
        await session.multi([Create("/config"), Create("/config/users"), Create("/consumers")])
        await asyncio.to_thread(look, session)
        await session.close()

    def look(session: ZooKeeperSession) -> None:
        client = KazooClient(f"{secure.connect}/x509")
        client.start(stretched())
        try:
            assert acls(client, "/config") == {("x509", "CN=broker", ALL), (*EVERYBODY, READ)}
            assert acls(session._client, "/x509/config/users") == {("x509", "CN=broker", ALL)}
        finally:
            client.stop()
            client.close()

    play(scenario)


def test_without_protection_everybody_may_change_the_nodes(secure: SecureZooKeeper) -> None:
    async def scenario() -> None:
        session = await opened(f"{secure.connect}/open", {}, secure.kafka_opts)
        await session.multi([Create("/config")])
        await asyncio.to_thread(look)
        await session.close()

    def look() -> None:
        client = KazooClient(f"{secure.connect}/open")
        client.start(stretched())
        try:
            assert acls(client, "/config") == {(*EVERYBODY, ALL)}
        finally:
            client.stop()
            client.close()

    play(scenario)


def test_clients_that_use_zookeeper_have_tls_and_the_user_that_brokers_have(
    secure: SecureZooKeeper, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = {"zookeeper.connection.timeout.ms": int(stretched(20) * 1000), "zookeeper.connect": secure.secure}
    over_tls = {f"zookeeper.{name}": text for name, text in tls(secure).items() if name != "clientCnxnSocket"}

    async def session(given: dict[str, object]) -> MetadataStore:
        sessions = sessions_of(read_settings(ConsumerSettings, "Consumer", (given,), {}))
        try:
            session = await sessions.current()
            await session.multi([Create("/by_a_client", b"", ephemeral=True)])
        finally:
            await sessions.close()
        return session

    async def scenario() -> None:
        assert PASSWORD not in repr(read_settings(ConsumerSettings, "Consumer", ({**limits, **over_tls},), {}))
        await session({**limits, **over_tls})
        monkeypatch.setenv("KAFKA_OPTS", secure.kafka_opts)
        await session({**limits, "zookeeper.connect": secure.connect})
        monkeypatch.setenv("KAFKA_OPTS", secure.jaas("guess", "guess"))
        with pytest.raises(KafkaError, match=f"refuses the user '{USER}'"):
            await session({**limits, "zookeeper.connect": secure.connect})

    play(scenario)
    monkeypatch.delenv("KAFKA_OPTS")
    settings = [word for name, text in over_tls.items() for word in ("--set", f"{name}={text}")]
    with pytest.raises(SystemExit) as ended:
        main(["zookeeper", "show", "/", "--connect", secure.secure, *settings])
    assert not ended.value.code
    assert "/zookeeper" in capsys.readouterr().out
