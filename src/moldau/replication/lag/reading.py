"""For committed offsets of partitions here: where the partition ends, and since when the next record waits.

An answer is remembered for as long as its log has the same segments, so that a group that stands still costs no
look-up. `read_all` is one round: what the round before it remembered and this one did not ask for is forgotten.
"""

import asyncio
from collections.abc import Iterable
from typing import Final, NamedTuple

from moldau.errors import KafkaError
from moldau.log.log import Log
from moldau.log.segment import Segment
from moldau.log.waiting import WaitingSearch, waiting_since
from moldau.names import TopicPartition
from moldau.records.lag import NOT_KNOWN
from moldau.replication.replica import Replica
from moldau.replication.replicas import Replicas
from moldau.runtime import Runtime

LOOKED_UP_IN_TURN: Final = 20
"""A look-up reads from the page cache and costs up to 50 us."""
READ_IN_TURN: Final = 200


class PartitionLag(NamedTuple):
    """`end` is the high watermark, None if nobody could tell; `waiting_ms` the timestamp of the first record that was
    not read (-1: it has none), None if there is no such record, or `NOT_KNOWN`; `start` is where the log begins."""

    end: int | None
    waiting_ms: int | None
    start: int = 0


UNKNOWN_LAG: Final = PartitionLag(None, NOT_KNOWN)


class _Remembered(NamedTuple):
    log: Log
    segments: tuple[Segment, ...]
    since: int


class LagReader:
    """Belongs to the loop."""

    def __init__(self, replicas: Replicas, runtime: Runtime):
        self._replicas = replicas
        self._runtime = runtime
        self._remembered: dict[tuple[TopicPartition, int], _Remembered] = {}

    def can_read(self, tp: TopicPartition) -> bool:
        """Whether a replica here has all that is committed: it leads, or is in sync with the leader."""
        replica = self._replicas.hosted.get(tp)
        return replica is not None and _is_up_to_date(replica)

    async def read_all(self, committed: Iterable[tuple[TopicPartition, int]]) -> list[PartitionLag]:
        """The lag of each of these committed offsets, in order; `UNKNOWN_LAG` where no replica here can tell."""
        before, self._remembered = self._remembered, {}
        left, lags = READ_IN_TURN, list[PartitionLag]()
        for tp, offset in committed:
            replica = self._replicas.hosted.get(tp)
            if replica is None or not _is_up_to_date(replica):
                lags.append(UNKNOWN_LAG)
                continue
            end, log = int(replica.high_watermark), replica.log
            start = int(log.log_start_offset)
            if offset >= end:
                lags.append(PartitionLag(end, None, start))
                left -= 1
            else:
                known = before.get((tp, offset))
                if known is not None and _still_holds(known, log):
                    since: int | None = known.since
                    left -= 1
                else:
                    since = await self._since(replica, offset, end)
                    known = None if since is None or since < 0 else _Remembered(log, log.segments, since)
                    left -= READ_IN_TURN // LOOKED_UP_IN_TURN
                if known is not None:
                    self._remembered[tp, offset] = known
                lags.append(PartitionLag(end, since, start))
            if left <= 0:
                left = READ_IN_TURN
                await asyncio.sleep(0)
        return lags

    async def _since(self, replica: Replica, offset: int, end: int) -> int | None:
        try:
            return await self._carried_out(waiting_since(replica.log, offset, end))
        except KafkaError:  # the log is offline or damaged, which its own line says
            return NOT_KNOWN

    async def _carried_out(self, search: WaitingSearch) -> int | None:
        try:
            step = next(search)
            while True:
                if step is None:
                    await asyncio.sleep(0)
                    step = next(search)
                    continue
                try:
                    result = await self._runtime.run(step)
                except Exception as error:
                    step = search.throw(error)
                else:
                    step = search.send(result)
        except StopIteration as found:
            return found.value  # type: ignore[no-any-return]
        finally:
            search.close()


def _is_up_to_date(replica: Replica) -> bool:
    leadership = replica.leadership
    return leadership.leads or (leadership.local in leadership.isr and replica.cutting is None)


def _still_holds(known: _Remembered, log: Log) -> bool:
    """An abort hides records that counted before; a log that has any is looked at anew."""
    return known.log is log and known.segments is log.segments and not log.committed.has_aborted
