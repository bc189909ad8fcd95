"""`moldau mirror`: topics of one cluster, copied into another one at the same offsets."""

import asyncio
import logging
import re
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar

from moldau.cli.command_line import Group, Option
from moldau.cli.mirroring.foreign_options import (
    CheckpointInterval,
    Compression,
    Foreign,
    FromAlias,
    OffsetLagMax,
    Policy,
    PolicyName,
    Separator,
    SourceHeartbeats,
    SyncGroupOffsets,
    ToAlias,
    check_unused,
    policy_of,
)
from moldau.cli.options import Json, reachable
from moldau.cli.output import note, print_json, print_table
from moldau.cli.until_signal import cancelled_by_signal
from moldau.client.pyarrow_needed import need_pyarrow
from moldau.client.security.brokers import Brokers, settings_in
from moldau.errors import ConfigError
from moldau.metrics.families import Family
from moldau.mirror.ends import ClusterEnd, is_ours
from moldau.mirror.failing_over import FailedOverTopics, fail_over_all, rehearse
from moldau.mirror.foreign.foreign_settings import ForeignSettings
from moldau.mirror.foreign.foreign_status import foreign_status
from moldau.mirror.foreign.offset_syncs import LAG_MAX
from moldau.mirror.foreign.policy import SEPARATOR, SOURCE, TARGET
from moldau.mirror.mirror_metrics import NO_PORT, families_of, foreign_families, told_to_prometheus
from moldau.mirror.promoting import promote, until_level
from moldau.mirror.sharing import SESSION_S, MemberOptions
from moldau.mirror.status import MirrorStatus, interrupted, mirrors_in, status
from moldau.mirror.worker import MirrorSettings, MirrorWorker
from moldau.names import counted
from moldau.notices import log_to_stderr

T = TypeVar("T")
logger = logging.getLogger(__name__)

app = Group("mirror")

From = Annotated[str, Option("--from", metavar="HOST:PORT", help="Brokers of the cluster that is mirrored.")]
To = Annotated[str, Option("--to", metavar="HOST:PORT", help="Brokers of the cluster that gets the mirrors.")]
FromConfig = Annotated[
    Path | None, Option("--from-config", metavar="FILE", help="Settings of the client for --from, as Java's has them.")
]
ToConfig = Annotated[
    Path | None, Option("--to-config", metavar="FILE", help="Settings of the client for --to, as Java's has them.")
]


SCHEMAS = "_schemas"
Topics = Annotated[
    str, Option("--topics", metavar="PATTERN", help="A regular expression: topics whose whole names match.")
]
Groups = Annotated[
    str, Option("--groups", metavar="PATTERN", help="A regular expression: groups whose offsets are kept, '' for none.")
]
Schemas = Annotated[bool, Option("--schemas", help=f"Also {SCHEMAS}, the topic of a schema registry.")]
Acls = Annotated[bool, Option("--acls", help="Also copy access rights that name a mirrored topic.")]
ReplicationFactor = Annotated[
    int, Option("--replication-factor", help="The replicas of topics made in the target; -1: its default.")
]
Refresh = Annotated[
    float, Option("--refresh", metavar="SECONDS", help="How often topics, settings and groups are compared.")
]
Instance = Annotated[
    str | None,
    Option("--instance", metavar="NAME", help="The name of this worker: a restart with it moves no partition."),
]
SessionTimeout = Annotated[
    float,
    Option("--session-timeout", metavar="SECONDS", help="A worker that is silent for this long counts as dead."),
]
MetricsPort = Annotated[
    int, Option("--metrics-port", help="Metrics for Prometheus are at http://HOST:PORT/metrics; 0: a free port.")
]
MetricsHost = Annotated[
    str, Option("--metrics-host", metavar="HOST", help="Where --metrics-port listens; '' is every interface.")
]
DryRun = Annotated[bool, Option("--dry-run", help="Only say what would be done.")]
SHORTEST_S = 0.05
NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
"""What brokers take as `group.instance.id`."""
AGAIN = "it takes no records until `moldau mirror failover` is run again"
ALWAYS_WRITABLE = (
    "{0}: these brokers are not Moldau's, and topics that are mirrored there can be written to at any time. Stop the "
    "producers of the source, wait until `moldau mirror status` shows 0 records behind, stop the worker, and start the "
    "applications at the target: groups begin at the positions that --sync-group-offsets committed, or at those in the "
    "checkpoints topic"
)


@app.command()
def start(
    source: From,
    target: To,
    topics: Topics,
    from_config: FromConfig = None,
    to_config: ToConfig = None,
    replication_factor: ReplicationFactor = -1,
    groups: Groups = ".*",
    acls: Acls = False,
    schemas: Schemas = False,
    refresh: Refresh = 10.0,
    instance: Instance = None,
    session_timeout: SessionTimeout = SESSION_S,
    metrics_port: MetricsPort = NO_PORT,
    metrics_host: MetricsHost = "",
    foreign: Foreign = False,
    from_alias: FromAlias = SOURCE,
    to_alias: ToAlias = TARGET,
    policy: Policy = PolicyName.DEFAULT,
    separator: Separator = SEPARATOR,
    source_heartbeats: SourceHeartbeats = False,
    sync_group_offsets: SyncGroupOffsets = False,
    offset_lag_max: OffsetLagMax = LAG_MAX,
    checkpoint_interval: CheckpointInterval = 60.0,
    compression: Compression = "none",
) -> int:
    """
    Mirror topics until SIGTERM or Ctrl-C. The source is any Kafka. All state is in the target, so another machine can
    continue after a kill. The command waits for clusters that do not answer at the start for `default.api.timeout.ms`.

    If the target is a cluster of Moldau: byte by byte, at the same offsets, into topics of the same names, which refuse
    other writers. Partitions, settings and the offsets of groups are kept as in the source.

    If the target is another Kafka: by MirrorMaker 2's rules and names, each record exactly once, with offset syncs,
    checkpoints and heartbeats. The options from --from-alias on are for that.

    Examples:

      moldau mirror start --from old:9092 --to new:9092 --topics 'orders|payments'

      moldau mirror start --from old:9092 --from-config old.properties --to new:9092 --topics '.*'

      moldau mirror start --from old:9092 --to kafka:9092 --from-alias old --topics 'orders|payments'
    """
    of_topics, of_groups, refresh_s = _topics(topics, schemas), _pattern(groups, "--groups"), max(refresh, SHORTEST_S)
    member = _member(instance, session_timeout)
    settings = MirrorSettings(of_topics, replication_factor, refresh_s, of_groups, acls, member)
    by_rules = ForeignSettings(
        settings.topics,
        policy_of(from_alias, to_alias, policy, separator),
        source_heartbeats=source_heartbeats,
        sync_groups=sync_group_offsets,
        lag_max=offset_lag_max,
        checkpoints_s=max(checkpoint_interval, SHORTEST_S),
        compression=compression,
    )
    ends = _end(source, from_config), _end(target, to_config)  # a cluster that is down is waited for, as clients do
    log_to_stderr()
    measured = partial(told_to_prometheus, metrics_host, metrics_port)
    return asyncio.run(cancelled_by_signal(_with(ends, partial(_mirror, settings, by_rules, foreign, measured))))


@app.command("status")
def show_status(
    source: From,
    target: To,
    from_config: FromConfig = None,
    to_config: ToConfig = None,
    as_json: Json = False,
    foreign: Foreign = False,
    from_alias: FromAlias = SOURCE,
    to_alias: ToAlias = TARGET,
    policy: Policy = PolicyName.DEFAULT,
    separator: Separator = SEPARATOR,
) -> None:
    """
    Show how far the mirrors of a cluster are: where the source's log ends (SOURCE END) and its committed transactions
    do (STABLE END), where the mirror ends (END), and how many records and seconds it is behind. BEHIND is how many
    records a fail-over would lose now. In a target that is not Moldau, END is the source's offset up to which records
    were mirrored; name the mirror as for `start`.

    Examples:

      moldau mirror status --from old:9092 --to new:9092

      moldau mirror status --from old:9092 --to new:9092 --json
    """
    ends, named = _ends(source, from_config, target, to_config), policy_of(from_alias, to_alias, policy, separator)

    async def look(source_end: ClusterEnd, target_end: ClusterEnd) -> tuple[list[MirrorStatus], list[str]]:
        if foreign or not await is_ours(target_end):
            return await foreign_status(source_end, target_end, named), []
        return await status(source_end, target_end), await interrupted(target_end)

    shown, halfway = asyncio.run(_with(ends, look))
    if as_json:
        print_json([one._asdict() for one in shown])
        return
    for name in halfway:
        print(f"{name}: a fail-over was interrupted; {AGAIN}")
    if not shown:
        print(f"{target} has no mirror of {source}")
        return
    headers = ["TOPIC", "PARTITION", "SOURCE END", "STABLE END", "END", "BEHIND", "SECONDS"]
    print_table(headers, [_row(one) for one in shown])
    print(f"a fail-over now would lose {counted(sum(one.records or 0 for one in shown), 'record')}")
    unknown = sum(one.records is None for one in shown)
    if unknown:
        print(f"{counted(unknown, 'partition')} cannot be compared: gone in the source, made anew, or without a leader")


@app.command("failover")
def fail_over_now(
    target: To,
    topics: Topics,
    to_config: ToConfig = None,
    schemas: Schemas = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> int:
    """
    Make mirrors writable now, with the records that they have. The command does not need the source.

    Transactions that are open at a mirror's end are aborted. Workers stop writing to the mirrors. Run the command again
    to complete an interrupted fail-over. `moldau mirror status` shows beforehand how many records would be lost.

    Examples:

      moldau mirror failover --to new:9092 --topics 'orders|payments' --dry-run

      moldau mirror failover --to new:9092 --topics '.*'
    """
    pattern, brokers = _topics(topics, schemas), _end(target, to_config)
    reachable(brokers)

    async def work() -> FailedOverTopics:
        async with ClusterEnd(brokers, "--to") as end:
            return await _over(end, await _mirrors(end, "", pattern), dry_run)

    return _print_over(asyncio.run(work()), dry_run, as_json)


@app.command("promote")
def promote_mirrors(
    source: From,
    target: To,
    topics: Topics,
    from_config: FromConfig = None,
    to_config: ToConfig = None,
    groups: Groups = ".*",
    schemas: Schemas = False,
    timeout: Annotated[
        float, Option("--timeout", metavar="SECONDS", help="How long to wait for the mirrors to have all records.")
    ] = 60.0,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> int:
    """
    Make mirrors writable once they have all records of the source, and groups their last offsets: stop the producers
    of the source first, and leave a worker running until then.

    If the source still grows, the mirrors stay mirrors and the command fails.

    Examples:

      moldau mirror promote --from old:9092 --to new:9092 --topics 'orders|payments'
    """
    pattern, of_groups = _topics(topics, schemas), _pattern(groups, "--groups")
    ends = _ends(source, from_config, target, to_config)

    async def work(source_end: ClusterEnd, target_end: ClusterEnd) -> FailedOverTopics:
        mirrors = await _mirrors(target_end, source_end.cluster_id, pattern)
        if dry_run:
            await until_level(source_end, target_end, mirrors, timeout)
            return await _over(target_end, mirrors, dry_run)
        return await promote(source_end, target_end, mirrors, of_groups, timeout)

    return _print_over(asyncio.run(_with(ends, work)), dry_run, as_json)


async def _mirror(
    settings: MirrorSettings,
    by_rules: ForeignSettings,
    foreign: bool,
    measured: Callable[[Callable[[], list[Family]]], AbstractAsyncContextManager[int]],
    source: ClusterEnd,
    target: ClusterEnd,
) -> None:
    """Mirror in the way that the target allows, until cancelled. Raises `ConfigError`, `KafkaError`."""
    by_rules = replace(
        by_rules,
        replication_factor=settings.replication_factor,
        refresh_s=settings.refresh_s,
        groups=settings.groups,
        acls=settings.acls,
        member=settings.member,
    )
    if foreign or not await is_ours(target):
        need_pyarrow("a mirror into a foreign Kafka")
        from moldau.mirror.foreign.foreign_worker import ForeignWorker

        abroad = ForeignWorker(source, target, by_rules)
        async with measured(lambda: foreign_families(abroad.board, len(abroad.lanes.copies), len(abroad.refused))):
            await abroad.run()
        return
    check_unused(by_rules)
    logger.info("the target is Moldau: topics are mirrored byte by byte, at the same offsets")
    worker = MirrorWorker(source, target, settings)
    async with measured(lambda: families_of(worker)):
        await worker.run()


async def _mirrors(target: ClusterEnd, cluster_id: str, topics: re.Pattern[str]) -> dict[str, str]:
    """The mirrors that match. Raises `ConfigError` if there are none."""
    if not await is_ours(target):
        raise ConfigError(ALWAYS_WRITABLE.format(target.brokers))
    found = await mirrors_in(target, cluster_id)
    chosen = {name: mirror_source for name, mirror_source in found.items() if topics.fullmatch(name)}
    if not chosen:
        halfway = [name for name in await interrupted(target) if topics.fullmatch(name)]
        if halfway:
            raise ConfigError(f"a fail-over of {', '.join(halfway)} was interrupted; {AGAIN}")
        raise ConfigError(f"no mirror in {target.brokers} matches --topics {topics.pattern!r}")
    return chosen


async def _over(target: ClusterEnd, mirrors: dict[str, str], dry_run: bool) -> FailedOverTopics:
    if not dry_run:
        return await fail_over_all(target, mirrors)
    return FailedOverTopics([one for name in mirrors for one in await rehearse(target, name)], {})


def _print_over(done: FailedOverTopics, dry_run: bool, as_json: bool) -> int:
    """Returns the exit code."""
    if as_json:
        print_json(
            [
                {"topic": one.tp.topic, "partition": one.tp.partition, "end": one.end, "aborted": one.aborted}
                for one in done.over
            ]
        )
    for one in [] if as_json else done.over:
        verbs = ("would be writable from", "would be aborted") if dry_run else ("is writable from", "aborted")
        aborted = f"; {counted(one.aborted, 'open transaction')} {verbs[1]}" if one.aborted else ""
        print(f"{one.tp} {verbs[0]} offset {one.end}{aborted}")
    for name, failure in sorted(done.failures.items()):
        note(f"error: {name} is not failed over, and {AGAIN}: {failure}")
    return 1 if done.failures else 0


def _topics(text: str, schemas: bool) -> re.Pattern[str]:
    """Raises `ConfigError`."""
    pattern = _pattern(text, "--topics")
    return re.compile(f"{text}|{SCHEMAS}") if schemas else pattern


def _pattern(text: str, option: str) -> re.Pattern[str]:
    """Raises `ConfigError`."""
    try:
        return re.compile(text)
    except re.error as wrong:
        raise ConfigError(f"{option} {text!r} is not a regular expression: {wrong}") from None


def _member(instance: str | None, session_s: float) -> MemberOptions:
    """Raises `ConfigError`."""
    if instance is not None and not NAME.fullmatch(instance):
        raise ConfigError(f"--instance {instance!r} is not a name of letters, digits, '.', '_' and '-'")
    if not session_s > 0:
        raise ConfigError(f"--session-timeout {session_s:g} is not a number of seconds above 0")
    return MemberOptions(instance, session_s)


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


def _ends(source: str, from_config: Path | None, target: str, to_config: Path | None) -> tuple[str, str]:
    """Both ends, which answer. Raises `ConfigError`, and as `reachable` does."""
    ends = _end(source, from_config), _end(target, to_config)
    for one in ends:
        reachable(one)
    return ends


async def _with(ends: tuple[str, str], work: Callable[[ClusterEnd, ClusterEnd], Coroutine[None, None, T]]) -> T:
    async with ClusterEnd(ends[0], "--from") as source, ClusterEnd(ends[1], "--to") as target:
        return await work(source, target)
