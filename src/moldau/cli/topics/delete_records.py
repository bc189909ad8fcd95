"""`moldau topics delete-records`: delete the oldest records of partitions."""

import json
from pathlib import Path
from typing import Annotated, Any

from moldau.cli.command_line import Argument, Option, UsageError
from moldau.cli.options import BOOTSTRAP, BootstrapServer, Json, reachable
from moldau.cli.output import note, print_json, print_table
from moldau.cli.topics.offsets import chosen
from moldau.client.administration.admin import Admin
from moldau.client.administration.group_offsets import parse_partitions
from moldau.errors import ConfigError, KafkaError
from moldau.names import TopicPartition

END = -1
"""Stands for the end of a partition in DeleteRecords."""


def delete_records(
    topics: Annotated[
        list[str] | None, Argument("[TOPIC[:PARTITION,...]...]", help="Topics, or some of their partitions.")
    ] = None,
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    before: Annotated[
        str, Option(metavar="OFFSET", help="Delete the records below this offset; end means all of them.")
    ] = "",
    offset_json_file: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help='An offset for each partition, as Kafka\'s tool takes them: {"partitions": [{"topic": "t",'
            ' "partition": 0, "offset": 7}]}; -1 means the end.',
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """
    Delete the oldest records of partitions, for good. Groups that were behind continue at the first record that is
    left.

    The exit code is 1 if a partition kept its records. A topic that is only compacted refuses.

    Examples:

      moldau topics delete-records events:0 --before 1000

      moldau topics delete-records events --before end

      moldau topics delete-records --offset-json-file offsets.json
    """
    if bool(topics) == (offset_json_file is not None) or bool(topics) != bool(before):
        raise UsageError("give topics and --before OFFSET, or --offset-json-file FILE")
    listed = read_offsets(offset_json_file) if offset_json_file else {}
    asked, below = [parse_partitions(text) for text in topics or []], _offset(before) if before else END
    with Admin(reachable(bootstrap_server)) as admin:
        if asked:
            listed = dict.fromkeys(chosen(asked, admin.describe_topics({topic for topic, _ in asked})), below)
        rows = [_deleted(admin, tp, offset) for tp, offset in sorted(listed.items())]
    if as_json:
        print_json(rows)
    else:
        done = [[row["topic"], row["partition"], row["first_offset"]] for row in rows if row["error"] is None]
        if done:
            print_table(["TOPIC", "PARTITION", "FIRST OFFSET"], done)
        for row in rows:
            if row["error"] is not None:
                note(f"error: {row['error']}")
    return int(any(row["error"] is not None for row in rows))


def _offset(text: str) -> int:
    if text == "end":
        return END
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise UsageError(f"--before {text!r} is neither an offset nor end")
    return int(text)


def _deleted(admin: Admin, tp: TopicPartition, offset: int) -> dict[str, Any]:
    first, error = None, None
    try:
        first = admin.delete_records({tp: offset})[tp]
    except KafkaError as refused:
        error = str(refused)
    return {"topic": tp.topic, "partition": tp.partition, "first_offset": first, "error": error}


def read_offsets(file: Path) -> dict[TopicPartition, int]:
    """The offsets in a file of Kafka's form. Raises `ConfigError`, `OSError`."""
    wrong = f"{file} is not of the form " + '{"partitions": [{"topic": "t", "partition": 0, "offset": 7}]}'
    try:
        entries = json.loads(file.read_bytes())["partitions"]
        offsets = {TopicPartition(one["topic"], one["partition"]): one["offset"] for one in entries}
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ConfigError(wrong) from None
    for (topic, partition), offset in offsets.items():
        if type(topic) is not str or type(partition) is not int or type(offset) is not int or offset < END:
            raise ConfigError(wrong)
    if len(offsets) < len(entries):
        raise ConfigError(f"{file} names a partition twice")
    return offsets
