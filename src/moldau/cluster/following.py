"""How a broker follows its cluster: it asks the controller for changes, one question after the other, and shows what it
gets; the controller asks its own stream, without a socket.

The next question says which position this broker acts by. If showing a change takes long (folders of many partitions),
the questions go on meanwhile, so that the controller does not take this broker for gone. An answer of a controller that
was replaced is dropped; after a change of controller everything comes anew, and what is equal stays the same object.

Until an image shows this broker's registration, it leads nothing: it is shown all images without its leaderships.

Before this broker stops, its questions say so (`leave`): the controller moves its leaderships, and answers when it may.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

from moldau.cluster.controller_link import ControllerLink
from moldau.cluster.controlling.change_queue import waits_for_files
from moldau.cluster.controlling.change_stream import NOTHING, POLL_S, ChangeStream, Followed
from moldau.cluster.state.change_messages import from_message
from moldau.cluster.state.image import Image
from moldau.cluster.state.image_changes import applied, replaced
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.cluster.state.own_leaderships import led_topics, without_leaderships
from moldau.error_codes import error_of
from moldau.errors import ErrorCode, KafkaError
from moldau.notices import Notices
from moldau.peers.unreachable import NOT_REACHED, tell_unreachable
from moldau.protocol.apis import FOLLOW_CLUSTER
from moldau.protocol.messages.follow_cluster import FollowClusterRequest, FollowClusterResponse
from moldau.runtime import Runtime
from moldau.tasks import ended

SHOW_S = 0.5
"""A change that takes longer to show is shown while the next question is on its way."""
MEANWHILE_S = 0.1
"""How long that question waits at the controller: the one after it may say that the change is shown."""
ANSWER_S = 5.0
"""An answer that is later than its question may wait means that the connection is dead."""
RETRY_S = 0.1
SHOW_AGAIN_S = 1.0

logger = logging.getLogger(__name__)
notices = Notices(logger)


async def nowhere() -> None:
    """Only the store says where the controller is."""


class AppliedAnswer(NamedTuple):
    """An answer of the controller, applied."""

    controller_epoch: int
    position: int
    image: Image
    names: list[str]
    may_leave: bool


class Following:
    """`metadata` is shown every change. `stream` returns this broker's own stream while it is the controller, else
    None. `answered` is told when each question was asked that the controller has answered, by the clock's
    `elapsed_s`. `search` looks for the controller where the store cannot say where it is. Belongs to the loop it is
    used on."""

    def __init__(
        self,
        metadata: MetadataCache,
        link: ControllerLink,
        stream: Callable[[], ChangeStream | None],
        runtime: Runtime,
        answered: Callable[[float], None] = lambda _: None,
        search: Callable[[], Awaitable[None]] = nowhere,
    ):
        self._metadata = metadata
        self._answered = answered
        self._search = search
        self._link = link
        self._stream = stream
        self._runtime = runtime
        self._image = metadata.image
        """With every change that has come."""
        self._epoch = metadata.image.controller_epoch
        """The highest controller epoch that was seen."""
        self._position = NOTHING
        """Of the last change that has come from the controller of that epoch."""
        self._applied = NOTHING
        """Of the last one that is shown."""
        self._names: dict[str, None] = {}
        """The topics that may be different from what is shown."""
        self._is_judged = False
        """An image that is shown has this broker's registration: a controller has decided what it leads."""
        self._showing: asyncio.Task[None] | None = None
        self._shown = asyncio.Event()
        self._is_leaving = False
        self._may_leave = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._running = asyncio.ensure_future(self._follow())

    async def stop(self) -> None:
        await ended(self._running, self._showing)
        self._link.close()

    async def leave(self, limit_s: float) -> bool:
        """Hand over what this broker leads, because it is about to stop. Returns True when it is in no ISR, and this
        and the other brokers act by that; False after the limit."""
        self._is_leaving = True
        await ended(self._running)  # its question waits for a change
        self.start()
        try:
            async with asyncio.timeout(limit_s):
                await self._may_leave.wait()
        except TimeoutError:
            return False
        return True

    async def until(self, holds: Callable[[Image], bool]) -> None:
        """Wait until an image is shown for which this holds, and everything acts by it."""
        while not holds(self._metadata.image) or self._showing is not None:
            await self._shown.wait()

    async def _follow(self) -> None:
        failures = 0
        while True:
            asked_s, controller = self._runtime.clock.elapsed_s(), self._link.locator.controller
            try:
                taken = await self._asked()
                failures = 0
            except KafkaError as error:
                failures += 1
                if error.code in NOT_REACHED and controller is not None:
                    if failures > 1:  # the first is perhaps only a connection to its earlier life
                        tell_unreachable(controller.id, error)
                elif error.code is not ErrorCode.NOT_CONTROLLER:
                    notices.error("", "the controller cannot be followed: %s", error)
                await self._search_on()
                continue
            except Exception:
                logger.exception("the controller's changes could not be taken over; everything is asked for again")
                self._position = NOTHING
                await asyncio.sleep(SHOW_AGAIN_S)
                continue
            if taken.controller_epoch >= self._epoch:
                self._answered(asked_s)
            self._take(taken)
            if self._showing is not None:
                await asyncio.wait([self._showing], timeout=SHOW_S)
            if taken.may_leave and self._showing is None and taken.controller_epoch == self._epoch:
                self._may_leave.set()

    async def _search_on(self) -> None:
        try:
            await self._search()
        except Exception:
            logger.exception("the controller could not be looked for; it is looked for again")
        await asyncio.sleep(RETRY_S)

    @property
    def received(self) -> Image:
        """The latest image that has come: it may not be shown yet."""
        return self._image

    async def _asked(self) -> AppliedAnswer:
        stream, epoch = self._stream(), self._link.identity.epoch()
        wait_s = POLL_S if self._showing is None else MEANWHILE_S
        if stream is not None:
            followed = await stream.follow(
                self._metadata.broker_id,
                epoch,
                self._epoch,
                self._position,
                self._applied,
                wait_s,
                leaving=self._is_leaving,
            )
            take = partial(_taken, self._image, followed)
            return await self._runtime.run(take) if followed.is_large else take()
        request = FollowClusterRequest(
            broker_id=self._metadata.broker_id,
            broker_epoch=epoch,
            controller_epoch=self._epoch,
            position=self._position,
            applied=self._applied,
            max_wait_ms=round(wait_s * 1000),
            leaving=self._is_leaving,
        )
        timeout_ms = round((wait_s + ANSWER_S) * 1000)
        image = self._image
        return await self._link.call(FOLLOW_CLUSTER, request, timeout_ms, lambda reply: _taken(image, _read(reply)))

    def _take(self, taken: AppliedAnswer) -> None:
        if taken.controller_epoch < self._epoch:
            logger.info("an answer of controller epoch %d is dropped: it is %d", taken.controller_epoch, self._epoch)
            return
        if taken.controller_epoch > self._epoch:
            self._applied = NOTHING
        if (taken.controller_epoch, taken.position) == (self._epoch, self._position):
            return
        self._epoch, self._position, self._image = taken.controller_epoch, taken.position, taken.image
        self._names.update(dict.fromkeys(taken.names))
        if self._showing is None:
            self._showing = asyncio.ensure_future(self._show())

    async def _show(self) -> None:
        """Show what has come, until nothing more has come meanwhile."""
        while self._applied != self._position:
            if self._has_unknown_registration(self._image):
                await asyncio.sleep(RETRY_S)
                continue
            image, position, epoch, names = self._image, self._position, self._epoch, self._names
            self._names = {}
            if not self._is_judged:
                image, others = self._judged(image)
                names.update(dict.fromkeys(others))
            try:
                await self._metadata.show(image, list(names))
            except Exception as fault:
                if not waits_for_files(fault):
                    logger.exception("changes of the cluster could not be taken over; they are tried again")
                self._names = {**names, **self._names}
                await asyncio.sleep(SHOW_AGAIN_S)
                continue
            if epoch == self._epoch:
                self._applied = position
        self._showing = None
        self._shown.set()
        self._shown = asyncio.Event()

    def _has_unknown_registration(self, image: Image) -> bool:
        """Whether the image shows a registration of this broker whose success it has not heard of yet. No later image
        might come, so this one is judged when the epoch is known."""
        broker = image.brokers.get(self._metadata.broker_id)
        return not self._is_judged and broker is not None and broker.epoch > self._link.identity.epoch()

    def _judged(self, image: Image) -> tuple[Image, list[str]]:
        """The image to show, and the topics that were shown before without this broker as their leader."""
        me = self._metadata.broker_id
        broker = image.brokers.get(me)
        if broker is None or broker.epoch != self._link.identity.epoch():
            return without_leaderships(image, me), []
        self._is_judged = True
        return image, led_topics(image, me)


def _read(reply: FollowClusterResponse) -> Followed:
    """Raises `KafkaError`, `ProtocolViolation`."""
    if reply.error_code:
        raise KafkaError(error_of(reply.error_code))
    messages = reply.changes if reply.whole is None else [reply.whole]
    changes = tuple(from_message(message) for message in messages)
    return Followed(reply.controller_epoch, reply.position, changes, reply.whole is not None, reply.may_leave)


def _taken(image: Image, followed: Followed) -> AppliedAnswer:
    names: dict[str, None] = {}
    for change in followed.changes:
        image, changed = replaced(image, change) if followed.is_whole else applied(image, change)
        names.update(dict.fromkeys(changed))
    return AppliedAnswer(followed.controller_epoch, followed.position, image, list(names), followed.may_leave)
