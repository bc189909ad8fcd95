"""The controller's place: one broker's standing for it, and the work of the one that has it.

The controller is the broker whose session made `/controller`. The same step raises `/controller_epoch`, and every later
write checks that it has stayed: what a controller that was replaced still writes is refused. A new controller reads
everything, elects leaders where they are missing, and begins a stream of changes, from which all brokers follow.

A broker whose node goes, or that asks the stream nothing for `replica.lag.time.max.ms`, leads nothing. A broker that
comes, or came back unnoticed, leads what it is in sync for, in a new leader epoch.

A controller that was replaced, whose session is over, or that does not know whether a write was done, resigns: all who
wait are answered NOT_CONTROLLER, and it stands again and reads everything.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from moldau.cluster import controller, layout
from moldau.cluster.change_queue import ChangeQueue
from moldau.cluster.change_stream import ChangeStream
from moldau.cluster.config_changes import ConfigChanges
from moldau.cluster.deletions import Deletions
from moldau.cluster.directory_placement import DirectoryPlacement
from moldau.cluster.elections import elections, in_batches, with_elected
from moldau.cluster.half_deleted import removal_of_rests
from moldau.cluster.image import NO_LEADER, BrokerImage, Image, TopicImage
from moldau.cluster.metadata_cache import MetadataCache
from moldau.cluster.old_tools import OldTools
from moldau.cluster.reading import controller_epoch, dealt_with, holders_of_deleted, read_brokers, read_image
from moldau.cluster.store import (
    Check,
    Delete,
    MetadataStore,
    Operation,
    OutcomeUnknown,
    SessionOver,
    StoreConflict,
    node_at,
    nodes_at,
)
from moldau.cluster.topic_changes import TopicChanges
from moldau.config import BrokerConfig
from moldau.errors import ErrorCode, KafkaError, StorageError
from moldau.names import counted
from moldau.notices import Notices
from moldau.runtime import Runtime

CHECKS = 3
"""How often in `replica.lag.time.max.ms` the controller looks for brokers that have fallen silent."""
RETRY_S = 1.0
T = TypeVar("T")

logger = logging.getLogger(__name__)
notices = Notices(logger)


class ControllerQueue(ChangeQueue):
    """The changes of a controller, refused while this broker is not the controller. `resign` is called with the reason
    when it cannot be the controller any more."""

    def __init__(self, metadata: MetadataCache, runtime: Runtime, resign: Callable[[str], None]):
        super().__init__(metadata, runtime)
        self.stream: ChangeStream | None = None
        self._resign = resign

    async def run(self, change: Callable[[], Awaitable[T]]) -> T:
        """As `ChangeQueue.run`; returns when all live brokers act by the change, or after a second."""
        result = await self.made(change)
        if self.stream is not None:
            await self.stream.known_to(self.stream.image.brokers, self.stream.position)
        return result

    async def made(self, change: Callable[[], Awaitable[T]]) -> T:
        """As `run`, but returns at once."""

        async def as_controller() -> T:
            self.check_controller()
            return await change()

        return await super().run(as_controller)

    async def commit(self, operations: Sequence[Operation]) -> None:
        try:
            await super().commit(operations)
        except (OutcomeUnknown, SessionOver) as lost:
            self._resign(str(lost))
            raise KafkaError(ErrorCode.NOT_CONTROLLER, f"this broker is not the controller any more: {lost}") from lost
        except StoreConflict as conflict:
            if conflict.path == layout.CONTROLLER_EPOCH:
                self._resign("another broker was elected")
                self.check_controller()
            raise


class Unrecorded(DirectoryPlacement):
    """Each broker of several chooses the log folders of its partitions itself; the metadata does not know them."""

    def placed(self, topics: Sequence[tuple[TopicImage, int]]) -> list[TopicImage]:
        return [controller.unmade(topic, range(first, len(topic.partitions))) for topic, first in topics]

    async def assign(self, directories: Mapping[str, Mapping[int, str]]) -> None:
        """Not recorded."""


class Acting:
    """`metadata` has the image that the controller decides on; what this broker serves by is another one, which follows
    the stream. `stream` is None while this broker is not the controller."""

    def __init__(self, config: BrokerConfig, runtime: Runtime):
        self.metadata = MetadataCache(config, Image(""))
        self.queue = ControllerQueue(self.metadata, runtime, self._resign)
        self.directories = Unrecorded(self.metadata, self.queue)
        self.topics = TopicChanges(self.metadata, self.queue, self.directories, runtime)
        self.configs = ConfigChanges(self.metadata, self.queue)
        self._old_tools = OldTools(self.metadata, self.queue, runtime)
        self.metadata.subscribe(self._publish)
        self._is_leaving = False
        self._broker_id = config.node_id
        self._silence_s = config.replica_lag_time_max_ms / 1000
        self._runtime = runtime
        self._changed = asyncio.Event()
        """Set when `/controller` or `/brokers/ids` may have changed, or this broker has resigned."""
        self._epochs: dict[int, int] = {}
        """The broker epochs that were dealt with, as in the store."""
        self._silent: frozenset[int] | None = None
        """The brokers that count as gone because they are silent; None before the first election of a term."""
        self._deletions = Deletions({})
        self._is_electing = False
        """Brokers that came are shown with the leaders that were elected since, and not before."""

    @property
    def stream(self) -> ChangeStream | None:
        return self.queue.stream

    async def serve(self, store: MetadataStore) -> None:
        """Stand for controller, and be it when elected, until this session is over."""
        carrying_out = asyncio.ensure_future(self._old_tools.serve(store))
        try:
            for path in (layout.CONTROLLER, layout.BROKERS):
                await store.watch(path, self._changed.set)
            while True:
                try:
                    await self._look(store)
                except SessionOver:
                    raise
                except (StorageError, KafkaError, StoreConflict) as error:
                    notices.error("", "this broker cannot be the controller, and tries again: %s", error)
                    self._resign(str(error))
                    await asyncio.sleep(RETRY_S)
        except SessionOver:
            pass
        finally:
            self._resign("its session in the store is over")
            carrying_out.cancel()
            await asyncio.gather(carrying_out, return_exceptions=True)

    async def _look(self, store: MetadataStore) -> None:
        """Look at the controller's place, do what is to be done there, and wait for the next change."""
        self._changed.clear()
        node = await store.read(node_at(layout.CONTROLLER))
        is_ours = node is not None and node.owner == store.session_id
        if self.stream is not None and not is_ours:
            self._resign("its node in the store is gone")
        if self.stream is None and not self._is_leaving and (node is None or is_ours):
            await self._stand(store)
        if self.stream is not None:
            await self._take_brokers(store)
            await self._forget_deleted()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if self.stream is None else self._silence_s / CHECKS):
                await self._changed.wait()

    async def _stand(self, store: MetadataStore) -> None:
        node, ours = await store.read(nodes_at([layout.CONTROLLER_EPOCH, layout.CONTROLLER]))
        if ours is not None and ours.owner != store.session_id:
            return
        epoch, version = controller_epoch(node) + 1, None if node is None else node.version
        try:
            await store.multi(
                [
                    layout.controller_epoch(epoch, version),
                    *([] if ours is None else [Delete(layout.CONTROLLER, ours.version)]),
                    layout.controller(self._broker_id, self._runtime.clock.now_ms()),
                ]
            )
        except (StoreConflict, OutcomeUnknown):  # another broker was faster, or nobody knows
            self._changed.set()
            return
        image = await store.read(read_image())
        if image is None:
            raise StorageError(f"the node {layout.CLUSTER_ID} is missing")
        self._epochs = await store.read(dealt_with())
        self._deletions = Deletions(await store.read(holders_of_deleted(self._epochs)))
        self._silent = None
        if (image.controller_id, image.controller_epoch) != (self._broker_id, epoch):  # replaced meanwhile
            self._changed.set()
            return
        fence = Check(layout.CONTROLLER_EPOCH, 0 if version is None else version + 1)
        self.queue.begin(store, fence)
        await self.metadata.show(image, list(image.topics))
        rests = await store.read(removal_of_rests(image))
        await self.queue.made(partial(self.queue.commit, rests))
        self.queue.stream = ChangeStream(epoch, self.metadata.image)
        logger.info("this broker is the controller now, in epoch %d", epoch)
        self._old_tools.look()

    def leave(self) -> None:
        """Be the controller no more, and answer all who wait: this broker stops."""
        self._is_leaving = True
        self._resign("it stops")

    def _resign(self, why: str) -> None:
        if self.stream is None:
            return
        logger.warning("this broker is no longer the controller: %s", why)
        self.stream.close()
        self.queue.stream = None
        self.queue.end()
        self.metadata.image = replace(self.metadata.image, controller_id=NO_LEADER)
        self._changed.set()

    def _publish(self, image: Image, _: Iterable[str]) -> None:
        if self.stream is not None and not self._is_electing:
            before = self.stream.image
            self._deletions.note(before, image, self.stream.publish(image))

    async def _take_brokers(self, store: MetadataStore) -> None:
        """Show the brokers that are registered now, and elect leaders where that is needed."""
        brokers = await store.read(read_brokers())
        if self.stream is None:
            return
        anew = {broker.id: broker.epoch for broker in brokers.values() if self._epochs.get(broker.id) != broker.epoch}
        silent = frozenset(self.stream.silent(self._silence_s)) & brokers.keys()
        if brokers == self.metadata.image.brokers and not anew and silent == self._silent:
            return
        for broker in silent - (self._silent or frozenset()):
            logger.warning("broker %d has asked for no changes for %g s: it leads nothing now", broker, self._silence_s)
        await self.queue.made(partial(self._show_and_elect, brokers, silent, anew))
        self._silent = silent

    async def _show_and_elect(
        self, brokers: Mapping[int, BrokerImage], silent: Collection[int], anew: Mapping[int, int]
    ) -> None:
        self._is_electing = True
        try:
            await self._elect(brokers, silent, anew)
        finally:
            self._is_electing = False
            self._publish(self.metadata.image, ())

    async def _elect(
        self, brokers: Mapping[int, BrokerImage], silent: Collection[int], anew: Mapping[int, int]
    ) -> None:
        image = self.metadata.image
        if brokers != image.brokers:
            await self.metadata.show(replace(image, brokers=brokers), [])
        elected = await self.queue.decided(
            sum(len(topic.partitions) for topic in image.topics.values()),
            lambda: list(elections(self.metadata.image, silent, anew)),
        )
        for batch in in_batches(elected):
            image = self.metadata.image
            steps = [
                step
                for topic in with_elected(image, batch)
                for step in layout.topic_changed(image.topics[topic.name], topic, image.controller_epoch)
            ]
            await self.queue.commit(steps)
            await asyncio.sleep(0)
        if elected:
            logger.info("%s changed their leader or their replicas in sync", counted(len(elected), "partition"))
        noted = [layout.dealt_with(one, epoch, is_new=one not in self._epochs) for one, epoch in anew.items()]
        await self.queue.commit(noted)
        self._epochs |= anew

    async def _forget_deleted(self) -> None:
        """Forget the deleted topics that no broker has any more."""
        stream, deletions = self.stream, self._deletions
        for broker, position in deletions.waiting():
            is_up = broker in self.metadata.image.brokers
            if stream is not None and is_up and await stream.known_to([broker], position, 0):
                deletions.done_by(broker, position)
        if self.stream is not None and (done := deletions.complete()):
            await self.topics.forget_deleted(done)
