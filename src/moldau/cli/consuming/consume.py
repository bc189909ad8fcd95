"""`moldau consume`: records as lines."""

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from moldau.cli.command_line import Argument, Option
from moldau.cli.consuming.beginning import EARLIEST_NOW, LATEST_NOW, beginning_of
from moldau.cli.consuming.formats import json_line, line_format
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
from moldau.cli.output import note
from moldau.client.consuming.consumer import Consumer
from moldau.client.consuming.fetched.record import Record
from moldau.client.fetching import topic_partitions
from moldau.errors import ConfigError
from moldau.names import TopicPartition

if TYPE_CHECKING:
    from moldau.client.registry.any_kind import AnyKindDeserializer

POLL_MS = 200
POLL_RECORDS = 2_000
FromBeginning = Annotated[bool, Option("--from-beginning", help="Also print the records that already exist.")]
MaxMessages = Annotated[int | None, Option("--max-messages", "-n", min=0, help="Stop after this number of records.")]
Timeout = Annotated[float | None, Option(metavar="SECONDS", min=0, help="Stop after this time without a new record.")]
FromTime = Annotated[
    str, Option(metavar="TIME", help="Begin with the first record at or after this time, or a duration ago such as 2h.")
]
RecordFormat = Annotated[
    str, Option("--format", metavar="FORMAT", help="A text with placeholders such as {value}, or json.")
]
SchemaRegistryUrl = Annotated[
    str, Option(metavar="URL", help="Decode keys and values that were written with this registry's schemas.")
]


def consume(
    topic: Annotated[str, Argument("TOPIC", help="The topic to read.")],
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    zookeeper: ZooKeeper = "",
    from_beginning: FromBeginning = False,
    group: Annotated[str, Option(metavar="NAME", help="Read as a member of this group, and commit.")] = "",
    partition: Annotated[int | None, Option(help="Only this partition.")] = None,
    offset: Annotated[int | None, Option(help="The first offset to print; needs --partition.")] = None,
    from_time: FromTime = "",
    max_messages: MaxMessages = None,
    timeout: Timeout = None,
    record_format: RecordFormat = "{value}",
    schema_registry: SchemaRegistryUrl = "",
    command_property: CommandProperty = None,
    as_json: Json = False,
) -> None:
    """
    Print records, one on each line, as they come; until Ctrl-C, SIGTERM, --max-messages or --timeout.

    If --timeout ends it and nothing was printed, or fewer records than --max-messages, a line on standard error says
    so; the exit code is 0, as that of Kafka's console consumer.

    Placeholders of --format: {topic} {partition} {offset} {timestamp} {timestamp_ms} {key} {value} {headers}, and \\t
    \\n. A record of a group counts as read when it was printed. In JSON, data that is not UTF-8 is base64. With
    --schema-registry, Avro, JSON Schema and Protobuf become JSON, with the id of the schema; other data stays as it is.

    Examples:

      moldau consume greetings --from-beginning

      moldau consume events --group billing --max-messages 100 --json

      moldau consume events --partition 0 --offset 42 --format '{offset}\\t{key}\\t{value}'

      moldau consume orders --from-time 2h --schema-registry http://localhost:8081 --json
    """
    begin = beginning_of(from_beginning, from_time, offset, partition, group)
    write = json_line if as_json or record_format == "json" else line_format(unescaped(record_format))
    decode = _decoder(schema_registry, bootstrap_server) if schema_registry else None
    given = {"group_id": group or None, "auto_offset_reset": "earliest" if from_beginning else None}
    settings = client_settings(bootstrap_server, command_property, given)
    group = settings.get("group.id") or ""
    if settings.get("auto.offset.reset") == "earliest" and begin is LATEST_NOW:
        begin = EARLIEST_NOW
    if group and partition is not None:
        raise ConfigError("--group and --partition cannot be combined: a group decides which partitions it reads")
    brokers = brokers_of(zookeeper, bootstrap_server, settings)
    with Consumer(
        {"client.id": "moldau-consume", **settings}, key_deserializer=decode, value_deserializer=decode
    ) as consumer:
        if group:
            consumer.subscribe([topic])
        else:
            begin.seek(consumer, _chosen(brokers, topic, partition))
        try:
            printed = _print(consumer, write, max_messages, timeout)
        finally:
            if group:
                consumer.commit()
    _note_few(printed, max_messages, timeout, only_new=not group and begin is LATEST_NOW)


def _decoder(url: str, brokers: str) -> "AnyKindDeserializer":
    from moldau.cli.consuming.decoding import registry_decoder  # imports what only this option needs

    return registry_decoder(url, brokers)


def _chosen(brokers: str, topic: str, partition: int | None) -> list[TopicPartition]:
    partitions = topic_partitions(brokers, [topic])[topic]
    if partition is not None and partition not in partitions:
        raise ConfigError(f"topic {topic} has no partition {partition}, only 0 to {len(partitions) - 1}")
    return [TopicPartition(topic, p) for p in (partitions if partition is None else [partition])]


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
