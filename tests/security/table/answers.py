"""What is compared of an answer, and how answers are kept: one line for each API, case and set of rights, with the
classes of versions that have the same answer.

Ids, ports and times become words, the throttle time is left out, and elements of arrays are sorted: that their order
tells nothing is shown by `test_existence.py`. Of a message only counts whether there is one, or an empty one, or null.
"""

import json
import re
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from moldau.protocol.schema import specs
from tests.security.table.playing import Asked

RECORDINGS = Path(__file__).parent / "recordings"
NO_TEXT = (None, "")
A_TIME = "a time"
CLOSED = "closed"
_WORDS = {"port": "port", "host": "host", "cluster_id": "cluster", "producer_id": "producer id", "log_dir": "folder"}
"""Fields whose values differ between right brokers, where they say anything."""
_OFFSETS = ("base_offset", "high_watermark", "last_stable_offset", "log_start_offset", "offset", "end_offset")
_WORDS |= dict.fromkeys(_OFFSETS, "an offset")
_TIMES = ("issue_timestamp", "expiry_timestamp", "max_timestamp")
_WORDS |= {**dict.fromkeys((*_TIMES, *(f"{name}_ms" for name in _TIMES)), A_TIME), "token_id": "token id"}
_SAYS_NOTHING = ("", -1, None)
_NEVER = 0
_MADE = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
"""The end of a member's id that a broker has made."""


class Answer(NamedTuple):
    """The answers to a case with one set of rights: a value for each class of versions."""

    api: str
    case: str
    rights: str
    by_versions: dict[str, Any]


def plain(message: Any, version: int, here: uuid.UUID) -> Any:
    """A reply as it is compared."""
    if message is None:
        return CLOSED
    return _plain(message, version, here)


def _plain(value: Any, version: int, here: uuid.UUID) -> Any:
    if isinstance(value, list):
        return sorted((_plain(one, version, here) for one in value), key=lambda one: json.dumps(one, sort_keys=True))
    if isinstance(value, uuid.UUID):
        return "id of here" if value == here else "no id" if not value.int else "id"
    if isinstance(value, bytes | bytearray | memoryview):
        return "bytes" if value else ""
    if isinstance(value, str) and _MADE.search(value):
        return "a member"
    if not hasattr(type(value), "__slots__") or isinstance(value, int | str | float | None):
        return value
    tree = {}
    for name, spec, _ in specs(type(value)):
        if spec.since <= version <= spec.until and name != "throttle_time_ms":
            field = getattr(value, name)
            tree[name] = _named(name, field) if name in _WORDS or "message" in name else _plain(field, version, here)
    return tree


def _named(name: str, value: Any) -> Any:
    if "message" in name:
        return value if value in NO_TEXT else "text"
    return value if value in _SAYS_NOTHING or (value == _NEVER and _WORDS[name] == A_TIME) else _WORDS[name]


def grouped(answers: Iterable[tuple[Asked, Any]]) -> list[Answer]:
    """The answers, versions with the same one together."""
    by_case: dict[tuple[str, str, str], dict[str, list[int]]] = {}
    for asked, answer in answers:
        key = asked.api.name, asked.case.name, ", ".join(asked.rights) or "none"
        by_case.setdefault(key, {}).setdefault(json.dumps(answer, sort_keys=True), []).append(asked.version)
    return [
        Answer(*key, {_versions(versions): json.loads(text) for text, versions in by_answer.items()})
        for key, by_answer in sorted(by_case.items())
    ]


def _versions(numbers: list[int]) -> str:
    return ",".join(map(str, sorted(numbers)))


def saved(version: str) -> tuple[dict[str, Any], list[Answer]]:
    """What was recorded of that version of Kafka: how and when, and the answers."""
    first, *rest = (RECORDINGS / f"{version}.jsonl").read_text().splitlines()
    return json.loads(first), [Answer(*json.loads(line)) for line in rest]


def save(version: str, header: dict[str, Any], answers: Iterable[Answer]) -> None:
    lines = [json.dumps(header), *(json.dumps(list(one), sort_keys=True) for one in answers)]
    (RECORDINGS / f"{version}.jsonl").write_text("\n".join(lines) + "\n")
