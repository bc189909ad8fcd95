"""`moldau mirror start`: a worker that copies topics until it is told to stop."""

import asyncio
import logging
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from typing import Annotated

from moldau.cli.command_line import Option
from moldau.cli.mirroring import foreign_options, foreign_worker_options, options
from moldau.cli.until_signal import cancelled_by_signal
from moldau.client.pyarrow_needed import need_pyarrow
from moldau.errors import ConfigError
from moldau.metrics.families import Family
from moldau.mirror.ends import ClusterEnd, is_ours
from moldau.mirror.foreign.foreign_settings import ForeignSettings
from moldau.mirror.foreign.offset_syncs import LAG_MAX
from moldau.mirror.foreign.policy import SEPARATOR, SOURCE, TARGET
from moldau.mirror.mirror_metrics import NO_PORT, families_of, foreign_families, told_to_prometheus
from moldau.mirror.sharing import SESSION_S, MemberOptions
from moldau.mirror.worker import MirrorSettings, MirrorWorker
from moldau.notices import log_to_stderr

logger = logging.getLogger(__name__)

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
    int,
    Option(
        "--metrics-port",
        min=0,
        max=65_535,
        help="Metrics for Prometheus are at http://HOST:PORT/metrics; 0: a free port.",
    ),
]
MetricsHost = Annotated[
    str, Option("--metrics-host", metavar="HOST", help="Where --metrics-port listens; '' is every interface.")
]
WhileMeasured = Callable[[Callable[[], list[Family]]], AbstractAsyncContextManager[int]]
"""Listens while it is entered, for those who ask for the metrics that the function returns."""
SHORTEST_S = 0.05
NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
"""The names that brokers accept as `group.instance.id`."""


def start(
    source: options.From,
    target: options.To,
    topics: options.Topics,
    from_config: options.FromConfig = None,
    to_config: options.ToConfig = None,
    replication_factor: ReplicationFactor = -1,
    groups: options.Groups = ".*",
    acls: Acls = False,
    schemas: options.Schemas = False,
    refresh: Refresh = 10.0,
    instance: Instance = None,
    session_timeout: SessionTimeout = SESSION_S,
    metrics_port: MetricsPort = NO_PORT,
    metrics_host: MetricsHost = "",
    foreign: foreign_options.Foreign = False,
    from_alias: foreign_options.FromAlias = SOURCE,
    to_alias: foreign_options.ToAlias = TARGET,
    policy: foreign_options.Policy = foreign_options.PolicyName.DEFAULT,
    separator: foreign_options.Separator = SEPARATOR,
    source_heartbeats: foreign_worker_options.SourceHeartbeats = False,
    sync_group_offsets: foreign_worker_options.SyncGroupOffsets = False,
    offset_lag_max: foreign_worker_options.OffsetLagMax = LAG_MAX,
    checkpoint_interval: foreign_worker_options.CheckpointInterval = 60.0,
    compression: foreign_worker_options.Compression = "none",
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
    of_topics, of_groups = options.topics_in(topics, schemas), options.pattern_in(groups, "--groups")
    member = _member(instance, session_timeout)
    settings = MirrorSettings(of_topics, replication_factor, max(refresh, SHORTEST_S), of_groups, acls, member)
    by_rules = ForeignSettings(
        settings.topics,
        foreign_options.policy_of(from_alias, to_alias, policy, separator),
        source_heartbeats=source_heartbeats,
        sync_groups=sync_group_offsets,
        lag_max=offset_lag_max,
        checkpoints_s=max(checkpoint_interval, SHORTEST_S),
        compression=compression,
    )
    work = partial(_mirror, settings, by_rules, foreign, _measured(metrics_host, metrics_port))
    ends = options.end_of(source, from_config), options.end_of(target, to_config)  # one that is down is waited for
    log_to_stderr()
    return asyncio.run(cancelled_by_signal(options.with_ends(ends, work)))


async def _mirror(
    settings: MirrorSettings,
    by_rules: ForeignSettings,
    foreign: bool,
    measured: WhileMeasured,
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
    loop = asyncio.get_running_loop()
    if foreign or not await is_ours(target):
        need_pyarrow("a mirror into a foreign Kafka")
        from moldau.mirror.foreign.foreign_worker import ForeignWorker

        abroad = ForeignWorker(source, target, by_rules)
        async with measured(
            lambda: foreign_families(abroad.board, len(abroad.lanes.copies), len(abroad.refused), loop.time())
        ):
            await abroad.run()
        return
    foreign_worker_options.check_unused(by_rules)
    logger.info("the target is Moldau: topics are mirrored byte by byte, at the same offsets")
    worker = MirrorWorker(source, target, settings)
    async with measured(lambda: families_of(worker, loop.time())):
        await worker.run()


def _measured(host: str, port: int) -> WhileMeasured:
    """Raises `ConfigError`."""
    if host and port == NO_PORT:
        raise ConfigError("--metrics-host needs --metrics-port")
    return partial(told_to_prometheus, host, port)


def _member(instance: str | None, session_s: float) -> MemberOptions:
    """Raises `ConfigError`."""
    if instance is not None and not NAME.fullmatch(instance):
        raise ConfigError(f"--instance {instance!r} is not a name of letters, digits, '.', '_' and '-'")
    if not session_s > 0:
        raise ConfigError(f"--session-timeout {session_s:g} is not a number of seconds above 0")
    return MemberOptions(instance, session_s)
