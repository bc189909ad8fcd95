"""What metrics, access rights and quotas cost a request of one record in the broker alone, by processor time.

Brokers in processes of their own answer the same frames in turns of a millisecond, without sockets and clients. Such
ratios hold on a busy machine, too. Two processes that do the same differ by up to a twentieth, by where their memory
lies, so all brokers are started several times: the median of the starts counts, and "plain again" shows the noise.

usage: python -m benchmarks.in_process [--starts 9] [--rounds 400] [--before REVISION]

A read brings 64 requests, as a producer that pipelines sends them, or one, as the busiest of those that do not.
`--before`: all of it for that revision, too.
"""

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import frames
from benchmarks.broker_load import VALUE_BYTES, new_topic
from benchmarks.earlier import source_of
from benchmarks.secured import GUARDED, guarded_by_much
from moldau.broker import Broker
from moldau.config import broker_config
from moldau.net.accepted import Connection
from moldau.net.measured import measured
from moldau.runtime import Runtime

REQUESTS_A_ROUND = 64
"""A millisecond: most rounds are interrupted by nothing."""
ROUNDS_TOGETHER = 32
"""Their times are added up before they are compared: metrics are counted once in 1,024 reads, which costs one round."""
METRICS = {"metrics.port": "0", "metrics.host": "127.0.0.1"}
RIGHTS = {**GUARDED, "super.users": "User:ANONYMOUS"}
KINDS = {"plain": {}, "metrics": METRICS, "rights and quotas": RIGHTS, "all of it": {**METRICS, **RIGHTS}}
Round = Callable[[int], float]
"""Requests in a read -> microseconds of processor time for each request."""


class NoWire(asyncio.Transport):
    """Takes all that is written."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 50_000)})
        self.is_paused = False

    def write(self, data: Any) -> None: ...

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None: ...

    def abort(self) -> None: ...


class Asked(NamedTuple):
    """A connection to a broker, and the frame that is sent on it."""

    connection: Connection
    wire: NoWire
    frame: bytes

    async def round(self, requests_a_read: int) -> float:
        """Microseconds of processor time for each request."""
        burst, connection = self.frame * requests_a_read, self.connection
        size, began = len(burst), time.process_time()
        for _ in range(REQUESTS_A_ROUND // requests_a_read):
            connection.get_buffer(-1)[:size] = burst
            connection.buffer_updated(size)
            while self.wire.is_paused:  # it was interrupted, and its share of the loop is over
                await asyncio.sleep(0)
        return (time.process_time() - began) / REQUESTS_A_ROUND * 1e6


async def answer_rounds(settings: dict[str, str], folder: str) -> None:
    """A broker whose rounds are asked for on standard input, a line each: how many requests a read brings."""
    config, _ = broker_config({"log.dirs": folder, "listeners": "PLAINTEXT://127.0.0.1:0", **settings})
    broker = Broker(config, Runtime())
    await broker.start()
    port = next(iter(broker.ports.values()))
    if "authorizer.class.name" in settings:
        await asyncio.to_thread(guarded_by_much, f"127.0.0.1:{port}")
    topic = await asyncio.to_thread(new_topic, port)
    times, wire = broker.server.times, NoWire()
    kind = Connection if times is None else measured(Connection, times)
    connection = kind(broker.server, asyncio.get_running_loop())
    connection.connection_made(wire)
    asked = Asked(connection, wire, frames.produce(topic, 0, frames.batch(1, VALUE_BYTES)))
    while line := sys.stdin.readline():
        print(await asked.round(int(line)), flush=True)
        await asyncio.sleep(0)
    connection.close()
    await broker.stop()


@contextlib.contextmanager
def running(settings: dict[str, str], source: Path | None) -> Iterator[Round]:
    environment = os.environ if source is None else {**os.environ, "PYTHONPATH": str(source)}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.in_process", "--answer", json.dumps(settings), folder]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        assert process.stdin is not None and process.stdout is not None
        asks, answers = process.stdin, process.stdout

        def one_round(requests_a_read: int) -> float:
            print(requests_a_read, file=asks, flush=True)
            return float(answers.readline())

        try:
            yield one_round
        finally:
            asks.close()
            process.wait(30)
            answers.close()


def taken(kinds: dict[str, Round], rounds: int, requests_a_read: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in kinds}
    for number in range(rounds):
        names = list(kinds)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            found[name].append(kinds[name](requests_a_read))
    return {name: _together(one[rounds // 10 :]) for name, one in found.items()}


def _together(times: Sequence[float]) -> list[float]:
    """The means of so many rounds each."""
    starts = range(0, len(times) - ROUNDS_TOGETHER + 1, ROUNDS_TOGETHER)
    return [statistics.fmean(times[start : start + ROUNDS_TOGETHER]) for start in starts]


def tell(requests_a_read: int, starts: Sequence[dict[str, list[float]]]) -> None:
    """`starts`: what was taken in each, by kind."""
    print(f"one-record Produce, {requests_a_read} in a read, processor time:")
    for name in starts[0]:
        us = statistics.median(one for start in starts for one in start[name])
        kept = [
            statistics.median(first / second for first, second in zip(start["plain"], start[name], strict=True))
            for start in starts
        ]
        least, most = min(kept), max(kept)
        print(f"  {name:25} {us:6.2f} us, keeps {statistics.median(kept):.3f} of the rate ({least:.3f} to {most:.3f})")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.in_process", description="What a request costs.")
    parser.add_argument("--starts", type=int, default=9)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--before", metavar="REVISION")
    parser.add_argument("--answer", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.answer:
        asyncio.run(answer_rounds(json.loads(asked.answer[0]), asked.answer[1]))
        return 0
    found: dict[int, list[dict[str, list[float]]]] = {64: [], 1: []}
    with contextlib.ExitStack() as whole:
        source = whole.enter_context(source_of(asked.before)) if asked.before else None
        for _ in range(asked.starts):
            with contextlib.ExitStack() as stack:
                kinds = {name: stack.enter_context(running(settings, None)) for name, settings in KINDS.items()}
                kinds["plain again"] = stack.enter_context(running({}, None))
                if source is not None:
                    for name, settings in KINDS.items():
                        kinds[f"{name}, before"] = stack.enter_context(running(settings, source))
                for requests_a_read, starts in found.items():
                    starts.append(taken(kinds, asked.rounds, requests_a_read))
        for requests_a_read, starts in found.items():
            tell(requests_a_read, starts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
