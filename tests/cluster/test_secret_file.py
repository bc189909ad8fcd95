"""The file with the secret that the brokers of a cluster share: only they may read it."""

import os
from pathlib import Path

import pytest

from moldau.cluster.secret_file import BYTES_MAX, make_secret_file, read_secret_file
from moldau.errors import ConfigError


def test_a_secret_is_made_once_and_for_this_user_only(tmp_path: Path) -> None:
    path = tmp_path / "cluster" / "secret"
    umask = os.umask(0)
    try:
        make_secret_file(path)
    finally:
        os.umask(umask)
    secret = read_secret_file(str(path))
    assert len(secret) == 64
    assert path.stat().st_mode & 0o777 == 0o600
    make_secret_file(path)
    assert read_secret_file(str(path)) == secret
    make_secret_file(tmp_path / "other")
    assert read_secret_file(str(tmp_path / "other")) != secret


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_file_that_others_may_use_is_refused_with_the_command_that_mends_it(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "secret"
    make_secret_file(path)
    path.chmod(mode)
    with pytest.raises(ConfigError, match=f"run `chmod 600 {path}`"):
        read_secret_file(str(path))


@pytest.mark.parametrize("content", [b"", b"\n" * 64, b"short\n", b"x" * (BYTES_MAX + 1)])
def test_a_file_that_has_no_secret_is_refused_without_being_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "secret"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="must have 32 to 4096 bytes: run `openssl rand -hex 32") as refused:
        read_secret_file(str(path))
    assert "short" not in str(refused.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(ConfigError, match=f"cannot read {path}, which cluster.secret.file names: "):
            read_secret_file(str(path))
