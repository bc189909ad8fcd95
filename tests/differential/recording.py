"""What Apache Kafka answered to the script: `recordings/VERSION.jsonl.xz`, a header and a line for each step.

The header names Kafka's version, the day, the command that made the file, and the rules that took something out of the
answers. A step's line has its name, the digest of what was sent, the normalised outcome, and what was saved of it in
variables. Times are kept as distances from the run's `NOW`, ids and bytes as hexadecimal digits.

A recording is made from two plays: a value in which they differ becomes `ANY`, which equals everything.
"""

import json
import lzma
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.differential.batches import NOW
from tests.differential.playing import Outcome
from tests.differential.script import Step, Tree

FOLDER = Path(__file__).parent / "recordings"
OF_THIS_TIME_MS = 10 * 365 * 86_400_000
"""An integer nearer to `NOW` than this is a time."""


class Uncertain(str):
    """The one value that says that Kafka's answer is not certain."""


ANY: Final = Uncertain("<any>")


@dataclass(frozen=True)
class Recording:
    """One version's answers, by the names of the steps in the order of the script."""

    version: str
    header: Mapping[str, Any]
    outcomes: Mapping[str, Outcome]
    digests: Mapping[str, str]
    saved: Mapping[str, Mapping[str, Any]]
    """The variables that each step saved, encoded; the values are those of one play."""

    @property
    def rules(self) -> set[str]:
        return set(self.header["rules"])


def path_of(version: str) -> Path:
    return FOLDER / f"{version}.jsonl.xz"


def read(version: str) -> Recording:
    header, *lines = (json.loads(line) for line in lzma.decompress(path_of(version).read_bytes()).splitlines())
    return Recording(
        version,
        header,
        outcomes={line["step"]: Outcome(line["kind"], decode(line["tree"])) for line in lines},
        digests={line["step"]: line["digest"] for line in lines},
        saved={line["step"]: line["saved"] for line in lines if "saved" in line},
    )


def write(recording: Recording) -> Path:
    lines: list[Mapping[str, Any]] = [recording.header]
    for name, outcome in recording.outcomes.items():
        line = {"step": name, "digest": recording.digests[name], "kind": outcome.kind, "tree": encode(outcome.tree)}
        lines.append({**line, "saved": recording.saved[name]} if name in recording.saved else line)
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    path = path_of(recording.version)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    return path


def changed(steps: Sequence[Step], digests: Mapping[str, str], recording: Recording) -> list[str]:
    """What the recording does not have of these steps, or has of others, each as a sentence."""
    names = [one.name for one in steps]
    missing = [name for name in names if recording.digests.get(name) != digests[name]]
    gone = [name for name in recording.digests if name not in digests]
    said = [f"not in the recording as it is asked now: {name}" for name in missing]
    said += [f"in the recording, but not in the script: {name}" for name in gone]
    if not said and names != list(recording.digests):
        said = ["the script has another order than the recording"]
    return said


def certain(one: Any, other: Any) -> Any:
    """What two plays say alike; `ANY` in place of what they do not."""
    if isinstance(one, Outcome):
        if one.kind != other.kind:
            return Outcome("either", ANY)
        return Outcome(one.kind, certain(one.tree, other.tree))
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return {name: certain(value, other[name]) for name, value in one.items()}
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [certain(*both) for both in zip(one, other, strict=True)]
    return one if one == other and type(one) is type(other) else ANY


def uncertain(tree: Tree) -> int:
    """How many places are `ANY`."""
    if isinstance(tree, dict):
        return sum(map(uncertain, tree.values()))
    return sum(map(uncertain, tree)) if isinstance(tree, list) else int(tree is ANY)


def encode(value: Any) -> Any:
    """As JSON can say it; `decode` is the way back."""
    if value is ANY:
        return {"$any": 1}
    if isinstance(value, dict):
        return {name: encode(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    if isinstance(value, uuid.UUID):
        return {"$uuid": value.hex}
    if isinstance(value, bytes | bytearray | memoryview):
        return {"$bytes": bytes(value).hex()}
    if isinstance(value, int) and abs(value - NOW) < OF_THIS_TIME_MS:
        return {"$now": value - NOW}
    return value


def decode(value: Any) -> Any:
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"$any": 1}:
            return ANY
        case {"$uuid": digits}:
            return uuid.UUID(digits)
        case {"$bytes": digits}:
            return bytes.fromhex(digits)
        case {"$now": distance}:
            return NOW + distance
    return {name: decode(item) for name, item in value.items()}
