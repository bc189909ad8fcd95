"""`moldau produce`: lines become records."""

import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO

from moldau.cli.command_line import Argument, Option
from moldau.cli.options import BOOTSTRAP, BootstrapServer, Json, unescaped
from moldau.cli.output import note, print_json
from moldau.client.producing.delivery import Delivery, NotDelivered
from moldau.client.producing.producer import Producer
from moldau.errors import MoldauError
from moldau.names import counted

SETTLED_AT_ONCE = 10_000


def produce(
    topic: Annotated[str, Argument("TOPIC", help="The topic to write to.")],
    files: Annotated[list[Path] | None, Argument("[FILE...]", help="Files to read; standard input if none.")] = None,
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    key_separator: Annotated[str, Option(metavar="TEXT", help="The text between key and value.")] = "",
    partition: Annotated[int | None, Option(help="Write all records to this partition.")] = None,
    compression: Annotated[str, Option(help="none, gzip, snappy, lz4 or zstd.")] = "none",
    acks: Annotated[str, Option(help="all, 1 or 0.")] = "all",
    linger_ms: Annotated[int, Option(help="How long a record waits for others in its batch.")] = 5,
    as_json: Json = False,
) -> int:
    """
    Send each line as a record: from standard input or from files.

    With acks=all every line is in the log once and in order, whatever breaks meanwhile.

    Examples:

      echo hello | moldau produce greetings

      moldau produce events events-*.log --compression zstd

      moldau produce accounts accounts.tsv --key-separator '\\t'
    """
    producer = Producer(bootstrap_server, compression_type=compression, acks=acks, linger_ms=linger_ms)
    report = _Report()
    try:
        with producer:
            try:
                for key, value in _records(files or [], unescaped(key_separator).encode()):
                    report.sent(producer.send(topic, value, key, partition=partition))
            except (MoldauError, OSError):
                producer.flush()
                raise
    except NotDelivered:
        pass  # the report counts each record
    finally:
        report.settle()
    if as_json:
        print_json({"topic": topic, "delivered": report.delivered, "failed": report.failed})
    if report.failed:
        asked = counted(report.failed + report.delivered, "record")
        note(f"error: {report.failed:,} of {asked} not delivered: {report.reason}")
        return 1
    return 0


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


def _records(files: list[Path], separator: bytes) -> Iterator[tuple[bytes | None, bytes]]:
    for name, number, line in _lines(files):
        if not separator:
            yield None, line
            continue
        key, found, value = line.partition(separator)
        if not found:
            raise MoldauError(f"line {number} of {name} has no {separator.decode()!r} between key and value")
        yield key, value


def _lines(files: list[Path]) -> Iterator[tuple[str, int, bytes]]:
    if not files:
        yield from _numbered("standard input", sys.stdin.buffer)
    for path in files:
        with path.open("rb") as file:
            yield from _numbered(str(path), file)


def _numbered(name: str, file: BinaryIO) -> Iterator[tuple[str, int, bytes]]:
    for number, line in enumerate(file, 1):
        if line.endswith(b"\n"):
            line = line[:-2] if line.endswith(b"\r\n") else line[:-1]
        yield name, number, line
