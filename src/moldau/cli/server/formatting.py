"""`moldau server format`: the metadata of a broker with users, before its first start."""

import asyncio
import re
import secrets
from collections.abc import Sequence

from moldau.broker import Broker
from moldau.cli.output import note, print_json
from moldau.cli.security.passwords import checked, password_in
from moldau.cli.server.start import properties_of
from moldau.cluster.cluster import Cluster
from moldau.cluster.users.changes import CredentialChange, keep
from moldau.config import broker_config
from moldau.errors import ConfigError
from moldau.process import shared_store
from moldau.runtime import Runtime
from moldau.transport.sasl import scram
from moldau.transport.sasl.exchange import SaslFailed, from_base64

ITERATIONS = 8_192
_WANTED = re.compile(r"\s*([A-Za-z0-9-]+)\s*=\s*\[(.*)\]\s*", re.DOTALL)
_FIELDS = ("name", "password", "passwordfile", "iterations", "salt", "saltedpassword")


def format_broker(
    file: str, users: Sequence[str], data_dir: str | None, settings: Sequence[str], *, as_json: bool
) -> None:
    """Raises `ConfigError`, `StorageError`."""
    config, warnings = broker_config(properties_of(file or None, data_dir=data_dir, settings=settings))
    for warning in warnings:
        note(warning)
    changes = [wanted(text) for text in users]

    async def work(cluster: Cluster) -> None:
        await keep(cluster.store, changes)

    async def formatted() -> None:
        runtime = Runtime()
        await Broker(config, runtime, shared=shared_store(config, runtime)).work_stopped(work)

    asyncio.run(formatted())
    where = config.zookeeper_connect or ", ".join(config.data_folders)
    names = list(dict.fromkeys(one.user for one in changes))
    if as_json:
        print_json({"formatted": where, "users": names})
    else:
        print(f"formatted {where}" + (f" with the users {', '.join(names)}" if names else ""))


def wanted(text: str) -> CredentialChange:
    """The credential that one `--add-scram` asks for. Raises `ConfigError`, which does not repeat it."""
    match = _WANTED.fullmatch(text)
    if match is None or match[1] not in scram.HASHES:
        raise ConfigError(
            f"--add-scram is MECHANISM=[name=NAME,password=PASSWORD], with one of {', '.join(scram.HASHES)}"
        )
    given = _fields(match[2])
    iterations = given.get("iterations", str(ITERATIONS))
    if not (iterations.isascii() and iterations.isdecimal() and len(iterations) < 9) or not (
        scram.ITERATIONS_MIN <= int(iterations) <= scram.ITERATIONS_MAX
    ):
        raise ConfigError(f"--add-scram needs {scram.ITERATIONS_MIN} to {scram.ITERATIONS_MAX} iterations")
    try:
        salt = from_base64(given["salt"]) if "salt" in given else secrets.token_bytes(scram.SALT_BYTES)
        salted = from_base64(given["saltedpassword"]) if "saltedpassword" in given else None
    except SaslFailed:
        raise ConfigError("--add-scram needs salt and saltedpassword in base64") from None
    if salted is None:
        password = (
            password_in(given["passwordfile"])
            if "passwordfile" in given
            else checked(given.get("password", ""), "--add-scram")
        )
        salted = scram.salted_password(match[1], password, salt, int(iterations))
    elif "salt" not in given:
        raise ConfigError("--add-scram with saltedpassword needs its salt")
    return CredentialChange(given["name"], match[1], scram.credential(match[1], salt, int(iterations), salted))


def _fields(text: str) -> dict[str, str]:
    """`name=value,name="value"`; a comma in a value is kept if no field's name follows it."""
    parts = re.split(rf",\s*(?=(?:{'|'.join(_FIELDS)})=)", text.strip())
    given = {name: _unquoted(value) for name, _, value in (part.partition("=") for part in parts)}
    if len(given) < len(parts) or not given.keys() <= {*_FIELDS} or not given.get("name"):
        raise ConfigError(f"--add-scram has the fields {', '.join(_FIELDS)}, each once, and name always")
    return given


def _unquoted(value: str) -> str:
    """Kafka's documents have values in double quotes, which `kafka-storage` takes away."""
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] == '"' else value
