"""`moldau cluster elect-leaders`: let preferred replicas lead again, or any replica where a partition has no leader."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from moldau.cli.command_line import Argument, Option, UsageError
from moldau.cli.options import BOOTSTRAP, BootstrapServer, Json, reachable
from moldau.cli.output import print_json, print_table
from moldau.client.administration.admin import Admin
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition

NOT_NEEDED = "not needed"


def elect_leaders(
    topics: Annotated[list[str] | None, Argument("[TOPIC...]", help="Topics; all by default.")] = None,
    partition: Annotated[
        list[int] | None, Option("--partition", "-p", min=0, help="Only this partition of the topic; repeatable.")
    ] = None,
    preferred: Annotated[bool, Option("--preferred", help="Elect the preferred replicas; the default.")] = False,
    unclean: Annotated[
        bool,
        Option("--unclean", help="Without a leader, elect a replica that is not in sync: it may lack records."),
    ] = False,
    all_topics: Annotated[bool, Option("--all", help="All topics; --unclean needs topics or this.")] = False,
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    as_json: Json = False,
) -> int:
    """
    Elect leaders. The first replica of a partition is its preferred one: if it is in sync, it leads again.

    --unclean loses the records that the new leader lacks. The exit code is 1 if a partition has no new leader although
    it needs one.

    Examples:

      moldau cluster elect-leaders

      moldau cluster elect-leaders events --partition 0 --partition 3

      moldau cluster elect-leaders --unclean events
    """
    if preferred and unclean:
        raise UsageError("give --preferred or --unclean, not both")
    if all_topics and topics:
        raise UsageError("--all takes no topics")
    if unclean and not topics and not all_topics:
        raise UsageError("--unclean loses records: name the topics, or give --all")
    if partition and len(topics or ()) != 1:
        raise UsageError("--partition needs one topic")
    with Admin(reachable(bootstrap_server)) as admin:
        wanted = _partitions(admin, topics, partition) if topics else None
        outcomes = admin.elect_leaders(wanted, election="unclean" if unclean else "preferred")
        known = admin.describe_topics({tp.topic for tp in outcomes}) if outcomes else {}
    leaders = {tp: known[tp.topic].partitions[tp.partition].leader for tp in outcomes if _is_known(known, tp)}
    rows = [_row(tp, outcomes[tp], leaders.get(tp, -1)) for tp in sorted(outcomes)]
    if as_json:
        print_json(rows)
    elif rows:
        print_table([name.upper() for name in rows[0]], [[*row.values()] for row in rows])
    else:
        print("no partition needs an election")
    return int(any(row["outcome"] not in ("elected", NOT_NEEDED) for row in rows))


def _partitions(admin: Admin, topics: Sequence[str], numbers: Sequence[int] | None) -> list[TopicPartition]:
    described = admin.describe_topics(topics)
    return [TopicPartition(name, number) for name in topics for number in numbers or sorted(described[name].partitions)]


def _is_known(topics: Mapping[str, Any], tp: TopicPartition) -> bool:
    return tp.topic in topics and tp.partition in topics[tp.topic].partitions


def _row(tp: TopicPartition, error: KafkaError | None, leader: int) -> dict[str, Any]:
    if error is None:
        outcome = "elected"
    else:
        outcome = NOT_NEEDED if error.code is ErrorCode.ELECTION_NOT_NEEDED else str(error)
    return {
        "topic": tp.topic,
        "partition": tp.partition,
        "leader": leader if leader >= 0 else None,
        "outcome": outcome,
    }
