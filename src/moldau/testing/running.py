"""One life of a broker under test: its thread, its event loop, and how both end.

A life ends by `stop`, as by SIGTERM, or by `kill`, as by SIGKILL: connections break, nothing more is written, no marker
of a clean stop is left. Either way no thread, task, socket or file of it remains. `failures` keeps the errors of
its thread, except those that come from the kill.
"""

import asyncio
import concurrent.futures
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from moldau.broker import Broker
from moldau.cluster.cluster import Cluster
from moldau.cluster.controlling.controller import NewTopic, Refusal
from moldau.cluster.joined import JoinedCluster
from moldau.cluster.membership import SharedStore
from moldau.cluster.state.image import Image
from moldau.config import BrokerConfig
from moldau.errors import KafkaError
from moldau.runtime import RealDisk, Runtime
from moldau.testing.clock import Clock, ShiftedLoop
from moldau.testing.disk import UnflushedDisk
from moldau.testing.faults import FaultyGate

TURNS_OF_TLS = 3
"""Of the loop, in which a broken connection with TLS ends."""
_moldau = logging.getLogger("moldau")


class Life:
    """`start` returns when the broker listens. `stop` and `kill` may be called from any other thread. With `shared` the
    broker is one of several. `prepare` is awaited before a client may know where the broker listens."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        gate: FaultyGate,
        is_temporary: bool,
        shared: SharedStore | None = None,
        prepare: Callable[[Cluster], Coroutine[Any, Any, None]] | None = None,
    ):
        self.port = 0
        self.failures: list[BaseException] = []
        self._config = config
        self._clock = clock
        self._gate = gate
        self._is_temporary = is_temporary
        self._shared = shared
        self._prepare = prepare
        self._started: concurrent.futures.Future[int] = concurrent.futures.Future()
        self._thread = threading.Thread(target=self._run, name="moldau-testing-broker", daemon=True)
        self._loop: ShiftedLoop
        self._broker: Broker
        self._is_killed = self._is_broken_off = False
        self._over: asyncio.Event

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        """Raises what the broker raises at its start."""
        self._thread.start()
        try:
            self.port = self._started.result()
        except BaseException:
            self._thread.join()
            raise
        self._clock.attach(self._loop)

    def stop(self) -> None:
        self._end(is_killed=False)

    def kill(self) -> None:
        self._end(is_killed=True)

    @property
    def controls(self) -> bool:
        """Whether this broker is the controller of its cluster now."""
        return self._broker.controls

    @property
    def metrics_port(self) -> int:
        """0 if this broker serves none."""
        metrics = self._broker.metrics
        return 0 if metrics is None else metrics.port

    def until(self, holds: Callable[[Image], bool], seconds: float) -> None:
        """Wait until a broker of several shows an image for which this holds. Raises `TimeoutError`, `BrokerFailed`."""
        cluster = self._broker.cluster
        assert isinstance(cluster, JoinedCluster)
        self._loop.result_of(asyncio.wait_for(cluster.following.until(holds), seconds))

    def run(self, work: Callable[[Cluster], Coroutine[Any, Any, None]]) -> None:
        """Run this with the broker's cluster, in its thread. Raises what it raises, and `BrokerFailed`."""
        self._loop.result_of(work(self._broker.cluster))

    def create_topic(self, topic: NewTopic) -> None:
        """Raises `KafkaError`, `BrokerFailed`."""
        ((_, made),) = self._loop.result_of(self._broker.cluster.topics.create([topic]))
        if isinstance(made, Refusal):
            raise KafkaError(made.code, made.message)

    def _end(self, is_killed: bool) -> None:
        self._clock.attach(None)
        self._is_killed = is_killed
        try:
            self._loop.call_soon_threadsafe(self._over.set)
        except RuntimeError:  # the loop has ended by itself, because the broker failed
            pass
        self._thread.join()

    def _run(self) -> None:
        heard = _Failures(self._failed, threading.get_ident())
        _moldau.addHandler(heard)
        try:
            with asyncio.Runner(loop_factory=self._make_loop) as runner:
                runner.run(self._live())
            if self._is_killed:
                self._broker.abandon()
        except BaseException as error:
            if self._started.done():
                self.failures.append(error)
            else:
                self._started.set_exception(error)
        finally:
            _moldau.removeHandler(heard)

    def _make_loop(self) -> ShiftedLoop:
        loop = self._loop = ShiftedLoop(self._clock)
        loop.set_exception_handler(self._heard)
        return loop

    def _heard(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._failed(context.get("exception") or RuntimeError(context["message"]))
        if not self._is_broken_off:
            loop.default_exception_handler(context)

    def _failed(self, error: BaseException) -> None:
        if not self._is_broken_off:
            self.failures.append(error)

    async def _live(self) -> None:
        disk = UnflushedDisk() if self._is_temporary else RealDisk()
        runtime = Runtime(self._clock, disk, is_durable=not self._is_temporary)
        broker = self._broker = Broker(self._config, runtime, gate=self._gate, shared=self._shared)
        self._over = asyncio.Event()
        self._gate.protect({}, None)  # what is left of an earlier life
        await broker.start()
        if self._prepare is not None:
            try:
                await self._prepare(broker.cluster)
            except BaseException:
                await broker.stop()
                raise
        topics = broker.cluster.metadata
        self._gate.topic_id = lambda name: topic.id.bytes if (topic := topics.image.topics.get(name)) else None
        self._started.set_result(broker.port)
        waits = [asyncio.ensure_future(event.wait()) for event in (self._over, broker.failed)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        if broker.failed.is_set():
            self.failures.append(RuntimeError("the broker has lost its data folder"))
        if self._is_killed:
            self._break_off()
            for _ in range(TURNS_OF_TLS):
                await asyncio.sleep(0)
        else:
            await broker.stop()

    def _break_off(self) -> None:
        """Close the listeners and break the connections; the tasks are cancelled when the loop closes."""
        self._is_broken_off = True
        self._broker.abort()


class _Failures(logging.Handler):
    """Passes on the exceptions that the broker's thread logs as errors: faults of the broker, not of its clients."""

    def __init__(self, failed: Callable[[BaseException], None], thread: int):
        super().__init__(logging.ERROR)
        self._failed = failed
        self._thread_id = thread

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._thread_id and record.exc_info and record.exc_info[1] is not None:
            self._failed(record.exc_info[1])
