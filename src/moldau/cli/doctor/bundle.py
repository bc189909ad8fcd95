"""A file for a bug report: what the doctor found, versions, settings, descriptions, the ends of logs; no secrets.

Everything that goes in passes `redacting`. No record, key, certificate or file of a password is read into it.

    README.txt           what is in it
    doctor.json          what was found, and the facts behind it
    versions.json        of this package, Python, the system, and the libraries that are installed
    settings.properties  the broker's settings, without the values of secrets
    logs/NAME            the end of each log that was named
"""

import io
import os
import platform
import shlex
import sys
import tarfile
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Final

from moldau.cli.doctor.examining import Examination
from moldau.cli.doctor.facts import plain
from moldau.cli.doctor.redacting import Redactor
from moldau.cli.version import version
from moldau.errors import ConfigError

TAIL_BYTES: Final = 1 << 20
SECRET_BYTES_MAX: Final = 1 << 20
_README: Final = """A report of `moldau doctor` for a bug report. It has no records and no secrets: values of settings
that are secrets, and everything that looks like one, are replaced by [hidden]. Look through it before you send it.

doctor.json          what was found, and the facts behind it: addresses, topics, partitions, sizes
versions.json        of Moldau, Python, the system and the installed libraries
settings.properties  the broker's settings
logs/                the ends of the broker's logs
"""


def write_bundle(
    path: Path,
    examination: Examination,
    properties: Mapping[str, str] | None,
    client: Mapping[str, Any],
    logs: Sequence[Path],
) -> None:
    """`client`: the settings of `--command-config`, whose secrets are hidden. The file is made for this user alone.
    Raises `ConfigError` if a log cannot be read, `OSError` if the bundle cannot be written."""
    redactor = redactor_of(properties or {}, {name: str(value) for name, value in client.items()}, os.environ)
    tails = {_name(one, logs): redactor.text(_tail(one)) for one in logs}
    texts = {
        "README.txt": _README,
        "doctor.json": _json(redactor.data(as_json(examination))),
        "versions.json": _json(redactor.data(versions())),
    }
    if properties is not None:
        shown = redactor.settings(properties)
        texts["settings.properties"] = "".join(f"{name}={value}\n" for name, value in shown.items())
    texts |= {f"logs/{name}": text for name, text in tails.items()}
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        with tarfile.open(fileobj=file, mode="w:gz") as tar:
            for name, text in texts.items():
                data = text.encode()
                entry = tarfile.TarInfo(f"moldau-doctor/{name}")
                entry.size, entry.mtime, entry.mode = len(data), int(time.time()), 0o600
                tar.addfile(entry, io.BytesIO(data))


def redactor_of(properties: Mapping[str, str], client: Mapping[str, str], environment: Mapping[str, str]) -> Redactor:
    """Knows the secrets in these settings, in the files with passwords that they name, and in the environment."""
    redactor = Redactor()
    for settings in (properties, client, environment):
        redactor.learn_settings(settings)
    try:
        options = [word.partition("=")[2] for word in shlex.split(environment.get("KAFKA_OPTS", ""))]
    except ValueError:
        options = []
    for name in (properties.get("cluster.secret.file", ""), *options):
        text = _read(Path(name)) if name else ""
        redactor.learn_settings({"jaas": text})
    return redactor


def _read(path: Path) -> str:
    """The text of a small file; "" if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(SECRET_BYTES_MAX).decode(errors="replace")
    except OSError:
        return ""


def as_json(examination: Examination) -> dict[str, Any]:
    """What `--json` prints, and what the bundle has."""
    return {
        "found": plain(examination.found),
        "examined": examination.examined,
        "facts": examination.facts,
    }


def versions() -> dict[str, Any]:
    return {
        "moldau": version(),
        "python": sys.version,
        "system": platform.platform(),
        "libc": " ".join(platform.libc_ver()),
        "processors": os.cpu_count(),
        "libraries": {one.metadata["Name"]: one.version for one in distributions() if one.metadata["Name"]},
    }


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            return file.read(TAIL_BYTES).decode(errors="replace")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None


def _name(path: Path, logs: Sequence[Path]) -> str:
    """The file's name; with a number before it if several logs have that name."""
    alike = [one for one in logs if one.name == path.name]
    return path.name if len(alike) == 1 else f"{alike.index(path)}-{path.name}"


def _json(data: Any) -> str:
    import json

    return json.dumps(data, indent=2, ensure_ascii=False)
