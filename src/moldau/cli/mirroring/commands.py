"""`moldau mirror`: topics of one cluster, copied into another one at the same offsets."""

import asyncio
import logging
import re
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, TypeVar

from moldau.cli.command_line import Group, Option
from moldau.cli.options import Json, reachable
from moldau.cli.output import print_json, print_table
from moldau.cli.until_signal import cancelled_by_signal
from moldau.client.security.brokers import Brokers, settings_in
from moldau.errors import ConfigError
from moldau.mirror.ends import ClusterEnd
from moldau.mirror.status import MirrorStatus, status
from moldau.mirror.worker import MirrorSettings, MirrorWorker

T = TypeVar("T")

app = Group("mirror")

From = Annotated[str, Option("--from", metavar="HOST:PORT", help="Brokers of the cluster that is mirrored.")]
To = Annotated[str, Option("--to", metavar="HOST:PORT", help="Brokers of the cluster that gets the mirrors.")]
FromConfig = Annotated[
    Path | None, Option("--from-config", metavar="FILE", help="Settings of the client for --from, as Java's has them.")
]
ToConfig = Annotated[
    Path | None, Option("--to-config", metavar="FILE", help="Settings of the client for --to, as Java's has them.")
]


@app.command()
def start(
    source: From,
    target: To,
    topics: Annotated[
        str, Option("--topics", metavar="PATTERN", help="A regular expression: topics whose whole names match.")
    ],
    from_config: FromConfig = None,
    to_config: ToConfig = None,
    replication_factor: Annotated[
        int,
        Option("--replication-factor", help="The replicas of topics made in the target; -1: its default."),
    ] = -1,
    refresh: Annotated[
        float, Option("--refresh", metavar="SECONDS", min=0.1, help="How often topics and settings are compared.")
    ] = 10.0,
) -> int:
    """
    Mirror topics until told to stop: byte by byte, at the same offsets, into topics that nobody else writes to.

    The target is a cluster of Moldau; the source is any Kafka. Partitions and settings are kept as in the source. All
    state is in the target: stop the command, or kill it, and start it again anywhere.

    Examples:

      moldau mirror start --from old:9092 --to new:9092 --topics 'orders|payments'

      moldau mirror start --from old:9092 --from-config old.properties --to new:9092 --topics '.*'
    """
    try:
        pattern = re.compile(topics)
    except re.error as wrong:
        raise ConfigError(f"--topics {topics!r} is not a regular expression: {wrong}") from None
    ends = _end(source, from_config), _end(target, to_config)
    for one in ends:
        reachable(one)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")

    async def work(source_end: ClusterEnd, target_end: ClusterEnd) -> None:
        settings = MirrorSettings(pattern, replication_factor, refresh)
        await MirrorWorker(source_end, target_end, settings).run()

    return asyncio.run(cancelled_by_signal(_with(ends, work)))


@app.command("status")
def show_status(
    source: From,
    target: To,
    from_config: FromConfig = None,
    to_config: ToConfig = None,
    as_json: Json = False,
) -> None:
    """
    Show how far the mirrors of a cluster are: where the source's log ends (SOURCE END) and its committed transactions
    do (STABLE END), where the mirror ends (END), and how many records and seconds it is behind. BEHIND is how many
    records a fail-over would lose now.

    Examples:

      moldau mirror status --from old:9092 --to new:9092

      moldau mirror status --from old:9092 --to new:9092 --json
    """
    ends = _end(source, from_config), _end(target, to_config)
    for one in ends:
        reachable(one)
    shown = asyncio.run(_with(ends, status))
    if as_json:
        print_json([one._asdict() for one in shown])
        return
    headers = ["TOPIC", "PARTITION", "SOURCE END", "STABLE END", "END", "BEHIND", "SECONDS"]
    print_table(headers, [_row(one) for one in shown])
    lost = sum(one.records or 0 for one in shown)
    unknown = sum(one.records is None for one in shown)
    print(f"a fail-over now would lose {lost} record{'s'[: lost != 1]}")
    if unknown:
        print(f"the source does not tell the ends of {unknown} partition{'s'[: unknown != 1]}")


def _row(one: MirrorStatus) -> list[object]:
    seconds = None if one.seconds is None else round(one.seconds, 1)
    return [one.topic, one.partition, one.source_end, one.stable_end, one.end, one.records, seconds]


def _end(brokers: str, config: Path | None) -> str:
    """The addresses with the settings of that file. Raises `ConfigError`."""
    if config is None:
        return brokers
    named = Brokers(brokers, {}, str(config.absolute()))
    settings_in(named)
    return named


async def _with(ends: tuple[str, str], work: Callable[[ClusterEnd, ClusterEnd], Coroutine[None, None, T]]) -> T:
    async with ClusterEnd(ends[0], "--from") as source, ClusterEnd(ends[1], "--to") as target:
        return await work(source, target)
