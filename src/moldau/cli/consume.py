"""`moldau consume`: records as lines."""

import json
import re
import sys
import time
from collections.abc import Callable
from typing import Annotated, Any

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
from moldau.cli.output import named_content, note, time_text
from moldau.client.consuming.consumer import Consumer
from moldau.client.consuming.fetched.record import Record
from moldau.client.fetching import topic_partitions
from moldau.client.offsets import EARLIEST, LATEST
from moldau.errors import ConfigError
from moldau.names import TopicPartition

POLL_MS = 200
POLL_RECORDS = 2_000
_PLACEHOLDER = re.compile(r"\{(\w*)\}")


def consume(
    topic: Annotated[str, Argument("TOPIC", help="The topic to read.")],
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    zookeeper: ZooKeeper = "",
    from_beginning: Annotated[
        bool, Option("--from-beginning", help="Also print the records that already exist.")
    ] = False,
    group: Annotated[str, Option(metavar="NAME", help="Read as a member of this group, and commit.")] = "",
    partition: Annotated[int | None, Option(help="Only this partition.")] = None,
    offset: Annotated[int | None, Option(help="The first offset to print; needs --partition.")] = None,
    max_messages: Annotated[
        int | None, Option("--max-messages", "-n", min=0, help="Stop after this number of records.")
    ] = None,
    timeout: Annotated[
        float | None, Option(metavar="SECONDS", min=0, help="Stop after this time without a new record.")
    ] = None,
    record_format: Annotated[
        str, Option("--format", metavar="FORMAT", help="A text with placeholders such as {value}, or json.")
    ] = "{value}",
    command_property: CommandProperty = None,
    as_json: Json = False,
) -> None:
    """
    Print records, one on each line, as they come; until Ctrl-C, SIGTERM, --max-messages or --timeout.

    If --timeout ends it and nothing was printed, or fewer records than --max-messages, a line on standard error says
    so; the exit code is 0, as that of Kafka's console consumer.

    Placeholders of --format: {topic} {partition} {offset} {timestamp} {timestamp_ms} {key} {value} {headers}, and \\t
    \\n. A record of a group counts as read when it was printed. In JSON, data that is not UTF-8 is base64.

    Examples:

      moldau consume greetings --from-beginning

      moldau consume events --group billing --max-messages 100 --json

      moldau consume events --partition 0 --offset 42 --format '{offset}\\t{key}\\t{value}'
    """
    if offset is not None and partition is None:
        raise ConfigError("--offset needs --partition")
    write = _json_line if as_json or record_format == "json" else line_format(unescaped(record_format))
    given = {"group_id": group or None, "auto_offset_reset": "earliest" if from_beginning else None}
    settings = client_settings(bootstrap_server, command_property, given)
    group = settings.get("group.id") or ""
    from_beginning = from_beginning or settings.get("auto.offset.reset") == "earliest"
    if group and partition is not None:
        raise ConfigError("--group and --partition cannot be combined: a group decides which partitions it reads")
    brokers = brokers_of(zookeeper, bootstrap_server, settings)
    with Consumer({"client.id": "moldau-consume", **settings}) as consumer:
        if group:
            consumer.subscribe([topic])
        else:
            _begin(consumer, _chosen(brokers, topic, partition), offset, from_beginning)
        try:
            printed = _print(consumer, write, max_messages, timeout)
        finally:
            if group:
                consumer.commit()
    _note_few(printed, max_messages, timeout, only_new=not (from_beginning or group or offset is not None))


def _chosen(brokers: str, topic: str, partition: int | None) -> list[TopicPartition]:
    partitions = topic_partitions(brokers, [topic])[topic]
    if partition is not None and partition not in partitions:
        raise ConfigError(f"topic {topic} has no partition {partition}, only 0 to {len(partitions) - 1}")
    return [TopicPartition(topic, p) for p in (partitions if partition is None else [partition])]


def _begin(consumer: Consumer, chosen: list[TopicPartition], offset: int | None, from_beginning: bool) -> None:
    """Read these partitions from that offset, else from their beginning or end. Raises `ConfigError`."""
    consumer.assign(chosen)
    if offset is not None:
        _check_offset(consumer, chosen[0], offset)
        consumer.seek(chosen[0], offset)
    else:
        consumer.seek_to(dict.fromkeys(chosen, EARLIEST if from_beginning else LATEST))


def _check_offset(consumer: Consumer, tp: TopicPartition, offset: int) -> None:
    """Raise `ConfigError` unless the partition has that offset, or will give it to its next record."""
    [start], [end] = consumer.beginning_offsets([tp]).values(), consumer.end_offsets([tp]).values()
    if not start <= offset <= end:
        known = f"has offsets {start} to {end - 1}" if start < end else f"is empty, its next offset is {end}"
        raise ConfigError(f"--offset {offset}: partition {tp} {known}")


def _print(
    consumer: Consumer, write: Callable[[Record], bytes], max_messages: int | None, timeout_s: float | None
) -> int:
    """Print records until the time is over or there are as many as wanted; returns how many were printed."""
    out = sys.stdout.buffer
    printed, last_s = 0, time.monotonic()
    while max_messages is None or printed < max_messages:
        most = POLL_RECORDS if max_messages is None else min(POLL_RECORDS, max_messages - printed)
        records = consumer.poll(POLL_MS, most)
        if records:
            try:
                out.write(b"".join(map(write, records)))
                out.flush()
            except BaseException:  # a signal, or a reader that went away
                _unread(consumer, records)
                raise
            printed, last_s = printed + len(records), time.monotonic()
        elif timeout_s is not None and time.monotonic() - last_s >= timeout_s:
            break
    return printed


def _unread(consumer: Consumer, records: list[Record]) -> None:
    """Go back before these records, which may not have been printed: they are not committed as read."""
    first = {TopicPartition(record.topic, record.partition): record.offset for record in reversed(records)}
    for tp, offset in first.items():
        consumer.seek(tp, offset)


def _note_few(printed: int, max_messages: int | None, timeout_s: float | None, *, only_new: bool) -> None:
    """Say it if the time-out has ended the command before what was asked for came."""
    if (printed and (max_messages is None or printed >= max_messages)) or max_messages == 0:
        return
    if printed:
        note(f"{printed:,} of {max_messages:,} records came, then none within {timeout_s:g} s")
    else:
        hint = "; --from-beginning also prints those that exist already" if only_new else ""
        note(f"no record came within {timeout_s:g} s{hint}")


def line_format(text: str) -> Callable[[Record], bytes]:
    """A function that writes a record as a line in that format. Raises `ConfigError` for an unknown placeholder."""
    pieces: list[bytes | Callable[[Record], bytes]] = []
    for number, piece in enumerate(_PLACEHOLDER.split(text)):
        if number % 2 == 0:
            pieces.append(piece.encode())
        elif piece in _FIELDS:
            pieces.append(_FIELDS[piece])
        else:
            raise ConfigError(
                f"--format has no placeholder {{{piece}}}, only {' '.join(f'{{{name}}}' for name in _FIELDS)}"
            )
    pieces.append(b"\n")
    return lambda record: b"".join(piece if isinstance(piece, bytes) else piece(record) for piece in pieces)


def _headers(record: Record) -> bytes:
    return b",".join(name.encode() + b"=" + (b"null" if value is None else value) for name, value in record.headers)


_FIELDS: dict[str, Callable[[Record], bytes]] = {
    "topic": lambda r: r.topic.encode(),
    "partition": lambda r: b"%d" % r.partition,
    "offset": lambda r: b"%d" % r.offset,
    "timestamp": lambda r: time_text(r.timestamp_ms).encode(),
    "timestamp_ms": lambda r: b"%d" % r.timestamp_ms,
    "key": lambda r: b"null" if r.key is None else r.key,
    "value": lambda r: b"null" if r.value is None else r.value,
    "headers": _headers,
}


def _json_line(record: Record) -> bytes:
    fields: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": time_text(record.timestamp_ms),
        "timestamp_ms": record.timestamp_ms,
        **dict([named_content("key", record.key), named_content("value", record.value)]),
        "headers": [{"name": name, **dict([named_content("value", value)])} for name, value in record.headers],
    }
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
