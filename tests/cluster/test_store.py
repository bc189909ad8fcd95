"""One behaviour kit for every metadata store: the SQLite file, and the model that simulation puts in its place."""

import contextlib
import random
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from moldau.cluster.embedded import FILE_NAME, DamagedMetadata, EmbeddedStore
from moldau.cluster.store import (
    BadVersion,
    Check,
    Create,
    Delete,
    MetadataStore,
    Node,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    Set,
    StoreConflict,
)
from moldau.errors import StorageError
from moldau.simulation.store import ModelStore

Open = Callable[[], MetadataStore]


@pytest.fixture(params=["embedded", "model"])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens a session of the same store again and again."""
    model = ModelStore()
    return model.session if request.param == "model" else lambda: EmbeddedStore(tmp_path)


@pytest.fixture
def store(reopen: Open) -> Iterator[MetadataStore]:
    opened = reopen()
    yield opened
    opened.close()


def test_a_new_store_has_a_root_and_nothing_else(store: MetadataStore) -> None:
    assert store.get("/") == Node(b"", 0)
    assert store.children("/") == []
    assert store.get("/a") is None
    assert store.children("/a") == []


def test_a_node_has_the_data_it_was_created_with_at_version_0(store: MetadataStore) -> None:
    store.multi([Create("/a", b"1"), Create("/a/b", b"2")])
    assert store.get("/a") == Node(b"1", 0)
    assert store.get_many(["/a/b", "/a/c", "/a"]) == [Node(b"2", 0), None, Node(b"1", 0)]


def test_every_set_counts_the_version_up(store: MetadataStore) -> None:
    store.multi([Create("/a"), Set("/a", b"1"), Set("/a", b"2", 1)])
    assert store.get("/a") == Node(b"2", 2)


def test_children_are_direct_ones_sorted_by_name(store: MetadataStore) -> None:
    store.multi([Create(path) for path in ("/a", "/a/c", "/a/b", "/a/b/d", "/ab")])
    assert store.children("/a") == ["b", "c"]
    assert store.children("/") == ["a", "ab"]


@pytest.mark.parametrize(
    ("operation", "refusal", "at"),
    [
        (Create("/a"), NodeExists, "/a"),
        (Create("/x/y"), NoNode, "/x"),
        (Create("/e/y"), NoNode, "/e"),
        (Set("/x", b""), NoNode, "/x"),
        (Set("/a", b"", 5), BadVersion, "/a"),
        (Delete("/x"), NoNode, "/x"),
        (Delete("/a"), NotEmpty, "/a"),
        (Delete("/a/b", 1), BadVersion, "/a/b"),
        (Check("/x"), NoNode, "/x"),
        (Check("/a", 3), BadVersion, "/a"),
    ],
)
def test_a_refusal_names_the_node_and_changes_nothing(
    store: MetadataStore, operation: Operation, refusal: type[StoreConflict], at: str
) -> None:
    store.multi([Create("/a"), Create("/a/b"), Create("/e", ephemeral=True)])
    seen: list[str] = []
    store.watch(seen.append)
    with pytest.raises(refusal) as refused:
        store.multi([Create("/before"), Set("/a", b"changed"), operation, Create("/after")])
    assert refused.value.path == at
    assert store.get("/before") is None
    assert store.get("/a") == Node(b"", 0)
    assert seen == []


def test_each_operation_sees_those_before_it(store: MetadataStore) -> None:
    store.multi([Create("/a"), Create("/a/b"), Delete("/a/b"), Delete("/a", 0), Create("/a", b"again"), Check("/a", 0)])
    assert store.get("/a") == Node(b"again", 0)


def test_a_watcher_hears_of_every_change_in_order_and_of_no_check(store: MetadataStore) -> None:
    seen: list[str] = []
    store.multi([Create("/early")])
    store.watch(seen.append)
    store.multi([Create("/a"), Check("/early"), Set("/a", b"1"), Create("/a/b")])
    store.multi([Delete("/a/b")])
    assert seen == ["/a", "/a", "/a/b", "/a/b"]


def test_a_closed_store_keeps_everything_but_its_ephemeral_nodes(reopen: Open) -> None:
    first = reopen()
    first.multi([Create("/a", b"1"), Create("/e", b"2", ephemeral=True), Set("/a", b"3")])
    assert first.get("/e") == Node(b"2", 0, True)
    first.close()
    second = reopen()
    assert second.get("/a") == Node(b"3", 1)
    assert second.get("/e") is None
    second.close()


@pytest.mark.parametrize("path", ["", "a", "/a/", "//a", "/a//b", "/a\0b"])
def test_what_is_no_path_is_a_mistake_of_the_caller(store: MetadataStore, path: str) -> None:
    with pytest.raises(ValueError, match="not the path"):
        store.get(path)
    with pytest.raises(ValueError, match="not the path"):
        store.multi([Create(path)])


paths = st.sampled_from(["/a", "/b", "/a/b", "/a/c", "/a/b/c"])
versions = st.sampled_from([-1, 0, 1])
operations = st.one_of(
    st.builds(Create, paths, st.binary(max_size=3)),
    st.builds(Set, paths, st.binary(max_size=3), versions),
    st.builds(Delete, paths, versions),
    st.builds(Check, paths, versions),
)


@settings(max_examples=60)
@given(st.lists(st.lists(operations, min_size=1, max_size=3), max_size=12))
def test_both_stores_agree_on_any_history(
    tmp_path_factory: pytest.TempPathFactory, history: list[list[Operation]]
) -> None:
    file, model = EmbeddedStore(tmp_path_factory.mktemp("store")), ModelStore().session()
    for step in history:
        outcomes = []
        for store in (file, model):
            try:
                store.multi(step)
                outcomes.append("done")
            except StoreConflict as refusal:
                outcomes.append(str(refusal))
        assert outcomes[0] == outcomes[1]
        for path in ("/", "/a", "/b", "/a/b", "/a/c", "/a/b/c"):
            assert file.get(path) == model.get(path)
            assert file.children(path) == model.children(path)
    file.close()
    model.close()


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
    assert store.get("/b") == Node(b"1", 0)
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
        assert copied.get("/a") == Node(b"2", 1)


def test_a_file_without_checksums_gets_them(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / FILE_NAME)
    database.executescript(
        """
        PRAGMA journal_mode=WAL; PRAGMA user_version=1;
        CREATE TABLE node (
            path TEXT PRIMARY KEY, parent TEXT NOT NULL, data BLOB NOT NULL, version INTEGER NOT NULL,
            ephemeral INTEGER NOT NULL
        ) WITHOUT ROWID;
        CREATE INDEX child ON node (parent, path);
        INSERT INTO node VALUES ('/', '', x'', 0, 0), ('/a', '/', x'31', 3, 0), ('/b', '/', x'31', 0, 1);
        """
    )
    database.close()
    for _ in range(2):
        with contextlib.closing(EmbeddedStore(tmp_path)) as store:
            assert (store.get("/a"), store.get("/b"), store.children("/")) == (Node(b"1", 3), None, ["a"])


def test_what_a_store_is_as_a_file_is_a_store(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path)
    store.multi([Create("/a", b"1"), Create("/b", b"2", ephemeral=True)])
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / FILE_NAME).write_bytes(store.as_file())
    store.close()
    with contextlib.closing(EmbeddedStore(tmp_path / "copy")) as copy:
        assert (copy.get("/a"), copy.get("/b")) == (Node(b"1", 0), None)
