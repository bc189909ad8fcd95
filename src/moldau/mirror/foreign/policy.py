"""How topics are named in the target, which topics are never mirrored, and where MirrorMaker's own topics are. Pure.

The rules are those of MirrorMaker 2 in Kafka 4.3: `DefaultReplicationPolicy` puts the alias of the source before a
topic's name, `IdentityReplicationPolicy` keeps the name. The first part of a name in front of a separator is the alias
of the cluster that a topic came from, so a topic with the target's alias in its name is a cycle. Names alone show no
cycle where they are kept; there the target's heartbeats in the source do.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

HEARTBEATS: Final = "heartbeats"
SOURCE, TARGET, SEPARATOR = "source", "target", "."
"""MirrorMaker's defaults of the two aliases and of the separator."""
NOT_MIRRORED: Final = re.compile(r"mm2.*\.internal|.*\.replica|__.*")
"""The topics that MirrorMaker's filter leaves out by default."""
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


@dataclass(frozen=True)
class ReplicationPolicy:
    """Names for the mirror of one cluster in another one. `is_identity`: topics keep their names. Raises `ValueError`
    for an alias or a separator that cannot be part of a topic's name."""

    source: str = SOURCE
    target: str = TARGET
    separator: str = SEPARATOR
    is_identity: bool = False

    def __post_init__(self) -> None:
        for what, text in (("--from-alias", self.source), ("--to-alias", self.target), ("--separator", self.separator)):
            if not _LEGAL.fullmatch(text):
                raise ValueError(
                    f"{what} {text!r} cannot be part of a topic's name: use letters, digits, '.', '_', '-'"
                )
        if self.source == self.target:
            raise ValueError(f"--from-alias and --to-alias are the same, {self.source!r}")

    def remote(self, topic: str) -> str:
        """The name in the target of a topic of the source."""
        if self.is_identity and not topic.endswith(HEARTBEATS):
            return topic
        return f"{self.source}{self.separator}{topic}"

    def origin(self, topic: str) -> str | None:
        """The alias of the cluster that a topic came from, by its name; None if it was made where it is."""
        if self.is_identity and not topic.endswith(HEARTBEATS):
            return None
        alias, separator, rest = topic.partition(self.separator)
        return alias if separator and rest.replace(self.separator, "") else None

    def upstream(self, topic: str) -> str:
        """The topic's name in the cluster that it came from."""
        return topic.partition(self.separator)[2]

    def original(self, topic: str) -> str:
        """The name that the topic was made with."""
        while self.origin(topic) is not None:
            topic = self.upstream(topic)
        return topic

    def is_cycle(self, topic: str) -> bool:
        """Whether a topic of the source came from the target, however many clusters are in between."""
        while (origin := self.origin(topic)) is not None:
            if origin == self.target:
                return True
            topic = self.upstream(topic)
        return False

    def is_heartbeats(self, topic: str) -> bool:
        """Whether a topic holds heartbeats, here or of another cluster. They are mirrored whatever is asked for."""
        return self.original(topic) == HEARTBEATS

    def is_internal(self, topic: str) -> bool:
        suffix = f"{self.separator}internal"
        of_mirrors = topic.startswith("mm2") and topic.endswith(suffix)
        return of_mirrors or topic.endswith(f"{self.separator}checkpoints{suffix}") or topic.startswith(("__", "."))

    def offset_syncs(self) -> str:
        """The topic with pairs of offsets. It is in the target, and so has the source's alias
        (`offset-syncs.topic.location=target`)."""
        return self._internal("mm2-offset-syncs", self.source)

    def checkpoints(self) -> str:
        """The topic in the target with the translated offsets of groups."""
        return self._internal(self.source, "checkpoints")

    def positions(self) -> str:
        """Our topic in the target that says how far each partition is. MirrorMaker mirrors none of this name."""
        return self._internal("mm2-moldau-positions", self.source)

    def _internal(self, *parts: str) -> str:
        return self.separator.join((*parts, "internal"))

    def selects(self, topic: str, wanted: re.Pattern[str]) -> bool:
        """Whether a topic of the source is to be mirrored, unless it is a cycle."""
        if self.is_internal(topic):
            return False
        chosen = wanted.fullmatch(topic) is not None and not NOT_MIRRORED.fullmatch(topic)
        return chosen or self.is_heartbeats(topic)

    def loop(self, of_source: Collection[str]) -> str:
        """Why nothing can be mirrored with these topics in the source: a sentence, empty if nothing is in the way."""
        if not self.is_identity:
            return ""
        back = f"{self.target}{self.separator}{HEARTBEATS}"
        ours = self.separator.join(("mm2-moldau-positions", self.target, "internal"))
        for sign in (back, ours):
            if sign in of_source:
                return (
                    f"the source has the topic {sign}, so it is a mirror of the target {self.target!r}: with names "
                    "that stay, records would go round in a circle. Use --policy default, or stop the other mirror and "
                    "delete that topic"
                )
        return ""
