"""`moldau groups reset-offsets`: move the committed offsets of a group.

What it would do is shown; `--execute` does it. A group with members is left alone: they would go on where they are, and
commit over it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from moldau.cli.command_line import Argument, Option
from moldau.cli.options import BOOTSTRAP, BootstrapServer, Json, reachable, text_in
from moldau.cli.output import note, print_json, print_table
from moldau.client.administration.admin import Admin
from moldau.client.administration.group_offsets import (
    LogEnds,
    duration_ms,
    moved,
    parse_offsets,
    parse_partitions,
    time_ms,
)
from moldau.client.administration.records import EARLIEST, LATEST
from moldau.errors import ConfigError, ErrorCode, KafkaError
from moldau.names import OffsetAndMetadata, TopicPartition
from moldau.runtime import RealClock

WAYS = "--to-earliest, --to-latest, --to-current, --to-offset, --shift-by, --to-datetime, --by-duration or --from-file"
Offsets = dict[TopicPartition, OffsetAndMetadata]


Topics = Annotated[
    list[str] | None, Option("--topic", "-t", metavar="TOPIC[:P,P]", help="A topic, or some partitions of it.")
]
AllTopics = Annotated[bool, Option("--all-topics", help="All partitions with an offset committed by the group.")]
ToEarliest = Annotated[bool, Option("--to-earliest", help="To the first record.")]
ToLatest = Annotated[bool, Option("--to-latest", help="To the end, after the last record.")]
ToCurrent = Annotated[
    bool, Option("--to-current", help="To the current offset, limited to the range of existing records.")
]
ToOffset = Annotated[int | None, Option(metavar="N", min=0, help="To an offset.")]
ShiftBy = Annotated[int | None, Option(metavar="N", help="N records forward, or back if N is negative.")]
ToDatetime = Annotated[
    str | None, Option(metavar="TIME", help="To the first record at or after 2026-11-21T08:00:00 (UTC).")
]
ByDuration = Annotated[
    str | None,
    Option(metavar="DURATION", help="To the first record within this time before now, such as PT1H30M or P7D."),
]
FromFile = Annotated[
    Path | None,
    Option(metavar="FILE", help="To the offsets in a file of TOPIC,PARTITION,OFFSET lines, as --export writes it."),
]
Execute = Annotated[bool, Option("--execute", help="Carry out the changes; otherwise they are only shown.")]
DryRun = Annotated[bool, Option("--dry-run", help="Show what would be done, as without --execute.")]
Export = Annotated[
    bool,
    Option(
        "--export",
        help="Print lines that --from-file reads: TOPIC,PARTITION,OFFSET and, if known, the leader epoch, by which "
        "consumers notice a truncated log. Kafka's own tool takes the first three columns only (cut -d, -f1-3).",
    ),
]


def reset_offsets(
    group: Annotated[str, Argument("GROUP", help="The group.")],
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    topic: Topics = None,
    all_topics: AllTopics = False,
    to_earliest: ToEarliest = False,
    to_latest: ToLatest = False,
    to_current: ToCurrent = False,
    to_offset: ToOffset = None,
    shift_by: ShiftBy = None,
    to_datetime: ToDatetime = None,
    by_duration: ByDuration = None,
    from_file: FromFile = None,
    execute: Execute = False,
    dry_run: DryRun = False,
    export: Export = False,
    as_json: Json = False,
) -> None:
    """
    Move the committed offsets of a group that has no members.

    Examples:

      moldau groups reset-offsets billing --topic orders --to-earliest

      moldau groups reset-offsets billing --topic orders:0,2 --by-duration PT2H --execute

      moldau groups reset-offsets billing --all-topics --to-current --export > offsets.csv
    """
    given: dict[str, object] = {
        "earliest": to_earliest or None,
        "latest": to_latest or None,
        "current": to_current or None,
    }
    given |= {"offset": to_offset, "shift": shift_by, "time": to_datetime, "duration": by_duration, "file": from_file}
    ways = {way: value for way, value in given.items() if value is not None}
    if len(ways) != 1:
        raise ConfigError(f"give one of {WAYS}")
    if execute and dry_run:
        raise ConfigError("give --execute or --dry-run, not both")
    if export and as_json:
        raise ConfigError("give --export or --json, not both")
    if not (topic or all_topics or from_file) or (topic and all_topics):
        raise ConfigError("give either --topic or --all-topics")
    listed = parse_offsets(text_in(from_file).splitlines(), str(from_file)) if from_file else {}
    with Admin(reachable(bootstrap_server)) as admin:
        exists = _has_no_members(admin, group, is_needed=execute)
        committed = admin.group_offsets(group)
        if all_topics and not committed:
            raise ConfigError(f"group {group} has no committed offsets, so there is nothing to reset: name topics")
        partitions = _partitions(admin, topic or [], committed if all_topics else {} if topic else listed)
        [(way, value)] = ways.items()
        targets = _targets(admin, partitions, committed, way, value, listed)
        if execute and targets:
            admin.alter_group_offsets(group, targets)
    if not exists and not committed:
        note(f"group {group} {'did' if execute else 'does'} not exist: these are its first offsets")
    _show(committed, targets, export, as_json)
    if not execute:
        note("nothing was changed: add --execute to carry it out")


def _show(committed: Offsets, targets: Offsets, export: bool, as_json: bool) -> None:
    before = {tp: at.offset for tp, at in committed.items()}
    rows = [[tp.topic, tp.partition, before.get(tp), at.offset] for tp, at in targets.items()]
    if export:
        for tp, at in targets.items():
            print(*tp, *at[:1], *([] if at.leader_epoch is None else [at.leader_epoch]), sep=",")
    elif as_json:
        print_json([dict(zip(("topic", "partition", "from", "to"), row, strict=True)) for row in rows])
    else:
        print_table(["TOPIC", "PARTITION", "FROM", "TO"], rows)


def _has_no_members(admin: Admin, group: str, *, is_needed: bool) -> bool:
    """False if the group does not exist. Raises `ConfigError` for one with members if `is_needed`."""
    try:
        members = len(admin.describe_group(group).members)
    except KafkaError as failure:
        if failure.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return False
    if members and is_needed:
        raise ConfigError(f"group {group} has {members} member{'s'[: members != 1]}: stop them first")
    return True


def _partitions(
    admin: Admin, topics: list[str], known: Mapping[TopicPartition, OffsetAndMetadata]
) -> list[TopicPartition]:
    """Those of the topics, or those known. Raises `ConfigError` for one that is not there."""
    views = admin.list_topics(internal=True)
    wanted: list[TopicPartition] = list(known)
    for text in topics:
        name, numbers = parse_partitions(text)
        everything = list(views[name].partitions) if name in views else [0]
        wanted += [TopicPartition(name, number) for number in (everything if numbers is None else numbers)]
    for tp in wanted:
        if tp.topic not in views or tp.partition not in views[tp.topic].partitions:
            raise ConfigError(f"partition {tp} does not exist")
    return sorted(set(wanted))


def _targets(
    admin: Admin,
    partitions: list[TopicPartition],
    committed: Offsets,
    way: str,
    value: object,
    listed: Offsets,
) -> Offsets:
    """The new position of each partition."""
    starts = admin.offsets(dict.fromkeys(partitions, EARLIEST))
    ends = admin.offsets(dict.fromkeys(partitions, LATEST))
    at_times: dict[TopicPartition, int] = {}
    if way in ("time", "duration"):
        text = str(value)
        since = time_ms(text) if way == "time" else RealClock().now_ms() - duration_ms(text)
        at_times = admin.offsets(dict.fromkeys(partitions, max(since, 0)))
    number = int(str(value)) if way in ("offset", "shift") else 0
    log = LogEnds(starts, ends, at_times)
    return moved(partitions, committed, "time" if way == "duration" else way, number, log, listed)
