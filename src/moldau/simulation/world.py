"""A simulated world: hosts, the programs on them, and the faults that hit them, all from one seed.

A scenario is a coroutine with the world as argument. It starts brokers and clients, kills and partitions them, and runs
the checkers. All random choices come from the seed, so the same seed has the same history; `digest` is its hash.
"""

import asyncio
import contextvars
import hashlib
import inspect
import random
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Any, TypeVar

from moldau.broker import Broker
from moldau.cluster.membership import SharedStore
from moldau.config import broker_config
from moldau.errors import StorageError
from moldau.runtime import Runtime
from moldau.simulation.disk import SimulatedDisk
from moldau.simulation.faults import CHANGES, DiskCall, Faults, PowerLoss
from moldau.simulation.loop import CountedTask, SimulatedLoop
from moldau.simulation.network import Network, Weather, current_host
from moldau.simulation.ports import SimulatedClock, SimulatedRandom
from moldau.simulation.zookeeper import CALM, Manners, ModelZooKeeper
from moldau.simulation.zookeeper_session import ModelSession

T = TypeVar("T")
PORT = 9092
SESSION_S = 6.0
"""The time-out of the sessions of brokers that join one cluster."""


class Host:
    """One machine: its disk and its clock outlive the processes on it."""

    def __init__(self, name: str, node_id: int, clock: SimulatedClock):
        self.name = name
        self.node_id = node_id
        self.clock = clock
        self.disk = SimulatedDisk()
        self.zookeeper = ModelZooKeeper()
        self.session: ModelSession | None = None
        self.broker: Broker | None = None
        self.joins = False
        """Whether the broker is one of several: its session outlives it until its time-out."""
        self.reaches_zookeeper = True


class World:
    def __init__(self, seed: int, weather: Weather | None = None, manners: Manners = CALM):
        self.seed = seed
        self.random = random.Random(seed)
        self.network = Network(random.Random(self.random.getrandbits(64)), weather)
        self.loop = SimulatedLoop(self.network)
        self.hosts: dict[str, Host] = {}
        self.zookeeper = ModelZooKeeper(random.Random(seed), manners)
        """That of the brokers that join one cluster; `manners` are its."""
        self._history = hashlib.sha256()
        self.network.on_deliver = self._note

    @property
    def digest(self) -> str:
        """A hash over all messages: time, sender, receiver and bytes of each."""
        return self._history.hexdigest()

    def _note(self, source: str, target: str, data: bytes) -> None:
        self._history.update(f"{self.loop.time():.9f} {source} {target} {len(data)} ".encode())
        self._history.update(data)

    def run(self, scenario: Callable[["World"], Coroutine[Any, Any, T]]) -> T:
        """Run the scenario to its end, then cancel the tasks that still run."""
        asyncio.set_event_loop(self.loop)
        try:
            return self.loop.run_until_complete(self.loop.create_task(scenario(self)))
        finally:
            self._cancel(lambda _: True)
            asyncio.set_event_loop(None)
            self.loop.close()

    def _cancel(self, which: Callable[[CountedTask], bool]) -> None:
        tasks = [task for task in asyncio.all_tasks(self.loop) if isinstance(task, CountedTask) and which(task)]
        for task in sorted(tasks, key=hash):
            _close_unbegun(task.get_coro())
            task.cancel()
        if tasks and not self.loop.is_running():
            self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))

    def host(self, name: str) -> Host:
        if name not in self.hosts:
            self.hosts[name] = Host(name, len(self.hosts) + 1, SimulatedClock(self.loop))
        return self.hosts[name]

    def runtime(self, host: Host) -> Runtime:
        chance = SimulatedRandom(random.Random(self.random.getrandbits(64)))
        return Runtime(host.clock, host.disk, chance, stopwatch=self.loop.time)

    async def on(self, host: str, work: Awaitable[T]) -> T:
        """Run `work` on that host: its connections and tasks belong to the host."""

        async def there() -> T:
            return await work

        context = contextvars.copy_context()
        context.run(current_host.set, host)
        return await context.run(self.loop.create_task, there(), context=context)

    async def start_broker(self, name: str, **settings: object) -> Broker:
        """Start a broker on that host, alone, with the host's disk. Settings have Kafka's names with underscores."""
        return await self._start_broker(self.host(name), settings)

    async def join_broker(self, name: str, **settings: object) -> Broker:
        """As `start_broker`, but as one of those that join one cluster."""
        self.host(name).joins = True
        return await self._start_broker(self.host(name), settings)

    async def _start_broker(self, host: Host, settings: Mapping[str, object]) -> Broker:
        name = host.name
        given = {key.replace("_", "."): str(value) for key, value in settings.items()}
        properties = {"log.dirs": "/data", **given}
        properties |= {"node.id": str(host.node_id), "listeners": f"PLAINTEXT://{name}:{PORT}"}
        config, _ = broker_config(properties)
        if host.joins:
            shared = SharedStore(partial(self._joined, host), SESSION_S)
            host.broker = Broker(config, self.runtime(host), shared=shared)
        else:
            there = contextvars.copy_context()
            there.run(current_host.set, name)
            host.session = there.run(ModelSession, host.zookeeper)
            host.broker = Broker(config, self.runtime(host), host.session)
        await self.on(name, host.broker.start())
        return host.broker

    async def _joined(self, host: Host) -> ModelSession:
        if not host.reaches_zookeeper:
            raise StorageError("ZooKeeper cannot be reached")
        host.session = ModelSession(self.zookeeper, SESSION_S)
        return host.session

    def cut_from_zookeeper(self, name: str) -> None:
        """A broker that has joined does not reach ZooKeeper from now on: its session is over after its time-out."""
        host = self.host(name)
        assert host.session is not None
        host.reaches_zookeeper = False
        self.zookeeper.cut(host.session.link)

    async def stop_broker(self, name: str) -> None:
        """SIGTERM."""
        host = self.host(name)
        assert host.broker is not None
        await self.on(name, host.broker.stop())
        self.network.reset(name)
        host.broker = None

    def kill(self, name: str) -> None:
        """SIGKILL everything on that host between two steps of the loop, and break its connections."""
        self.loop.forget_timers(name)
        contextvars.Context().run(self.network.reset, name)
        self._cancel(lambda task: task.host == name)

    def kill_broker(self, name: str, power_loss: bool = False) -> None:
        """End the broker between two steps of the loop, by SIGKILL or by a power loss, with its effect on the disk."""
        host = self.host(name)
        self.kill(name)
        host.disk = host.disk.after_crash(self.random) if power_loss else host.disk.after_kill()
        if host.session is not None:
            host.session.abandon()
            if not host.joins:
                host.zookeeper.end(host.session.link)
        host.broker = None

    def kill_broker_at_call(self, name: str, calls: int, power_loss: bool, told: Callable[[], None]) -> None:
        """As `kill_broker`, but right before the `calls`th change of the broker's disk from now on. `told` is called
        just before the kill."""
        host = self.host(name)
        faults = host.disk.faults = Faults(self.random)
        left = calls

        def watch(call: DiskCall) -> None:
            nonlocal left
            left -= call.name in CHANGES
            if left > 0:
                return
            faults.watch = None
            told()
            self.kill_broker(name, power_loss)
            raise PowerLoss(f"at {call.name} of {call.path}")

        faults.watch = watch


def _close_unbegun(work: object) -> None:
    """Close a coroutine whose awaiter never started, because Python warns about coroutines that are never awaited."""
    if inspect.iscoroutine(work) and work.cr_frame and inspect.getcoroutinestate(work) == inspect.CORO_CREATED:
        held = list(work.cr_frame.f_locals.values())
        for inner in [*held, *(one for several in held if isinstance(several, list | tuple) for one in several)]:
            if inspect.iscoroutine(inner) and inspect.getcoroutinestate(inner) == inspect.CORO_CREATED:
                _close_unbegun(inner)
                inner.close()
