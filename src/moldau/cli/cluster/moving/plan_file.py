"""A plan as a file, in the form of Kafka's `kafka-reassign-partitions`, which reads it too.

    {"version": 1, "partitions": [{"topic": "events", "partition": 0, "replicas": [3, 1]}, ...]}

The same plan is the same bytes: partitions are sorted, and each is on a line of its own. Kafka's plans may have
"log_dirs" beside "replicas": the log folder of each replica on its broker, or "any" (`wanted_folders`).
"""

import json
import os
from pathlib import Path
from typing import Any, Final, NamedTuple

from moldau.cli.cluster.moving.cluster_layout import MovePlan
from moldau.errors import ConfigError
from moldau.names import TopicPartition

BYTES_MAX = 64 << 20
ANY_FOLDER: Final = "any"


class PlanEntry(NamedTuple):
    """One partition of a plan; `folders` are as many as `replicas`, or none."""

    tp: TopicPartition
    replicas: tuple[int, ...]
    folders: tuple[str, ...]


def plan_text(plan: MovePlan) -> str:
    rows = [
        json.dumps({"topic": tp.topic, "partition": tp.partition, "replicas": [*plan[tp]]}, ensure_ascii=False)
        for tp in sorted(plan)
    ]
    return '{"version": 1, "partitions": [\n' + ",\n".join(rows) + "\n]}\n"


def write_plan(path: Path, plan: MovePlan) -> None:
    """Replaces the file in one step, the one that a link names; a device such as /dev/null is written to. Raises
    `ConfigError`."""
    try:
        path = path.resolve()
        if path.exists() and not path.is_file():
            path.write_text(plan_text(plan), encoding="utf-8")
            return
        beside = path.with_name(f"{path.name}.new")
        beside.write_text(plan_text(plan), encoding="utf-8")
        os.replace(beside, path)
    except OSError as error:
        raise ConfigError(f"the plan cannot be written to {path}: {error.strerror or error}") from error


def read_plan(path: Path) -> dict[TopicPartition, tuple[int, ...]]:
    """Raises `ConfigError`: it cannot be read, or is not a plan."""
    return {entry.tp: entry.replicas for entry in _read(path)}


def wanted_folders(path: Path) -> dict[tuple[int, TopicPartition], str]:
    """The log folders that a plan names for its replicas: (broker, partition) -> path. Raises `ConfigError`."""
    return {
        (broker, entry.tp): folder
        for entry in _read(path)
        for broker, folder in zip(entry.replicas, entry.folders, strict=False)
        if folder != ANY_FOLDER
    }


def _read(path: Path) -> list[PlanEntry]:
    try:
        if path.stat().st_size > BYTES_MAX:
            raise ConfigError(f"{path} is larger than a plan can be ({BYTES_MAX >> 20} MiB)")
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not JSON: {error}") from error
    rows = document.get("partitions") if isinstance(document, dict) else None
    if not isinstance(rows, list) or document.get("version", 1) != 1:
        raise ConfigError(f'{path} is not a plan: it must be {{"version": 1, "partitions": [...]}}')
    plan: dict[TopicPartition, PlanEntry] = {}
    for number, row in enumerate(rows, 1):
        entry = _entry(row, f"{path}, partition {number} of the list")
        if entry.tp in plan:
            raise ConfigError(f"{path} has {entry.tp} twice")
        plan[entry.tp] = entry
    return list(plan.values())


def _entry(row: Any, where: str) -> PlanEntry:
    if isinstance(row, dict):
        topic, partition, replicas = row.get("topic"), row.get("partition"), row.get("replicas")
        folders = row.get("log_dirs", [])
        if (
            isinstance(topic, str)
            and isinstance(partition, int)
            and _is_number(partition)
            and isinstance(replicas, list)
            and replicas
            and all(map(_is_number, replicas))
        ):
            is_named = isinstance(folders, list) and all(isinstance(one, str) for one in folders)
            if len({*replicas}) < len(replicas):
                raise ConfigError(f"{where} has a broker twice among its replicas")
            if not is_named or len(folders) not in (0, len(replicas)):
                raise ConfigError(f'{where} must have as many "log_dirs", each a path or "any", as "replicas"')
            return PlanEntry(TopicPartition(topic, partition), tuple(replicas), tuple(folders))
    raise ConfigError(f'{where} must be {{"topic": NAME, "partition": NUMBER, "replicas": [BROKER, ...]}}')


def _is_number(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 31
