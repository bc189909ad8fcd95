"""A running broker takes new certificates: from files that changed, and by IncrementalAlterConfigs."""

import asyncio
import contextlib
import logging
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

import moldau
from harness.certificates import PASSWORD, Authority
from harness.patience import within
from moldau.broker import Broker
from moldau.config import broker_config
from moldau.errors import KafkaError
from moldau.replication.replicas import Replicas
from moldau.runtime import Runtime
from moldau.transport import reloading

KEYSTORE = "listener.name.secure.ssl.keystore.location"


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(reloading, "LOOK_S", 0.01)
    monkeypatch.setattr(reloading, "SETTLED_S", 0.01)
    caplog.set_level(logging.INFO)


class Running:
    """A broker with a plain listener and one with TLS, whose certificate is in `file`."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.authority = Authority(folder)
        self.file = folder / "used.pem"
        shutil.copy(self.authority.signed("broker", "localhost"), self.file)
        self.settings = {
            "listeners": "PLAINTEXT://localhost:0,SECURE://localhost:0",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURE:SSL",
            "log.dirs": str(folder / "data"),
            KEYSTORE: str(self.file),
            "listener.name.secure.ssl.key.password": PASSWORD,
        }
        self.broker: Broker

    @contextlib.asynccontextmanager
    async def started(self, **more: str) -> AsyncIterator["Running"]:
        named = {name.replace("_", "."): value for name, value in more.items()}
        self.broker = Broker(broker_config(self.settings | named)[0], Runtime())
        await self.broker.start()
        try:
            yield self
        finally:
            await self.broker.stop()

    async def shown(self) -> int:
        """The serial number of the certificate that the next handshake shows."""
        return await self.authority.serial_shown("localhost", self.broker.ports["SECURE"])

    async def another_than(self, serial: int) -> int:
        async def waited() -> int:
            while (now := await self.shown()) == serial:
                await asyncio.sleep(0.01)
            return now

        return await within(waited())

    async def alter(self, name: str, value: str, broker: str = "1") -> None:
        def altered() -> None:
            with moldau.Admin(f"localhost:{self.broker.ports['PLAINTEXT']}") as admin:
                admin.configs.alter("broker", broker, {name: value})

        await asyncio.to_thread(altered)


async def said(caplog: pytest.LogCaptureFixture, sentence: str) -> None:
    async def waited() -> None:
        while sentence not in caplog.text:
            await asyncio.sleep(0.01)

    await within(waited())


def test_a_new_file_is_used_from_the_next_handshake_on_and_a_broken_one_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with Running(tmp_path).started() as running:
            first = await running.shown()
            shutil.copy(running.authority.signed("broker", "localhost", "more"), running.file)
            second = await running.another_than(first)
            assert "the listener SECURE uses the certificates in its files as they are now" in caplog.text
            running.file.write_text("half of it")
            await said(caplog, "Those before stay in use until the files or the settings are changed again")
            assert await running.shown() == second
            shutil.copy(running.authority.signed("broker", "localhost", "more"), running.file)
            await running.another_than(second)

    asyncio.run(scenario())
    assert not any(record.exc_info for record in caplog.records)


def test_a_file_that_changes_while_a_broker_starts_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start may take minutes: logs are recovered between reading the files and serving."""

    async def scenario() -> None:
        running = Running(tmp_path)
        load = Replicas.load

        async def loaded(self: Replicas, *arguments: Any) -> Any:
            shutil.copy(running.authority.signed("broker", "localhost", "more"), running.file)
            return await load(self, *arguments)

        monkeypatch.setattr(Replicas, "load", loaded)
        before = x509.load_pem_x509_certificate(running.file.read_bytes()).serial_number
        async with running.started():
            await running.another_than(before)

    asyncio.run(scenario())


def test_a_certificate_with_other_names_is_not_used_unless_that_is_allowed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with Running(tmp_path).started() as running:
            first = await running.shown()
            shutil.copy(running.authority.signed("another", "localhost"), running.file)
            await said(
                caplog, "the new certificate is for 'CN=another', not for 'CN=broker'; ssl.allow.dn.changes=true"
            )
            shutil.copy(running.authority.signed("broker", "127.0.0.1"), running.file)
            await said(
                caplog, "the new certificate lacks a host name or address that the one before has; ssl.allow.san"
            )
            assert await running.shown() == first
        both = {"ssl_allow_dn_changes": "true", "ssl_allow_san_changes": "true"}
        shutil.copy(running.authority.signed("broker", "localhost", "b"), running.file)
        async with running.started(**both):
            first = await running.shown()
            shutil.copy(running.authority.signed("another", "localhost"), running.file)
            await running.another_than(first)

    asyncio.run(scenario())


def test_an_alteration_is_answered_once_the_new_file_is_in_use_and_lasts_for_the_next_start(tmp_path: Path) -> None:
    async def scenario() -> None:
        running = Running(tmp_path)
        async with running.started():
            first = await running.shown()
            newer = tmp_path / "newer.pem"
            shutil.copy(running.authority.signed("broker", "localhost"), newer)
            await running.alter(KEYSTORE, str(newer))
            second = await running.shown()
            assert second != first
            shutil.copy(running.authority.signed("broker", "localhost"), newer)
            await running.alter(KEYSTORE, str(newer))
            third = await running.shown()
            assert third != second, "the file is another one, although its name is not"
            described = {one.setting.name: one for one in running.broker.cluster.metadata.config_sources.broker()}
            assert (described[KEYSTORE].value, described[KEYSTORE].source.name) == (str(newer), "BROKER")
            assert described["listener.name.secure.ssl.key.password"].setting.sensitive
        async with running.started():
            assert await running.shown() == third

    asyncio.run(scenario())


def test_a_broker_warns_at_its_start_of_a_certificate_that_ends_soon(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        running = Running(tmp_path)
        shutil.copy(running.authority.signed("broker", "localhost", days=5), running.file)
        async with running.started():
            await said(caplog, "the certificate of the listener SECURE expires in ")  # 5 days within its first second

    asyncio.run(scenario())


def test_the_limits_of_one_listener_are_changed_while_the_broker_runs(tmp_path: Path) -> None:
    name = "listener.name.secure.max.connections"

    async def scenario() -> None:
        async with Running(tmp_path).started() as running:
            server = running.broker.server
            await running.alter(name, "7")
            assert server.limits.of("SECURE").max_connections == 7
            described = {one.setting.name: one for one in running.broker.cluster.metadata.config_sources.broker()}
            assert (described[name].value, described[name].source.name) == ("7", "BROKER")
            for wrong in ("-1", "many"):
                with pytest.raises(KafkaError, match=r"max\.connections must be"):
                    await running.alter(name, wrong)
            for typo in ("listener.name.secured.max.connections", "listener.name.typo.ssl.keystore.location"):
                with pytest.raises(KafkaError, match=f"{typo} is of a listener that this broker does not have"):
                    await running.alter(typo, "7")
            await running.alter("listener.name.secure.max.connection.creation.rate", "1000", "")
            assert server.limits.of("SECURE").creation_rate == 1000

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        (KEYSTORE, "/nowhere.pem", "cannot use its new certificates: cannot use /nowhere.pem"),
        (KEYSTORE, "another", "the new certificate is for 'CN=another', not for 'CN=broker'"),
        ("listener.name.secure.ssl.key.password", "x", "cannot be changed while the broker runs"),
        ("ssl.keystore.location", "x", "cannot be changed while the broker runs"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, name: str, value: str, sentence: str) -> None:
    async def scenario() -> None:
        async with Running(tmp_path).started() as running:
            first = await running.shown()
            file = running.authority.signed("another", "localhost") if value == "another" else value
            with pytest.raises(KafkaError, match=sentence):
                await running.alter(name, str(file))
            running.file.write_text("half of it")
            with pytest.raises(KafkaError, match="it is not PEM, or the password is wrong"):
                await running.alter(KEYSTORE, str(running.file))
            await running.alter("log.retention.ms", "5")
            with pytest.raises(KafkaError, match="are set for one broker"):
                await running.alter(KEYSTORE, str(running.file), "")
            assert await running.shown() == first

    asyncio.run(scenario())
