"""The names of `--accept-empty`: the lost partitions that the operator lets start empty.

Each name is TOPIC-N, TOPIC, or `all`. A name that no partition of the broker has is a mistake: the start that the
operator meant would otherwise be refused for the loss that was to be accepted, or serve without it.
"""

from collections.abc import Collection

from moldau.errors import ConfigError
from moldau.names import TopicPartition

ALL = "all"


class AcceptedNames:
    def __init__(self, names: Collection[str]):
        self._names = names

    def __contains__(self, tp: object) -> bool:
        assert isinstance(tp, TopicPartition)
        return not {ALL, tp.topic, str(tp)}.isdisjoint(self._names)

    def check(self, partitions: Collection[TopicPartition]) -> None:
        """`partitions` are all that have a replica on this broker. Raises `ConfigError`."""
        known = {ALL, *(tp.topic for tp in partitions), *map(str, partitions)}
        for name in self._names:
            if name not in known:
                raise ConfigError(
                    f"--accept-empty {name}: this broker has no replica of such a partition or topic. A partition is "
                    f"named as TOPIC-N, and `{ALL}` accepts the loss of every partition that has no folder"
                )
