"""The broker's own trace of its groups: what it wrote into `__consumer_offsets`, and the answers it logged."""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.churn.evidence import Answer, Current, Generation, Share

LOGGING = ("--log-level", "moldau.groups=debug")
STAMPED = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) DEBUG (\{.*\})")


def dumped(data: Path, environment: Mapping[str, str]) -> list[dict[str, Any]]:
    """Every record of `__consumer_offsets` that the broker has, decoded: `moldau log dump`."""
    folders = sorted(str(path) for path in data.glob("__consumer_offsets-*"))
    logs = [str(path) for folder in folders for path in sorted(Path(folder).glob("*.log")) if path.stat().st_size]
    command = [sys.executable, "-m", "moldau", "log", "dump", "--records", "--json", "--decoder", "offsets", *logs]
    done = subprocess.run(command, capture_output=True, text=True, env={**environment})
    assert done.returncode == 0, done.stderr[-2000:]
    documents = (json.loads(line) for line in done.stdout.splitlines())
    return [document for document in documents if document["type"] == "record"]


def written(documents: Iterable[Mapping[str, Any]], topics: Mapping[str, str]) -> dict[str, list[Generation | Current]]:
    """By group, what was written about it, in order; `topics` gives the topic that each group reads."""
    found: dict[str, list[Generation | Current]] = {}
    clients: dict[str, tuple[str, str | None]] = {}
    for document in documents:
        said, at_ms = document["decoded"], document["timestamp_ms"]
        group, value = said.get("group"), said.get("value")
        if group not in topics:
            continue
        of_group = found.setdefault(group, [])
        if said["type"] == "group":
            shares = {member["member_id"]: _share(member, topics[group]) for member in (value or {}).get("members", ())}
            of_group.append(Generation(at_ms, value["generation"] if value else -1, shares))
        elif said["type"] == "consumer group member" and value is not None:
            clients[said["member_id"]] = value["client_id"], value["instance_id"] or None
        elif said["type"] == "assignment of a member":
            member = said["member_id"]
            client, instance = clients.get(member, ("", None))
            if value is None:
                of_group.append(Current(at_ms, -1, member, client, instance=instance))
            else:
                assigned = _numbers(value["assigned_partitions"])
                revoking = _numbers(value["partitions_pending_revocation"])
                of_group.append(Current(at_ms, value["member_epoch"], member, client, assigned, revoking, instance))
    return found


def _share(member: Mapping[str, Any], topic: str) -> Share:
    """What a member has in a generation; one whose words cannot be read has nothing."""

    def partitions(said: Any, name: str) -> frozenset[int]:
        there = said[name] if isinstance(said, dict) else []
        return _numbers(one for one in there if one["topic"] == topic)

    assignment = partitions(member["assignment"], "assigned_partitions")
    kept = partitions(member["subscription"], "owned_partitions")
    return Share(member["client_id"], assignment, kept, member["group_instance_id"])


def _numbers(topics: Iterable[Mapping[str, Any]]) -> frozenset[int]:
    return frozenset(partition for topic in topics for partition in topic["partitions"])


def answers(log: Iterable[str]) -> dict[str, list[Answer]]:
    """By group, what the broker logged of its answers."""
    found: dict[str, list[Answer]] = {}
    for line in log:
        if stamped := STAMPED.match(line):
            at_ms = round(datetime.strptime(stamped[1], "%Y-%m-%d %H:%M:%S,%f").timestamp() * 1000)
            said = json.loads(stamped[2])
            answer = Answer(
                at_ms - said["ms"], at_ms, said["api"], said["client"], said["member"], said["epoch"], said["error"]
            )
            found.setdefault(said["group"], []).append(answer)
    return found
