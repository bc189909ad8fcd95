"""The options of `moldau mirror start` for a target that is not Moldau."""

from typing import Annotated

from moldau.cli.command_line import Option
from moldau.cli.mirroring.foreign_options import check_defaults, check_policy_unused
from moldau.errors import ConfigError
from moldau.mirror.foreign.foreign_settings import ForeignSettings
from moldau.records.compression import NAMES

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


def check_unused(given: ForeignSettings) -> None:
    """Raises `ConfigError` if an option was given that has no effect where the target is Moldau."""
    check_policy_unused(given.policy)
    usual = ForeignSettings(given.topics)
    check_defaults(
        ("--source-heartbeats", given.source_heartbeats, usual.source_heartbeats),
        ("--sync-group-offsets", given.sync_groups, usual.sync_groups),
        ("--offset-lag-max", given.lag_max, usual.lag_max),
        ("--checkpoint-interval", given.checkpoints_s, usual.checkpoints_s),
        ("--compression", given.compression, usual.compression),
    )
