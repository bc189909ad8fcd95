"""What a member of a group in ZooKeeper registers: topics, or an expression of topics, and how many streams of each."""

from collections.abc import Mapping
from typing import NamedTuple

STATIC, WHITE_LIST, BLACK_LIST = "static", "white_list", "black_list"
"""Topics by name; those that an expression matches; those that it does not. The words of Kafka 0.8."""


class StreamsWanted(NamedTuple):
    """`streams`: topic -> number of streams, or of a list the one expression -> number of streams."""

    pattern: str
    streams: Mapping[str, int]
