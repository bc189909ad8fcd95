"""Where a consumer reads on: its positions, and the partitions that are paused."""

import asyncio
from collections.abc import Callable, Iterable, Mapping

from moldau.client.consuming.commits import Commits, Committed
from moldau.client.consuming.fetched.assigned import Assigned
from moldau.client.consuming.fetched.handout import Handout
from moldau.client.consuming.polling import Poller
from moldau.client.consuming.positions import PositionLocator
from moldau.client.given_positions import position_of
from moldau.client.offsets import EARLIEST, LATEST
from moldau.client.partitions import chosen, partitions_of
from moldau.names import OffsetAndMetadata, TopicPartition


class Seeking:
    """The part of `AsyncConsumer` that tells its positions, and moves them as the application asks."""

    assignment: Callable[[], list[TopicPartition]]
    _awake: asyncio.Event
    _check_started: Callable[[], None]
    _commits: Commits
    _handout: Handout
    _poller: Poller
    _positions: PositionLocator
    _state: Callable[[TopicPartition], Assigned]

    async def position(self, tp: TopicPartition) -> int:
        """The offset of the next record to be handed out. Finds the start position if it is not known yet, and compares
        a committed one with the log. Raises `NotAssigned`, `KafkaError`: `LogTruncated`."""
        return (await self._located([tp]))[tp].offset

    async def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The position of each assigned partition, with its leader epoch if that is known: what `commit()` commits,
        for the transaction of a producer. Raises as `position` does."""
        return await self._located(self.assignment())

    async def _located(self, partitions: list[TopicPartition]) -> Committed:
        positions: Committed = {}
        while True:
            missing = [tp for tp in partitions if self._state(tp).tp not in positions]
            if not missing:
                return {tp: positions[tp] for tp in partitions}
            await self._positions.locate(partitions)
            if not await self._poller.check(partitions):
                positions = self._commits.delivered()

    def end_offset(self, tp: TopicPartition) -> int:
        """End of the readable records at the last fetch: high watermark or last stable offset; -1 before the first."""
        return self._state(tp).end_offset

    def seek(self, tp: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Continue reading at `offset`: a number, or a position whose leader epoch is compared with the log first
        (KIP-320). Raises `NotAssigned`, `ConfigError`."""
        at = position_of(offset, f"the offset to seek in {tp}")
        state = self._state(tp)
        self._handout.drop(tp)
        with self._poller.lock:
            state.start(at.offset, at.leader_epoch)
        self._awake.set()

    async def seek_to_beginning(self, *partitions: TopicPartition | Iterable[TopicPartition]) -> None:
        """Continue at the first record of these partitions, or of all assigned ones. Raises as `seek_to` does."""
        await self.seek_to(dict.fromkeys(chosen(partitions, self.assignment, "seek_to_beginning"), EARLIEST))

    async def seek_to_end(self, *partitions: TopicPartition | Iterable[TopicPartition]) -> None:
        """Continue behind the last record of these partitions, or of all assigned ones. Raises as `seek_to` does."""
        await self.seek_to(dict.fromkeys(chosen(partitions, self.assignment, "seek_to_end"), LATEST))

    async def seek_to(self, where: Mapping[TopicPartition, int]) -> None:
        """Continue at `EARLIEST`, `LATEST` or the first record at or after a time in ms since 1970 (the end if there is
        none). Raises `NotAssigned`, `KafkaError`."""
        for tp in where:
            self._state(tp)
        for tp, offset in (await self._positions.at(dict(where))).items():
            self.seek(tp, offset)

    def pause(self, partitions: Iterable[TopicPartition], paused: bool = True) -> None:
        """Return no records of these partitions until they are resumed. Raises `NotAssigned`."""
        partitions = partitions_of(partitions, "pause" if paused else "resume")
        states = [self._state(tp) for tp in partitions]
        if paused:
            left = self._handout.left()
            for state in states:
                if state.tp in left:
                    self._handout.drop(state.tp)
                    with self._poller.lock:
                        state.go_back(left[state.tp])
        self.hold_back(partitions, paused)

    def hold_back(self, partitions: Iterable[TopicPartition], holds: bool) -> None:
        """Take no more records of these partitions, or take them again; those that were handed out stay handed out."""
        for tp in partitions:
            self._state(tp).paused = holds
        self._awake.set()

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Return records of these partitions again. Raises `NotAssigned`."""
        self.pause(partitions, paused=False)

    def paused(self) -> list[TopicPartition]:
        """The partitions that are paused."""
        self._check_started()
        return sorted(tp for tp, state in self._poller.assigned.items() if state.paused)
