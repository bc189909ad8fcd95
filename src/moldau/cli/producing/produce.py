"""`moldau produce`: lines become records."""

import enum
import sys
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, BinaryIO

from moldau.cli.command_line import Argument, Option
from moldau.cli.options import (
    BOOTSTRAP,
    BootstrapServer,
    CommandProperty,
    Json,
    ZooKeeper,
    brokers_of,
    client_settings,
    unescaped,
)
from moldau.cli.output import note, print_json
from moldau.cli.producing.lines import LineRecord, Malformed, TextLines, json_record
from moldau.client.producing.delivery import Delivery
from moldau.client.producing.producer import Producer
from moldau.errors import ConfigError, MessageTooLarge, MoldauError, NoSuchPartition, NotDelivered
from moldau.names import counted

SETTLED_AT_ONCE = 10_000


class LineFormat(enum.Enum):
    """The form of the input's lines."""

    TEXT = "text"
    JSON = "json"


def produce(
    topic: Annotated[str, Argument("TOPIC", help="The topic to write to.")],
    files: Annotated[list[Path] | None, Argument("[FILE...]", help="Files to read; standard input if none.")] = None,
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    zookeeper: ZooKeeper = "",
    line_format: Annotated[
        LineFormat, Option("--format", help="What a line is: text, or a record as `moldau consume --json` writes it.")
    ] = LineFormat.TEXT,
    key_separator: Annotated[str, Option(metavar="TEXT", help="The text between key and value.")] = "",
    null_marker: Annotated[
        str | None, Option(metavar="TEXT", help="Keys, values and headers equal to this are null.")
    ] = None,
    headers: Annotated[
        bool, Option("--headers", help="A line begins with headers: name:value,name:value, then a tab.")
    ] = False,
    headers_delimiter: Annotated[str, Option(metavar="TEXT", help="The text after the headers.")] = "\\t",
    headers_separator: Annotated[str, Option(metavar="TEXT", help="The text between two headers.")] = ",",
    headers_key_separator: Annotated[str, Option(metavar="TEXT", help="The text after the name of a header.")] = ":",
    partition: Annotated[int | None, Option(min=0, help="Write all records to this partition.")] = None,
    compression: Annotated[str | None, Option(help="none (the default), gzip, snappy, lz4 or zstd.")] = None,
    acks: Annotated[str | None, Option(help="all (the default), 1 or 0.")] = None,
    linger_ms: Annotated[int | None, Option(help="The ms that a record waits for its batch; 5 by default.")] = None,
    command_property: CommandProperty = None,
    as_json: Json = False,
) -> int:
    """
    Send each line as a record: from standard input or from files.

    With acks=all every line is in the log once and in order, whatever breaks meanwhile. A malformed line ends the
    command; what came before it is sent. JSON lines go to the partition they name, which the topic must have, unless
    --partition is given.

    Examples:

      echo hello | moldau produce greetings

      moldau produce accounts accounts.tsv --key-separator '\\t' --null-marker NULL

      moldau topics create orders-copy --partitions 4

      moldau consume orders --from-beginning --timeout 5 --json | moldau produce orders-copy --format json
    """
    separators = [key_separator, headers_delimiter, headers_separator, headers_key_separator]
    key_mark, *header_marks = [unescaped(mark).encode() for mark in separators]
    null = None if null_marker is None else unescaped(null_marker).encode()
    text = TextLines(key_mark, null, headers, *header_marks)
    read = _reader(line_format, text)
    given = {"compression_type": compression, "acks": acks, "linger_ms": linger_ms}
    settings = client_settings(bootstrap_server, command_property, given)
    brokers_of(zookeeper, bootstrap_server, settings)
    report = _send(Producer(settings), topic, _Lines(files or [], read), partition)
    if as_json:
        print_json({"topic": topic, "delivered": report.delivered, "failed": report.failed})
    if report.failed:
        asked = counted(report.failed + report.delivered, "record")
        note(f"error: {report.failed:,} of {asked} not delivered: {report.reason}")
        return 1
    return 0


def _reader(line_format: LineFormat, text: TextLines) -> Callable[[bytes], LineRecord]:
    """The function that reads a record from a line. Raises `ConfigError` for options that do not go together."""
    if line_format is LineFormat.TEXT:
        text.check()
        return LineRecord if text == TextLines() else text.record
    if text != TextLines():
        raise ConfigError(
            "--format json has keys, headers and null of its own: it goes with none of --key-separator, --null-marker"
            " and --headers"
        )
    return json_record


def _send(producer: Producer, topic: str, lines: "_Lines", partition: int | None) -> "_Report":
    """Send the records of the lines, to that partition if it is given; what became of them. If a line or a record is
    wrong, what came before is sent, and the error says how many that were. Raises `MoldauError`, `OSError`."""
    report = _Report()
    wrong: MoldauError | OSError | None = None
    try:
        with producer:
            try:
                for value, key, headers, own_partition, timestamp_ms in lines:
                    to = own_partition if partition is None else partition
                    sent = producer.send(topic, value, key, partition=to, timestamp_ms=timestamp_ms, headers=headers)
                    report.sent(sent)
            except (TypeError, ValueError, NoSuchPartition, MessageTooLarge) as refused:
                remedy = _more_partitions(topic, to) if isinstance(refused, NoSuchPartition) else ""
                wrong = MoldauError(f"{lines.place}: {refused}{remedy}")
                producer.flush()
            except (MoldauError, OSError) as error:
                wrong = error
                producer.flush()
    except NotDelivered:
        pass  # the report counts each record
    finally:
        report.settle()
    if isinstance(wrong, MoldauError) and (report.delivered or report.failed):
        before = counted(report.delivered, "record")
        lost = f", {report.failed:,} not: {report.reason}" if report.failed else ""
        raise MoldauError(f"{wrong} ({before} before it delivered{lost})")
    if wrong is not None:
        raise wrong
    return report


def _more_partitions(topic: str, partition: int | None) -> str:
    assert partition is not None  # otherwise the producer chooses one that exists
    return f"; `moldau topics alter {topic} --partitions {partition + 1}` adds it, --partition chooses another"


class _Report:
    """What became of the records, as far as is known."""

    def __init__(self) -> None:
        self.delivered = self.failed = 0
        self.reason = ""
        self._pending: deque[Delivery] = deque()

    def sent(self, delivery: Delivery) -> None:
        self._pending.append(delivery)
        if len(self._pending) >= SETTLED_AT_ONCE:
            while self._pending and self._pending[0].done:
                self._settle(self._pending.popleft())

    def settle(self) -> None:
        """Count what is left, after the producer is closed."""
        while self._pending:
            self._settle(self._pending.popleft())

    def _settle(self, delivery: Delivery) -> None:
        try:
            delivery.result(0)
            self.delivered += 1
        except (MoldauError, TimeoutError) as failure:
            self.failed += 1
            self.reason = self.reason or str(failure)


class _Lines:
    """Iterates over the records of the lines of files, or of standard input. `place` says where it is."""

    def __init__(self, files: list[Path], read: Callable[[bytes], LineRecord]):
        self._files = files
        self._read = read
        self._source = "standard input"
        self._number = 0

    @property
    def place(self) -> str:
        return f"line {self._number:,} of {self._source}"

    def __iter__(self) -> Iterator[LineRecord]:
        """Raises `MoldauError` for a malformed line, and `OSError`."""
        if not self._files:
            yield from self._records(sys.stdin.buffer)
        for path in self._files:
            self._source = str(path)
            with path.open("rb") as file:
                yield from self._records(file)

    def _records(self, file: BinaryIO) -> Iterator[LineRecord]:
        read = self._read
        for self._number, line in enumerate(file, 1):
            if line.endswith(b"\n"):
                line = line[:-2] if line.endswith(b"\r\n") else line[:-1]
            try:
                yield read(line)
            except Malformed as wrong:
                raise MoldauError(f"{self.place} {wrong}") from None
