"""The SQLite file of the embedded store: what it survives, and what it finds damaged."""

import asyncio
import contextlib
import random
import re
import shutil
import sqlite3
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from harness.patience import within
from harness.tiers import examples
from moldau.errors import StorageError
from moldau.metadata_store.embedded import FILE_NAME, EmbeddedStore
from moldau.metadata_store.embedded_format import DamagedMetadata
from moldau.metadata_store.embedded_session import EmbeddedSession
from moldau.metadata_store.store import (
    Check,
    Create,
    Delete,
    Node,
    NodeOperation,
    Set,
    StoreConflict,
    Written,
    children_of,
    node_at,
)
from moldau.runtime import Runtime
from moldau.simulation.zookeeper import ModelZooKeeper
from moldau.simulation.zookeeper_session import ModelSession

paths = st.sampled_from(["/a", "/b", "/a/b", "/a/c", "/a/b/c"])
versions = st.sampled_from([-1, 0, 1])
operations = st.one_of(
    st.builds(Create, paths, st.binary(max_size=3), st.just(False)),
    st.builds(Set, paths, st.binary(max_size=3), versions),
    st.builds(Delete, paths, versions),
    st.builds(Check, paths, versions),
)


@settings(max_examples=examples(20, 30))
@given(st.lists(st.lists(operations, min_size=1, max_size=3), max_size=12))
def test_the_file_and_the_model_agree_on_any_history(history: list[list[NodeOperation]]) -> None:
    async def scenario() -> None:
        file, model = EmbeddedStore.in_memory(), ModelSession(ModelZooKeeper())
        for step in history:
            outcomes: list[object] = ["done", "done"]
            try:
                outcomes[0] = file.multi(step)
            except StoreConflict as refusal:
                outcomes[0] = str(refusal)
            try:
                outcomes[1] = await model.multi(step)
            except StoreConflict as refusal:
                outcomes[1] = str(refusal)
            assert outcomes[0] == outcomes[1]
            for path in ("/", "/a", "/b", "/a/b", "/a/c", "/a/b/c"):
                assert file.get(path) == await model.read(node_at(path))
                assert file.children(path) == await model.read(children_of(path))
        file.close()
        await model.close()

    asyncio.run(within(scenario()))


def test_a_file_that_is_no_database_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"this is not SQLite" * 100)
    with pytest.raises(StorageError, match="cannot use the metadata"):
        EmbeddedStore(tmp_path)


def test_a_file_of_a_later_format_is_refused(tmp_path: Path) -> None:
    EmbeddedStore(tmp_path).close()
    database = sqlite3.connect(tmp_path / FILE_NAME)
    database.execute("PRAGMA user_version=99")
    database.close()
    with pytest.raises(StorageError, match="format 99"):
        EmbeddedStore(tmp_path)


def test_a_commit_is_forced_to_the_disk(tmp_path: Path) -> None:
    """`synchronous` 2 is FULL: without it SQLite may lose the last commits to a power loss."""
    store = EmbeddedStore(tmp_path)
    assert store._db.execute("PRAGMA synchronous").fetchone() == (2,)
    store.close()


def filled(folder: Path) -> dict[str, bytes]:
    """A store with nodes enough for several pages, closed; what is in it."""
    nodes = {f"/{number}": b"%d" % number * 200 for number in range(100)}
    store = EmbeddedStore(folder)
    store.multi([Create(path, data) for path, data in nodes.items()])
    store.close()
    return nodes


def test_a_flipped_bit_is_found_or_changes_nothing(tmp_path: Path) -> None:
    nodes = filled(tmp_path)
    path = tmp_path / FILE_NAME
    sound = path.read_bytes()
    found = 0
    chance = random.Random(5)
    for _ in range(400):
        at, bit = chance.randrange(len(sound)), chance.randrange(8)
        damaged = bytearray(sound)
        damaged[at] ^= 1 << bit
        try:
            store = EmbeddedStore.in_memory(bytes(damaged))
        except StorageError:
            found += 1
            continue
        with contextlib.closing(store):
            assert {name: node.data for name in nodes if (node := store.get(name))} == nodes, f"bit {bit} of byte {at}"
            assert store.children("/") == sorted(name[1:] for name in nodes)
    assert found > 200


@pytest.mark.parametrize("size", [100, 4096, 20_000])
def test_a_file_that_was_cut_off_is_damaged(tmp_path: Path, size: int) -> None:
    filled(tmp_path)
    path = tmp_path / FILE_NAME
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(DamagedMetadata, match=r"cannot use the metadata|is damaged"):
        EmbeddedStore(tmp_path)


def test_a_node_that_was_changed_behind_our_back_is_named_when_it_is_read(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path)
    store.multi([Create("/a", b"1"), Create("/b", b"1")])
    store._db.execute("UPDATE node SET data = x'32' WHERE path = '/a'")
    with pytest.raises(DamagedMetadata, match=re.escape(f"{tmp_path / FILE_NAME} is damaged: the node /a ")):
        store.get("/a")
    assert store.get("/b") == Node(b"1", 0, 0, 1)
    store.close()
    with pytest.raises(DamagedMetadata, match="the node /a does not match its checksum"):
        EmbeddedStore(tmp_path)


def test_what_was_answered_needs_no_write_ahead_log(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path)
    store.multi([Create("/a", b"1")])
    store.multi([Set("/a", b"2")])
    (tmp_path / "copied").mkdir()
    shutil.copy(tmp_path / FILE_NAME, tmp_path / "copied")
    store.close()
    with contextlib.closing(EmbeddedStore(tmp_path / "copied")) as copied:
        assert copied.get("/a") == Node(b"2", 1, 0, 1)


EARLIER_FORMATS = {
    1: """
        PRAGMA journal_mode=WAL; PRAGMA user_version=1;
        CREATE TABLE node (
            path TEXT PRIMARY KEY, parent TEXT NOT NULL, data BLOB NOT NULL, version INTEGER NOT NULL,
            ephemeral INTEGER NOT NULL
        ) WITHOUT ROWID;
        CREATE INDEX child ON node (parent, path);
        INSERT INTO node VALUES ('/', '', x'', 0, 0), ('/a', '/', x'31', 3, 0), ('/b', '/', x'31', 0, 1);
        """,
    2: """
        PRAGMA journal_mode=WAL; PRAGMA user_version=2;
        CREATE TABLE node (
            path TEXT PRIMARY KEY, parent TEXT NOT NULL, data BLOB NOT NULL, version INTEGER NOT NULL,
            ephemeral INTEGER NOT NULL, checksum INTEGER NOT NULL DEFAULT 0
        ) WITHOUT ROWID;
        CREATE INDEX child ON node (parent, path);
        INSERT INTO node VALUES ('/', '', x'', 0, 0, 4054967081), ('/a', '/', x'31', 3, 0, 831997238),
            ('/b', '/', x'31', 0, 1, 2475308465);
        """,
}


@pytest.mark.parametrize("version", EARLIER_FORMATS)
def test_a_file_of_an_earlier_version_is_brought_up_to_date(tmp_path: Path, version: int) -> None:
    write_earlier(tmp_path, version)
    for _ in range(2):
        with contextlib.closing(EmbeddedStore(tmp_path)) as store:
            assert (store.get("/"), store.get("/a")) == (Node(b"", 0), Node(b"1", 3, 0, 1))
            assert (store.get("/b"), store.children("/")) == (None, ["a"])
    with contextlib.closing(EmbeddedStore(tmp_path)) as store:
        assert store.multi([Create("/c"), Set("/a", b"2")]) == [Written(0, 2), Written(4, 1)]


def test_damage_is_found_before_a_file_is_brought_up_to_date(tmp_path: Path) -> None:
    write_earlier(tmp_path, 2, "UPDATE node SET data = x'32' WHERE path = '/a'")
    with pytest.raises(DamagedMetadata, match="the node /a does not match its checksum"):
        EmbeddedStore(tmp_path)


def write_earlier(folder: Path, version: int, then: str = "") -> None:
    with contextlib.closing(sqlite3.connect(folder / FILE_NAME)) as database:
        database.executescript(EARLIER_FORMATS[version])
        database.executescript(then)


def test_no_number_of_a_change_is_used_again(tmp_path: Path) -> None:
    numbers = []
    for _ in range(3):
        with contextlib.closing(EmbeddedStore(tmp_path)) as store:
            [made, _] = store.multi([Create("/a"), Delete("/a")])
            numbers.append(made.czxid if made else 0)
    assert numbers == [1, 2, 3]
    with contextlib.closing(sqlite3.connect(tmp_path / FILE_NAME)) as database:
        database.execute("UPDATE latest SET zxid = 2")
        database.commit()
    with pytest.raises(DamagedMetadata, match="the number of its latest change does not match its checksum"):
        EmbeddedStore(tmp_path)


def test_what_a_store_is_as_a_file_is_a_store(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path)
    session_id = store.begin_session(lambda _: None)
    store.multi([Create("/a", b"1"), Create("/b", b"2", ephemeral=True)], session_id)
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / FILE_NAME).write_bytes(store.as_file())
    store.close()
    with contextlib.closing(EmbeddedStore(tmp_path / "copy")) as copy:
        assert (copy.get("/a"), copy.get("/b")) == (Node(b"1", 0, 0, 1), None)


def test_an_ephemeral_node_of_no_session_is_a_mistake_of_the_caller() -> None:
    with contextlib.closing(EmbeddedStore.in_memory()) as store:
        with pytest.raises(ValueError, match="/a cannot be ephemeral without a session"):
            store.multi([Create("/a", ephemeral=True)])
        assert store.get("/a") is None


def test_the_sessions_of_a_killed_process_are_over_when_the_file_is_opened_again(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path)
    for number in range(2):
        session_id = store.begin_session(lambda _: None)
        store.multi([Create(f"/{number}", ephemeral=True)], session_id)
    store.abandon()
    with contextlib.closing(EmbeddedStore(tmp_path)) as again:
        assert again.children("/") == []


def test_a_store_that_cannot_remove_what_is_ephemeral_is_closed_all_the_same(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path)
    store._db.execute("DROP TABLE node")
    with pytest.raises(StorageError, match="cannot close the metadata"):
        store.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        store._db.execute("SELECT 1")


def test_one_session_of_two_may_close_the_file(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = EmbeddedStore(tmp_path)
        first, last = EmbeddedSession(store, Runtime()), EmbeddedSession(store, Runtime(), closes_store=True)
        await first.multi([Create("/a", b"1")])
        await first.close()
        assert await last.read(node_at("/a")) == Node(b"1", 0, 0, 1)
        await last.close()
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            store._db.execute("SELECT 1")

    asyncio.run(within(scenario()))
