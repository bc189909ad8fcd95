"""A recording of the script: answers in a form in which two registries can be compared.

An id becomes the name of the case that has first answered it, so that one difference is not followed by others. Texts
of schemas in JSON are compared as JSON. Of an error its status and code count, not its words; a list has no order, and
lists of subjects are compared without the one that all wrong schemas are sent to.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.registry.differential.steps import STEPS, Step

RECORDING = Path(__file__).parent / "apicurio.jsonl"
UNCOMPARED = frozenset(("guid", "ts", "deleted"))
"""Fields that newer versions of Confluent's registry have and others lack."""
ID_STEP, WRONG = "registration", "wrong"


class Played(NamedTuple):
    name: str
    status: int
    answer: Any


Ask = Callable[[str, str, Any], tuple[int, Any]]
"""A request by method, path and body; its status and the JSON of the answer, or its text."""


def play(ask: Ask) -> list[Played]:
    """The answers to the whole script."""
    ids: dict[int, str] = {}
    river = "0"
    made = []
    for step in STEPS:
        status, tree = ask(step.method, step.path.replace("{river}", river), step.body)
        if step.name == ID_STEP and isinstance(tree, dict):
            river = str(tree.get("id", 0))
        made.append(Played(step.name, status, _comparable(step, status, tree, ids)))
    return made


def _comparable(step: Step, status: int, tree: Any, ids: dict[int, str]) -> Any:
    if status >= 400:
        return {"error_code": tree.get("error_code") if isinstance(tree, dict) else None}
    if isinstance(tree, list):
        flat = [_fields(step, one, ids) if isinstance(one, dict) else one for one in tree if one != WRONG]
        if step.path.endswith("/referencedby"):
            return sorted(ids.setdefault(one, step.name) for one in flat)
        return sorted(flat, key=str)
    return _fields(step, tree, ids) if isinstance(tree, dict) else tree


def _fields(step: Step, tree: dict[str, Any], ids: dict[int, str]) -> dict[str, Any]:
    made = {name: value for name, value in tree.items() if name not in UNCOMPARED}
    if isinstance(made.get("id"), int):
        made["id"] = ids.setdefault(made["id"], step.name)
    if isinstance(made.get("schema"), str):
        try:
            made["schema"] = json.loads(made["schema"])
        except ValueError:
            made["schema"] = made["schema"].split()
    return made


def saved(played: list[Played]) -> str:
    return "".join(json.dumps(one._asdict(), ensure_ascii=False) + "\n" for one in played)


def load() -> list[Played]:
    return [Played(**json.loads(line)) for line in RECORDING.read_text(encoding="utf-8").splitlines()]
