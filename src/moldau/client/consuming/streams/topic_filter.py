"""`TopicFilter`: the topics of message streams, by a pattern of their names."""

import re
from typing import TYPE_CHECKING, TypeVar

from moldau.errors import ConfigError


class TopicFilter:
    """Selects topics by a pattern of whole names: `TopicFilter.allow("orders.*")`, `TopicFilter.deny("test.*")`."""

    def __init__(self, pattern: "str | re.Pattern[str]", denies: bool):
        try:
            self.pattern = re.compile(pattern)
        except (re.error, TypeError) as error:
            raise ConfigError(f"{pattern!r} is not a pattern of topics: {error}") from None
        self.denies = denies

    @classmethod
    def allow(cls, pattern: "str | re.Pattern[str]") -> "TopicFilter":
        """The topics whose whole name matches. Raises `ConfigError`."""
        return cls(pattern, denies=False)

    @classmethod
    def deny(cls, pattern: "str | re.Pattern[str]") -> "TopicFilter":
        """All topics except those whose whole name matches. Raises `ConfigError`."""
        return cls(pattern, denies=True)

    def __repr__(self) -> str:
        return f"TopicFilter.{'deny' if self.denies else 'allow'}({self.pattern.pattern!r})"

    def wants(self, topic: str) -> bool:
        return (self.pattern.fullmatch(topic) is None) == self.denies


if TYPE_CHECKING:
    Wanted = TypeVar("Wanted", bound=str | TopicFilter)
else:
    Wanted = str | TopicFilter
"""A topic by its name, or the topics that a filter selects: the keys of what `create_message_streams` takes. For type
checkers, the streams that it returns have the same keys; `help` shows both types of a key."""
