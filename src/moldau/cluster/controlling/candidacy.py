"""Whether a broker stands for the office of the controller, and when it gives the office up for another one.

The rules are in `isolation`; this reads and writes the node that has the brokers that gave way one after the other.
"""

import asyncio
from math import inf

from moldau.cluster.controlling.change_stream import POLL_S, ChangeStream
from moldau.cluster.controlling.isolation import LETS_STAND_S, hearing_s, is_isolated, is_last, who_gave_way
from moldau.cluster.state import layout
from moldau.cluster.state.reading import controller_epoch, given_way
from moldau.metadata_store.store import (
    Delete,
    MetadataStore,
    Node,
    OutcomeUnknown,
    StoreConflict,
    children_of,
    nodes_at,
)

RETRY_S = 1.0


class Candidacy:
    """The candidacy of one broker. `silence_s`: after how long without a question a broker is taken for silent."""

    def __init__(self, broker_id: int, silence_s: float):
        self.hearing_s = inf
        """After how long a broker is not heard from: see `isolation`."""
        self._broker_id = broker_id
        self._silence_s = silence_s
        self._vacant_s: float | None = None
        """Since when nobody is the controller, by the loop's time, while this broker lets others stand first."""
        self._gave_way: tuple[int, ...] = ()
        """The brokers that have given way one after the other, before this term; none once it has heard from enough."""

    @property
    def look_again_in_s(self) -> float | None:
        """In how many seconds a broker that lets others stand first looks whether one did; None if it does not let
        them, and only waits for a change of the controller's node."""
        return None if self._vacant_s is None else LETS_STAND_S / 3

    def is_taken(self) -> None:
        """A broker is the controller."""
        self._vacant_s = None

    def begin(self, session_s: float, before: Node | None, epoch: int) -> None:
        """This broker is the controller now, in that epoch. `before` is the node with the brokers that gave way,
        `session_s` the time-out of its session in the store."""
        self.hearing_s = hearing_s(session_s, self._silence_s, POLL_S)
        self._gave_way = who_gave_way(given_way(before), epoch - 1)

    async def may_stand(self, store: MetadataStore) -> bool:
        """Whether this broker may be the controller now: one that has given way lets the others stand first. Raises
        `StorageError`."""
        node, latest = await store.read(nodes_at([layout.CONTROLLER_EPOCH, layout.GIVEN_WAY]))
        now_s = asyncio.get_running_loop().time()
        if self._broker_id in who_gave_way(given_way(latest), controller_epoch(node)):
            others = {*await store.read(children_of(layout.BROKERS))} - {str(self._broker_id)}
            if self._vacant_s is None:
                self._vacant_s = now_s
            if others and now_s < self._vacant_s + LETS_STAND_S:
                return False
        self._vacant_s = None
        return True

    def has_to_give_way(self, stream: ChangeStream) -> bool:
        """Whether this controller hears from too few brokers, and another one may hear from more."""
        registered, limit_s = stream.image.brokers.keys(), self.hearing_s
        if not is_isolated(len(registered), stream.heard(limit_s)):
            self._gave_way = ()
        heard = len(registered) - len(stream.silent(limit_s))
        return is_isolated(len(registered), heard) and not is_last(self._broker_id, registered, self._gave_way)

    async def give_way(self, store: MetadataStore, epoch: int) -> None:
        """Let another broker be the controller: this one, which was it in that epoch, has resigned. Raises
        `StorageError`."""
        latest = layout.GivenWay(epoch, (*self._gave_way, self._broker_id))
        while True:
            node, before = await store.read(nodes_at([layout.CONTROLLER, layout.GIVEN_WAY]))
            if node is None or node.owner != store.session_id:
                return
            noted = layout.given_way(latest, None if before is None else before.version)
            try:
                await store.multi([Delete(layout.CONTROLLER, node.version), noted])
            except (StoreConflict, OutcomeUnknown):  # an outsider has written, or nobody knows
                await asyncio.sleep(RETRY_S)
