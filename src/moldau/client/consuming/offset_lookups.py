"""Questions about partitions that move no position: first and last offsets, offsets of times, lag."""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

from moldau.client.consuming.consumer_settings import ConsumerSettings
from moldau.client.consuming.positions import PositionLocator
from moldau.client.lag import Lags
from moldau.client.offsets import EARLIEST, LATEST, OffsetAndTimestamp, offsets_at, offsets_for_times
from moldau.client.partitions import partition_of, partitions_of
from moldau.client.routing import Router
from moldau.client.settings import INT64_MAX
from moldau.errors import ConfigError
from moldau.names import OffsetAndMetadata, TopicPartition


class OffsetLookups:
    """The part of `AsyncConsumer` that only asks."""

    settings: ConsumerSettings
    assignment: Callable[[], list[TopicPartition]]
    _check_open: Callable[[], None]
    _positions: PositionLocator
    _located: Callable[[list[TopicPartition]], Coroutine[Any, Any, dict[TopicPartition, OffsetAndMetadata]]]
    _router: Router

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """For each partition the offset and timestamp of the first record at or after a time in ms since 1970. None if
        there is no such record. With `read_committed`, only records before the last stable offset count. Raises
        `ConfigError`, `NoSuchPartition`, `KafkaError`."""
        self._check_open()
        wanted = _checked(times)
        await self._positions.check_exist(wanted)
        return await offsets_for_times(self._router, wanted, committed=self.settings.committed)

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of each partition's log. Raises `NoSuchPartition`, `KafkaError`."""
        self._check_open()
        wanted = partitions_of(partitions, "beginning_offsets")
        await self._positions.check_exist(wanted)
        return await offsets_at(self._router, dict.fromkeys(wanted, EARLIEST))

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset behind the last readable record of each partition. Raises `NoSuchPartition`, `KafkaError`."""
        self._check_open()
        wanted = partitions_of(partitions, "end_offsets")
        await self._positions.check_exist(wanted)
        return await offsets_at(self._router, dict.fromkeys(wanted, LATEST), committed=self.settings.committed)

    async def lag(self, partitions: Iterable[TopicPartition] | None = None) -> Lags:
        """How many offsets each of these partitions, or each assigned one, has left to read: a dict with a `total`.
        Raises `NotAssigned`, `KafkaError`."""
        wanted = self.assignment() if partitions is None else partitions_of(partitions, "lag")
        positions = await self._located(wanted)
        ends = await self.end_offsets(wanted)
        return Lags({tp: max(ends[tp] - positions[tp].offset, 0) for tp in wanted})


def _checked(times: object) -> dict[TopicPartition, int]:
    if not isinstance(times, Mapping):
        raise ConfigError(f"offsets_for_times takes a dict of partitions and times in ms since 1970, not {times!r}")
    for tp, time_ms in times.items():
        if type(time_ms) is not int or not 0 <= time_ms <= INT64_MAX:
            raise ConfigError(
                f"offsets_for_times was given {time_ms!r} for {tp!r}, not a whole number of ms since 1970"
            )
    return {partition_of(tp): time_ms for tp, time_ms in times.items()}
