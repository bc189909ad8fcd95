"""`moldau top`: rates, lag and slow requests of a cluster, again and again."""

import contextlib
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from moldau.cli.command_line import Option
from moldau.cli.options import BOOTSTRAP, BootstrapServer, Json, reachable
from moldau.cli.output import note, print_json, print_table, time_text
from moldau.cli.watching.changes import (
    ClusterLook,
    PartitionHealth,
    SummedLag,
    groups_between,
    topics_between,
)
from moldau.client.administration.admin import Admin
from moldau.client.administration.request_times import request_metrics, requests_between, requests_in
from moldau.client.cluster_view import TopicView
from moldau.errors import KafkaError, MoldauError
from moldau.names import TopicPartition, counted
from moldau.runtime import RealClock

GROUPS_MAX = 100
ANSWER_MS = 3_000
"""How long one question may take: what a broker that is away would have answered is left out."""
CLEAR = "\x1b[H\x1b[2J"


def top(
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    metrics: Annotated[
        list[str] | None,
        Option("--metrics", metavar="URL", help="A broker's /metrics, for its requests; repeatable."),
    ] = None,
    interval: Annotated[float, Option(metavar="SECONDS", min=1, help="The time between two looks.")] = 2.0,
    rows: Annotated[int | None, Option(min=1, help="Rows of each table; by default as many as fit.")] = None,
    internal: Annotated[bool, Option("--internal", help="Internal topics too.")] = False,
    once: Annotated[bool, Option("--once", help="Print one view and end.")] = False,
    as_json: Json = False,
) -> None:
    """
    Show the busiest topics, the groups that are furthest behind, and with --metrics the requests that take most time;
    until Ctrl-C. Brokers that are away and partitions without a leader or with replicas out of sync are named above.

    Of more than 100 groups only the first ones by name are shown. With --json each view is an object.

    Examples:

      moldau top

      moldau top --metrics http://localhost:9404/metrics --interval 5

      moldau top --once --json
    """
    brokers = reachable(bootstrap_server)
    with Admin(brokers, default_api_timeout_ms=ANSWER_MS, request_timeout_ms=ANSWER_MS) as admin:
        before = look(admin, metrics or [], internal=internal, needs_metrics=True)
        while True:
            time.sleep(interval)
            try:
                now = look(admin, metrics or [], internal=internal, needs_metrics=once)
                view = view_of(admin, before, now)
            except KafkaError as failure:  # brokers may be away for a while
                if once:
                    raise
                note(f"no broker answers: {failure}")
                continue
            _show(view, rows, as_json=as_json, clears=not once and sys.stdout.isatty())
            if once:
                return
            before = now


def look(admin: Admin, metrics: list[str], *, internal: bool, needs_metrics: bool) -> ClusterLook:
    """Raises `KafkaError`, and with `needs_metrics` `MoldauError` for metrics that cannot be read: at the first look
    the URL is wrong, later the broker may be away for a while."""
    everything = admin.list_topics(internal=True)
    topics = {name: topic for name, topic in everything.items() if internal or not topic.internal}
    led = [
        TopicPartition(name, number)
        for name, topic in topics.items()
        for number, part in topic.partitions.items()
        if part.leader >= 0
    ]
    ends = admin.offsets(dict.fromkeys(led, "latest"), known_only=True)
    groups: dict[str, SummedLag] = {}
    texts: list[str] = []
    unread: list[str] = []
    try:
        listed = sorted(admin.list_groups(), key=lambda one: one.group_id)[:GROUPS_MAX]
    except KafkaError as failure:
        listed = []
        unread.append(f"the groups cannot be listed: {failure}")
    for one in listed:
        with contextlib.suppress(KafkaError):  # it may have gone just now
            groups[one.group_id] = _lag(admin, one.group_id, one.state)
    for url in metrics:
        try:
            texts.append(request_metrics(url))
        except MoldauError as failure:
            if needs_metrics:
                raise
            unread.append(str(failure))
    buckets, sums = requests_in("\n".join(texts))
    return ClusterLook(time.monotonic(), ends, groups, buckets, sums, _health(everything.values()), tuple(unread))


def _health(topics: Iterable[TopicView]) -> PartitionHealth:
    parts = [part for topic in topics for part in topic.partitions.values()]
    return PartitionHealth(
        sum(part.leader < 0 for part in parts),
        sum(len(part.isr) < len(part.replicas) for part in parts),
        frozenset(broker for part in parts for broker in part.replicas),
    )


def _lag(admin: Admin, group: str, state: str) -> SummedLag:
    lags = admin.group_lag(group)
    known = [one for one in lags.values() if one.records is not None]
    behind = sum(one.records or 0 for one in known)
    seconds = [one.seconds for one in known if one.seconds is not None]
    return SummedLag(state, sum(one.end for one in known) - behind, behind, max(seconds, default=None))


def view_of(admin: Admin, before: ClusterLook, now: ClusterLook) -> dict[str, Any]:
    """What is shown, as JSON has it."""
    cluster, health = admin.describe_cluster(), now.health
    return {
        "time": time_text(RealClock().now_ms()),
        "cluster_id": cluster.cluster_id,
        "brokers": len(cluster.brokers),
        "away": sorted(health.replicas - cluster.brokers.keys()),
        "leaderless_partitions": health.leaderless,
        "under_replicated_partitions": health.under_replicated,
        "unread": [*now.unread],
        "topics": [_rounded(one._asdict()) for one in topics_between(before, now)],
        "groups": [_rounded(one._asdict()) for one in groups_between(before, now)],
        "requests": [_rounded(one._asdict()) for one in requests_between(before, now)],
    }


def _what_is_wrong(view: dict[str, Any]) -> Iterator[str]:
    if view["away"]:
        yield f"away: {'broker' if len(view['away']) == 1 else 'brokers'} {', '.join(map(str, view['away']))}"
    if view["leaderless_partitions"]:
        yield f"{counted(view['leaderless_partitions'], 'partition')} without a leader"
    if view["under_replicated_partitions"]:
        yield f"{counted(view['under_replicated_partitions'], 'partition')} with replicas that are not in sync"
    yield from view["unread"]


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    return {name: round(value, 2) if isinstance(value, float) else value for name, value in row.items()}


def _show(view: dict[str, Any], rows: int | None, *, as_json: bool, clears: bool) -> None:
    if as_json:
        print_json(view)
        sys.stdout.flush()
        return
    tables = [name for name in ("topics", "groups", "requests") if view[name]]
    most = rows or max(3, (shutil.get_terminal_size().lines - 2) // max(len(tables), 1) - 3)
    if clears:
        print(CLEAR, end="")
    written = sum(row["records_per_second"] for row in view["topics"])
    brokers = counted(view["brokers"], "broker")
    print(f"{view['time']}  cluster {view['cluster_id']}  {brokers}  {written:,.1f} records/s written")
    for sentence in _what_is_wrong(view):
        print(sentence)
    for name in tables:
        shown = view[name][:most]
        print()
        print_table([column.replace("_", " ").upper() for column in shown[0]], [[*row.values()] for row in shown])
        if len(view[name]) > most:
            print(f"and {len(view[name]) - most:,} more {name}")
    sys.stdout.flush()
