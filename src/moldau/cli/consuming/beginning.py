"""Where `moldau consume` begins: at an offset or time, at the beginning, the end or a number of records before it, or
where a group has committed."""

from typing import Final, NamedTuple

from moldau.cli.moments import moment_ms
from moldau.client.consuming.consumer import Consumer
from moldau.client.offsets import EARLIEST, LATEST
from moldau.errors import ConfigError
from moldau.names import TopicPartition


class Beginning(NamedTuple):
    """`position`: EARLIEST, LATEST or a time in ms since 1970, unless one of the others is given. `last`: this many
    offsets before the end of each partition. `of_group`: a group whose committed offsets are the beginning."""

    position: int
    offset: int | None = None
    last: int | None = None
    of_group: str = ""

    def seek(self, consumer: Consumer, tps: list[TopicPartition]) -> None:
        """Read these partitions from there. Raises `ConfigError` for an offset that the first one does not have, or
        will not give to its next record."""
        consumer.assign(tps)
        if self.of_group:
            return  # the consumer has this group, and begins where it has committed
        if self.offset is None and self.last is None:
            consumer.seek_to(dict.fromkeys(tps, self.position))
            return
        starts, ends = consumer.beginning_offsets(tps), consumer.end_offsets(tps)
        if self.last is not None:
            for tp in tps:
                consumer.seek(tp, max(starts[tp], ends[tp] - self.last))
            return
        assert self.offset is not None
        tp = tps[0]
        start, end = starts[tp], ends[tp]
        if not start <= self.offset <= end:
            known = f"has offsets {start} to {end - 1}" if start < end else f"is empty, its next offset is {end}"
            raise ConfigError(f"--offset {self.offset}: partition {tp} {known}")
        consumer.seek(tp, self.offset)


EARLIEST_NOW: Final = Beginning(EARLIEST)
LATEST_NOW: Final = Beginning(LATEST)


def beginning_of(
    from_beginning: bool, from_time: str, offset: int | None, partition: int | None, last: int | None, from_group: str
) -> Beginning:
    """What the options say. Raises `ConfigError`."""
    if offset is not None and partition is None:
        raise ConfigError("--offset needs --partition")
    places = {"--from-time": from_time, "--offset": offset is not None, "--last": last is not None}
    given = [name for name, is_given in {**places, "--from-group": from_group}.items() if is_given]
    if from_beginning and given and given != ["--from-group"]:
        given.append("--from-beginning")
    if len(given) > 1:
        raise ConfigError(f"{given[0]} and {given[1]} both say where to begin: give one of them")
    if from_group:
        return Beginning(EARLIEST if from_beginning else LATEST, of_group=from_group)
    if from_time:
        return Beginning(moment_ms(from_time, "--from-time"))
    if offset is not None or last is not None:
        return Beginning(LATEST, offset, last)
    return EARLIEST_NOW if from_beginning else LATEST_NOW
