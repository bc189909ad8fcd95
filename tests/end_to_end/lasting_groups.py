"""Groups of real clients that read from the first to the last moment of a test, as processes of their own.

Members are those of `tests/churn`: each notes what it was assigned and what it took. `problems` says what a group has
missed, and what a member was given twice without a reason: after a change of its assignment a member may begin before
where the group was (at least once), but within one assignment each offset follows the one before.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.patience import stretched
from tests.churn.clients import AIOKAFKA, CONFLUENT, OURS, start
from tests.churn.plan import Kind

KINDS = {
    "ours-classic": Kind(OURS),
    "ours-consumer": Kind(OURS, "consumer"),
    "confluent-classic": Kind(CONFLUENT, "classic", "cooperative-sticky"),
    "confluent-consumer": Kind(CONFLUENT, "consumer"),
    "aiokafka-classic": Kind(AIOKAFKA, "classic", "sticky"),
}
"""A group of each; the client of each, and the protocol that it speaks."""
MEMBERS = 2
SESSION_MS, HEARTBEAT_MS = 10_000, 1_500
LEAVE_S = 60
SHOWN_MAX = 5


class Note(NamedTuple):
    """A line that a member wrote (`tests/churn/members/noting.py`)."""

    at_ms: int
    what: str
    names: list[Any]


class Member:
    def __init__(self, kind: Kind, addresses: str, topic: str, group: str, number: int, folder: Path):
        self.name = f"{group}-{number}"
        self._notes = folder / f"{self.name}.notes"
        self._errors = folder / f"{self.name}.err"
        asked = {
            "bootstrap": addresses,
            "group": group,
            "topic": topic,
            "client": self.name,
            "notes": str(self._notes),
            "session_ms": SESSION_MS,
            "heartbeat_ms": HEARTBEAT_MS,
            "instance": None,
            "patient": True,
        }
        with self._errors.open("w") as errors:
            self.process = start(kind, asked, errors)

    def notes(self) -> Iterator[Note]:
        if self._notes.exists():
            for line in self._notes.read_text().splitlines():
                yield Note(*json.loads(line))

    def said(self) -> str:
        return self._errors.read_text()[-2000:]

    def leave(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self.process.wait(stretched(LEAVE_S))
        assert code == 0, f"{self.name} ended with {code}: {self.said()}"

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdin is not None:
            try:
                self.process.stdin.close()
            except OSError:
                pass


class LastingGroups:
    """Use it with `with`."""

    def __init__(self, addresses: str, topic: str, folder: Path):
        self._members = {
            group: [Member(kind, addresses, topic, group, number, folder) for number in range(MEMBERS)]
            for group, kind in KINDS.items()
        }

    def __enter__(self) -> "LastingGroups":
        return self

    def __exit__(self, *_: object) -> None:
        for members in self._members.values():
            for member in members:
                member.end()

    def processed(self, group: str) -> list[tuple[int, int]]:
        """The partition and offset of each record that the group was given, as often as it was."""
        return [
            (partition, offset)
            for member in self._members[group]
            for note in member.notes()
            if note.what == "took"
            for partition, offset in note.names
        ]

    def have_read(self, ends: Mapping[int, int]) -> list[str]:
        """The groups that have not read to these ends of partitions yet."""
        return [group for group in self._members if self._missing(group, ends)]

    def _missing(self, group: str, ends: Mapping[int, int]) -> list[tuple[int, int]]:
        done = {*self.processed(group)}
        return [(one, offset) for one, end in ends.items() for offset in range(end) if (one, offset) not in done]

    def leave(self) -> None:
        for members in self._members.values():
            for member in members:
                member.leave()

    def problems(self, ends: Mapping[int, int]) -> list[str]:
        """`ends`: those of the partitions, which begin at 0."""
        wrong = []
        for group, members in self._members.items():
            if missing := self._missing(group, ends):
                wrong.append(f"{group} has not read {len(missing)} records, the first are {missing[:SHOWN_MAX]}")
            wrong += [sentence for member in members for sentence in out_of_order(member.name, member.notes())]
        return wrong

    def figures(self) -> list[str]:
        """A line for each group."""
        lines = []
        for group, members in self._members.items():
            done = self.processed(group)
            changes = sum(note.what == "assigned" for member in members for note in member.notes())
            lines.append(
                f"{group}: {len(done)} records, {len(done) - len({*done})} of them again; {changes} assignments"
            )
        return lines


def out_of_order(name: str, notes: Iterator[Note] | Sequence[Note]) -> Iterator[str]:
    """What a member was given that does not follow what it had of the partition in the same assignment."""
    next_ones: dict[int, int] = {}
    for note in notes:
        if note.what == "took":
            for partition, offset in note.names:
                if next_ones.setdefault(partition, offset) != offset:
                    yield f"{name} was given offset {offset} of partition {partition} after {next_ones[partition] - 1}"
                next_ones[partition] = offset + 1
        elif note.what in ("assigned", "revoked", "lost"):
            for partition in note.names:
                next_ones.pop(partition, None)
