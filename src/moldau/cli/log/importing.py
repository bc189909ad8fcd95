"""`moldau log import`: the records of log files, old formats included, are produced to a running broker.

Keys, values, headers and timestamps stay; offsets are the topic's own. Records are sent in the order of the files and
counted as they are acknowledged. Whatever ends the import before the files do, it says from which offset to go on.
"""

import shlex
import signal
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NamedTuple

from moldau.cli.command_line import Argument, Option
from moldau.cli.log.files import FilesOnly, Force, refuse_if_used
from moldau.cli.log.sources import FoundRecord, ImportSource, Passed, UnreadableBytes, sources, visible
from moldau.cli.options import BOOTSTRAP, BootstrapServer, Json, reachable
from moldau.cli.output import note, print_json
from moldau.cli.terminated import Terminated
from moldau.client.administration.admin import Admin
from moldau.client.producing.delivery import Delivery
from moldau.client.producing.producer import Producer
from moldau.errors import ConfigError, MoldauError
from moldau.names import counted

SETTLED_AT_ONCE = 10_000
PROGRESS_S = 2.0
LAST_ACKNOWLEDGEMENTS_S = 10.0


def import_files(
    paths: Annotated[list[Path], Argument("PATH...", help="Log files, or folders of partitions.")],
    topic: Annotated[str, Option("--topic", "-t", metavar="TOPIC", help="The topic to write to.")],
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    partition: Annotated[int | None, Option(min=0, help="Write all records to this partition.")] = None,
    keep_partitions: Annotated[
        bool,
        Option(
            "--keep-partitions", help="Write each folder's records to the partition that the folder's name ends in."
        ),
    ] = False,
    from_offset: Annotated[int, Option(min=0, help="The first offset to import from the first partition's files.")] = 0,
    max_messages: Annotated[
        int | None, Option("--max-messages", "-n", min=0, help="Stop after this number of records.")
    ] = None,
    compression: Annotated[str, Option(help="none, gzip, snappy, lz4 or zstd.")] = "none",
    force: Force = False,
    as_json: Json = False,
) -> int:
    """
    Produce the records of log files, of message formats 0, 1 and 2, to a topic of a running broker.

    Keys, values, headers and timestamps stay as they are; without --partition and --keep-partitions a record's key
    chooses its partition. Records of aborted transactions are left out. If the command ends early, it says at which
    offset to continue.

    Examples:

      moldau log import /old/kafka-logs/events-0 --topic events

      moldau log import /old/kafka-logs/events-* -t events --keep-partitions

      moldau log import 00000000000000000000.log -t events --from-offset 9
    """
    if keep_partitions and partition is not None:
        raise ConfigError("give --partition or --keep-partitions, not both")
    for path in paths:
        refuse_if_used(path, force)
    disk = FilesOnly()
    inputs = sources(disk, paths)
    targets = [source.partition if keep_partitions else partition for source in inputs]
    passed = Passed()
    oldest_ms = _check_topic(bootstrap_server, topic, targets)
    with (
        Producer(bootstrap_server, client_id="moldau-log-import", compression_type=compression) as producer,
        _Interrupt() as interrupt,
    ):
        work = _Import(producer, topic, _Progress(inputs, disk), oldest_ms, interrupt)
        for number, (source, target) in enumerate(zip(inputs, targets, strict=True)):
            wanted = visible(disk, source, 0 if number else from_offset, passed)
            if not work.run(wanted, number, target, max_messages):
                break
        work.end()
    return _report(work, passed, inputs, as_json)


class SourceOffset(NamedTuple):
    """A record that was read: the number of its source, and its offset there."""

    source: int
    offset: int


class _Interrupt:
    """Ctrl-C and SIGTERM are noted, and looked for between two records: raised anywhere, they may end up in a
    destructor, which swallows them. A second one breaks off wherever that is."""

    def __init__(self) -> None:
        self.asked: type[KeyboardInterrupt] | None = None

    def __enter__(self) -> "_Interrupt":
        heard = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        self._before = {number: before for number, before in heard.items() if callable(before)}
        for number in self._before:
            signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        again, self.asked = self.asked is not None, Terminated if number == signal.SIGTERM else KeyboardInterrupt
        if again:
            raise self.asked


class _Import:
    """What was sent, and what became of it, as far as is known."""

    def __init__(
        self, producer: Producer, topic: str, progress: "_Progress", oldest_ms: int | None, interrupt: _Interrupt
    ):
        self.imported = 0
        self.behind = 0
        """Records that arrived although one before them did not."""
        self.resume: SourceOffset | None = None
        self.stopped = ""
        self.damaged = False
        """What stopped it cannot be read, and `resume` lies behind that."""
        self.interrupted: KeyboardInterrupt | None = None
        self._producer = producer
        self.topic = topic
        self._progress = progress
        self._oldest_ms = oldest_ms
        self._interrupt = interrupt
        self._pending: deque[tuple[SourceOffset, Delivery]] = deque()
        self._sent = 0
        self._refused = False

    def run(self, wanted: Iterator[FoundRecord], number: int, partition: int | None, max_messages: int | None) -> bool:
        """Send a source's records; returns whether to go on with the next source."""
        reached = 0
        try:
            for entry in wanted:
                reached = entry.record.offset
                if self._interrupt.asked:
                    raise self._interrupt.asked
                if self._sent == max_messages:
                    self.resume = SourceOffset(number, reached)
                    return False
                self._send(entry, number, partition)
                reached += 1
                if self.stopped:
                    return False
        except UnreadableBytes as damage:
            self.stopped, self.damaged = str(damage), True
            self._go_on(
                SourceOffset(number, damage.behind) if damage.behind is not None else SourceOffset(number + 1, 0)
            )
        except KeyboardInterrupt as interrupted:
            self.stopped, self.interrupted = "interrupted", interrupted
            self._go_on(SourceOffset(number, reached))
        except MoldauError as failure:
            self.stopped = str(failure)
            self._go_on(SourceOffset(number, reached))
        except OSError as failure:
            self.stopped = f"{failure.filename}: {failure.strerror}"
            self._go_on(SourceOffset(number, reached))
        return not self.stopped

    def _go_on(self, place: SourceOffset) -> None:
        if self.resume is None or place < self.resume:
            self.resume = place

    def _send(self, entry: FoundRecord, number: int, partition: int | None) -> None:
        record = entry.record
        if self._oldest_ms is not None and 0 <= record.timestamp_ms < self._oldest_ms:
            note(f"topic {self.topic} deletes records as old as these: `retention.ms=-1` would keep them")
            self._oldest_ms = None
        delivery = self._producer.send(
            self.topic,
            record.value,
            record.key,
            partition=partition,
            timestamp_ms=record.timestamp_ms,
            headers=record.headers,
        )
        self._pending.append((SourceOffset(number, record.offset), delivery))
        self._sent += 1
        if len(self._pending) >= SETTLED_AT_ONCE:
            while self._pending and self._pending[0][1].done:
                self._settle()
            self._progress.show(self.imported, number, entry)

    def end(self) -> None:
        """Wait for the last acknowledgements, for some seconds only after something went wrong."""
        try:
            self._producer.close(LAST_ACKNOWLEDGEMENTS_S if self.stopped else None)
        except KeyboardInterrupt as interrupted:
            self.interrupted, self.stopped = interrupted, "interrupted"
            self._producer.close(0)
        while self._pending:
            self._settle()

    def _settle(self) -> None:
        place, delivery = self._pending.popleft()
        try:
            delivery.result(0)
        except (MoldauError, TimeoutError) as failure:
            if not self._refused:
                self._refused, self.damaged = True, False
                if not self.interrupted:
                    self.stopped = f"the record at offset {place.offset} was not taken: {failure}"
                self._go_on(place)
            return
        self.imported += 1
        self.behind += self.resume is not None and place > self.resume


class _Progress:
    """How far the import is, told every few seconds."""

    def __init__(self, inputs: list[ImportSource], disk: FilesOnly):
        self._sizes = [sum(disk.size(file) for file in source.files) for source in inputs]
        self._shown_s = time.monotonic()

    def show(self, imported: int, number: int, entry: FoundRecord) -> None:
        now_s = time.monotonic()
        if now_s - self._shown_s >= PROGRESS_S:
            self._shown_s = now_s
            percent = 100 * (sum(self._sizes[:number]) + entry.read_bytes) // sum(self._sizes)
            note(f"{percent} %: {counted(imported, 'record')}, now at offset {entry.record.offset} of {entry.path}")


def _check_topic(bootstrap_server: str, topic: str, targets: list[int | None]) -> int | None:
    """Refuse a topic, or a partition of it, that is not there; returns below which timestamp the topic deletes."""
    with Admin(reachable(bootstrap_server)) as admin:
        partitions = admin.describe_topics([topic])[topic].partitions
        configs = {entry.name: entry.value for entry in admin.topic_configs(topic)}
    for target in targets:
        if target is not None and target not in partitions:
            raise ConfigError(f"topic {topic} has no partition {target}, only 0 to {len(partitions) - 1}")
    retention_ms = int(configs.get("retention.ms") or -1)
    if retention_ms < 0 or "delete" not in (configs.get("cleanup.policy") or ""):
        return None
    return int(time.time() * 1000) - retention_ms


def _report(work: _Import, passed: Passed, inputs: list[ImportSource], as_json: bool) -> int:
    resume = None
    if work.resume is not None and work.resume.source < len(inputs):
        rest = [str(path) for source in inputs[work.resume.source :] for path in source.arguments]
        resume = {"paths": rest, "from_offset": work.resume.offset}
    skipped = {
        "control_batches": passed.control_batches,
        "aborted_records": passed.aborted_records,
        "undecided_records": passed.undecided_records,
    }
    if as_json:
        outcome = {"topic": work.topic, "imported": work.imported, "skipped": skipped}
        print_json({**outcome, "stopped": work.stopped or None, "go_on": resume})
    elif not work.stopped:
        print(f"imported {counted(work.imported, 'record')} into {work.topic}")
    _notes(passed)
    if work.stopped:
        imported = f"{counted(work.imported, 'record')} imported into {work.topic}"
        note(f"error: {work.stopped}; {imported}{_how_to_go_on(work, resume)}")
    elif resume:
        note(f"more records follow: continue with {_command(resume)}")
    if work.interrupted:
        raise work.interrupted
    return 1 if work.stopped else 0


def _notes(passed: Passed) -> None:
    for path, position in passed.zeros:
        note(f"{path} holds only zeros from position {position} on, as preallocated files do")
    if passed.aborted_records:
        note(f"left out {counted(passed.aborted_records, 'record')} of aborted transactions")
    if passed.undecided_records:
        note(f"left out {counted(passed.undecided_records, 'record')} of transactions whose end is not in these files")


def _how_to_go_on(work: _Import, resume: dict[str, Any] | None) -> str:
    if resume is None:
        return ""
    twice = f" ({counted(work.behind, 'record')} after it would be imported twice)" if work.behind else ""
    return f", go on {'behind that ' if work.damaged else ''}with {_command(resume)}{twice}"


def _command(resume: dict[str, Any]) -> str:
    return f"{shlex.join(resume['paths'])} --from-offset {resume['from_offset']}"
