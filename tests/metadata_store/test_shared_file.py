"""The metadata file that several processes share: the kit of every store, killed and stopped processes, contention."""

import asyncio
import contextlib
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from harness.brokers import SOURCE
from harness.patience import stretched, wait_until, within
from moldau.errors import ConfigError, StorageError
from moldau.metadata_store import shared_file
from moldau.metadata_store.embedded import FILE_NAME, EmbeddedStore
from moldau.metadata_store.embedded_format import DamagedMetadata
from moldau.metadata_store.session_locks import LatestChange, OtherSession, SessionLock, lock_path
from moldau.metadata_store.shared_file import SharedFile
from moldau.metadata_store.shared_file_session import SharedFileSession, file_of
from moldau.metadata_store.store import Create, Delete, OutcomeUnknown, SessionOver, Set, children_of, node_at
from moldau.runtime import Runtime
from tests.metadata_store.store_kit import Play, Scenario, StoreKit, eventually, plain_node_at

TIMEOUT_S = 10.0


class TestSharedFile(StoreKit):
    """Each session has a connection of its own, as in processes of their own."""

    @pytest.fixture
    def play(self, tmp_path: Path) -> Play:
        def run(scenario: Scenario) -> None:
            async def whole() -> None:
                sessions: list[SharedFileSession] = []

                async def opened() -> SharedFileSession:
                    sessions.append(await opened_at(tmp_path / "file"))
                    return sessions[-1]

                await scenario(opened)
                for session in sessions:
                    await session.close()
                assert not list(tmp_path.glob("*-session-*"))

            asyncio.run(within(whole()))

        return run


async def opened_at(path: Path, timeout_s: float = TIMEOUT_S) -> SharedFileSession:
    return await SharedFileSession.open(path, stretched(timeout_s), Runtime())


@contextlib.contextmanager
def process(module: str, path: Path, timeout_s: float, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that runs a module of the tests on the file."""
    command, root = [sys.executable, "-m", module, str(path), str(stretched(timeout_s)), *arguments], SOURCE.parent
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=root, env={**os.environ, "PYTHONPATH": f"{SOURCE}:{root}"}
    ) as started:
        try:
            yield started
        finally:
            started.kill()


@contextlib.contextmanager
def member(path: Path, name: str, timeout_s: float = TIMEOUT_S) -> Iterator[subprocess.Popen[str]]:
    """Another process, whose session has made the ephemeral node /NAME."""
    with process("tests.metadata_store.file_member", path, timeout_s, name) as started:
        assert started.stdout is not None
        assert started.stdout.readline().startswith("session ")
        yield started


@contextlib.asynccontextmanager
async def session_at(path: Path, timeout_s: float = TIMEOUT_S) -> AsyncIterator[SharedFileSession]:
    session = await opened_at(path, timeout_s)
    try:
        yield session
    finally:
        await session.close()


# ------------------------------------------------------------------------------------------------ other processes


def test_the_session_of_a_killed_process_is_over_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        path = tmp_path / "file"
        async with session_at(path, 3600) as session:
            with member(path, "e", 3600) as other:
                await eventually(session, lambda: children_of("/"), ["e"])
                looked = asyncio.Event()
                await session.watch("/e", looked.set)
                other.kill()
                await looked.wait()  # perhaps for the node's creation
                await eventually(session, lambda: children_of("/"), [])
            assert wait_until(lambda: len(list(tmp_path.glob("*-session-*"))) == 1), "only ours"

    asyncio.run(within(scenario()))


def test_what_killed_processes_left_is_gone_when_the_file_is_opened_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        path = tmp_path / "file"
        with member(path, "1") as first, member(path, "2") as second:
            for other in (first, second):  # none begins to end the session of the other
                other.send_signal(signal.SIGSTOP)
            for other in (first, second):
                other.kill()
                other.wait()
        async with session_at(path) as session:
            assert await session.read(children_of("/")) == []
            assert [one.name for one in tmp_path.glob("*-session-*")] == [f"file-session-{session.session_id}"]

    asyncio.run(within(scenario()))


def test_a_process_that_is_stopped_for_the_session_timeout_finds_its_session_over(tmp_path: Path) -> None:
    async def scenario() -> None:
        path = tmp_path / "file"
        async with session_at(path, 1) as session:
            with member(path, "e", 1) as other:
                other.send_signal(signal.SIGSTOP)
                await eventually(session, lambda: children_of("/"), [])
                other.send_signal(signal.SIGCONT)
                assert other.stdout is not None
                assert await asyncio.to_thread(other.stdout.readline) == "the session is over\n"
                assert await asyncio.to_thread(other.wait) == 0

    asyncio.run(within(scenario()))


def test_a_process_that_was_stopped_in_the_middle_of_a_change_is_killed_after_the_session_timeout(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        path = tmp_path / "file"
        async with session_at(path, 1) as session:
            with process("tests.metadata_store.file_member", path, 1, "e", "stopping") as other:
                await eventually(session, lambda: children_of("/"), ["e"])
                await eventually(session, lambda: children_of("/"), [])
                assert await asyncio.to_thread(other.wait) == -signal.SIGKILL
            await session.multi([Create("/a")])

    asyncio.run(within(scenario()))


def test_a_pause_of_the_process_that_measures_ends_no_session(tmp_path: Path) -> None:
    lock = SessionLock(tmp_path / "file", 1)
    other = OtherSession(tmp_path / "file", 1)
    assert not other.is_over(0, 1)
    assert not other.is_over(3600, 1)
    assert not any(other.is_over(0.02, 1) for _ in range(40))
    lock.beat()
    assert not any(other.is_over(0.02, 1) for _ in range(40))
    assert any(other.is_over(0.02, 1) for _ in range(30))
    other.forget(remove=False)
    lock.release()


def test_processes_that_are_killed_while_they_write_lose_nothing_that_was_answered(tmp_path: Path) -> None:
    """Each process is killed at another moment; nobody else counts a number twice, and what they left goes."""
    path, chance = tmp_path / "file", random.Random(7)
    first = SharedFile(path, 3600)
    first.multi([Create("/count", b"0")])
    answered: list[int] = []
    with contextlib.ExitStack() as counters:
        running = [counters.enter_context(process("tests.metadata_store.file_counter", path, 3600)) for _ in range(3)]
        for number in range(9):
            killed = running.pop(0)
            assert killed.stdout is not None
            answered += [int(killed.stdout.readline()) for _ in range(10)]
            time.sleep(chance.random() / 50)
            killed.kill()
            answered += [int(line) for line in killed.stdout.read().split("\n")[:-1]]
            if number < 6:
                running.append(counters.enter_context(process("tests.metadata_store.file_counter", path, 3600)))
    assert len(set(answered)) == len(answered)

    def left() -> list[str]:
        first.look()
        return first.read(children_of("/"))

    assert wait_until(lambda: left() == ["count"])
    node = first.read(node_at("/count"))
    assert node is not None
    assert max(answered) <= int(node.data) <= len(answered) + 9, "at most one unanswered of each process"
    assert node.version == int(node.data)
    first.end()
    SharedFile(path, 3600).end()


def test_who_was_answered_a_sync_has_the_whole_session_timeout_before_it(pair: tuple[SharedFile, SharedFile]) -> None:
    first, second = pair
    number = lock_path(first._path, first.session_id).read_bytes()
    first.sync()
    assert lock_path(first._path, first.session_id).read_bytes() != number
    second._in_transaction(lambda: second._end_session(first.session_id))
    with pytest.raises(SessionOver):
        first.sync()


# ------------------------------------------------------------------------------------------------------ changes


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[SharedFile, SharedFile]]:
    """Two connections, nobody's thread looks."""
    files = SharedFile(tmp_path / "file", TIMEOUT_S), SharedFile(tmp_path / "file", TIMEOUT_S)
    for file in files:
        file.look()
    yield files
    for file in files:
        file.end()


def test_a_look_names_what_others_changed_once(pair: tuple[SharedFile, SharedFile]) -> None:
    first, second = pair
    second.multi([Create("/a"), Create("/a/b"), Set("/a", b"1")])
    assert set(first.look() or ()) == {"/", "/a", "/a/b"}
    assert first.look() == ()
    assert second.look() == ()
    first.multi([Set("/a", b"2")])
    second.multi([Delete("/a/b")])
    assert set(first.look() or ()) == {"/a", "/a/b"}
    assert set(second.look() or ()) == {"/a"}


def test_who_has_fallen_behind_looks_at_everything(
    pair: tuple[SharedFile, SharedFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_file, "CHANGES_KEPT", 3)
    first, second = pair
    second.multi([Create("/a")])
    for _ in range(3):
        second.multi([Set("/a", b"")])
    assert first.look() is None
    assert first.look() == ()
    for _ in range(3):
        second.multi([Set("/a", b"")])
    assert first.look() == ["/a"]
    assert second._db.execute("SELECT count(*) FROM change").fetchone() == (3,)


def test_a_change_of_very_many_nodes_is_one_of_everything(pair: tuple[SharedFile, SharedFile]) -> None:
    first, second = pair
    second.multi([Create("/a"), *(Create(f"/a/{number}") for number in range(200))])
    assert first.look() is None
    assert second._db.execute("SELECT count(*) FROM change").fetchone() == (1,)


# ------------------------------------------------------------------------------------------------------ failures


def test_a_write_waits_for_another_process_that_writes_but_not_for_ever(tmp_path: Path) -> None:
    async def scenario() -> None:
        path = tmp_path / "file"
        async with session_at(path, 0.5) as session:
            await session.multi([Create("/a", b"1")])
            with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as writer:
                writer.execute("BEGIN IMMEDIATE")
                waiting = asyncio.ensure_future(session.multi([Set("/a", b"2")]))
                assert (await session.read(plain_node_at("/a"))) == (b"1", 0, 0, 0)
                with pytest.raises(StorageError, match=re.escape(f"cannot write the metadata in {path}: another")):
                    await waiting
                waiting = asyncio.ensure_future(session.multi([Set("/a", b"3")]))
                await asyncio.sleep(0.1)
                writer.execute("COMMIT")
                await waiting
            assert (await session.read(plain_node_at("/a"))) == (b"3", 1, 0, 0)

    asyncio.run(within(scenario()))


def test_a_file_that_another_process_opens_for_too_long_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with (
        LatestChange(tmp_path / "file").alone(1),
        pytest.raises(StorageError, match=r"cannot open .* another process has held it locked for 0.1 s"),
    ):
        SharedFile(tmp_path / "file", 0.1)


def test_damage_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "file"
    file = SharedFile(path, TIMEOUT_S)
    file.multi([Create("/a", b"1")])
    file._db.execute("UPDATE node SET data = x'32' WHERE path = '/a'")
    with pytest.raises(DamagedMetadata, match="the node /a does not match its checksum"):
        file.read(node_at("/a"))
    file.end()
    with pytest.raises(DamagedMetadata, match=re.escape(f"{path} is damaged: the node /a ")):
        SharedFile(path, TIMEOUT_S)
    path.write_bytes(b"this is not SQLite" * 100)
    with pytest.raises(DamagedMetadata, match="cannot use the metadata"):
        SharedFile(path, TIMEOUT_S)
    path.unlink()
    path.mkdir()
    with pytest.raises(StorageError, match="cannot use the metadata"):
        SharedFile(path, TIMEOUT_S)
    with pytest.raises(StorageError, match="cannot use the metadata"):
        SharedFile(Path("/proc/file"), TIMEOUT_S)
    assert not list(tmp_path.glob("*-session-*"))


def test_the_file_of_a_broker_alone_is_not_shared_nor_the_other_way_round(tmp_path: Path) -> None:
    EmbeddedStore(tmp_path).close()
    with pytest.raises(StorageError, match="is not the metadata of several brokers"):
        SharedFile(tmp_path / FILE_NAME, TIMEOUT_S)
    EmbeddedStore(tmp_path).close()
    (tmp_path / "other").mkdir()
    SharedFile(tmp_path / "other" / FILE_NAME, TIMEOUT_S).end()
    with pytest.raises(StorageError, match="is the metadata of several brokers, not of one alone"):
        EmbeddedStore(tmp_path / "other")
    SharedFile(tmp_path / "other" / FILE_NAME, TIMEOUT_S).end()


class FailingCommits:
    """A connection whose disk fails in every commit."""

    def __init__(self, db: sqlite3.Connection):
        self._db = db

    def __getattr__(self, name: str) -> object:
        return getattr(self._db, name)

    def execute(self, statement: str, *values: object) -> object:
        if statement == "COMMIT":
            raise sqlite3.OperationalError("disk I/O error")
        return self._db.execute(statement, *values)  # type: ignore[arg-type]


def test_nobody_knows_what_a_commit_did_that_failed(tmp_path: Path) -> None:
    file = SharedFile(tmp_path / "file", TIMEOUT_S)
    db = file._db
    file._db = FailingCommits(db)  # type: ignore[assignment]
    with pytest.raises(OutcomeUnknown, match=r"cannot write the metadata in .*: disk I/O error"):
        file.multi([Create("/a")])
    file._db = db
    assert file.read(node_at("/a")) is None
    file.end()


def test_nothing_is_written_for_a_session_that_another_process_has_ended(pair: tuple[SharedFile, SharedFile]) -> None:
    first, second = pair
    first.multi([Create("/a", ephemeral=True)])
    second._in_transaction(lambda: second._end_session(first.session_id))
    with pytest.raises(SessionOver):
        first.multi([Create("/b")])
    with pytest.raises(SessionOver):
        first.read(node_at("/b"))
    with pytest.raises(SessionOver):
        first.look()
    assert second.read(children_of("/")) == []


def test_a_store_in_a_file_is_named_by_its_path() -> None:
    assert file_of("zk:2181/kafka") is None
    assert file_of("file:/a/b") == file_of(" file:///a/b ") == Path("/a/b")
    assert file_of("file:b") == Path("b").absolute()
    for wrong in ("file:", "file:/a/", "file:a\0"):
        with pytest.raises(ConfigError, match="not of the form file:PATH"):
            file_of(wrong)
