"""`moldau mirror status`: how far mirrors are. No worker is imported, which would be half of its processor time."""

import asyncio

from moldau.cli.mirroring import foreign_options, options
from moldau.cli.options import Json
from moldau.cli.output import note, print_json, print_table
from moldau.mirror.ends import ClusterEnd, is_ours
from moldau.mirror.foreign.policy import SEPARATOR, SOURCE, TARGET
from moldau.mirror.status import MirrorStatus, interrupted, status
from moldau.names import counted


def show_status(
    source: options.From,
    target: options.To,
    from_config: options.FromConfig = None,
    to_config: options.ToConfig = None,
    as_json: Json = False,
    foreign: foreign_options.Foreign = False,
    from_alias: foreign_options.FromAlias = SOURCE,
    to_alias: foreign_options.ToAlias = TARGET,
    policy: foreign_options.Policy = foreign_options.PolicyName.DEFAULT,
    separator: foreign_options.Separator = SEPARATOR,
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
    ends = options.ends_of(source, from_config, target, to_config)
    named = foreign_options.policy_of(from_alias, to_alias, policy, separator)

    async def look(source_end: ClusterEnd, target_end: ClusterEnd) -> tuple[list[MirrorStatus], list[str]]:
        if foreign or not await is_ours(target_end):
            from moldau.mirror.foreign.foreign_status import foreign_status

            return await foreign_status(source_end, target_end, named), []
        foreign_options.check_policy_unused(named)
        return await status(source_end, target_end), await interrupted(target_end)

    shown, halfway = asyncio.run(options.with_ends(ends, look))
    for name in halfway:
        note(f"{name}: a fail-over was interrupted; {options.AGAIN}")
    if as_json:
        print_json([one._asdict() for one in shown])
        return
    if not shown:
        print(f"{target} has no mirror of {source}")
        return
    headers = ["TOPIC", "PARTITION", "SOURCE END", "STABLE END", "END", "BEHIND", "SECONDS"]
    print_table(headers, [_row(one) for one in shown])
    unknown = sum(one.records is None for one in shown)
    lost = counted(sum(one.records or 0 for one in shown), "record")
    print(f"a fail-over now would lose {'at least ' if unknown else ''}{lost}")
    if unknown:
        print(f"{counted(unknown, 'partition')} cannot be compared: gone in the source, made anew, or without a leader")


def _row(one: MirrorStatus) -> list[object]:
    seconds = None if one.seconds is None else round(one.seconds, 1)
    return [one.topic, one.partition, one.source_end, one.stable_end, one.end, one.records, seconds]
