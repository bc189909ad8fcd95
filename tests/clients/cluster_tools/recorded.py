"""What Kafka's tools printed of Kafka's brokers: one line for each step, behind a header with version and date."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

RECORDING = Path(__file__).parent / "recordings" / "4.3.1.jsonl"
ACCEPTED = {
    "elect for a topic that is not there": "our sentence names the partition",
    "elect a preferred leader that is dead": "our sentence says why it is not available",
}
"""Steps whose answers differ, and why that is right."""


def recorded() -> dict[str, list[str]]:
    _, *lines = RECORDING.read_text().splitlines()
    return dict(map(json.loads, lines))


def differences(known: Mapping[str, list[str]], found: Iterable[tuple[str, list[str]]]) -> Iterator[str]:
    """A text for each step that has another answer, with both."""
    left = dict(known)
    for name, lines in found:
        theirs = left.pop(name, None)
        if theirs is None:
            yield f"{name}: not recorded"
        elif (theirs == lines) == (name in ACCEPTED):
            shown = [f"  - {line}" for line in theirs if line not in lines]
            shown += [f"  + {line}" for line in lines if line not in theirs]
            yield "\n".join([f"{name}: " + ("now the same" if theirs == lines else "differs"), *shown])
    yield from (f"{name}: was not asked" for name in left)
