"""Kafka's dump tool in one JVM for many files, and what it prints as data: batches, records, entries, complaints.

What it printed is recorded by the bytes that it was given: the same files are the same verdict, and other ones are
another question (`tests/refereed.py`).

A line that is not known to be harmless is a complaint, and so is a batch that does not hold and a file that is said to
have nothing: whoever asks compares what was found with what must be there. Gaps between offsets are kept apart, since
compaction makes them.
"""

import hashlib
import json
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from harness.patience import stretched
from harness.quick_jvm import QUICK_JVM
from moldau.protocol.stored import TRANSACTION_STATES
from tests import refereed
from tests.environments import java_class, kafka_jars

JVM = (*QUICK_JVM, "-Xshare:auto", "-Xmx256m")
INDEXES = (".index", ".timeindex")
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
OF_THE_JVM = re.compile(r"^SLF4J: .*\n", re.MULTILINE)
"""Printed once by each JVM, with the first answer."""
STATUS = re.compile(r'(?<="transactionStatus":)"(\w+)"')
"""Kafka 4.4 prints the name of a transaction's state, 4.3 its number."""
HARMLESS = re.compile(r"^(Log starting offset: \d+|.* passed sanity check\.|.* is empty\.|)$")


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
    """What the tool says, as recorded, or of one JVM. `dump` may be called as often as wanted."""

    def __init__(self, known: refereed.Answers) -> None:
        self._known = known
        self._process: subprocess.Popen[str] | None = None

    def dump(self, files: Iterable[Path], *options: str) -> Dump:
        """Dump these files with these options of the tool."""
        asked = list(files)
        assert asked, "nothing to dump"
        return read(self._ask({"dump": ["--files", ",".join(str(file) for file in asked), *options]}, asked))

    def read(self, file: Path) -> list[str]:
        """What Kafka's own classes find in a checkpoint, an id of a topic, the marks of a log folder."""
        return self._ask({"read": str(file)}, [file])

    def _ask(self, request: Any, files: list[Path]) -> list[str]:
        """The lines that were printed, with a last one for an error that ended it."""
        names = names_of_folders(files)

        def ask() -> tuple[str, str | None]:
            answer = json.loads(self._exchange(json.dumps(request)))
            printed = STATUS.sub(by_number, replaced(OF_THE_JVM.sub("", answer["printed"]), names))
            return in_order(printed), answer["error"] and replaced(answer["error"], names)

        question = [replaced(json.dumps(request), names), *map(digest, what_is_read(files))]
        printed, error = self._known.to("\n".join(question), ask, alike)
        folders = {name: folder for folder, name in names.items()}
        lines: list[str] = replaced(printed, folders).splitlines()
        return [*lines, f"the tool failed: {replaced(error, folders)}"] if error else lines

    def _exchange(self, line: str) -> str:
        stdin, stdout = self._pipes()
        stdin.write(line + "\n")
        stdin.flush()
        found = stdout.readline()
        assert found, "the JVM of the dump tool ended"
        return found

    def _pipes(self) -> tuple[IO[str], IO[str]]:
        if self._process is None:
            class_path = java_class(Path(__file__).parent / "Dumps.java", kafka_jars())
            self._process = subprocess.Popen(
                ["java", *JVM, "-cp", class_path, "Dumps"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        assert self._process.stdin is not None and self._process.stdout is not None
        return self._process.stdin, self._process.stdout

    def close(self) -> None:
        if self._process is None:
            return
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
    with refereed.answers(Path(__file__).parent / "recordings" / "dumps.jsonl.xz") as known:
        tool = DumpTool(known)
        try:
            yield tool
        finally:
            tool.close()


def names_of_folders(files: Iterable[Path]) -> dict[str, str]:
    """By the folder of each file, what stands for it in questions and answers; longer paths first."""
    folders = sorted({file.parent for file in files}, key=lambda folder: (-len(str(folder)), folder))
    return {f"{folder}/": f"<{number}>/" for number, folder in enumerate(folders)}


def replaced(text: str, names: Mapping[str, str]) -> str:
    for before, after in names.items():
        text = text.replace(before, after)
    return text


def by_number(state: re.Match[str]) -> str:
    return str(TRANSACTION_STATES.index(state[1]))


def in_order(printed: str) -> str:
    """With the gaps of files in the order of their names: the tool has them in that of a hash map of whole paths."""
    first, *gaps = re.split(rf"^(?={GAPS})", printed, flags=re.MULTILINE)
    if not gaps:
        return printed
    ends = re.match(r"[^\n]*\n(  [^\n]*\n)*", gaps[-1])
    assert ends is not None
    gaps[-1], rest = gaps[-1][: ends.end()], gaps[-1][ends.end() :]
    return "".join([first, *sorted(gaps), rest])


def alike(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """The same was printed, and the same kind of error ended it: its words are not the same in all versions."""
    kinds = [error and error.partition(":")[0] for _, error in (one, other)]
    return bool(one[0] == other[0]) and kinds[0] == kinds[1]


def what_is_read(files: Iterable[Path]) -> Iterator[Path]:
    """These files, and for an index its segment: the tool compares them."""
    for file in files:
        yield file
        if file.suffix in INDEXES:
            yield from sorted(file.with_suffix(suffix) for suffix in (".log", *INDEXES))


def digest(file: Path) -> str:
    data = file.read_bytes() if file.exists() else b"nothing"
    return f"{file.name} {hashlib.sha256(data).hexdigest()}"


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
