"""A registry with TLS and users: our client reaches it, and so does another instance, which forwards a change."""

import asyncio
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from harness.certificates import PASSWORD, Authority
from harness.patience import within
from moldau.errors import ConfigError
from moldau.http.tls import HttpTls
from moldau.registry.access_rules import hashed
from moldau.registry.server import RegistryServer, RegistrySettings
from moldau.registry.topic import SchemasTopicSettings
from moldau.serializers import RegistryUnauthorized, Schema, SchemaRegistry
from moldau.testing import Broker
from moldau.transport import reloading

INT = Schema('"int"')


def settings(certificate: Path, users: Path) -> RegistrySettings:
    topic = SchemasTopicSettings("secured")
    return RegistrySettings("127.0.0.1", 0, topic, users_file=users, certificate=certificate, key_password=PASSWORD)


def test_passwords_and_changes_travel_by_tls_between_instances_too(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, users = authority.signed("registry", "127.0.0.1"), tmp_path / "users.properties"
    kept = hashed(b"ann-secret", b"0123456789abcdef", 10).text()
    users.write_text(f"user.ann={kept}\nrights.ann=write:s*\n")

    def client(server: RegistryServer, user: str | None = "ann:ann-secret") -> SchemaRegistry:
        [url] = server.addresses
        assert url.startswith("https://127.0.0.1:")
        return SchemaRegistry(url, basic_auth_user_info=user, ssl_ca_location=str(tmp_path / "authority.pem"))

    def work(servers: list[RegistryServer]) -> None:
        for number, server in enumerate(servers, 1):
            schema = Schema(f'{{"type":"fixed","name":"F","size":{number}}}')
            assert client(server).register(f"s{number}", schema) == number
            for wrong in (None, "ann:other"):
                with pytest.raises(RegistryUnauthorized):
                    client(server, wrong).register("s", INT)
            with pytest.raises(RegistryUnauthorized, match="40301"):
                client(server).register("other", INT)

    async def run(address: str) -> None:
        servers = [RegistryServer(address, settings(certificate, users)) for _ in range(2)]
        for server in servers:
            await server.start()
        # The first one has been elected before the second one asks for the writer.
        async with asyncio.timeout(60):
            while not (servers[0]._election._is_elected or servers[1]._election._is_elected):
                await asyncio.sleep(0.01)
        await asyncio.to_thread(work, servers)
        for server in servers:
            await server.stop()

    with Broker(group_initial_rebalance_delay_ms=0) as broker:
        asyncio.run(run(broker.address))


async def shown(server: RegistryServer, authority: Authority) -> int:
    """The serial number of its certificate, which names 127.0.0.1."""
    port = urlsplit(server.addresses[0]).port
    assert port is not None
    return await authority.serial_shown("127.0.0.1", port)


async def until(is_so: Callable[[], bool]) -> None:
    async def waited() -> None:
        while not is_so():
            await asyncio.sleep(0.01)

    await within(waited())


def test_a_changed_certificate_is_used_from_the_next_handshake_on_and_a_broken_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reloading, "LOOK_S", 0.01)
    monkeypatch.setattr(reloading, "SETTLED_S", 0.01)
    caplog.set_level(logging.INFO)
    authority = Authority(tmp_path)
    used = tmp_path / "used.pem"
    shutil.copy(authority.signed("registry", "127.0.0.1"), used)
    ssl_settings = {"ssl_ca_location": str(authority.trusted)}

    async def run(address: str) -> None:
        topic = SchemasTopicSettings("renewed")
        server = RegistryServer(
            address, RegistrySettings("127.0.0.1", 0, topic, certificate=used, key_password=PASSWORD)
        )
        await server.start()
        first = await shown(server, authority)
        client = SchemaRegistry(server.addresses[0], **ssl_settings)
        assert await asyncio.to_thread(client.register, "s", INT) == 1
        shutil.copy(authority.signed("registry", "127.0.0.1"), used)
        await until(lambda: "HTTP is served with the certificate" in caplog.text)
        second = await shown(server, authority)
        assert second != first
        used.write_text("half of it")
        await until(lambda: "The one before stays in use until the files are changed again" in caplog.text)
        assert await shown(server, authority) == second
        assert await asyncio.to_thread(SchemaRegistry(server.addresses[0], **ssl_settings).register, "t", INT) == 1
        await server.stop()

    with Broker(group_initial_rebalance_delay_ms=0) as broker:
        asyncio.run(run(broker.address))
    assert PASSWORD not in caplog.text


def test_an_instance_trusts_the_certificate_before_the_last_change_too(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    used = tmp_path / "used.pem"
    shutil.copy(authority.signed("registry", "127.0.0.1"), used)
    tls = HttpTls(used, None, PASSWORD)
    before = tls.to_instances().cert_store_stats()["x509"]
    shutil.copy(authority.signed("registry", "127.0.0.1"), used)
    tls.reload()
    assert tls.to_instances().cert_store_stats()["x509"] == before + 1
    used.write_text("half of it")
    tls.reload()
    assert tls.to_instances().cert_store_stats()["x509"] == before + 1


def test_a_certificate_or_a_file_of_users_that_is_wrong_is_one_sentence(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no certificate")
    locked = Authority(tmp_path).signed("locked", "127.0.0.1")
    for given in (wrong, tmp_path / "missing.pem", locked):
        with pytest.raises(ConfigError, match="certificate"):
            RegistryServer("127.0.0.1:1", RegistrySettings("127.0.0.1", 0, certificate=given))
    with pytest.raises(ConfigError, match="is not user"):
        RegistryServer("127.0.0.1:1", RegistrySettings("127.0.0.1", 0, users_file=wrong))
