"""Faults of a cluster of processes, one after the other, each made good again: kills and stops of the controller, of a
partition's leader, of any other broker, and of ZooKeeper's leader."""

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from harness.brokers import Broker, NotReady
from harness.patience import SECONDS, Deadline, wait_until
from harness.zookeeper import ZooKeeper, mode
from moldau.errors import KafkaError
from tests.zookeeper.asking import View, view_of

CONTROLLER, LEADER, BROKER, ZOOKEEPER = "controller", "leader", "broker", "ZooKeeper's leader"
KILL, STOP = "kill", "stop"
Kind = tuple[str, str]
KILLED_S = 0.5
OVERLAPS = 0.3
"""The share of faults after which the next one does not wait until all brokers are back."""


class Faults:
    """Without `zookeeper` the brokers share a file. `progress(broker)` waits until the cluster has done something for
    a client of this broker, which the fault did not hit, and returns when that was; `seconds` has for each kind how
    long it took, `single` how long for faults that hit a whole cluster. `before(what)` is called right before a fault
    of a broker.

    `stops`: how long a stop lasts, in sessions, at least and at most. `outlasts`: the share of single faults of brokers
    that last until there is progress.
    """

    def __init__(
        self,
        brokers: dict[int, Broker],
        zookeeper: ZooKeeper | None,
        session_s: float,
        chance: random.Random,
        progress: Callable[[int], float],
        before: Callable[[str], None] = lambda _: None,
        stops: tuple[float, float] = (1.3, 2.3),
        outlasts: float = 0.0,
    ):
        self.seconds: dict[Kind, list[float]] = {}
        self.single: dict[Kind, list[float]] = {}
        self._brokers = brokers
        self._zookeeper = zookeeper
        self._session_s = session_s
        self._chance = chance
        self._progress = progress
        self._before = before
        self._stops = stops
        self._outlasts = outlasts
        self._was_whole = True

    def next(self, kind: Kind) -> None:
        """A fault, and its end."""
        how, what = kind
        time.sleep(self._chance.random())
        if what == ZOOKEEPER:
            self._hit_zookeeper(how)
        else:
            self._hit_broker(how, what)
        self._was_whole = self._chance.random() > OVERLAPS
        if self._was_whole:
            self.wait_until_whole()

    def wait_until_whole(self) -> None:
        wait_until_whole(self._brokers)

    def _controller(self) -> int:
        found: list[int] = []

        def look() -> bool:
            view = known_to(self._chance.choice(list(self._brokers.values())))
            found[:] = [] if view is None or view.controller < 0 else [view.controller]
            return bool(found)

        assert wait_until(look, 2 * SECONDS), "no controller"
        return found[0]

    def _leader(self) -> int:
        """The leader of any partition, the controller while none has one."""
        view = known_to(self._chance.choice(list(self._brokers.values())))
        parts = [part for _, topic in view.topics.values() for part in topic] if view else []
        leaders = [leader for leader, *_ in parts if leader in self._brokers]
        return self._chance.choice(leaders) if leaders else self._controller()

    def _victim(self, what: str) -> int:
        if what == LEADER:
            return self._leader()
        controller = self._controller()
        return controller if what == CONTROLLER else self._chance.choice(sorted({*self._brokers} - {controller}))

    def _hit_broker(self, how: str, what: str) -> None:
        victim = self._victim(what)
        broker = self._brokers[victim]
        asked = self._chance.choice(sorted({*self._brokers} - {victim}))
        sessions = 1.5 * self._chance.random() if how == KILL else self._chance.uniform(*self._stops)
        away_s = self._session_s * sessions
        outlasts = self._chance.random() < self._outlasts and self._was_whole
        self._before(what)
        fault = broker.kill if how == KILL else partial(os.kill, broker.pid, signal.SIGSTOP)
        with self._hit((how, what), asked, fault) as (hit_s, has_progress):
            time.sleep(max(0.0, hit_s + away_s - time.monotonic()))
            if outlasts:
                has_progress()
            if how == STOP:
                with contextlib.suppress(ProcessLookupError):  # another broker has killed it, see the next line
                    os.kill(broker.pid, signal.SIGCONT)
                if self._zookeeper is None and broker.wait(KILLED_S):  # it was stopped in the middle of a change
                    broker.kill()
            if not broker.runs:
                started(broker)

    def _hit_zookeeper(self, how: str) -> None:
        assert self._zookeeper is not None
        assert wait_until(lambda: all(mode(one) for one in self._zookeeper.addresses), 4 * SECONDS)
        process = self._zookeeper.servers()[self._zookeeper.leader()]
        away_s = self._session_s * (1.3 + self._chance.random())
        fault = partial(os.kill, process, signal.SIGKILL if how == KILL else signal.SIGSTOP)
        with self._hit((how, ZOOKEEPER), self._chance.choice(sorted(self._brokers)), fault):
            if how == STOP:  # what was killed is started again by the command that had started it
                time.sleep(away_s)
                os.kill(process, signal.SIGCONT)

    @contextlib.contextmanager
    def _hit(self, kind: Kind, broker: int, fault: Callable[[], None]) -> Iterator[tuple[float, Callable[[], object]]]:
        """Cause the fault, and note how long it takes until there is progress. Yields when the fault was, and what
        waits for the progress."""
        hit_s = time.monotonic()
        fault()
        with ThreadPoolExecutor(1) as thread:
            progress = thread.submit(self._progress, broker)
            yield hit_s, progress.result
            took_s = progress.result() - hit_s
            self.seconds.setdefault(kind, []).append(took_s)
            if self._was_whole:
                self.single.setdefault(kind, []).append(took_s)


def wait_until_whole(brokers: dict[int, Broker]) -> None:
    """Wait until every broker knows all brokers, the same controller, and all replicas as in sync."""
    whole = wait_until(lambda: is_whole(brokers), 4 * SECONDS)
    assert whole, {number: known_to(broker) for number, broker in brokers.items()}


def is_whole(brokers: dict[int, Broker]) -> bool:
    views = [known_to(broker) for broker in brokers.values()]
    known = {(view.controller, *sorted(view.brokers)) for view in views if view is not None}
    if None in views or len(known) != 1 or min(known)[1:] != tuple(sorted(brokers)):
        return False
    parts = [part for view in views if view for _, topic in view.topics.values() for part in topic]
    return all(len(isr) == len(replicas) for _, _, replicas, isr in parts)


def known_to(broker: Broker) -> View | None:
    """What it says of the cluster; None if it does not."""
    try:
        return view_of(broker.address)
    except KafkaError:
        return None


def started(broker: Broker) -> None:
    """Start it, again if ZooKeeper has no quorum at the moment."""
    deadline = Deadline(4 * SECONDS)
    while True:
        try:
            broker.start()
            return
        except NotReady as refused:
            if "ZooKeeper" not in str(refused) or deadline.passed:
                raise
