"""A plan as a file, in the form of Kafka's `kafka-reassign-partitions`, which reads it too.

    {"version": 1, "partitions": [{"topic": "events", "partition": 0, "replicas": [3, 1]}, ...]}

The same plan is the same bytes: partitions are sorted, and each is on a line of its own.
"""

import json
import os
from pathlib import Path
from typing import Any

from moldau.cli.cluster.moving.cluster_layout import MovePlan
from moldau.errors import ConfigError
from moldau.names import TopicPartition

BYTES_MAX = 64 << 20


def plan_text(plan: MovePlan) -> str:
    rows = [
        json.dumps({"topic": tp.topic, "partition": tp.partition, "replicas": [*plan[tp]]}, ensure_ascii=False)
        for tp in sorted(plan)
    ]
    return '{"version": 1, "partitions": [\n' + ",\n".join(rows) + "\n]}\n"


def write_plan(path: Path, plan: MovePlan) -> None:
    """Replaces the file in one step. Raises `ConfigError`."""
    beside = path.with_name(f"{path.name}.new")
    try:
        beside.write_text(plan_text(plan), encoding="utf-8")
        os.replace(beside, path)
    except OSError as error:
        raise ConfigError(f"the plan cannot be written to {path}: {error.strerror or error}") from error


def read_plan(path: Path) -> dict[TopicPartition, tuple[int, ...]]:
    """Raises `ConfigError`: it cannot be read, or is not a plan."""
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
    plan: dict[TopicPartition, tuple[int, ...]] = {}
    for number, row in enumerate(rows, 1):
        tp, replicas = _entry(row, f"{path}, partition {number} of the list")
        if tp in plan:
            raise ConfigError(f"{path} has {tp} twice")
        plan[tp] = replicas
    return plan


def _entry(row: Any, where: str) -> tuple[TopicPartition, tuple[int, ...]]:
    if isinstance(row, dict):
        topic, partition, replicas = row.get("topic"), row.get("partition"), row.get("replicas")
        if (
            isinstance(topic, str)
            and isinstance(partition, int)
            and _is_number(partition)
            and isinstance(replicas, list)
            and replicas
            and all(map(_is_number, replicas))
        ):
            return TopicPartition(topic, partition), tuple(replicas)
    raise ConfigError(f'{where} must be {{"topic": NAME, "partition": NUMBER, "replicas": [BROKER, ...]}}')


def _is_number(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 31
