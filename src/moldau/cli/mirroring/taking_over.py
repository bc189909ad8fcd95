"""`moldau mirror failover` and `promote`: mirrors become topics like others."""

import asyncio
import re
from typing import Annotated

from moldau.cli.command_line import Option
from moldau.cli.mirroring import options
from moldau.cli.options import Json, reachable
from moldau.cli.output import note, print_json
from moldau.errors import ConfigError, ErrorCode, KafkaError
from moldau.mirror.ends import ClusterEnd, is_ours
from moldau.mirror.failing_over import FailedOverTopics, fail_over_all, rehearse
from moldau.mirror.promoting import promote, until_level
from moldau.mirror.status import interrupted, mirrors_in
from moldau.names import counted

ALWAYS_WRITABLE = (
    "{0}: these brokers are not Moldau's, and topics that are mirrored there can be written to at any time. Stop the "
    "producers of the source, wait until `moldau mirror status` shows 0 records behind, stop the worker, and start the "
    "applications at the target: groups begin at the positions that --sync-group-offsets committed, or at those in the "
    "checkpoints topic"
)

INTERRUPTED = KafkaError(ErrorCode.INVALID_REQUEST, "an earlier fail-over of it was interrupted")


def fail_over_now(
    target: options.To,
    topics: options.Topics,
    to_config: options.ToConfig = None,
    schemas: options.Schemas = False,
    dry_run: options.DryRun = False,
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
    pattern, brokers = options.topics_in(topics, schemas), options.end_of(target, to_config)
    reachable(brokers)

    async def work() -> FailedOverTopics:
        async with ClusterEnd(brokers, "--to") as end:
            return await _over(end, await _mirrors(end, "", pattern), dry_run)

    return _print_over(asyncio.run(work()), dry_run, as_json)


def promote_mirrors(
    source: options.From,
    target: options.To,
    topics: options.Topics,
    from_config: options.FromConfig = None,
    to_config: options.ToConfig = None,
    groups: options.Groups = ".*",
    schemas: options.Schemas = False,
    timeout: Annotated[
        float, Option("--timeout", metavar="SECONDS", help="How long to wait for the mirrors to have all records.")
    ] = 60.0,
    dry_run: options.DryRun = False,
    as_json: Json = False,
) -> int:
    """
    Make mirrors writable once they have all records of the source, and groups their last offsets: stop the producers
    of the source first, and leave a worker running until then.

    If the source still grows, the mirrors stay mirrors and the command fails.

    Examples:

      moldau mirror promote --from old:9092 --to new:9092 --topics 'orders|payments'
    """
    pattern, of_groups = options.topics_in(topics, schemas), options.pattern_in(groups, "--groups")
    ends = options.ends_of(source, from_config, target, to_config)

    async def work(source_end: ClusterEnd, target_end: ClusterEnd) -> FailedOverTopics:
        mirrors = await _mirrors(target_end, source_end.cluster_id, pattern)
        halfway = dict.fromkeys(await _halfway(target_end, pattern), INTERRUPTED)
        if dry_run:
            await until_level(source_end, target_end, mirrors, timeout)
            done = await _over(target_end, mirrors, dry_run)
        else:
            done = await promote(source_end, target_end, mirrors, of_groups, timeout)
        return done._replace(failures={**halfway, **done.failures})

    return _print_over(asyncio.run(options.with_ends(ends, work)), dry_run, as_json)


async def _mirrors(target: ClusterEnd, cluster_id: str, topics: re.Pattern[str]) -> dict[str, str]:
    """The mirrors that match. Raises `ConfigError` if there are none."""
    if not await is_ours(target):
        raise ConfigError(ALWAYS_WRITABLE.format(target.brokers))
    found = await mirrors_in(target, cluster_id)
    chosen = {name: mirror_source for name, mirror_source in found.items() if topics.fullmatch(name)}
    if not chosen:
        if halfway := await _halfway(target, topics):
            raise ConfigError(f"a fail-over of {', '.join(halfway)} was interrupted; {options.AGAIN}")
        raise ConfigError(f"no mirror in {target.brokers} matches --topics {topics.pattern!r}")
    return chosen


async def _halfway(target: ClusterEnd, topics: re.Pattern[str]) -> list[str]:
    return [name for name in await interrupted(target) if topics.fullmatch(name)]


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
        note(f"error: {name} is not failed over, and {options.AGAIN}: {failure}")
    for group, failure in sorted(done.groups.items()):
        note(f"error: group {group} does not have the offsets that it has in the source: {failure}")
    return 1 if done.failures or done.groups else 0
