"""The options that the commands of `moldau mirror` share, and what they turn into."""

import re
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, TypeVar

from moldau.cli.command_line import Option
from moldau.cli.options import reachable
from moldau.client.security.brokers import Brokers, settings_in
from moldau.errors import ConfigError
from moldau.mirror.ends import ClusterEnd

T = TypeVar("T")

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
DryRun = Annotated[bool, Option("--dry-run", help="Only say what would be done.")]
AGAIN = "it takes no records until `moldau mirror failover` is run again"


def topics_in(text: str, schemas: bool) -> re.Pattern[str]:
    """Raises `ConfigError`."""
    pattern = pattern_in(text, "--topics")
    return re.compile(f"{text}|{SCHEMAS}") if schemas else pattern


def pattern_in(text: str, option: str) -> re.Pattern[str]:
    """Raises `ConfigError`."""
    try:
        return re.compile(text)
    except re.error as wrong:
        raise ConfigError(f"{option} {text!r} is not a regular expression: {wrong}") from None


def end_of(brokers: str, config: Path | None) -> str:
    """The addresses with the settings of that file. Raises `ConfigError`."""
    if config is None:
        return brokers
    named = Brokers(brokers, {}, str(config.absolute()))
    settings_in(named)
    return named


def ends_of(source: str, from_config: Path | None, target: str, to_config: Path | None) -> tuple[str, str]:
    """Both ends, which answer. Raises `ConfigError`, and as `reachable` does."""
    ends = end_of(source, from_config), end_of(target, to_config)
    for one in ends:
        reachable(one)
    return ends


async def with_ends(ends: tuple[str, str], work: Callable[[ClusterEnd, ClusterEnd], Coroutine[None, None, T]]) -> T:
    async with ClusterEnd(ends[0], "--from") as source, ClusterEnd(ends[1], "--to") as target:
        return await work(source, target)
