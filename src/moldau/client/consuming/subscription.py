"""What a consumer subscribes to: topics by name or by pattern, and the listeners of rebalances. No I/O, no clock."""

import re
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import TypeAlias, Union

from moldau.client.consuming.groups.membership import SubscribedTopics
from moldau.client.consuming.groups.streams_wanted import STATIC, WHITE_LIST, StreamsWanted
from moldau.client.partitions import topic_name
from moldau.client.shown import some
from moldau.errors import ConfigError
from moldau.names import INTERNAL_TOPICS, TopicPartition

Topics: TypeAlias = Union[str, "re.Pattern[str]", Iterable[str]]
"""A topic, a compiled pattern that whole names of topics match, or several topics."""
RebalanceListener: TypeAlias = Callable[[list[TopicPartition]], object | Awaitable[object]]

_FLAGS = re.UNICODE


class Subscription:
    """One `subscribe`. `names` are its topics now: of a pattern, those that exist and match."""

    def __init__(
        self,
        topics: Topics,
        on_assigned: RebalanceListener | None = None,
        on_revoked: RebalanceListener | None = None,
        on_lost: RebalanceListener | None = None,
    ):
        self.pattern: re.Pattern[str] | None = None
        self.names: list[str] = []
        self.on_assigned = on_assigned
        self.on_revoked = on_revoked
        self.on_lost = on_lost or on_revoked
        if isinstance(topics, str):
            self.names = [topic_name(topics)]
        elif isinstance(topics, re.Pattern):
            if not isinstance(topics.pattern, str):
                raise ConfigError(f"subscribe takes a pattern of text, not {topics!r}")
            self.pattern = topics
        else:
            self.names = sorted({topic_name(name) for name in _several(topics)})
        for listener in (on_assigned, on_revoked, on_lost):
            if listener is not None and not callable(listener):
                raise ConfigError(f"a listener of rebalances is a function of a list of partitions, not {listener!r}")

    def __str__(self) -> str:
        """The pattern, or the topics: as a client shows them."""
        return some(self.names) if self.pattern is None else f"the pattern {self.pattern.pattern!r}"

    @property
    def wanted(self) -> SubscribedTopics:
        """What the member tells its group: also the pattern, for brokers that can match it themselves (KIP-848), unless
        it would match internal topics there or has flags that the broker does not know."""
        pattern = self.pattern
        if pattern is None or pattern.flags & ~_FLAGS or any(pattern.fullmatch(topic) for topic in INTERNAL_TOPICS):
            return SubscribedTopics(tuple(self.names))
        return SubscribedTopics(tuple(self.names), pattern.pattern)

    def streams_wanted(self) -> StreamsWanted:
        """What a member of a group in ZooKeeper registers. Raises `ConfigError` for a pattern whose flags would not be
        there."""
        if self.pattern is None:
            return StreamsWanted(STATIC, dict.fromkeys(self.names, 1))
        return StreamsWanted(WHITE_LIST, {text_of(self.pattern): 1})

    @property
    def selects(self) -> bool:
        """Whether the topics are selected from those that exist."""
        return self.pattern is not None

    def match(self, existing: Collection[str]) -> None:
        """Take the topics that are wanted out of all that exist."""
        self.names = sorted(name for name in existing if name not in INTERNAL_TOPICS and self.wants(name))

    def wants(self, topic: str) -> bool:
        """Whether the topic, which exists, is one of those to read."""
        return self.pattern is not None and self.pattern.fullmatch(topic) is not None


def text_of(pattern: "re.Pattern[str]") -> str:
    """The text of a pattern without flags. Raises `ConfigError`."""
    if pattern.flags & ~_FLAGS:
        raise ConfigError(f"with zookeeper_connect {pattern.pattern!r} cannot have flags: write them in it, as (?i)")
    return pattern.pattern


def _several(topics: object) -> Iterable[object]:
    if isinstance(topics, Iterable) and not isinstance(topics, bytes):
        return topics
    raise ConfigError(f"subscribe takes a topic, a list of topics or a compiled pattern, not {topics!r}")
