"""`moldau topics offsets`: where partitions begin and end, and which record is the first after a time."""

from collections.abc import Iterable, Mapping
from typing import Annotated

from moldau.cli.command_line import Argument, Option
from moldau.cli.moments import moment_ms
from moldau.cli.options import BOOTSTRAP, BootstrapServer, Json, reachable
from moldau.cli.output import note, print_json, print_table, time_text
from moldau.client.administration.admin import Admin
from moldau.client.administration.group_offsets import parse_partitions
from moldau.client.administration.records import EARLIEST, LATEST, MAX_TIMESTAMP
from moldau.client.cluster_view import TopicView
from moldau.errors import ConfigError
from moldau.names import TopicPartition

POSITIONS = {"earliest": EARLIEST, "latest": LATEST, "max-timestamp": MAX_TIMESTAMP}
COMMITTED = "last-stable"


def offsets(
    topics: Annotated[
        list[str] | None, Argument("[TOPIC[:PARTITION,...]...]", help="Topics or some of their partitions; else all.")
    ] = None,
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    time: Annotated[
        str,
        Option(
            metavar="TIME",
            help="latest, earliest, max-timestamp, last-stable (the end of what is committed); or a time, or a duration"
            " before now such as 2h: the first record at or after it.",
        ),
    ] = "latest",
    internal: Annotated[bool, Option("--internal", help="Without topics: internal ones too.")] = False,
    as_json: Json = False,
) -> int:
    """
    Print offsets of partitions. - stands for a partition without such a record.

    A partition without a leader is named on standard error, and makes the exit code 1.

    Examples:

      moldau topics offsets

      moldau topics offsets events:0,2 accounts --time earliest

      moldau topics offsets events --time 2026-11-21T08:00:00
    """
    position = POSITIONS.get(time, LATEST) if time in (*POSITIONS, COMMITTED) else moment_ms(time, "--time")
    asked = [parse_partitions(text) for text in topics or []]
    with Admin(reachable(bootstrap_server)) as admin:
        if asked:
            known = admin.describe_topics({topic for topic, _ in asked})
            wanted = chosen(asked, known)
        else:
            known = admin.list_topics(internal=internal)
            wanted = chosen([(topic, None) for topic in known], known)
        leaderless = {tp: None for tp in wanted if known[tp.topic].partitions[tp.partition].leader < 0}
        led = {tp: position for tp in wanted if tp not in leaderless}
        level = "read_committed" if time == COMMITTED else "read_uncommitted"
        found = leaderless | admin.list_offsets(led, isolation_level=level)
    rows = [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "offset": at.offset if at else None,
            "timestamp": time_text(at.timestamp_ms) if at and at.timestamp_ms is not None else None,
        }
        for tp, at in sorted(found.items())
    ]
    if as_json:
        print_json(rows)
    else:
        width = 4 if any(row["timestamp"] for row in rows) else 3
        print_table(["TOPIC", "PARTITION", "OFFSET", "TIMESTAMP"][:width], [[*row.values()][:width] for row in rows])
    for tp in sorted(leaderless):
        note(f"error: {tp} has no leader: its offset is not known")
    return int(bool(leaderless))


def chosen(asked: Iterable[tuple[str, list[int] | None]], known: Mapping[str, TopicView]) -> dict[TopicPartition, None]:
    """The partitions that are asked for (None: all of a topic), in that order. Raises `ConfigError` for one that its
    topic does not have."""
    wanted: dict[TopicPartition, None] = {}
    for topic, numbers in asked:
        there = known[topic].partitions
        for number in there if numbers is None else numbers:
            if number not in there:
                raise ConfigError(f"topic {topic} has no partition {number}, only 0 to {len(there) - 1}")
            wanted[TopicPartition(topic, number)] = None
    return wanted
