"""Carries out what Kafka's tools with `--zookeeper` have written into the store (see `wishes`).

Only the controller does, in the one order of all changes, and takes the wish away in the same step. What cannot be done
is taken away too, with a line in the log: the tools wait for no answer.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import replace
from functools import partial

from moldau.cluster.controlling import controller, wishes
from moldau.cluster.controlling.change_queue import ChangeQueue
from moldau.cluster.controlling.controller import MorePartitions, NewTopic, Refusal
from moldau.cluster.controlling.reassigning import reassigned
from moldau.cluster.controlling.wishes import (
    ChangedConfig,
    MalformedWish,
    WishedElection,
    WishedReassignment,
    WishedTopic,
    Wishes,
)
from moldau.cluster.state import acls, layout
from moldau.cluster.state.documents import MalformedMetadata
from moldau.cluster.state.elections import Elected, in_batches, preferred_elections, steps_of
from moldau.cluster.state.image import NO_LEADER, BrokerImage, Image, TopicImage
from moldau.cluster.state.image_after import image_after
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.cluster.state.move_throttles import moves_over, without_throttles_of
from moldau.cluster.state.reassignment import is_under_way
from moldau.config import TOPIC_SETTINGS
from moldau.errors import ErrorCode, KafkaError, StorageError
from moldau.metadata_store.store import (
    Create,
    Delete,
    MetadataStore,
    NodeOperation,
    SessionOver,
    Set,
    StoreConflict,
    node_at,
)
from moldau.names import TopicPartition, counted
from moldau.notices import Notices
from moldau.runtime import Runtime

TOGETHER = 500
"""The most watches that are set together."""
PAUSE_S = 0.2
"""Between two looks, so that many changes in a row cost few."""
RETRY_S = 5.0

logger = logging.getLogger(__name__)
notices = Notices(logger)


class OldTools:
    """`metadata` and `queue` are the controller's."""

    def __init__(self, metadata: MetadataCache, queue: ChangeQueue, runtime: Runtime):
        self._metadata = metadata
        self._queue = queue
        self._runtime = runtime
        self._wished = asyncio.Event()
        self._watched: set[str] = set()
        """The topics whose nodes are watched in this session."""
        self._touched: dict[str, None] = {}
        """Those whose nodes may have been changed by another session."""
        self._begun: tuple[int, int] | None = None
        """The wished reassignment that was begun: the epoch of this controller, and the version of its node."""
        self._moving: set[str] = set()
        """The topics of which it moves partitions still."""
        self._has_rights = bool(metadata.config.authorizer_class_name)
        metadata.subscribe(self._follow)

    def look(self) -> None:
        """There may be wishes."""
        self._wished.set()

    async def serve(self, store: MetadataStore) -> None:
        """Carry out wishes while this broker is the controller, until the session is over."""
        self._watched.clear()
        is_watching = False
        while True:
            try:
                if not is_watching:
                    for path in (*wishes.WATCHED, *(acls.CHANGES if self._has_rights else ())):
                        await store.watch(path, self.look)
                    is_watching = True
                await self._wished.wait()
                self._wished.clear()
                self._queue.check_controller()
                await self._watch_topics(store)
                await self._queue.run(partial(self._carry_out, store))
                if self._has_rights:
                    from moldau.cluster.controlling.acl_changes import take_over_acls

                    await self._queue.run(partial(take_over_acls, self._metadata, self._queue))
                await asyncio.sleep(PAUSE_S)
            except SessionOver:
                return
            except (KafkaError, StorageError, StoreConflict) as error:
                if isinstance(error, KafkaError) and error.code is ErrorCode.NOT_CONTROLLER:
                    continue
                notices.error("", "what a tool of Kafka's has written is not carried out, and tried again: %s", error)
            except Exception:
                logger.exception("internal error: what a tool of Kafka's has written is tried again")
            else:
                continue
            await asyncio.sleep(RETRY_S)
            self.look()

    def _follow(self, image: Image, names: Iterable[str]) -> None:
        if any(name in self._moving or (name in image.topics) != (name in self._watched) for name in names):
            self.look()

    async def _watch_topics(self, store: MetadataStore) -> None:
        """Watch the node of each topic: a tool that enlarges one writes nothing else."""
        topics = self._metadata.image.topics
        for name in self._watched - topics.keys():
            store.unwatch(f"{layout.TOPICS}/{name}")
            self._watched.discard(name)
        new = [name for name in topics if name not in self._watched]
        for start in range(0, len(new), TOGETHER):
            names = new[start : start + TOGETHER]
            await asyncio.gather(
                *(store.watch(f"{layout.TOPICS}/{name}", partial(self._touch, name)) for name in names)
            )
            self._watched.update(names)
            self._touched |= dict.fromkeys(names)

    def _touch(self, name: str) -> None:
        self._touched[name] = None
        self.look()

    async def _carry_out(self, store: MetadataStore) -> None:
        """Raises the last `StoreConflict` when all others are done."""
        touched, self._touched = self._touched, {}
        try:
            read = await store.read(wishes.read_wishes(self._metadata.image, touched))
            await self._done(store, read)
        except BaseException:
            self._touched |= touched
            raise

    async def _done(self, store: MetadataStore, read: Wishes) -> None:
        steps: list[Callable[[], Awaitable[None]]] = []
        if read.reassignment is None:
            self._begun, self._moving = None, set()
        for wish in (*read.topics, *read.changes, read.reassignment, read.election):
            match wish:
                case WishedTopic():
                    steps.append(partial(self._complete, wish))
                case ChangedConfig():
                    steps.append(partial(self._take_over_config, store, wish))
                case WishedReassignment():
                    steps.append(partial(self._move, wish))
                case WishedElection():
                    steps.append(partial(self._elect, wish))
                case MalformedWish():
                    steps.append(partial(self._remove, wish))
        steps += [partial(self._delete, name) for name in read.deletions]  # of new topics too
        conflict: StoreConflict | None = None
        for step in steps:
            try:
                await step()
            except StoreConflict as found_conflict:
                conflict = found_conflict
        if conflict is not None:
            raise conflict

    async def _complete(self, wish: WishedTopic) -> None:
        """Create the topic, or what its partitions lack; or make its node as it was. Replicas may be on brokers that
        are not up: they were when the tool looked, or a controller that died."""
        image = self._metadata.image
        before, path = image.topics.get(wish.name), f"{layout.TOPICS}/{wish.name}"
        if before is not None and len(before.partitions) == len(wish.replicas):
            return  # it was created since this controller looked
        if before is None and wish.is_whole:
            self._queue.look_again()
            return
        away = {broker: BrokerImage(broker, ()) for replicas in wish.replicas for broker in replicas}
        everyone = replace(image, brokers={**away, **image.brokers})
        wanted = self._created(everyone, wish) if before is None else self._enlarged(everyone, before, wish)
        if isinstance(wanted, Refusal):
            logger.error("topic %s is not as a tool has written it: %s", wish.name, wanted.message)
            await self._queue.commit(_taken_back(wish) if before is None else [layout.topic_node(before, wish.version)])
            return
        wanted = _led_by_living(wanted, len(before.partitions) if before else 0, image.brokers)
        if before is None:
            steps = layout.topic_created(wanted, image.controller_epoch)
        else:
            steps = layout.topic_changed(before, wanted, image.controller_epoch)
        existing = wish.below if wish.overrides is None else wish.below | {f"{layout.TOPIC_CONFIGS}/{wish.name}"}
        rest = [
            Set(step.path, step.data) if isinstance(step, Create) and step.path in existing else step
            for step in steps
            if step.path != path
        ]
        if before is None and f"{layout.DIRECTORIES}/{wish.name}" in wish.below:
            rest.append(Delete(f"{layout.DIRECTORIES}/{wish.name}"))
        await self._queue.commit([layout.topic_node(wanted, wish.version), *rest])
        count = counted(len(wanted.partitions), "partition")
        logger.info("topic %s, which a tool has written, has %s now", wish.name, count)

    def _created(self, image: Image, wish: WishedTopic) -> TopicImage | Refusal:
        own, new_id = wish.overrides or {}, self._runtime.random.uuid
        known = [(name, value) for name, value in own.items() if name in TOPIC_SETTINGS]
        wanted = NewTopic(wish.name, assignments=list(enumerate(wish.replicas)), configs=known)
        [(_, created)] = controller.create_topics(image, self._metadata.config, [wanted], lambda: wish.id or new_id())
        return created if isinstance(created, Refusal) else created._replace(overrides=own)

    def _enlarged(self, image: Image, before: TopicImage, wish: WishedTopic) -> TopicImage | Refusal:
        more = MorePartitions(wish.name, len(wish.replicas), wish.replicas[len(before.partitions) :])
        [(_, enlarged)] = controller.create_partitions(image, [more], 0)
        return enlarged

    async def _remove(self, wish: MalformedWish) -> None:
        topic = self._metadata.image.topics.get(wish.path.removeprefix(f"{layout.TOPICS}/"))
        logger.error(
            "%s is not the document that belongs there: it is %s", wish.path, "restored" if topic else "removed"
        )
        step = Delete(wish.path, wish.version) if topic is None else layout.topic_node(topic, wish.version)
        await self._queue.commit([step])

    async def _delete(self, name: str) -> None:
        topic = self._metadata.image.topics.get(name)
        wish = Delete(f"{wishes.DELETIONS}/{name}")
        if topic is not None and not self._metadata.config.delete_topic_enable:
            logger.error("topic %s, which a tool asks for, is not deleted: delete.topic.enable is false", name)
            topic = None
        await self._queue.commit([wish] if topic is None else [*layout.topic_deleted(topic), wish])

    async def _take_over_config(self, store: MetadataStore, change: ChangedConfig) -> None:
        """Show settings that were changed. They are in the store already."""
        if change.config is None:
            logger.warning("%s: a tool has changed settings that this version does not have", change.path)
        else:
            try:
                node = await store.read(node_at(change.config))
                shown = image_after(self._metadata.image, {change.config: node})
            except MalformedMetadata as malformed:
                logger.error("settings that a tool has changed are not taken over: %s", malformed)
            else:
                await self._metadata.show(*shown)
        await self._queue.commit([Delete(change.path)])

    async def _move(self, wish: WishedReassignment) -> None:
        """Begin to move replicas, and log what is not done. The wish stays until no move is under way, since the tool
        takes it for what is still in progress; a controller begins it once, so that the moves can be cancelled."""
        image, moved = self._metadata.image, list[Elected]()
        begun = (image.controller_epoch, wish.version)
        if self._begun != begun:
            least = self._metadata.least_in_sync
            decided = [(tp, reassigned(image, tp, to, least)) for tp, to in wish.replicas.items()]
            for tp, result in decided:
                if isinstance(result, Refusal):
                    _log_refusal(tp, result)
                elif result != image.partition(tp):
                    moved.append(Elected(tp.topic, tp.partition, result))
            await self._queue.commit(without_throttles_of(image, moves_over(image, decided)))
            for batch in in_batches(moved):
                await self._queue.commit(steps_of(self._metadata.image, batch))
            self._begun = begun
        image = self._metadata.image
        parts = [(tp.topic, image.partition(tp)) for tp in wish.replicas]
        self._moving = {topic for topic, part in parts if part is not None and is_under_way(part)}
        if not self._moving:
            await self._queue.commit([Delete(wishes.REASSIGNMENT, wish.version)])

    async def _elect(self, wish: WishedElection) -> None:
        """Let preferred replicas lead, and log what is not done."""
        image = self._metadata.image
        elected = preferred_elections(image, wish.partitions)
        for tp in wish.partitions:
            if all(tp != (one.topic, one.number) for one in elected):
                refusal = controller.election_refusal(image, tp, unclean=False)
                if refusal.code is not ErrorCode.ELECTION_NOT_NEEDED:
                    _log_refusal(tp, refusal)
        await self._queue.commit([*steps_of(image, elected), Delete(wishes.ELECTION, wish.version)])


def _log_refusal(tp: TopicPartition, refusal: Refusal) -> None:
    logger.error("what a tool asks for %s is not done: %s", tp, refusal.message)


def _led_by_living(topic: TopicImage, first: int, living: Collection[int]) -> TopicImage:
    """The topic; its new partitions, from the first of them on, are led by brokers that are up, or by nobody yet."""
    new = [
        part._replace(leader=isr[0], isr=isr)
        if (isr := tuple(broker for broker in part.replicas if broker in living))
        else part._replace(leader=NO_LEADER, isr=part.replicas)
        for part in topic.partitions[first:]
    ]
    return topic._replace(partitions=(*topic.partitions[:first], *new))


def _taken_back(wish: WishedTopic) -> list[NodeOperation]:
    """The deletion of a topic that cannot be, with what exists of its partitions, the lowest nodes first."""
    below = sorted(wish.below, key=lambda path: (-path.count("/"), path))
    steps: list[NodeOperation] = [
        *(Delete(path) for path in below),
        Delete(f"{layout.TOPICS}/{wish.name}", wish.version),
    ]
    return [*steps, *([] if wish.overrides is None else [Delete(f"{layout.TOPIC_CONFIGS}/{wish.name}")])]
