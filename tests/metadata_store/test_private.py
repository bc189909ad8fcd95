"""What a store writes can be read by the broker's user only: the database, what SQLite puts beside it, its copies."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.metadata_store.embedded import FILE_NAME, EmbeddedStore
from moldau.metadata_store.shared_file import SharedFile
from moldau.metadata_store.store import Create
from moldau.testing import Broker


@pytest.fixture(autouse=True)
def _a_generous_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir() if "sqlite" in path.name}


def test_a_new_database_and_what_is_beside_it_is_for_its_user_alone(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path)
    store.multi([Create("/a", b"secret")])
    assert modes(tmp_path) == dict.fromkeys((FILE_NAME, f"{FILE_NAME}-wal", f"{FILE_NAME}-shm"), 0o600)
    store.close()


def test_a_database_that_others_could_read_is_taken_from_them(tmp_path: Path) -> None:
    EmbeddedStore(tmp_path).close()
    (tmp_path / FILE_NAME).chmod(0o664)
    (tmp_path / f"{FILE_NAME}-wal").touch(0o644)
    store = EmbeddedStore(tmp_path)
    assert set(modes(tmp_path).values()) == {0o600}
    store.close()


def test_a_file_that_brokers_share_is_for_their_user_alone(tmp_path: Path) -> None:
    shared = SharedFile(tmp_path / "cluster.sqlite", 5.0)
    databases = {"cluster.sqlite", "cluster.sqlite-wal", "cluster.sqlite-shm"}
    found = {name: mode for name, mode in modes(tmp_path).items() if name in databases}
    assert found == dict.fromkeys(databases, 0o600)
    shared.end()


def test_the_copies_of_a_broker_are_for_its_user_alone(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path):
        pass
    found = modes(tmp_path)
    assert f"{FILE_NAME}.copy" in found
    assert set(found.values()) == {0o600}
