"""How long a producer with acks=all waits when a leader dies, and when each broker is restarted in turn.

usage: python -m benchmarks.leader_changes [--kills 20] [--rounds 2] [--session-ms 6000] [--start | --embedded]

Three broker processes with three replicas of every partition, of which two must be in sync, and a producer that writes
to each partition every 5 ms. A figure is the longest time in which a partition acknowledged nothing. Without an option
the brokers are of their own, with a ZooKeeper: a dead leader is replaced when its session is over. `--start` and
`--embedded` are `moldau cluster start`, with ZooKeeper and without, which ends the session of a broker that has died.
"""

import argparse
import contextlib
import functools
import os
import signal
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.broker_load import Case
from benchmarks.fail_over import local_cluster, process_of
from harness.brokers import Broker
from harness.patience import wait_until
from harness.steady import SteadyWrites
from harness.zookeeper import ZooKeeper
from moldau import Admin
from moldau.errors import MoldauError

TOPIC, PARTITIONS, BROKERS = "levels", 3, 3
REPLICATED = {"default.replication.factor": "3", "min.insync.replicas": "2"}
PATIENCE_S = 60

Signal = Callable[[int, int], None]
"""Sends a signal to the broker with that id, which starts again."""


@contextlib.contextmanager
def under_start(folder: Path, *options: str) -> Iterator[tuple[str, Signal]]:
    settings = [word for name, value in REPLICATED.items() for word in ("--set", f"{name}={value}")]
    with local_cluster(folder, *options, *settings) as addresses:

        def send(broker: int, number: int) -> None:
            os.kill(process_of(folder / "data" / f"broker-{broker}"), number)

        yield ",".join(addresses), send


@contextlib.contextmanager
def of_their_own(folder: Path, session_ms: int) -> Iterator[tuple[str, Signal]]:
    with ZooKeeper(folder / "zookeeper") as zookeeper, contextlib.ExitStack() as undo:
        brokers = {}
        for number in range(1, BROKERS + 1):
            place = folder / str(number)
            place.mkdir()
            settings = {
                **REPLICATED,
                "broker.id": str(number),
                "zookeeper.connect": zookeeper.connect,
                "zookeeper.session.timeout.ms": str(session_ms),
            }
            brokers[number] = Broker(place, settings, may_be_held=True)
            brokers[number].start()
            undo.callback(brokers[number].stop)

        def send(broker: int, number: int) -> None:
            if number == signal.SIGKILL:
                brokers[broker].kill()
                time.sleep(session_ms / 1000 + 2)  # a broker that starts ends the session of the process before it
            else:
                brokers[broker].stop()
            brokers[broker].start()

        yield ",".join(broker.address for broker in brokers.values()), send


def cases(kills: int, rounds: int, cluster: contextlib.AbstractContextManager[tuple[str, Signal]]) -> Iterator[Case]:
    with cluster as (addresses, send), Admin(addresses) as admin:
        admin.create_topic(TOPIC, partitions=PARTITIONS)
        with SteadyWrites(addresses, TOPIC, PARTITIONS) as writes:
            assert wait_until(lambda: writes.first_after(0))
            deaths = []
            for number in range(kills):
                leader = admin.describe_topics([TOPIC])[TOPIC].partitions[number % PARTITIONS].leader
                deaths.append(gap_s(admin, writes, functools.partial(send, leader, signal.SIGKILL)))
                print(f"broker {leader} was killed: {deaths[-1]:.3f} s", flush=True)
            restarts = []
            for broker in [broker for _ in range(rounds) for broker in range(1, BROKERS + 1)]:
                restarts.append(gap_s(admin, writes, functools.partial(send, broker, signal.SIGTERM)))
                print(f"broker {broker} was restarted: {restarts[-1]:.3f} s", flush=True)
        assert not writes.failed, writes.failed
    if deaths:
        yield Case(f"death of a leader to the next acknowledgement, {kills} kills, p50", statistics.median(deaths), "s")
        yield Case("the same, p99", sorted(deaths)[round(0.99 * (kills - 1))], "s")
    if restarts:
        yield Case(f"longest gap of {len(restarts)} controlled restarts", max(restarts), "s")


def gap_s(admin: Admin, writes: SteadyWrites, change: Callable[[], None]) -> float:
    """The longest gap from now until the change is over and all replicas are in sync again."""
    began_s = time.monotonic()
    change()
    assert wait_until(lambda: has_shrunk_or_is_whole(admin, began_s), PATIENCE_S)
    assert wait_until(lambda: is_whole(admin), PATIENCE_S)
    moment_s = time.monotonic()
    assert wait_until(lambda: writes.first_after(moment_s), PATIENCE_S)
    return writes.longest_gap_s(began_s)


def has_shrunk_or_is_whole(admin: Admin, began_s: float) -> bool:
    """A broker that was told to stop is still in sync for a moment; after two seconds it was not noticed."""
    return not is_whole(admin) or time.monotonic() > began_s + 2


def is_whole(admin: Admin) -> bool:
    with contextlib.suppress(MoldauError):
        parts = admin.describe_topics([TOPIC])[TOPIC].partitions.values()
        return len(admin.describe_cluster().brokers) == BROKERS and all(len(part.isr) == BROKERS for part in parts)
    return False


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.leader_changes")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--session-ms", type=int, default=6000)
    parser.add_argument("--start", action="store_true")
    parser.add_argument("--embedded", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.start or given.embedded:
            chosen = under_start(folder, *(["--embedded"] if given.embedded else []))
        else:
            chosen = of_their_own(folder, given.session_ms)
        for case in cases(given.kills, given.rounds, chosen):
            print(f"{case.name}: {case.value:.3f} {case.unit}")
