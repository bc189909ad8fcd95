"""The controller's stream of image changes, from which every broker of the cluster follows its metadata.

Each published image is one position. A broker asks for what comes after its position, and waits up to `POLL_S` if there
is nothing yet. A bounded ring keeps the latest changes; a broker that has fallen behind it, or comes from another
controller, gets the whole image. With each question a broker also says which position it acts by: a change is answered
to its administrator once all live brokers do (`known_to`).

A broker that is about to stop says so with its questions, and is answered that it may once it is in no ISR and the
others act by that.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from math import inf
from typing import NamedTuple

from moldau.cluster.state.departures import is_in_sync
from moldau.cluster.state.image import BrokerImage, Image
from moldau.cluster.state.image_changes import ImageChange, difference, whole
from moldau.errors import ErrorCode, KafkaError

POLL_S = 2.0
"""The longest that a broker's question waits for a change."""
KNOWN_S = 1.0
"""The longest that a change waits until all brokers act by it."""
CHANGES_MAX = 1000
ENTRIES_MAX = 100_000
"""The ring keeps as many changes, of as many partitions and other entries together; always the latest change."""
NOTHING = -1
"""The position, and the controller epoch, of a broker that has no image from a controller yet."""
LARGE_ENTRIES = 1000
"""An answer of more entries is read and written in the executor."""


class Followed(NamedTuple):
    """The answer to a broker that follows. `changes` are in order and end at `position`; if `is_whole` the only one is
    the whole image, as its change from an empty one. `may_leave`: a broker that is about to stop may."""

    controller_epoch: int
    position: int
    changes: tuple[ImageChange, ...]
    is_whole: bool = False
    may_leave: bool = False

    @property
    def is_large(self) -> bool:
        return sum(change.entries for change in self.changes) > LARGE_ENTRIES


class _Reader:
    """A broker that is up: when its latest question came, or else its registration; the position it acts by; whether it
    is about to stop, and may."""

    __slots__ = ("applied", "asked_s", "has_asked", "leaving", "may_leave")

    def __init__(self, asked_s: float):
        self.asked_s = asked_s
        self.applied = NOTHING
        self.has_asked = self.leaving = self.may_leave = False


class ChangeStream:
    """The stream of one controller. `image` is its latest image, at `position`. `left` is called when a broker says
    that it is about to stop, or no longer says it. Belongs to the loop it was made on."""

    def __init__(self, controller_epoch: int, image: Image, left: Callable[[], None] = lambda: None):
        self.controller_epoch = controller_epoch
        self.image = image
        self.position = 0
        self._loop = asyncio.get_running_loop()
        self._ring: deque[ImageChange] = deque()
        self._entries = 0
        self._left = left
        self._published = asyncio.Event()
        self._progress = asyncio.Event()
        """Set, and replaced by another, when a broker acts by another position, or is up no more."""
        self._closed = False
        self._readers: dict[int, _Reader] = {}
        self._note_readers({})

    def publish(self, image: Image) -> int:
        """Make this the latest image; returns its position. An image that equals the latest keeps its position."""
        before, self.image = self.image, image
        change = difference(before, image)
        if not change.entries and image.controller_id == before.controller_id:
            return self.position
        self._ring.append(change)
        self._entries += change.entries
        while len(self._ring) > 1 and (len(self._ring) > CHANGES_MAX or self._entries > ENTRIES_MAX):
            self._entries -= self._ring.popleft().entries
        self.position += 1
        if change.brokers:
            self._note_readers(before.brokers)
        self._published = _renewed(self._published)
        return self.position

    async def follow(
        self,
        broker_id: int,
        broker_epoch: int,
        controller_epoch: int,
        position: int,
        applied: int,
        wait_s: float = POLL_S,
        *,
        leaving: bool = False,
    ) -> Followed:
        """The changes after `position`, which counts in the stream of the controller with that epoch. If there are none
        yet, waits for one, and returns none after `wait_s`. `leaving`: the broker is about to stop. Raises
        `KafkaError`: NOT_CONTROLLER if another controller was elected, STALE_BROKER_EPOCH if the broker has registered
        again since."""
        registered = self.image.brokers.get(broker_id)
        if registered is not None and 0 <= broker_epoch < registered.epoch:
            raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)
        if controller_epoch > self.controller_epoch:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, f"a controller of epoch {controller_epoch} has been elected")
        if controller_epoch < self.controller_epoch:
            position = applied = NOTHING
        reader = self._note_question(broker_id, applied, leaving)
        may_leave = reader is not None and reader.may_leave
        if leaving and not may_leave and self._is_handed_over(broker_id):
            await self.known_to(self.image.brokers.keys() - self.image.leaving, self.position)
            may_leave = True
            if reader is not None and reader.leaving:
                reader.may_leave = True
        elif position == self.position and not self._closed:
            await _waited(self._published, wait_s)
        if self._closed:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        behind = self.position - position
        if not 0 <= behind <= len(self._ring) or position == NOTHING:
            return Followed(self.controller_epoch, self.position, (whole(self.image),), True, may_leave)
        changes = tuple(islice(self._ring, len(self._ring) - behind, None))
        return Followed(self.controller_epoch, self.position, changes, False, may_leave)

    async def known_to(self, brokers: Iterable[int], position: int, limit_s: float = KNOWN_S) -> bool:
        """Wait until these brokers act by that position, or are up no more; False after `limit_s`, or if this
        controller was replaced."""
        asked = tuple(brokers)
        end_s = self._loop.time() + limit_s
        while not self._closed and any(self._is_behind(broker_id, position) for broker_id in asked):
            if not await _waited(self._progress, end_s - self._loop.time()):
                return False
        return not self._closed

    def silent(self, limit_s: float) -> list[int]:
        """The brokers that are up and whose latest question, or else their registration, is longer ago."""
        since_s = self._loop.time() - limit_s
        return [broker_id for broker_id, reader in self._readers.items() if reader.asked_s < since_s]

    def heard(self, limit_s: float) -> int:
        """The number of brokers that are up and have asked within the limit."""
        since_s = self._loop.time() - limit_s
        return sum(reader.has_asked and reader.asked_s >= since_s for reader in self._readers.values())

    def silent_in_s(self, limit_s: float) -> float:
        """The seconds until the next broker is silent, if it asks nothing until then; infinite if all are."""
        since_s = self._loop.time() - limit_s
        left = (reader.asked_s - since_s for reader in self._readers.values())
        return min((one for one in left if one >= 0), default=inf)

    def leaving(self) -> dict[int, int]:
        """The brokers that are up and about to stop, with their broker epochs."""
        return {one: self.image.brokers[one].epoch for one, reader in self._readers.items() if reader.leaving}

    def close(self) -> None:
        """This controller was replaced: all who wait, and all later questions, are answered NOT_CONTROLLER."""
        self._closed = True
        self._published.set()
        self._progress.set()

    def _is_behind(self, broker_id: int, position: int) -> bool:
        reader = self._readers.get(broker_id)
        return reader is not None and not reader.may_leave and reader.applied < position

    def _is_handed_over(self, broker_id: int) -> bool:
        """Whether this broker, which is about to stop, is in sync for nothing, or is not up for the cluster."""
        broker = self.image.brokers.get(broker_id)
        return broker is None or (broker.leaving and not is_in_sync(self.image, broker_id))

    def _note_question(self, broker_id: int, applied: int, leaving: bool) -> _Reader | None:
        reader = self._readers.get(broker_id)
        if reader is None:
            return None
        reader.asked_s, reader.has_asked = self._loop.time(), True
        if leaving != reader.leaving:  # also back: a question that says so by mistake must not count for ever
            reader.leaving = leaving
            reader.may_leave = False
            self._left()
        if reader.applied != applied:
            reader.applied = applied
            self._progress = _renewed(self._progress)
        return reader

    def _note_readers(self, before: Mapping[int, BrokerImage]) -> None:
        """Begin anew with every broker that has registered since, and forget those that are gone."""
        readers, now_s = {}, self._loop.time()
        for broker_id, broker in self.image.brokers.items():
            old, reader = before.get(broker_id), self._readers.get(broker_id)
            if reader is None or old is None or old.epoch != broker.epoch:
                reader = _Reader(now_s)
            readers[broker_id] = reader
        self._readers = readers
        self._progress = _renewed(self._progress)


def _renewed(event: asyncio.Event) -> asyncio.Event:
    """Wake all who wait for it; returns the event for the next time."""
    event.set()
    return asyncio.Event()


async def _waited(event: asyncio.Event, limit_s: float) -> bool:
    """Whether the event was set within the limit."""
    try:
        async with asyncio.timeout(limit_s):
            await event.wait()
    except TimeoutError:
        return False
    return True
