"""Where `moldau consume` begins without a group: at an offset, a time, the beginning or the end."""

from typing import Final, NamedTuple

from moldau.cli.moments import moment_ms
from moldau.client.consuming.consumer import Consumer
from moldau.client.offsets import EARLIEST, LATEST
from moldau.errors import ConfigError
from moldau.names import TopicPartition


class Beginning(NamedTuple):
    """`position`: EARLIEST, LATEST or a time in ms since 1970, unless there is an `offset`."""

    position: int
    offset: int | None = None

    def seek(self, consumer: Consumer, tps: list[TopicPartition]) -> None:
        """Read these partitions from there. Raises `ConfigError` for an offset that the first one does not have, or
        will not give to its next record."""
        consumer.assign(tps)
        if self.offset is None:
            consumer.seek_to(dict.fromkeys(tps, self.position))
            return
        tp = tps[0]
        [start], [end] = consumer.beginning_offsets([tp]).values(), consumer.end_offsets([tp]).values()
        if not start <= self.offset <= end:
            known = f"has offsets {start} to {end - 1}" if start < end else f"is empty, its next offset is {end}"
            raise ConfigError(f"--offset {self.offset}: partition {tp} {known}")
        consumer.seek(tp, self.offset)


EARLIEST_NOW: Final = Beginning(EARLIEST)
LATEST_NOW: Final = Beginning(LATEST)


def beginning_of(
    from_beginning: bool, from_time: str, offset: int | None, partition: int | None, group: str
) -> Beginning:
    """What the options say. Raises `ConfigError`."""
    if offset is not None and partition is None:
        raise ConfigError("--offset needs --partition")
    if from_time:
        if from_beginning or group or offset is not None:
            raise ConfigError("--from-time goes with none of --group, --from-beginning and --offset")
        return Beginning(moment_ms(from_time, "--from-time"))
    if offset is not None:
        return Beginning(LATEST, offset)
    return EARLIEST_NOW if from_beginning else LATEST_NOW
