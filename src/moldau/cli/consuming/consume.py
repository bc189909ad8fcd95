"""`moldau consume`: records as lines."""

from collections.abc import Callable
from typing import Annotated, Any

from moldau.cli.command_line import Argument, Option, UsageError
from moldau.cli.consuming.beginning import EARLIEST_NOW, LATEST_NOW, beginning_of
from moldau.cli.consuming.formats import internal_line, json_line, line_format
from moldau.cli.consuming.reading import TopicReading
from moldau.cli.consuming.typed import ContentType, reader_of
from moldau.cli.moments import moment_ms
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
from moldau.client.consuming.consumer import Consumer
from moldau.client.consuming.fetched.record import Record
from moldau.errors import ConfigError

TEXT = ContentType.TEXT
VALUE_ONLY, NULL = "{value}", "null"
"""The lines that are printed unless --format and --null-marker say otherwise."""
FromBeginning = Annotated[bool, Option("--from-beginning", help="Also print the records that already exist.")]
GroupName = Annotated[str, Option(metavar="NAME", help="Read as a member of this group, and commit.")]
OnePartition = Annotated[int | None, Option(help="Only this partition.")]
FirstOffset = Annotated[int | None, Option(help="The first offset to print; needs --partition.")]
Last = Annotated[int | None, Option(min=0, metavar="N", help="Begin N records before the end of each partition.")]
FromTime = Annotated[
    str, Option(metavar="TIME", help="Begin with the first record at or after this time, or a duration ago such as 2h.")
]
FromGroup = Annotated[
    str, Option(metavar="NAME", help="Begin where this group has committed, without joining it or committing.")
]
ToEnd = Annotated[bool, Option("--to-end", help="Stop at the end that each partition has now, instead of following.")]
UntilTime = Annotated[
    str, Option(metavar="TIME", help="Stop before the first record at or after this time, or at the present end.")
]
MaxMessages = Annotated[int | None, Option("--max-messages", "-n", min=0, help="Stop after this number of records.")]
Timeout = Annotated[float | None, Option(metavar="SECONDS", min=0, help="Stop after this time without a new record.")]
RecordFormat = Annotated[
    str, Option("--format", metavar="FORMAT", help="A text with placeholders such as {value}, or json.")
]
NullMarker = Annotated[str, Option(metavar="TEXT", help="What stands for a key, value or epoch that is missing.")]
KeyType = Annotated[ContentType, Option(help="What keys are; numbers are big endian, as Java's serializers have them.")]
ValueType = Annotated[ContentType, Option(help="What values are.")]
SchemaRegistryUrl = Annotated[
    str,
    Option(
        metavar="URL",
        help="Decode keys and values that were written with this registry's schemas; a part with a type is not.",
    ),
]
Internal = Annotated[
    bool, Option("--internal", help="Decode the records of __consumer_offsets or __transaction_state, as JSON.")
]


def consume(
    topic: Annotated[str, Argument("TOPIC", help="The topic to read.")],
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    zookeeper: ZooKeeper = "",
    from_beginning: FromBeginning = False,
    from_time: FromTime = "",
    from_group: FromGroup = "",
    last: Last = None,
    partition: OnePartition = None,
    offset: FirstOffset = None,
    group: GroupName = "",
    to_end: ToEnd = False,
    until_time: UntilTime = "",
    max_messages: MaxMessages = None,
    timeout: Timeout = None,
    record_format: RecordFormat = VALUE_ONLY,
    null_marker: NullMarker = NULL,
    key_type: KeyType = TEXT,
    value_type: ValueType = TEXT,
    schema_registry: SchemaRegistryUrl = "",
    internal: Internal = False,
    command_property: CommandProperty = None,
    as_json: Json = False,
) -> None:
    """
    Print records, one on each line, and follow the topic: until Ctrl-C, SIGTERM or one of the options that stop it.

    If --timeout ends it and nothing was printed, or fewer records than --max-messages, a line on standard error says
    so; the exit code is 0, as that of Kafka's console consumer. A record of a group counts as read once it is printed.

    Placeholders of --format: {topic} {partition} {offset} {timestamp} {timestamp_ms} {epoch} {key} {value} {headers},
    and \\t \\n. In JSON, data that is not UTF-8 is base64. With --schema-registry, Avro, JSON Schema and Protobuf
    become JSON, with the id of the schema; other data stays as it is.

    Examples:

      moldau consume events --group billing --max-messages 100 --json

      moldau consume events --partition 0 --offset 42 --format '{offset}\\t{key}\\t{value}'

      moldau consume orders --from-time 2h --until-time 1h --schema-registry http://localhost:8081 --json
    """
    begin = beginning_of(from_beginning, from_time, offset, partition, last, from_group)
    until_ms = moment_ms(until_time, "--until-time") if until_time else None
    write = _writer(topic, record_format, null_marker, internal, as_json)
    of_key, of_value = _decoders(schema_registry, bootstrap_server, key_type, value_type, internal)
    given = {"group_id": group or None, "auto_offset_reset": "earliest" if from_beginning else None}
    settings = client_settings(bootstrap_server, command_property, given)
    if settings.get("auto.offset.reset") == "earliest" and begin is LATEST_NOW:
        begin = EARLIEST_NOW
    reading = TopicReading(
        topic, write, begin, _group(settings, from_group), partition, to_end or bool(until_time), until_ms
    )
    _check_group(reading)
    brokers = brokers_of(zookeeper, bootstrap_server, settings)
    named = {"client.id": "moldau-consume", **settings}
    with Consumer(named, key_deserializer=of_key, value_deserializer=of_value) as consumer:
        reading._replace(max_messages=max_messages, timeout_s=timeout).run(consumer, brokers)


def _writer(topic: str, record_format: str, null: str, internal: bool, as_json: bool) -> Callable[[Record], bytes]:
    """The function that turns a record into a line. Raises `UsageError`, `ConfigError`."""
    if (internal or as_json) and record_format not in (VALUE_ONLY, "json"):
        raise UsageError(f"--format cannot be combined with {'--internal' if internal else '--json'}")
    if (internal or as_json or record_format == "json") and null != NULL:
        raise UsageError("--null-marker is for lines of text: JSON has null of its own")
    if internal:
        return internal_line(topic)
    if as_json or record_format == "json":
        return json_line
    return line_format(unescaped(record_format), unescaped(null).encode())


def _decoders(
    url: str, brokers: str, key_type: ContentType, value_type: ContentType, internal: bool
) -> tuple[Callable[[bytes], Any] | None, Callable[[bytes], Any] | None]:
    """The deserializers of keys and values. Raises `ConfigError` for options that do not go together."""
    types = {"key": key_type, "value": value_type}
    typed = [f"--{part}-type" for part, kind in types.items() if kind is not TEXT]
    given = [*typed[:1], *["--schema-registry"][: bool(url)], *["--internal"][:internal]]
    # The registry decodes the part without a type: values with a schema often have numbers as keys.
    shares = url and len(typed) == 1 and not internal
    if len(given) > 1 and not shares:
        raise ConfigError(f"{given[0]} and {given[1]} both say what keys and values are: give one of them")
    if not url:
        return reader_of(key_type, "key"), reader_of(value_type, "value")
    from moldau.cli.consuming.decoding import registry_decoder  # imports what only this option needs

    decode = registry_decoder(url, brokers)
    return reader_of(key_type, "key") or decode, reader_of(value_type, "value") or decode


def _group(settings: dict[str, Any], from_group: str) -> str:
    """The group that the command joins, "" for none. A group that it only begins at becomes the consumer's."""
    if not from_group:
        return settings.get("group.id") or ""
    if settings.get("group.id"):
        raise ConfigError("--from-group does not join a group: leave out --group and group.id")
    settings |= {"group.id": from_group, "enable.auto.commit": "false"}
    return ""


def _check_group(reading: TopicReading) -> None:
    """Raise `ConfigError` for a group with a place of its own."""
    if not reading.group:
        return
    if reading.partition is not None:
        raise ConfigError("--group and --partition cannot be combined: a group decides which partitions it reads")
    if reading.begin not in (LATEST_NOW, EARLIEST_NOW):
        raise ConfigError("a group begins where it has committed: leave out --group, or --from-time and --last")
    if reading.ends:
        raise ConfigError("a group shares the partitions with its members: --to-end and --until-time need no --group")
