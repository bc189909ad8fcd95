"""A model of ZooKeeper: what an ensemble answers, and how it fails, in virtual time.

One order of writes, decided by the leader; each server applies them in that order, some later than others, and answers
reads from what it has applied. A session lives on one server at a time. When its connection is cut, its watches are
gone; unless it comes back, it expires at the next tick after its time-out, and its ephemeral nodes are deleted. Watches
fire once. While the quorum is away nobody is connected and nothing expires; afterwards every time-out begins anew.

The tree outlives brokers and never loses an acknowledged change. Faults come from a scenario (`cut`, `mend`,
`lose_next_answer`, `lose_quorum`, `regain_quorum`) or, by `Manners`, from a seed. The client's side is
`zookeeper_session`.
"""

import asyncio
import contextvars
import itertools
import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from moldau.metadata_store.store import (
    ANY_VERSION,
    BadVersion,
    Create,
    Delete,
    Node,
    NodeExists,
    NodeOperation,
    NoNode,
    NotEmpty,
    Set,
    Written,
    checked,
    parent_of,
)

TICK_S = 2.0
"""The leader looks for expired sessions this often; ZooKeeper's `tickTime`."""


class Manners(NamedTuple):
    """How an ensemble behaves without being told to. Times are drawn between 0 and the maximum, in seconds."""

    servers: int = 1
    answer_s: float = 0.0
    lag_s: float = 0.0
    """How far behind the leader a server may be."""
    drop: float = 0.0
    """The probability that the connection is lost during a call: half of the time before the server has done it."""
    away_s: float = 0.0
    """How long a dropped connection takes to come back."""


CALM = Manners()


@dataclass(eq=False)
class ServedSession:
    """One session as the ensemble knows it. `on_event` is called with the path of a watch that has fired, `on_change`
    when the connection was cut or is back, or when the session is over."""

    session_id: int
    timeout_s: float
    on_event: Callable[[str], None]
    on_change: Callable[[], None]
    server: "EnsembleMember"
    is_up: bool = True
    is_over: bool = False
    is_gone: bool = False
    """Whether nobody is left on the client's side."""
    seen: int = 0
    """The last write whose effect this session has seen: no server that is further behind takes it."""
    loses_next_answer: bool = False
    expiry: asyncio.TimerHandle | None = None


@dataclass
class EnsembleMember:
    """One server: the writes it has applied, and the watches of the sessions on it."""

    nodes: dict[str, Node]
    applied: int = 0
    waiting: list[tuple[int, dict[str, Node | None]]] = field(default_factory=list)
    watches: dict[str, dict[ServedSession, None]] = field(default_factory=dict)

    def catch_up(self, until: int) -> None:
        """Apply what waits, up to a write."""
        while self.waiting and self.waiting[0][0] <= until:
            self.applied, changes = self.waiting.pop(0)
            touched: dict[str, None] = {}
            for path, node in changes.items():
                if (path in self.nodes) != (node is not None):
                    touched[parent_of(path)] = None
                touched[path] = None
                if node is None:
                    self.nodes.pop(path, None)
                else:
                    self.nodes[path] = node
            for path in touched:
                for link in self.watches.pop(path, {}):
                    link.seen = max(link.seen, self.applied)
                    link.on_event(path)

    def forget(self, link: ServedSession) -> None:
        for links in self.watches.values():
            links.pop(link, None)

    def children(self, path: str) -> list[str]:
        return children_in(self.nodes, path)


class ModelZooKeeper:
    def __init__(self, chance: random.Random | None = None, manners: Manners = CALM):
        self.manners = manners
        self.nodes: dict[str, Node] = {"/": Node(b"", 0)}
        """The leader's tree."""
        self.links: dict[int, ServedSession] = {}
        self.servers = [EnsembleMember(dict(self.nodes)) for _ in range(manners.servers)]
        self._chance = chance or random.Random(0)
        self._has_quorum = True
        self._zxid = 0
        self._session_ids = itertools.count(1)

    def drawn(self, most_s: float) -> float:
        return self._chance.uniform(0, most_s) if most_s else 0.0

    def drops(self) -> bool:
        return bool(self.manners.drop) and self._chance.random() < self.manners.drop

    # ------------------------------------------------------------------------------------------------ sessions

    def connect(
        self, timeout_s: float, on_event: Callable[[str], None], on_change: Callable[[], None]
    ) -> ServedSession:
        """A new session. Without a quorum it is not up yet."""
        link = ServedSession(next(self._session_ids), timeout_s, on_event, on_change, self._chance.choice(self.servers))
        self.links[link.session_id] = link
        if not self._has_quorum:
            link.is_up = False
        return link

    def end(self, link: ServedSession) -> None:
        """The session is closed: its nodes go at once."""
        was_up, link.is_up, link.is_over = link.is_up, False, True
        self._stop_expiry(link)
        link.server.forget(link)
        if self.links.pop(link.session_id, None) is not None:
            own = [path for path, node in self.nodes.items() if node.owner == link.session_id]
            if own:
                self._commit(dict.fromkeys(own), link.server)
        if was_up:
            link.on_change()

    def cut(self, link: ServedSession) -> None:
        """The connection is lost: the session expires unless it is mended in time."""
        if link.is_up and not link.is_over:
            link.is_up = False
            link.server.forget(link)
            if self._has_quorum:
                self._start_expiry(link)
            link.on_change()

    def mend(self, link: ServedSession) -> None:
        """The connection is back, perhaps to another server; a session that has expired hears of it now."""
        if link.is_up or link.is_gone or not self._has_quorum:
            return
        if not link.is_over:
            self._stop_expiry(link)
            link.server = self._chance.choice(self.servers)
            link.server.catch_up(link.seen)
            link.is_up = True
        link.on_change()

    def lose_next_answer(self, link: ServedSession) -> None:
        """The next write of this session is done, and its connection is lost before the answer."""
        link.loses_next_answer = True

    def lose_quorum(self) -> None:
        """Every connection is lost, and nothing expires."""
        self._has_quorum = False
        for link in list(self.links.values()):
            self._stop_expiry(link)
            self.cut(link)

    def regain_quorum(self) -> None:
        """A leader is elected: it has every write that was answered, and every session's time-out begins anew."""
        self._has_quorum = True
        for link in list(self.links.values()):
            self._start_expiry(link)
            self.mend(link)

    def drop(self, link: ServedSession) -> None:
        """Cut the connection for as long as the manners say."""
        self.cut(link)
        self._later(self.drawn(self.manners.away_s), lambda: self.mend(link))

    def _start_expiry(self, link: ServedSession) -> None:
        self._stop_expiry(link)
        due = asyncio.get_running_loop().time() + link.timeout_s
        ticks = math.ceil(due / TICK_S) * TICK_S
        link.expiry = self._at(ticks, lambda: self.end(link))

    def _stop_expiry(self, link: ServedSession) -> None:
        if link.expiry is not None:
            link.expiry.cancel()
            link.expiry = None

    # ---------------------------------------------------------------------------------------------------- data

    def write(self, operations: Sequence[NodeOperation], link: ServedSession) -> list[Written | None]:
        """All or none, decided by the leader. The server of the session has applied it when it answers."""
        changes, results = self._decided(operations, link.session_id)
        self._commit(changes, link.server)
        link.seen = self._zxid
        return results

    def sync(self, link: ServedSession) -> None:
        """The server of the session applies all that the leader has."""
        link.server.catch_up(self._zxid)
        link.seen = self._zxid

    def _commit(self, changes: dict[str, Node | None], at_once: EnsembleMember) -> None:
        self._zxid += 1
        for path, node in changes.items():
            if node is None:
                self.nodes.pop(path, None)
            else:
                self.nodes[path] = node
        for server in self.servers:
            server.waiting.append((self._zxid, changes))
            lag_s = 0.0 if server is at_once else self.drawn(self.manners.lag_s)
            if lag_s:
                until = self._zxid
                self._later(lag_s, lambda server=server, until=until: server.catch_up(until))  # type: ignore[misc]
            else:
                server.catch_up(self._zxid)

    def _decided(
        self, operations: Sequence[NodeOperation], session_id: int
    ) -> tuple[dict[str, Node | None], list[Written | None]]:
        """The nodes after the operations, None for deleted ones, and the operations' results. Raises
        `StoreConflict`."""
        after: dict[str, Node | None] = {}
        results: list[Written | None] = []
        for operation in operations:
            path = checked(operation.path)
            node = after.get(path, self.nodes.get(path))
            if isinstance(operation, Create):
                if node is not None:
                    raise NodeExists(path)
                above = parent_of(path)
                parent = after.get(above, self.nodes.get(above))
                if parent is None or parent.owner:
                    raise NoNode(above)
                after[path] = Node(operation.data, 0, session_id if operation.ephemeral else 0, self._zxid + 1)
                results.append(Written(0, self._zxid + 1))
                continue
            if node is None:
                raise NoNode(path)
            if operation.version not in (ANY_VERSION, node.version):
                raise BadVersion(path)
            if isinstance(operation, Set):
                after[path] = Node(operation.data, node.version + 1, node.owner, node.czxid)
                results.append(Written(node.version + 1, node.czxid))
                continue
            if isinstance(operation, Delete):
                alive = [
                    other for other in (*self.nodes, *after) if after.get(other, self.nodes.get(other)) is not None
                ]
                if children_in(alive, path):
                    raise NotEmpty(path)
                after[path] = None
            results.append(None)
        return after, results

    # ---------------------------------------------------------------------------------------------------- time

    def _later(self, delay_s: float, act: Callable[[], None]) -> None:
        self._at(asyncio.get_running_loop().time() + delay_s, act)

    def _at(self, when_s: float, act: Callable[[], None]) -> asyncio.TimerHandle:
        """The ensemble's timers belong to no host: they go on when a host is killed."""
        return contextvars.Context().run(asyncio.get_running_loop().call_at, when_s, act)


def children_in(paths: Iterable[str], parent: str) -> list[str]:
    """The last names of the direct children among these paths, sorted."""
    below = parent.rstrip("/") + "/"
    return sorted({p[len(below) :] for p in paths if p.startswith(below) and p != "/" and "/" not in p[len(below) :]})
