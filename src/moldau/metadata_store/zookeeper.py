"""One session in a real ZooKeeper, by kazoo, which is kept from going on where a session must not.

- kazoo begins a new session by itself when one has expired. Old code could then create `/controller` in it, so the
  handler of a session that is over refuses every further connection.
- kazoo learns that a session is over only with its next connection. So it also counts as over here when no question
  was answered that was sent within the time-out, by a clock that goes on while the machine or the process stands still.
- A write that was sent and not answered is `OutcomeUnknown`, and never sent again. Questions are.
- kazoo's listeners and callbacks run in threads of its own: they only pass on to the loop.
- Paths are prefixed here, because kazoo only warns if the chroot is missing; it is created.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import (
    ConnectionLoss,
    KazooException,
    NodeExistsError,
    RolledBackError,
    RuntimeInconsistency,
)
from kazoo.retry import KazooRetry
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from moldau.errors import StorageError
from moldau.metadata_store.multi_read import TOGETHER, NodeOrError, is_answered_by, read_async
from moldau.metadata_store.multi_request import multi_async, request_of
from moldau.metadata_store.one_session import OneSession, tell_granted
from moldau.metadata_store.store import (
    AskNodes,
    Node,
    NodeOperation,
    OutcomeUnknown,
    Question,
    Reading,
    SessionOver,
    T,
    Written,
    check_size,
    checked,
)
from moldau.metadata_store.zookeeper_access import Access, Credentials, ZooKeeperAccess, split_connect
from moldau.metadata_store.zookeeper_answers import LOST, found_in, node_of, refusal_of
from moldau.metadata_store.zookeeper_login import log_in
from moldau.metadata_store.zookeeper_watches import Fired, Watches
from moldau.runtime import Runtime, elapsed_s

BEATS = 6
"""How often in its time-out an idle session asks something, to know that it goes on."""
ANSWERS_MAX = 1000
"""The most answers that a reading is sent on the loop."""
RECONNECT_S, RECONNECT_S_MAX = 0.05, 1.0
TELL_S = 2.0
"""How often it is said that a session could not be opened so far."""

_ACLS = {
    Access.OPEN: OPEN_ACL_UNSAFE,
    Access.READABLE: CREATOR_ALL_ACL + READ_ACL_UNSAFE,
    Access.PRIVATE: CREATOR_ALL_ACL,
}

logger = logging.getLogger(__name__)
_kazoo_logger = logging.getLogger(f"{__name__}.kazoo")
_kazoo_logger.setLevel(logging.CRITICAL)  # what matters is logged here, in sentences


class ZooKeeperSession:
    """See `MetadataStore`. Made by `open`."""

    is_bounded = True

    def __init__(self, access: ZooKeeperAccess, runtime: Runtime, earlier: Credentials | None = None):
        self.session_id = 0
        self.credentials = Credentials(0, b"")
        """Those of this session, once it has begun."""
        self._hosts, self._root = split_connect(access.connect)
        self._access = access
        self.timeout_s = access.timeout_s
        """Less than was asked for if ZooKeeper has granted less: it has a `maxSessionTimeout`."""
        self._runtime = runtime
        self._loop = asyncio.get_running_loop()
        self._handler = OneSession(access.tls, self._hosts.count(",") + 1)
        retry = KazooRetry(
            max_tries=-1, delay=RECONNECT_S, max_delay=RECONNECT_S_MAX, sleep_func=self._handler.sleep_func
        )
        self._client = KazooClient(
            self._hosts, self.timeout_s, earlier, self._handler, connection_retry=retry, logger=_kazoo_logger
        )
        self._refusal = ""
        """Why ZooKeeper does not accept our user."""
        if access.login is not None:
            log_in(self._client._connection, access.login, self._refused)
        tell_granted(self._client._connection, partial(self._in_loop, self._take_granted))
        self._client.add_listener(self._state_changed)
        self._is_up = False
        self._is_read_together: bool | None = None
        """None before a server was asked: each connection may have another one."""
        self._is_over = False
        self._changed = asyncio.Event()
        """Set when the connection or the session has changed."""
        self._heard_s = elapsed_s()
        """When the last question that was answered had been sent."""
        self._waiting: dict[asyncio.Future[Any], None] = {}
        self._watches = Watches(self._set_watches, self._in_loop, self._keep)
        self._tasks: dict[asyncio.Future[Any], None] = {}
        self._beating: asyncio.Future[None] | None = None

    @classmethod
    async def open(
        cls, access: ZooKeeperAccess, runtime: Runtime, waiting: Callable[[str], None] = lambda reason: None
    ) -> "ZooKeeperSession":
        """A new session. While there is none, `waiting` is called every `TELL_S` seconds with the reason ("" if it is
        not known), up to `access.connection_limit_s`. Raises `ConfigError`, `StorageError`."""
        limit_s, loop = access.connection_limit_s, asyncio.get_running_loop()
        until_s = loop.time() + limit_s
        while True:
            session = cls(access, runtime)
            telling = asyncio.ensure_future(session._tell(waiting))
            try:
                async with asyncio.timeout_at(until_s):
                    await session._begin()
                return session
            except SessionOver:  # the servers have lost their leader meanwhile
                if session._refusal or loop.time() >= until_s:
                    raise
            except TimeoutError:
                sentence = f"ZooKeeper at {session._hosts} did not answer within {limit_s:g} s"
                problem = session._handler.problem
                raise StorageError(f"{sentence}: {problem}" if problem else sentence) from None
            finally:
                telling.cancel()
            await asyncio.sleep(RECONNECT_S)

    async def _begin(self) -> None:
        """Connect for the first time. Raises `SessionOver`, `StorageError`; the session is closed then."""
        try:
            self._client.start_async()
            await self._connected()
            await self._make_root()
        except BaseException:
            await self.close()
            raise
        self._heard_s = elapsed_s()
        self._beating = asyncio.ensure_future(self._beat())

    async def _tell(self, waiting: Callable[[str], None]) -> None:
        while True:
            await asyncio.sleep(TELL_S)
            waiting(self._handler.problem)

    @classmethod
    async def end(cls, access: ZooKeeperAccess, earlier: Credentials, runtime: Runtime) -> None:
        """End a session whose process has died; it may be over already. One that cannot be reached ends by itself."""
        session = cls(access, runtime, earlier)
        with contextlib.suppress(SessionOver, TimeoutError):
            try:
                session._client.start_async()
                async with asyncio.timeout(access.timeout_s):
                    await session._connected()
            finally:
                await session.close()

    async def _make_root(self) -> None:
        """Create the nodes of the chroot, if it does not exist. This is also the first question: its answer shows that
        ZooKeeper accepts our user."""
        [there] = await self._answered([partial(self._client.exists_async, self._at("/"))])
        if there:
            return
        path = ""
        for name in self._root.split("/")[1:]:
            path += f"/{name}"
            acl = _ACLS[self._access.access_to(path)]
            [made] = await self._asked([partial(self._client.create_async, path, b"", acl)])
            if isinstance(made, BaseException) and not isinstance(made, NodeExistsError):
                raise StorageError(f"ZooKeeper does not let us create {path}: {made!r}")

    # ---------------------------------------------------------------------------------------------------- data

    async def read(self, reading: Reading[T]) -> T:
        answered: Sequence[Any] | None = None
        while True:
            step = partial(_step, reading, answered)
            is_done, value = (
                step() if answered is None or len(answered) <= ANSWERS_MAX else await self._runtime.run(step)
            )
            if is_done:
                return value  # type: ignore[no-any-return]
            answered = await self._answer(value)

    async def _answer(self, question: Question) -> list[Node | None] | list[str]:
        if isinstance(question, AskNodes):
            return await self._nodes([self._at(checked(path)) for path in question.paths])
        path = self._at(checked(question.path))
        [names] = await self._answered([partial(self._client.get_children_async, path)])
        return sorted(names or ())

    async def _nodes(self, paths: Sequence[str]) -> list[Node | None]:
        many, answers = len(paths) > TOGETHER and await self._reads_together(), list[NodeOrError | None]()
        together = TOGETHER if many else 1
        count = together * self._access.in_flight
        for start in range(0, len(paths), count):
            some = [paths[at : at + together] for at in range(start, min(start + count, len(paths)), together)]
            if many:
                for answer in await self._answered([partial(read_async, self._client, each) for each in some]):
                    answers += map(found_in, answer)
            else:
                answers += await self._answered([partial(self._client.get_async, path) for [path] in some])
        return [None if one is None else node_of(*one) for one in answers]

    async def _reads_together(self) -> bool:
        """Whether the server of this connection answers many questions in one."""
        if self._is_read_together is None:
            self._is_read_together = await self._runtime.run(partial(is_answered_by, self._handler.another_connection))
        return self._is_read_together

    async def multi(self, operations: Sequence[NodeOperation]) -> list[Written | None]:
        for operation in operations:
            checked(operation.path)
        check_size(operations)
        await self._connected()
        if not operations:
            return []
        requests = [
            request_of(operation, self._at(operation.path), _ACLS[self._access.access_to(operation.path)])
            for operation in operations
        ]
        [results] = await self._asked([partial(multi_async, self._client, requests)])
        if isinstance(results, LOST):
            raise OutcomeUnknown("the connection to ZooKeeper was lost before a write was answered")
        if isinstance(results, BaseException):
            raise StorageError(f"ZooKeeper refuses a write: {results!r}")
        for operation, result in zip(operations, results, strict=True):
            if isinstance(result, KazooException) and not isinstance(result, RolledBackError | RuntimeInconsistency):
                raise refusal_of(operation, result)
        return [None if stat is None else Written(stat.version, stat.czxid) for stat in results]

    async def changed_ms(self, paths: Sequence[str]) -> list[int | None]:
        """When each node was last changed, by ZooKeeper's clock; None for one that does not exist."""
        stats = await self._answered([partial(self._client.exists_async, self._at(checked(path))) for path in paths])
        return [None if stat is None else stat.mtime for stat in stats]

    async def sync(self) -> None:
        await self._answered([partial(self._client.sync_async, self._at("/"))])

    async def watch(self, path: str, look: Callable[[], None]) -> None:
        await self._connected()
        await self._watches.add(checked(path), look)

    def unwatch(self, path: str) -> None:
        self._watches.remove(path)

    async def _set_watches(self, path: str, fired: Fired) -> None:
        """Let kazoo call `fired` for the node and for its children. Raises `SessionOver`."""
        ask = (self._client.exists_async, self._client.get_children_async)
        await self._answered([partial(one, self._at(path), watch=fired) for one in ask])

    def _at(self, path: str) -> str:
        return (self._root + path).rstrip("/") or "/"

    # ------------------------------------------------------------------------------------- questions and answers

    async def _answered(self, questions: Sequence[Callable[[], Any]]) -> list[Any]:
        """The answers, None for a node that does not exist; asked again after a lost connection."""
        while True:
            await self._connected()
            answers = await self._asked(questions)
            if any(isinstance(answer, LOST) for answer in answers):
                continue
            return list(map(found_in, answers))

    async def _asked(self, questions: Sequence[Callable[[], Any]]) -> list[Any]:
        """The answers and exceptions, when the last has come; `ConnectionLoss` for all if the session ends before."""
        future: asyncio.Future[list[Any]] = self._loop.create_future()
        answers: list[Any] = [ConnectionLoss()] * len(questions)
        sent_s, left = elapsed_s(), len(questions)

        def came(number: int, result: Any) -> None:  # in the one thread of kazoo's that runs these
            nonlocal left
            answers[number] = result.value if result.exception is None else result.exception
            left -= 1
            if not left:
                self._in_loop(self._heard, future, sent_s, answers)

        self._waiting[future] = None
        try:
            for number, question in enumerate(questions):
                question().rawlink(partial(came, number))
            return await future
        finally:
            del self._waiting[future]

    def _heard(self, future: "asyncio.Future[list[Any]]", sent_s: float, answers: list[Any]) -> None:
        if not any(isinstance(answer, LOST) for answer in answers):
            self._heard_s = max(self._heard_s, sent_s)
        if not future.done():
            future.set_result(answers)

    # ----------------------------------------------------------------------------------------------- connection

    async def _connected(self) -> None:
        """Wait for a connection. Raises `SessionOver`."""
        while True:
            self._check_silence()
            if self._is_over:
                sentence = f"the session in ZooKeeper at {self._hosts} has expired"
                raise SessionOver(f"{sentence}: {self._refusal}" if self._refusal else sentence)
            if self._is_up:
                return
            self._changed.clear()
            await self._changed.wait()

    def _state_changed(self, state: str) -> None:
        """Called from a thread of kazoo's, before it connects again."""
        if state == KazooState.LOST:
            self._handler.is_over = True
        self._in_loop(self._take_state, state)

    def _refused(self, reason: str) -> None:
        """Called from a thread of kazoo's, before it says that the session is over."""
        self._refusal = reason

    def _take_state(self, state: str) -> None:
        if self._is_over:
            return
        if state == KazooState.LOST:
            self._end()
            return
        known = self._client.client_id if state == KazooState.CONNECTED else None
        if known is not None:
            self.credentials = Credentials(*known)
        self._is_up, self._is_read_together = known is not None, None  # None: it was lost again meanwhile
        self._changed.set()
        if not self._is_up:
            logger.warning("the connection to ZooKeeper at %s is lost", self._hosts)
        elif self.session_id:
            logger.info("the connection to ZooKeeper at %s is back", self._hosts)
            self._watches.set_again()
        else:
            self.session_id, self._heard_s = self.credentials.session_id, elapsed_s()

    def _take_granted(self, timeout_s: float) -> None:
        if timeout_s < self.timeout_s:
            line = "ZooKeeper at %s grants a session time-out of %g s, not of %g s (zookeeper.session.timeout.ms)"
            logger.warning(line, self._hosts, timeout_s, self.timeout_s)
            self.timeout_s = timeout_s

    async def _beat(self) -> None:
        """Ask something now and then; end the session when nothing is answered."""
        while not self._is_over:
            await asyncio.sleep(self.timeout_s / BEATS)
            self._check_silence()
            if self._is_up and not self._is_over:
                self._keep(asyncio.ensure_future(self._asked([partial(self._client.sync_async, self._at("/"))])))

    def _check_silence(self) -> None:
        if self.session_id and not self._is_over and elapsed_s() - self._heard_s > self.timeout_s:
            self._end()

    def _end(self) -> None:
        logger.warning("the session in ZooKeeper at %s has expired", self._hosts)
        self._shut()
        self._watches.look()
        self._keep(asyncio.ensure_future(self._stop_client()))

    def _shut(self) -> None:
        self._is_over = self._handler.is_over = True
        self._watches.end()
        self._changed.set()
        if self._beating is not None:
            self._beating.cancel()
        for future in self._waiting:
            if not future.done():
                future.set_result([ConnectionLoss()])

    async def close(self) -> None:
        if not self._is_over:
            self._shut()
            await self._stop_client()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _stop_client(self) -> None:
        await self._runtime.run(self._stopped)

    def _stopped(self) -> None:
        if not self.session_id:  # else kazoo tells the server that it ends
            self._handler.break_off()
        for end in (self._client.stop, self._client.close):
            with contextlib.suppress(Exception):  # the connection is in any state; what counts is that its threads end
                end()

    def _keep(self, task: "asyncio.Future[Any]") -> None:
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    def _in_loop(self, act: Callable[..., None], *args: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(act, *args)


def _step(reading: Reading[Any], answered: Sequence[Any] | None) -> tuple[bool, Any]:
    """Whether the reading is done, and its result or next question."""
    try:
        return False, reading.send(answered)
    except StopIteration as end:
        return True, end.value
