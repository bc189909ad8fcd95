"""The options of `moldau mirror` for a target that is not Moldau."""

import enum
from typing import Annotated

from moldau.cli.command_line import Option
from moldau.errors import ConfigError
from moldau.mirror.foreign.foreign_settings import ForeignSettings
from moldau.mirror.foreign.policy import ReplicationPolicy
from moldau.records.compression import NAMES


class PolicyName(enum.Enum):
    """How topics are named in the target."""

    DEFAULT = "default"
    IDENTITY = "identity"


Foreign = Annotated[bool, Option("--foreign", help="Use MirrorMaker's rules even if the target is Moldau.")]
FromAlias = Annotated[str, Option("--from-alias", metavar="NAME", help="The source's name, in front of topics' names.")]
ToAlias = Annotated[str, Option("--to-alias", metavar="NAME", help="The target's name: topics from it are left out.")]
Policy = Annotated[
    PolicyName, Option("--policy", metavar="NAME", help="default: orders becomes source.orders; identity: names stay.")
]
Separator = Annotated[str, Option("--separator", metavar="TEXT", help="What stands between an alias and a topic.")]
SourceHeartbeats = Annotated[
    bool, Option("--source-heartbeats", help="Also write heartbeats into the source, which shows clients the mirror.")
]
SyncGroupOffsets = Annotated[
    bool,
    Option("--sync-group-offsets", help="Also commit the positions of groups in the target, if they have no members."),
]
OffsetLagMax = Annotated[
    int, Option("--offset-lag-max", metavar="N", min=0, help="How many records early a group's position may be.")
]
CheckpointInterval = Annotated[
    float,
    Option("--checkpoint-interval", metavar="SECONDS", help="How often positions of groups are written to the target."),
]


def _codec(name: str) -> str:
    if name not in NAMES:
        raise ConfigError(f"--compression {name!r} is not one of {', '.join(NAMES)}")
    return name


Compression = Annotated[
    str,
    Option("--compression", metavar="CODEC", callback=_codec, help="Of the batches that are written to the target."),
]


def policy_of(from_alias: str, to_alias: str, policy: PolicyName, separator: str) -> ReplicationPolicy:
    """Raises `ConfigError` for names that cannot be."""
    try:
        return ReplicationPolicy(from_alias, to_alias, separator, policy is PolicyName.IDENTITY)
    except ValueError as wrong:
        raise ConfigError(str(wrong)) from None


def check_unused(given: ForeignSettings) -> None:
    """Raises `ConfigError` if an option was given that has no effect where the target is Moldau."""
    usual = ForeignSettings(given.topics)
    for option, has, default in (
        ("--from-alias", given.policy.source, usual.policy.source),
        ("--to-alias", given.policy.target, usual.policy.target),
        ("--policy", given.policy.is_identity, usual.policy.is_identity),
        ("--separator", given.policy.separator, usual.policy.separator),
        ("--source-heartbeats", given.source_heartbeats, usual.source_heartbeats),
        ("--sync-group-offsets", given.sync_groups, usual.sync_groups),
        ("--offset-lag-max", given.lag_max, usual.lag_max),
        ("--checkpoint-interval", given.checkpoints_s, usual.checkpoints_s),
        ("--compression", given.compression, usual.compression),
    ):
        if has != default:
            raise ConfigError(
                f"{option} is for a target that is not Moldau, where a mirror follows MirrorMaker's rules; --foreign "
                "has it do so here, too"
            )
