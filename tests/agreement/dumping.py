"""Kafka's dump tool in one JVM for many files, and what it prints as data: batches, records, entries, complaints.

A line that is not known to be harmless is a complaint, and so is a batch that does not hold and a file that is said to
have nothing: whoever asks compares what was found with what must be there. Gaps between offsets are kept apart, since
compaction makes them.
"""

import json
import re
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from harness.patience import stretched
from tests.environments import java_class, kafka_jars

JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx256m")
HEX = ("--key-decoder-class", "Dumps$Hex", "--value-decoder-class", "Dumps$Hex")
DEEP = ("--deep-iteration", "--print-data-log", *HEX)

PAIR = re.compile(r"(\w+): (\[.*?\]|\S+)")
FIELDS = {
    "batch": re.compile(r"^baseOffset: -?\d+ lastOffset: .* isvalid: (true|false)$"),
    "record": re.compile(r"^\| offset: \d+ (CreateTime|LogAppendTime|NoTimestampType): "),
    "offset entry": re.compile(r"^offset: \d+ position: \d+$"),
    "time entry": re.compile(r"^timestamp: -?\d+ offset: \d+$"),
    "producer": re.compile(r"^producerId: \d+ producerEpoch: -?\d+ coordinatorEpoch: "),
    "aborted": re.compile(r"^version: 0 producerId: \d+ firstOffset: \d+ "),
}
GAPS = "Non-consecutive offsets in "
GAP = re.compile(r"^  (\d+) is followed by (\d+)$")
"""The first offset of a later segment is said to follow -1, which is no gap."""
HARMLESS = re.compile(r"^(SLF4J: .*|Log starting offset: \d+|.* passed sanity check\.|.* is empty\.|)$")


@dataclass
class File:
    """What the tool said of one file."""

    batches: list[dict[str, str]] = field(default_factory=list)
    records: list[dict[str, str]] = field(default_factory=list)
    entries: list[dict[str, str]] = field(default_factory=list)
    """Of an index or a snapshot."""
    sound: bool = False
    """Whether it passed the sanity check, if that was asked for."""


@dataclass
class Dump:
    files: dict[Path, File] = field(default_factory=dict)
    gaps: list[tuple[int, int]] = field(default_factory=list)
    """Offsets that follow each other with some between them left out."""
    complaints: list[str] = field(default_factory=list)

    def records(self) -> list[dict[str, str]]:
        """Of all files, in the order they were asked for."""
        return [record for file in self.files.values() for record in file.records]

    def batches(self) -> list[dict[str, str]]:
        return [batch for file in self.files.values() for batch in file.batches]


class DumpTool:
    """One JVM. `dump` may be called as often as wanted."""

    def __init__(self) -> None:
        class_path = java_class(Path(__file__).parent / "Dumps.java", kafka_jars())
        self._process = subprocess.Popen(
            ["java", *JVM, "-cp", class_path, "Dumps"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def dump(self, files: Iterable[Path], *options: str) -> Dump:
        """Dump these files with these options of the tool."""
        asked = list(files)
        assert asked, "nothing to dump"
        return read(self._ask({"dump": ["--files", ",".join(str(file) for file in asked), *options]}))

    def read(self, file: Path) -> list[str]:
        """What Kafka's own classes find in a checkpoint, an id of a topic, the marks of a log folder."""
        return self._ask({"read": str(file)})

    def _ask(self, request: Any) -> list[str]:
        """The lines that were printed, with a last one for an error that ended it."""
        answer = json.loads(self._exchange(json.dumps(request)))
        lines: list[str] = answer["printed"].splitlines()
        return [*lines, f"the tool failed: {answer['error']}"] if answer["error"] else lines

    def _exchange(self, line: str) -> str:
        stdin, stdout = self._pipes()
        stdin.write(line + "\n")
        stdin.flush()
        found = stdout.readline()
        assert found, f"the JVM of the dump tool ended with {self._process.wait()}"
        return found

    def _pipes(self) -> tuple[IO[str], IO[str]]:
        assert self._process.stdin is not None and self._process.stdout is not None
        return self._process.stdin, self._process.stdout

    def close(self) -> None:
        stdin, stdout = self._pipes()
        stdin.close()
        try:
            self._process.wait(stretched(10))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        stdout.close()


@contextmanager
def running() -> Iterator[DumpTool]:
    tool = DumpTool()
    try:
        yield tool
    finally:
        tool.close()


def read(lines: Iterable[str]) -> Dump:
    """What those lines say."""
    dump, file, in_gaps = Dump(), File(), False
    for line in lines:
        if line.startswith("Dumping "):
            file = dump.files[Path(line.removeprefix("Dumping "))] = File()
            continue
        if line.startswith(GAPS):
            in_gaps = True
        elif not line.startswith(" "):
            in_gaps = False
        if in_gaps:
            if gap := GAP.match(line):
                dump.gaps.append((int(gap[1]), int(gap[2])))
            continue
        kind = next((kind for kind, form in FIELDS.items() if form.match(line)), None)
        if kind == "batch":
            file.batches.append(pairs(line))
            if not line.endswith("isvalid: true"):
                dump.complaints.append(line)
        elif kind == "record":
            file.records.append(pairs(line))
        elif kind is not None:
            file.entries.append(pairs(line))
        elif HARMLESS.match(line):
            file.sound = file.sound or line.endswith("passed sanity check.")
        else:
            dump.complaints.append(line)
    return dump


def pairs(line: str) -> dict[str, str]:
    return dict(PAIR.findall(line))
