"""`moldau top`: rates, lag and slow requests of a cluster, again and again."""

import asyncio
import shutil
import sys
from collections.abc import Iterator
from typing import Annotated, Any

from moldau.cli.command_line import Option, UsageError
from moldau.cli.options import BOOTSTRAP, BootstrapServer, Json, reachable
from moldau.cli.output import note, print_json, print_table, time_text
from moldau.cli.watching.changes import ClusterLook, groups_between, topics_between
from moldau.cli.watching.looking import ANSWER_S, look
from moldau.client.administration.admin import AsyncAdmin
from moldau.client.administration.request_times import requests_between
from moldau.errors import KafkaError
from moldau.names import counted
from moldau.runtime import RealClock

ANSWER_MS = int(ANSWER_S * 1000)
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
    until Ctrl-C. Brokers that are away or do not answer, and partitions without a leader or with replicas out of sync,
    are named above. All brokers are asked at once, and none is waited for longer than 2 seconds.

    Of more than 100 groups only the first ones by name are shown. With --json each view is an object.

    Examples:

      moldau top

      moldau top --metrics http://localhost:9404/metrics --interval 5

      moldau top --once --json
    """
    if as_json and rows is not None:
        raise UsageError("--rows cannot be combined with --json, which has all rows")
    brokers = reachable(bootstrap_server)

    async def watch() -> None:
        async with AsyncAdmin(
            brokers,
            default_api_timeout_ms=ANSWER_MS,
            request_timeout_ms=ANSWER_MS,
            socket_connection_setup_timeout_ms=ANSWER_MS,
        ) as admin:
            before = await look(admin, metrics or [], internal=internal, needs_metrics=True)
            while True:
                await asyncio.sleep(interval)
                try:
                    now = await look(admin, metrics or [], internal=internal, needs_metrics=once, silent=before.silent)
                except KafkaError as failure:  # brokers may be away for a while
                    if once:
                        raise
                    note(f"no broker answers: {failure}")
                    continue
                _show(view_of(before, now), rows, as_json=as_json, clears=not once and sys.stdout.isatty())
                if once:
                    return
                before = now

    asyncio.run(watch())


def view_of(before: ClusterLook, now: ClusterLook) -> dict[str, Any]:
    """What is shown, as JSON has it."""
    cluster, health = now.cluster, now.health
    return {
        "time": time_text(RealClock().now_ms()),
        "cluster_id": cluster.cluster_id,
        "brokers": len(cluster.brokers),
        "away": sorted(health.replicas - cluster.brokers.keys()),
        "silent": sorted(now.silent),
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
