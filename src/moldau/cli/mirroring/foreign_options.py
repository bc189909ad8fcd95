"""The options of `moldau mirror` for a target that is not Moldau."""

import enum
from typing import Annotated

from moldau.cli.command_line import Option
from moldau.errors import ConfigError
from moldau.mirror.foreign.policy import ReplicationPolicy


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


def check_defaults(*given: tuple[str, object, object]) -> None:
    """Raises `ConfigError` for the first option whose value is not its default, the third of each."""
    for option, has, default in given:
        if has != default:
            raise ConfigError(
                f"{option} is for a target that is not Moldau, where a mirror follows MirrorMaker's rules; --foreign "
                "has it do so here, too"
            )


def check_policy_unused(given: ReplicationPolicy) -> None:
    """Raises `ConfigError` if an option of the names was given, which has no effect where the target is Moldau."""
    usual = ReplicationPolicy()
    check_defaults(
        ("--from-alias", given.source, usual.source),
        ("--to-alias", given.target, usual.target),
        ("--policy", given.is_identity, usual.is_identity),
        ("--separator", given.separator, usual.separator),
    )


def policy_of(from_alias: str, to_alias: str, policy: PolicyName, separator: str) -> ReplicationPolicy:
    """Raises `ConfigError` for names that cannot be."""
    try:
        return ReplicationPolicy(from_alias, to_alias, separator, policy is PolicyName.IDENTITY)
    except ValueError as wrong:
        raise ConfigError(str(wrong)) from None
