"""A random program of two callers at once: two threads on the synchronous face, or two event loops on the asyncio one.

Both share a producer, a consumer and an admin, and draw their calls from all there are. A call may fail, with an error
that has a sentence; it may not hang, outlive its time-out or lose a record. The clients belong to the first of the two
event loops: every call of the second one must be refused.
"""

import abc
import asyncio
import inspect
import itertools
import random
import sys
import threading
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from operator import attrgetter
from typing import Any

import moldau
from harness.patience import SECONDS, Deadline
from harness.tiers import LONG
from moldau import TopicPartition, aio
from moldau.errors import MoldauError, WrongLoop
from tests.client.programs.calls import API_S, Draw, Drawn, drawn

CALLS_MAX = 25
LATE_S = 1.0 if LONG else SECONDS
"""How much longer than its time-out a call may last on an idle machine. Elsewhere this only ends a hang."""
MAY_FAIL = (MoldauError, TimeoutError, LookupError, ValueError)
"""LookupError: a log has no such offset. ValueError: a value is not what its argument takes."""
SERVED_ANYWHERE = {"metrics", "subscription", "assignment", "paused", "end_offset", "group_metadata"}
"""Calls of the asyncio face that only look."""
API_MS = int(API_S * 1000)
SETTINGS: dict[str, dict[str, Any]] = {
    "producer": {"max_block_ms": 5_000, "delivery_timeout_ms": 20_000, "linger_ms": 2},
    "consumer": {"fetch_max_wait_ms": 20, "default_api_timeout_ms": API_MS, "auto_offset_reset": "earliest"},
    "admin": {"default_api_timeout_ms": API_MS},
}

_numbers = itertools.count()


class Hangs(AssertionError):
    """A call did not end in time."""


class Caller:
    """One of the two: its calls, what it is in, and what it met that it should not."""

    def __init__(self, program: "Program", number: int):
        self._program = program
        self.name = f"caller {number}"
        calls = [drawn(program.draw) for _ in range(program.draw.chance.randint(5, CALLS_MAX))]
        self.calls = [call for call in calls if program.jumps or not call.call.startswith("seek")]
        self.now: tuple[Drawn, Deadline] | None = None
        self.without_end = False
        self.failure: BaseException | None = None
        self.thread = threading.Thread(target=self._run, name=f"{self.name} of {program.seed}", daemon=True)

    def begins(self, call: Drawn) -> None:
        self._program.say(f"{self.name}: {call}")
        self.without_end = call.call == "__iter__"
        self.now = call, Deadline(call.limit_s + LATE_S)

    def _run(self) -> None:
        try:
            self._program.carry_out(self)
        except BaseException as failure:
            self.failure = failure
        finally:
            self.now = None

    @property
    def ended(self) -> bool:
        return not self.thread.is_alive()


class Program(abc.ABC):
    """The program of a seed. `run` raises `AssertionError`; `trace` has the calls."""

    def __init__(self, seed: int, bootstrap: str):
        self.seed = seed
        self.trace: list[str] = []
        self.draw = Draw(random.Random(seed), f"program-{next(_numbers)}", f"group-{next(_numbers)}")
        chance = self.draw.chance
        self._bootstrap = bootstrap
        self._transactional = chance.random() < 0.25
        self._in_group = chance.random() < 0.6
        self.jumps = chance.random() < 0.4
        """Whether the consumer seeks: then nothing is known of what its commits may cover."""
        self._settings = {
            "producer": {
                **SETTINGS["producer"],
                **({"transactional_id": self.draw.group} if self._transactional else {}),
            },
            "consumer": {
                **SETTINGS["consumer"],
                "group_id": self.draw.group,
                "auto_commit_interval_ms": chance.choice((0, 5, 5_000)),
                "max_poll_records": chance.choice((1, 5, 500)),
                **chance.choice(({"heartbeat_interval_ms": 20}, {"group_protocol": "consumer"})),
            },
            "admin": SETTINGS["admin"],
        }
        self._clients: dict[str, Any] = {}
        self._sent: list[tuple[list[bytes], Any]] = []
        self._reach: Counter[TopicPartition] = Counter()
        self._callers = [Caller(self, number) for number in (1, 2)]

    def say(self, what: str) -> None:
        self.trace.append(what)

    @abc.abstractmethod
    def _open(self) -> None:
        """Make the clients."""

    @abc.abstractmethod
    def carry_out(self, caller: Caller) -> None:
        """Make the calls, in the thread of the caller."""

    @abc.abstractmethod
    def _end_loop(self) -> None:
        """Close the consumer while a caller loops over it."""

    @abc.abstractmethod
    def _close(self) -> None:
        """Close the clients."""

    def run(self) -> None:
        """The program, and then the checks."""
        with moldau.Admin(self._bootstrap) as admin:
            admin.create_topic(self.draw.topic, partitions=2)
            self.say(f"{type(self).__name__} {self._settings['producer']} {self._settings['consumer']}")
            try:
                self._open()
                for caller in self._callers:
                    caller.thread.start()
                self._watch()
            finally:
                self._close()
            for caller in self._callers:
                if caller.failure is not None:
                    raise AssertionError(f"{caller.name} met {caller.failure!r}") from caller.failure
            self._check(admin)

    def _watch(self) -> None:
        """Until both have ended; a loop over the consumer, which has no end, is ended by closing it."""
        while not all(caller.ended for caller in self._callers):
            for caller in self._callers:
                now = caller.now
                if now is not None and not caller.without_end and now[1].passed and caller.now is now:
                    raise Hangs(f"{caller.name}: {now[0]} lasts longer than {now[0].limit_s} s\n{stacks()}")
            if all(caller.ended or caller.without_end for caller in self._callers):
                self._end_loop()
            self._callers[0].thread.join(0.005)
            self._callers[1].thread.join(0.005)

    def note(self, call: Drawn, outcome: Any) -> None:
        """What a call has returned: deliveries, and records that were handed out."""
        if call.client == "producer" and call.call.startswith("send") and call.call != "send_offsets_to_transaction":
            values = call.arguments[1]
            if call.call == "send_table":
                values = values["value"].to_pylist()
            self._sent.append((values if isinstance(values, list) else [values], outcome))

    def handed(self, tp: TopicPartition, offset: int) -> None:
        self._reach[tp] = max(self._reach[tp], offset + 1)

    def allowed(self, call: Drawn, failure: BaseException) -> None:
        """Raises what the call must not raise."""
        self.say(f"    {call.call}: {failure!r}"[:200])
        if not isinstance(failure, MAY_FAIL) or isinstance(failure, CancelledError) or not str(failure):
            raise failure

    def _note_records(self, call: Drawn, outcome: Any) -> None:
        if call.call in ("poll", "__iter__"):
            for record in outcome if isinstance(outcome, list) else [outcome]:
                self.handed(record.topic_partition, record.offset)
        elif call.call in ("poll_table", "tables") and len(outcome):
            for topic, partition, offset in zip(
                *(outcome[name].to_pylist() for name in ("topic", "partition", "offset")), strict=True
            ):
                self.handed(TopicPartition(topic, partition), offset)

    # -- the checks

    def _check(self, admin: moldau.Admin) -> None:
        table = moldau.read_table(self.draw.topic, self._bootstrap, isolation_level="read_uncommitted")
        rows = zip(*(table[name].to_pylist() for name in ("value", "partition", "offset")), strict=True)
        found = [(value, partition, offset) for value, partition, offset in rows]
        count = Counter(value for value, _, _ in found)
        assert not (twice := [value for value, times in count.items() if times > 1]), f"doubled: {twice}"
        where = {value: (partition, offset) for value, partition, offset in found}
        for values, delivery in self._sent:
            for value, place in self._acknowledged(values, delivery):
                assert value in where, f"{value!r} was acknowledged, and is lost"
                assert place is None or where[value] == place, f"{value!r} is at {where[value]}, not {place}"
        if self._in_group and not self.jumps and not self._transactional:
            for tp, at in admin.group_offsets(self.draw.group).items():
                assert at.offset <= self._reach[tp], f"{tp}@{at.offset} is committed, {self._reach[tp]} was handed out"

    def _acknowledged(self, values: list[bytes], delivery: Any) -> Iterator[tuple[bytes, tuple[int, int] | None]]:
        """The values that the broker has acknowledged, with partition and offset where one delivery says so."""
        try:
            done = delivery.result(timeout=0)
        except (MoldauError, TimeoutError):
            return
        if isinstance(done, moldau.Delivered):
            yield values[0], (done.partition, done.offset)
        else:
            assert sum(part.rows for part in done) == len(values)
            yield from ((value, None) for value in values)


class Threads(Program):
    """Both callers are threads that share clients of the synchronous face."""

    def _open(self) -> None:
        self._clients = {
            name: getattr(moldau, name.capitalize())(self._bootstrap, **named) for name, named in self._settings.items()
        }
        if self._in_group:
            self._clients["consumer"].subscribe(self.draw.topic)
        else:
            self._clients["consumer"].assign(self.draw.partitions)

    def carry_out(self, caller: Caller) -> None:
        for call in caller.calls:
            caller.begins(call)
            try:
                self.note(call, self._result(call))
            except BaseException as failure:
                self.allowed(call, failure)

    def _result(self, call: Drawn) -> Any:
        client = self._clients[call.client]
        if call.call == "process":
            return client.process(lambda record: self.handed(record.topic_partition, record.offset), **call.named)
        outcome = attrgetter(call.call)(client)(*call.arguments, **call.named)
        if call.call == "transaction":
            with outcome:
                value = self.draw.value()
                self._sent.append(([value], client.send(self.draw.topic, value)))
        elif call.call in ("__iter__", "tables"):
            outcome = next(outcome, [])
        elif call.call == "log":
            outcome[0]
        self._note_records(call, outcome)
        return outcome

    def _end_loop(self) -> None:
        self._clients["consumer"].close()

    def _close(self) -> None:
        for client in self._clients.values():
            try:
                client.close()
            except MAY_FAIL as failure:
                self.say(f"close: {failure!r}")


class Loops(Program):
    """The clients belong to the loop of the first caller; the second one runs another loop."""

    def _open(self) -> None:
        self._opened = threading.Event()
        self._loop: asyncio.AbstractEventLoop
        self._closing: asyncio.Future[None]

    def carry_out(self, caller: Caller) -> None:
        if caller is self._callers[0]:
            asyncio.run(self._at_home(caller))
        elif self._opened.wait(SECONDS):
            asyncio.run(self._elsewhere(caller))

    async def _at_home(self, caller: Caller) -> None:
        self._loop = asyncio.get_running_loop()
        for name, named in self._settings.items():
            self._clients[name] = getattr(aio, name.capitalize())(self._bootstrap, **named)
            await self._clients[name].start()
        if self._in_group:
            self._clients["consumer"].subscribe(self.draw.topic)
        else:
            self._clients["consumer"].assign(self.draw.partitions)
        self._opened.set()
        try:
            for call in caller.calls:
                caller.begins(call)
                try:
                    self.note(call, await self._result(call))
                except Exception as failure:
                    self.allowed(call, failure)
            caller.now = None
            while not self._callers[1].ended:
                await asyncio.sleep(0.001)
        finally:
            for client in self._clients.values():
                await client.close()

    async def _elsewhere(self, caller: Caller) -> None:
        for call in caller.calls:
            caller.begins(call)
            with suppress(WrongLoop):
                try:
                    await self._result(call)
                except WrongLoop:
                    raise
                except MoldauError as failure:
                    self.say(f"    {failure!r}")
                assert call.call in SERVED_ANYWHERE, f"{call} was served on another loop"

    async def _result(self, call: Drawn) -> Any:
        client = self._clients[call.client]
        if call.call == "process":
            return await client.process(lambda record: self.handed(record.topic_partition, record.offset), **call.named)
        outcome = attrgetter(call.call.replace("__iter__", "__aiter__"))(client)(*call.arguments, **call.named)
        if call.call == "transaction":
            async with outcome:
                value = self.draw.value()
                self._sent.append(([value], await client.send(self.draw.topic, value)))
        elif isinstance(outcome, AsyncIterator):
            outcome = await anext(outcome, [])
        elif call.call == "log":
            await outcome.at(0)
        elif inspect.isawaitable(outcome):
            outcome = await outcome
        self._note_records(call, outcome)
        return outcome

    def _end_loop(self) -> None:
        def close() -> None:  # the coroutine is made on the loop, which may have ended by itself
            self._closing = asyncio.ensure_future(self._clients["consumer"].close())

        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(close)

    def _close(self) -> None:
        for caller in self._callers:
            caller.thread.join(SECONDS)


def stacks() -> str:
    """Where each thread is."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    frames = sys._current_frames().items()
    return "\n".join(f"{names.get(ident)}:\n{''.join(traceback.format_stack(frame))}" for ident, frame in frames)
