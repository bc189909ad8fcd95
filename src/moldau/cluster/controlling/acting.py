"""How a broker becomes the controller of its cluster, and what it does as the controller.

The controller is the broker whose session made `/controller`. The same step raises `/controller_epoch`, and every later
write checks that it has stayed: what a controller that was replaced still writes is refused. A new controller reads
everything, elects leaders where they are missing, and begins a stream of changes, from which all brokers follow.

A broker whose node goes, or that asks the stream nothing for `replica.lag.time.max.ms`, leads nothing. A broker that
comes, or came back unnoticed, leads what it is in sync for, in a new leader epoch. One that is about to stop hands over
what it leads (`departures`). Some minutes after a broker came back, it leads again what it is preferred for
(`leader_balance`). Work that lasts, such as a reassignment, goes on with every controller (`lasting`).

A controller that was replaced, whose session is over, or that does not know whether a write was done, resigns: all who
wait are answered NOT_CONTROLLER, and it stands again and reads everything. One that hears from too few of the other
brokers gives way to another one (`isolation`).
"""

import asyncio
import contextlib
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from moldau.cluster.controlling.assigned_directories import AssignedDirectories, InDirectory, need_election
from moldau.cluster.controlling.brokers.forgetting import ForgottenBrokers
from moldau.cluster.controlling.brokers.missed import MissedBrokers
from moldau.cluster.controlling.candidacy import RETRY_S, Candidacy
from moldau.cluster.controlling.change_stream import ChangeStream
from moldau.cluster.controlling.config_changes import ConfigChanges
from moldau.cluster.controlling.controller_queue import ControllerQueue
from moldau.cluster.controlling.isr_alterations import IsrAlterations
from moldau.cluster.controlling.lasting import LastingWork
from moldau.cluster.controlling.leader_balance import LeaderBalance
from moldau.cluster.controlling.longest_logs import AskBroker, LongestLogs, nobody_answers
from moldau.cluster.controlling.old_tools import OldTools
from moldau.cluster.controlling.topic_changes import TopicChanges
from moldau.cluster.controlling.unreadable_names import UnreadableNames
from moldau.cluster.state import layout
from moldau.cluster.state.deletions import Deletions
from moldau.cluster.state.elections import elections, in_batches, kept_folders, preferred_elections, steps_of
from moldau.cluster.state.half_deleted import removal_of_rests
from moldau.cluster.state.image import NO_LEADER, BrokerImage, Image
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.cluster.state.reading import LeftOut, controller_epoch, holders_of_deleted, read_image
from moldau.cluster.state.registrations import dealt_with, kept_since, read_brokers
from moldau.config import BrokerConfig
from moldau.errors import ErrorCode, KafkaError, StorageError
from moldau.metadata_store.store import (
    Check,
    Delete,
    MetadataStore,
    OutcomeUnknown,
    SessionOver,
    StoreConflict,
    node_at,
    nodes_at,
)
from moldau.names import TopicPartition, counted
from moldau.notices import Notices
from moldau.runtime import Runtime
from moldau.tasks import ended

CHECKS = 3
"""How often in `replica.lag.time.max.ms` the controller looks for brokers that have fallen silent."""
SOON_S = 0.05
"""A broker is silent a moment after its limit."""

logger = logging.getLogger(__name__)
notices = Notices(logger)


class Acting:
    """`metadata` has the image that the controller decides on; what this broker serves by is another one, which follows
    the stream. `stream` is None while this broker is not the controller."""

    def __init__(self, config: BrokerConfig, runtime: Runtime, ask_log_ends: AskBroker = nobody_answers):
        self.metadata = MetadataCache(config, Image(""))
        self.queue = ControllerQueue(self.metadata, runtime, self._resign)
        self.directories = UnreadableNames(self.metadata, self.queue)
        self.topics = TopicChanges(self.metadata, self.queue, self.directories, runtime)
        self.configs = ConfigChanges(self.metadata, self.queue)
        self._assigned = AssignedDirectories(self.metadata, self.queue)
        self.isr = IsrAlterations(self.metadata, self.queue, self.queue.made, self.metadata.least_in_sync, self._away)
        self.longest_logs = LongestLogs(
            self.metadata, self.queue, self.queue.made, self.metadata.least_in_sync, self._not_to_lead, ask_log_ends
        )
        self._balance = LeaderBalance(config)
        self._missed = MissedBrokers()
        self._lasting = LastingWork(self.metadata, self.queue, self.metadata.least_in_sync)
        forgotten = ForgottenBrokers(self.metadata, self.queue, lambda: self._epochs, lambda: self._deletions)
        self.forget_broker = forgotten.forget
        self._old_tools = OldTools(self.metadata, self.queue, runtime)
        self.metadata.subscribe(self._publish)
        self._is_leaving = False
        self._broker_id = config.node_id
        self._silence_s = config.replica_lag_time_max_ms / 1000
        self._candidacy = Candidacy(self._broker_id, self._silence_s)
        self._runtime = runtime
        self._changed = asyncio.Event()
        """Set when `/controller` or `/brokers/ids` may have changed, or this broker has resigned."""
        self._epochs: dict[int, int] = {}
        """The broker epochs that were dealt with, as in the store."""
        self._silent: frozenset[int] | None = None
        """The brokers that count as gone because they are silent; None before the first election of a term."""
        self._deletions = Deletions({})
        self._watched: set[int] = set()
        """The brokers whose nodes are watched in this session: one whose log folder fails writes it there."""
        self._is_to_elect = False
        """Whether a partition that has no leader may have one now, or has eligible leaders that it needs no more."""

    @property
    def stream(self) -> ChangeStream | None:
        return self.queue.stream

    async def serve(self, store: MetadataStore) -> None:
        """Take part in elections of the controller, and do its work when elected, until this session is over."""
        carrying_out = asyncio.ensure_future(self._old_tools.serve(store))
        self._watched.clear()
        try:
            is_watching = False
            while True:
                try:
                    if not is_watching:
                        for path in (layout.CONTROLLER, layout.BROKERS):
                            await store.watch(path, self._changed.set)
                        is_watching = True
                    await self._look(store)
                except SessionOver:
                    raise
                except (StorageError, KafkaError, StoreConflict) as error:
                    why = str(error)
                    notices.error("", "this broker cannot become the controller; it tries again: %s", error)
                except Exception as fault:
                    why = repr(fault)
                    logger.exception("internal error: this broker cannot become the controller; it tries again")
                else:
                    continue
                self._resign(why)
                await asyncio.sleep(RETRY_S)
        except SessionOver:
            pass
        finally:
            self._resign("its session in the store is over")
            await ended(carrying_out, self.longest_logs.deciding)
            self.longest_logs.deciding = None

    async def assign_directories(
        self, broker_id: int, broker_epoch: int, placed: Sequence[InDirectory]
    ) -> list[ErrorCode]:
        """As `AssignedDirectories.record`; then elect leaders where that is needed."""
        errors = await self._assigned.record(broker_id, broker_epoch, placed)
        if need_election(self.metadata.image, broker_id):
            self._is_to_elect = True
            self.look_at_brokers()
        return errors

    def look_at_brokers(self) -> None:
        """A registration may have changed, or a broker is about to stop."""
        self._changed.set()

    async def _look(self, store: MetadataStore) -> None:
        """Resign, stand for election or elect leaders, as `/controller` and `/brokers/ids` demand now; then wait until
        they change."""
        self._changed.clear()
        node = await store.read(node_at(layout.CONTROLLER))
        is_ours = node is not None and node.owner == store.session_id
        # The fence refuses our writes already; those who wait would wait in vain.
        if self.stream is not None and not is_ours:
            self._resign("its node in the store is gone")
        # Else brokers that hear each other, and not us, would count as silent and lose all that they lead.
        if self.stream is not None and self._candidacy.has_to_give_way(self.stream):
            epoch = self.metadata.image.controller_epoch
            self._resign("it hears from too few of the other brokers, and lets another one be the controller")
            await self._candidacy.give_way(store, epoch)
            node, is_ours = await store.read(node_at(layout.CONTROLLER)), False
        if node is not None:
            self._candidacy.is_taken()
        # A node of ours without a stream is left of a term that has ended: we stand again, in a new epoch.
        may_stand = self.stream is None and not self._is_leaving and (node is None or is_ours)
        if may_stand and await self._candidacy.may_stand(store):
            await self._stand(store)
        if self.stream is not None:
            await self._take_brokers(store)
            self.longest_logs.begin(self._changed.set)
            await self._forget_deleted()
            self._look_at_left_out()
            await self._lasting.go_on()
            await self._balance_leaders()
            self._missed.look(self.metadata.image, self._away(), asyncio.get_running_loop().time())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._next_look_in_s()):
                await self._changed.wait()

    def _next_look_in_s(self) -> float | None:
        if self.stream is None:
            return self._candidacy.look_again_in_s
        limits_s = (self._candidacy.hearing_s, self._silence_s)
        silent_in_s = (self.stream.silent_in_s(limit_s) + SOON_S for limit_s in limits_s)
        balance_in_s = self._balance.due_in_s(asyncio.get_running_loop().time())
        return min(self._silence_s / CHECKS, balance_in_s, max(self._lasting.due_in_s(), 0), *silent_in_s)

    async def _balance_leaders(self) -> None:
        """If it is time, let preferred replicas lead again."""
        wanted = self._balance.look(self.metadata.image, self._away(), asyncio.get_running_loop().time())
        if wanted:
            elected = await self.queue.made(partial(self._elect_preferred, wanted))
            logger.info("preferred replicas lead %s again", counted(len(elected), "partition"))

    def _look_at_left_out(self) -> None:
        """Elect leaders for the topics that can be read again, and try to read the others."""
        left_out = self.directories.left_out
        if back := left_out & self.metadata.image.topics.keys():
            left_out -= back
            self._is_to_elect = True
            self._changed.set()
        if left_out:
            self._old_tools.look()

    async def _stand(self, store: MetadataStore) -> None:
        paths = [layout.CONTROLLER_EPOCH, layout.CONTROLLER, layout.GIVEN_WAY]
        node, ours, before = await store.read(nodes_at(paths))
        # Another broker was faster; `/controller` is watched, so we look again when it has gone.
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
        left_out: LeftOut = {}
        image = await store.read(read_image(left_out))
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
        self._balance.begin(asyncio.get_running_loop().time())
        self._missed.begin()
        self._candidacy.begin(store.timeout_s, before, epoch)
        self.queue.elected.clear()  # until all that has happened to brokers is dealt with: see _take_brokers
        await self.metadata.show(image, list(image.topics))
        rests = await store.read(removal_of_rests(image))
        await self.queue.made(partial(self.queue.commit, rests))
        told = replace(self.metadata.image, brokers=self._dealt_with(image.brokers))
        self.queue.stream = ChangeStream(epoch, told, self.look_at_brokers)
        logger.info("this broker became the controller, epoch %d", epoch)
        self.directories.left_out = set(left_out)
        for name, malformed in left_out.items():
            logger.error(
                "topic %s is not served until its metadata can be read (its data is kept): %s", name, malformed
            )
        self._old_tools.look()

    def _dealt_with(self, brokers: Mapping[int, BrokerImage]) -> dict[int, BrokerImage]:
        """The brokers for whose latest registration leaders have been elected. The others may have lost records, and a
        broker leads what its image says as soon as the image shows its registration."""
        return {one: broker for one, broker in brokers.items() if self._epochs.get(one) == broker.epoch}

    def leave(self) -> None:
        """Resign for good, because this broker stops; waiting requests are answered NOT_CONTROLLER."""
        self._is_leaving = True
        self._resign("it is stopping")

    def _resign(self, why: str) -> None:
        if self.stream is None:
            return
        logger.warning("this broker resigned as the controller: %s", why)
        self.stream.close()
        self.queue.stream = None
        self.queue.elected.set()
        self.queue.end()
        self.metadata.image = replace(self.metadata.image, controller_id=NO_LEADER)
        self._changed.set()

    def _publish(self, image: Image, names: Sequence[str]) -> None:
        if self._lasting.changed(image, names):
            self._changed.set()
        going = {*self._away(), *image.leaving}
        # A change of settings or of the ISR can make a leader, or another ISR, possible.
        if any(self._has_enough_in_sync(image, name) or _is_held(image, name, going) for name in names):
            self._is_to_elect = True
            self._changed.set()
        # While leaders are elected nobody is told: a broker leads what the image says that shows its registration.
        if self.stream is not None and self.queue.elected.is_set():
            before = self.stream.image
            self._deletions.note(before, image, self.stream.publish(image))

    async def _take_brokers(self, store: MetadataStore) -> None:
        """Show the brokers that are registered now, and elect leaders where that is needed."""
        is_asked_for, self._is_to_elect = self._is_to_elect, False
        brokers = await store.read(read_brokers())
        # A registration may change before its watch is set: read until no broker is new.
        while new := brokers.keys() - self._watched:
            for broker_id in new:
                await store.watch(f"{layout.BROKERS}/{broker_id}", self._changed.set)
            self._watched |= new
            brokers = await store.read(read_brokers())
        # Resigned while the store was read.
        if self.stream is None:
            return
        leaving, known_to_leave = self.stream.leaving(), self.metadata.image.leaving
        brokers = {one: broker._replace(leaving=leaving.get(one) == broker.epoch) for one, broker in brokers.items()}
        anew = {broker.id: broker.epoch for broker in brokers.values() if self._epochs.get(broker.id) != broker.epoch}
        silent = frozenset(self.stream.silent(self._silence_s)) & brokers.keys()
        # Elections look at every partition: none if nothing that they depend on has changed.
        if brokers == self.metadata.image.brokers and not anew and silent == self._silent and not is_asked_for:
            return
        for broker in silent - (self._silent or frozenset()):
            logger.warning("broker %d was silent for %g s: its partitions get other leaders", broker, self._silence_s)
        for broker in sorted(leaving.keys() & brokers.keys() - known_to_leave):
            logger.info("broker %d is about to stop: its partitions get other leaders", broker)
        since = await store.read(kept_since([brokers[one] for one in anew]))
        kept = {one: kept_folders(brokers[one], self._epochs.get(one), since.get(one, {})) for one in anew}
        for one in anew.keys() & self._epochs.keys():
            if "" not in kept[one]:
                logger.info("broker %d may have lost records while it was away: its replicas are not in sync yet", one)
        await self.queue.made(partial(self._show_and_elect, brokers, silent, anew, kept))
        self._silent = silent
        self._lasting.brokers_changed()

    async def _show_and_elect(
        self,
        brokers: Mapping[int, BrokerImage],
        silent: Collection[int],
        anew: Mapping[int, int],
        kept: Mapping[int, Collection[str]],
    ) -> None:
        """The others are told of these brokers when all is written that follows from it: a broker leads what the image
        says that shows its registration. If it cannot be written, this controller resigns, or elects again."""
        self.queue.elected.clear()
        await self._elect(brokers, silent, anew, kept)
        self.queue.elected.set()
        self._publish(self.metadata.image, ())

    async def _elect(
        self,
        brokers: Mapping[int, BrokerImage],
        silent: Collection[int],
        anew: Mapping[int, int],
        kept: Mapping[int, Collection[str]],
    ) -> None:
        """`anew` has the new epochs of brokers that have registered again, `kept` the folders they have lost nothing
        in."""
        image = self.metadata.image
        if brokers != image.brokers:
            await self.metadata.show(replace(image, brokers=brokers), [])
        elected = await self.queue.decided(
            sum(len(topic.partitions) for topic in image.topics.values()),
            lambda: elections(self.metadata.image, self.metadata.least_in_sync, silent, kept),
        )
        for batch in in_batches(elected):
            await self.queue.commit(steps_of(self.metadata.image, batch))
            await asyncio.sleep(0)
        if elected:
            logger.info("%s changed their leader or their replicas in sync", counted(len(elected), "partition"))
        noted = [layout.dealt_with(brokers[one], is_new=one not in self._epochs) for one in anew]
        await self.queue.commit(noted)
        self._epochs |= anew

    async def elect(self, wanted: Sequence[TopicPartition], *, unclean: bool) -> set[TopicPartition]:
        """Let the preferred replicas of these partitions lead; or, of those that have no leader, the longest log.
        Returns the partitions that have another leader now. Raises what `ChangeQueue.commit` raises."""
        # Not in the queue of changes: brokers are asked for the ends of their logs meanwhile.
        if unclean and wanted:
            contests = self.longest_logs.contests(wanted)
            await self.longest_logs.decide(contests)
            now = self.metadata.image
            return {one.tp for one in contests if (part := now.partition(one.tp)) and part.leader != NO_LEADER}
        return await self.queue.run(partial(self._elect_preferred, wanted))

    async def _elect_preferred(self, wanted: Sequence[TopicPartition]) -> set[TopicPartition]:
        elected = preferred_elections(self.metadata.image, wanted)
        for batch in in_batches(elected):
            await self.queue.commit(steps_of(self.metadata.image, batch))
        return {TopicPartition(one.topic, one.number) for one in elected}

    def _away(self) -> Collection[int]:
        return self._silent or ()

    def _not_to_lead(self) -> Collection[int]:
        return {*self._away(), *self.metadata.image.leaving}

    def _has_enough_in_sync(self, image: Image, name: str) -> bool:
        """Whether there are eligible leaders although the ISR is large enough."""
        parts = [part for part in image.topics[name].partitions if part.elr] if name in image.topics else []
        return any(len(part.isr) >= min(self.metadata.least_in_sync(name), len(part.replicas)) for part in parts)

    async def _forget_deleted(self) -> None:
        """Forget the deleted topics that no broker has any more."""
        stream, deletions = self.stream, self._deletions
        for broker, position in deletions.waiting():
            up = self.metadata.image.brokers.get(broker)
            if stream is None or up is None or up.leaving:  # one that may leave is waited for no more
                continue
            if await stream.known_to([broker], position, 0):
                deletions.done_by(broker, position, up.serves)
        if self.stream is not None and (done := deletions.complete()):
            await self.topics.forget_deleted(done)


def _is_held(image: Image, name: str, going: Collection[int]) -> bool:
    """Whether a broker that is silent or about to stop is in sync for one of the topic's partitions."""
    parts = image.topics[name].partitions if going and name in image.topics else ()
    return any(one in going for part in parts for one in part.isr)
