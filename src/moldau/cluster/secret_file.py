"""A secret that all brokers of a cluster share in a file (`cluster.secret.file`), besides that in the metadata store.

Who can read the metadata store, but not this file, cannot act as a broker. All of it blocks.
"""

import contextlib
import os
import secrets
import stat
from pathlib import Path

from moldau.errors import ConfigError

SETTING = "cluster.secret.file"
BYTES_MIN, BYTES_MAX = 32, 4096


def read_secret_file(path: str) -> bytes:
    """The secret: the file's content without the white space at its ends. Raises `ConfigError`: the file cannot be
    read, others may read it, or it is too short to be a secret."""
    try:
        with Path(path).open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(BYTES_MAX + 1).strip()
    except OSError as error:
        raise ConfigError(f"cannot read {path}, which {SETTING} names: {error.strerror or error}") from None
    if stat.S_IMODE(mode) & 0o077:
        raise ConfigError(f"other users may read {path}, which {SETTING} names: run `chmod 600 {path}`")
    if not BYTES_MIN <= len(content) <= BYTES_MAX:
        raise ConfigError(
            f"{path}, which {SETTING} names, must have {BYTES_MIN} to {BYTES_MAX} bytes: run `openssl rand -hex 32 > "
            f"{path}` and copy the file to all brokers"
        )
    return content


def make_secret_file(path: Path) -> None:
    """Write a new secret that only this user may read, unless the file exists. Raises `OSError`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{secrets.token_hex(32)}\n")
