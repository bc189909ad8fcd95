"""A registry with TLS and users: our client reaches it, and so does another instance, which forwards a change."""

import asyncio
from pathlib import Path

import pytest

from harness.certificates import PASSWORD, Authority
from moldau.errors import ConfigError
from moldau.registry.access_rules import hashed
from moldau.registry.server import RegistryServer, RegistrySettings
from moldau.registry.topic import SchemasTopicSettings
from moldau.serializers import RegistryUnauthorized, Schema, SchemaRegistry
from moldau.testing import Broker

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


def test_a_certificate_or_a_file_of_users_that_is_wrong_is_one_sentence(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no certificate")
    locked = Authority(tmp_path).signed("locked", "127.0.0.1")
    for given in (wrong, tmp_path / "missing.pem", locked):
        with pytest.raises(ConfigError, match="certificate"):
            RegistryServer("127.0.0.1:1", RegistrySettings("127.0.0.1", 0, certificate=given))
    with pytest.raises(ConfigError, match="is not user"):
        RegistryServer("127.0.0.1:1", RegistrySettings("127.0.0.1", 0, users_file=wrong))
