"""The search log: one record for each search (id, user, keyword, time), in the partition of the user's class.

A user's name begins with the class: `premium-7`, `member-12`; everybody else is a guest. Pure.
"""

import json
import re
from typing import NamedTuple

from moldau.errors import MoldauError

TOPIC = "searches"
CLASSES = ("guest", "member", "premium")
"""The classes; the index is the partition."""
SCHEMA = "id string, user string, keyword string, time timestamp"
"""The fields of a record's JSON value, for Spark."""
KEYWORD_LETTERS_MAX = 100
USER = re.compile(r"[A-Za-z0-9_.-]{1,60}")


class WrongSearch(MoldauError):
    """A search that is not logged; the text tells the visitor why."""


class Search(NamedTuple):
    """One search; the time is ISO 8601 in UTC."""

    id: str
    user: str
    keyword: str
    time: str


def search_of(id: str, user: str, keyword: str, time: str) -> Search:
    """A search with its keyword in lower case and single spaces. Raises `WrongSearch`."""
    words = " ".join(keyword.lower().split())
    if not words or len(words) > KEYWORD_LETTERS_MAX:
        raise WrongSearch(f"A keyword has 1 to {KEYWORD_LETTERS_MAX} letters.")
    if not USER.fullmatch(user):
        raise WrongSearch("A user's name has up to 60 letters, digits, dots and dashes.")
    return Search(id, user, words, time)


def to_json(search: Search) -> bytes:
    """The value of a search's record."""
    return json.dumps(search._asdict()).encode()


def class_of(user: str) -> str:
    """The class of a user, by the beginning of the name."""
    named = user.partition("-")[0]
    return named if named in CLASSES else CLASSES[0]


def by_class(topic: str, key: bytes | None, partitions: int) -> int:
    """The partitioner: the key is the user's name, and each class has a partition."""
    return CLASSES.index(class_of((key or b"").decode())) % partitions
