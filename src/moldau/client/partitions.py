"""Topics and partitions as callers name them, checked. No I/O, no clock."""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from moldau.errors import ConfigError
from moldau.names import TopicPartition

NAME_LENGTH_MAX = 249
_PATTERN = re.compile(r"[\^$*+?()\[\]{}|\\]")
_NAME = re.compile(r"[a-zA-Z0-9._-]+")


def topic_name(name: object) -> str:
    """The name, checked. Raises `ConfigError` unless it is text that can be the name of a topic."""
    if not isinstance(name, str):
        raise ConfigError(f"a topic's name is text, not {name!r}")
    return _checked_name(name)


@lru_cache(maxsize=4096)
def _checked_name(name: str) -> str:
    if _PATTERN.search(name):
        raise ConfigError(f"{name!r} is not the name of a topic; for a pattern, give re.compile({name!r})")
    if why := why_no_topic(name):
        raise ConfigError(why)
    return name


def why_no_topic(name: str) -> str:
    """Why no topic can have this name, in a sentence; empty if one can."""
    if _NAME.fullmatch(name) and len(name) <= NAME_LENGTH_MAX and name not in (".", ".."):
        return ""
    shown = repr(name if len(name) <= NAME_LENGTH_MAX else f"{name[:NAME_LENGTH_MAX]}...")
    return f"{shown} cannot be a topic: a name has 1 to {NAME_LENGTH_MAX} of the characters a-z A-Z 0-9 . _ -"


def partition_of(tp: object) -> TopicPartition:
    """A `TopicPartition`, or a pair of a topic and a number, checked. Raises `ConfigError`."""
    if isinstance(tp, tuple) and len(tp) == 2 and type(tp[1]) is int and tp[1] >= 0:
        return TopicPartition(topic_name(tp[0]), tp[1])
    raise ConfigError(f"{tp!r} is not a TopicPartition, which has a topic's name and a partition's number from 0")


def partitions_of(given: object, call: str) -> list[TopicPartition]:
    """Several partitions, checked. Raises `ConfigError` for anything else, also for one partition: `call` takes
    several."""
    pair = isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str)
    if pair or isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise ConfigError(f"{call} takes a list of partitions, such as [TopicPartition('orders', 0)], not {given!r}")
    return [partition_of(tp) for tp in given]


def chosen(
    given: tuple[object, ...], everything: Callable[[], list[TopicPartition]], call: str
) -> list[TopicPartition]:
    """The partitions that a call was given one by one or as one list, which may be empty; all if it was given nothing.
    Raises `ConfigError`."""
    if not given:
        return everything()
    only = given[0]
    is_list = len(given) == 1 and not (isinstance(only, tuple) and only and isinstance(only[0], str))
    return partitions_of(only if is_list else list(given), call)
