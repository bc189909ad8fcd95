"""What metrics cost: one-record Produce of a broker that counts the times of its requests beside one that does not, in
turns, and a scrape of many partitions, with what other clients wait meanwhile.

usage: python -m benchmarks.metrics [--turns 6] [--partitions 10000] [--scrapes 20] [--before REVISION]

`--before`: also one-record Produce of a broker without metrics beside that revision's: the counters that always count.
"""

import argparse
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from urllib.request import Request, urlopen

from benchmarks import frames
from benchmarks.broker_load import Wire
from benchmarks.earlier import source_of
from benchmarks.partitions import fill, make
from benchmarks.secured import in_turns, tell
from benchmarks.side_by_side import ours
from harness.brokers import Broker
from harness.listening import free_port


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def scrape(port: int, encoding: str) -> int:
    """The bytes of one scrape."""
    asked = Request(f"http://127.0.0.1:{port}/metrics", headers={"Accept-Encoding": encoding})
    with urlopen(asked, timeout=60) as answer:
        return len(answer.read())


def processor_s(pid: int) -> float:
    """The processor time that a process has used, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def timed(work: Callable[[], int], times: int) -> tuple[list[float], int]:
    """Milliseconds of each, sorted, and what the last one returned."""
    taken, size = [], 0
    for _ in range(times):
        began = time.perf_counter()
        size = work()
        taken.append((time.perf_counter() - began) * 1000)
    return sorted(taken), size


def waits_of(port: int, until: threading.Event) -> list[float]:
    """What a producer of one record at a time waits for each answer, in milliseconds, sorted."""
    waits, frame = [], frames.produce("many-0", 0, frames.batch(1, 100))
    with Wire(port) as wire:
        while not until.is_set():
            began = time.perf_counter()
            wire.send(frame)
            wire.reply()
            waits.append((time.perf_counter() - began) * 1000)
            time.sleep(0.002)
    return sorted(waits)


def scraped(broker: Broker, port: int, encoding: str, times: int) -> str:
    """Scrapes alone, and beside a producer."""
    done, waits = threading.Event(), list[float]()

    def one() -> int:
        return scrape(port, encoding)

    used = processor_s(broker.pid)
    alone, size = timed(one, times)
    each_ms = (processor_s(broker.pid) - used) * 1000 / times
    producer = threading.Thread(target=lambda: waits.extend(waits_of(port_of(broker.address), done)))
    producer.start()
    beside, _ = timed(one, times)
    done.set()
    producer.join()
    return (
        f"{encoding}: {statistics.median(alone):.0f} ms, at most {alone[-1]:.0f} ms, {each_ms:.0f} ms of the "
        f"processor, {size / 1e6:.1f} MB; beside a producer {statistics.median(beside):.0f} ms, which waits "
        f"{statistics.median(waits):.1f} ms, at most {max(waits):.1f} ms"
    )


def scrapes(partitions: int, times: int) -> None:
    port = free_port()
    with ours({"metrics.port": str(port), "metrics.host": "127.0.0.1"}) as broker:
        make(port_of(broker.address), partitions)
        fill(port_of(broker.address), partitions)
        for encoding in ("identity", "gzip"):
            print(f"scrape of {partitions:,} partitions, {scraped(broker, port, encoding, times)}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.metrics", description="What metrics cost.")
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--scrapes", type=int, default=20)
    parser.add_argument("--before", metavar="REVISION")
    asked = parser.parse_args()
    if asked.turns:
        with ours() as plain, ours({"metrics.port": "0", "metrics.host": "127.0.0.1"}) as measured:
            tell("with metrics", *in_turns(asked.turns, port_of(plain.address), port_of(measured.address)))
        if asked.before:
            with source_of(asked.before) as source, ours(source=source) as old, ours() as new:
                tell(f"since {asked.before}", *in_turns(asked.turns, port_of(old.address), port_of(new.address)))
    if asked.partitions:
        scrapes(asked.partitions, asked.scrapes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
