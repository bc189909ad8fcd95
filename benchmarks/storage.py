"""What a log on this disk costs: beside the plain system calls that move the same bytes, in one run and in turns.

usage: python -m benchmarks.storage [--quick] [--cpu] [--only append,read,...] [--svg FILE] [--folder DIR]

Appending is what a Produce does behind its request: checksum, every record scanned, offsets, indexes; beside `os.write`
of the same bytes. A second row has what the log itself adds to that call, without the check. Reading is finding the
batch and `sendfile` into a socket; beside `sendfile` of the same pieces of the same file. Both take turns a few tens of
megabytes at a time, the first one first in every other round, and what counts is the median of the rounds' ratios; the
range says how far to trust it. Targets are the project's own.
"""

import argparse
import asyncio
import logging
import os
import random
import shutil
import socket
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.drawing import Bars, Lines, page
from harness.logs import NOW_MS, append, cleaner_of, config, offset_for_time, open_log
from moldau.log.log import Log
from moldau.records import columns
from moldau.records.batch import encode_batch
from moldau.records.validation import Rules, check_produce

VALUE_BYTES = 200
BATCHES = {"16 KB": 80, "84 KB": 400, "840 KB": 4000}
"""How many records make a batch of about that size."""
TARGETS = {"16 KB": 0.5, "84 KB": 0.75, "840 KB": 0.75}
MEGABYTE = 1_000_000
_OFFSET = struct.Struct(">q")
RULES = Rules(after_max_ms=2**62)


class Rates(NamedTuple):
    """MB/s of ours and of the plain call, one pair a round."""

    ours: list[float]
    plain: list[float]

    @property
    def ratios(self) -> list[float]:
        return sorted(ours / plain for ours, plain in zip(self.ours, self.plain, strict=True))

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)


class Plan(NamedTuple):
    """How much of everything is measured, and by which clock."""

    rounds: int
    round_bytes: int
    compacted_bytes: int
    recovered_bytes: int
    clock: Callable[[], float] = time.perf_counter


USUAL = Plan(15, 64 * MEGABYTE, 300 * MEGABYTE, 1000 * MEGABYTE)
QUICK = Plan(3, 16 * MEGABYTE, 20 * MEGABYTE, 50 * MEGABYTE)


def batch_of(records: int, key: Callable[[int], bytes | None] = lambda _: None) -> memoryview:
    value = b"x" * VALUE_BYTES
    return memoryview(encode_batch([(key(at), value, NOW_MS, ()) for at in range(records)]))


def produce(log: Log, batch: memoryview) -> None:
    """One batch as a broker takes it: producers send offset 0, which the log writes over."""
    _OFFSET.pack_into(batch, 0, 0)
    checked = check_produce(batch, RULES, NOW_MS)
    log.append(batch, checked, 0, NOW_MS)


def in_turns(rounds: int, ours: Callable[[], float], plain: Callable[[], float]) -> Rates:
    """Rates of both, one after the other, the first one first in every other round; a round before does not count."""
    rates = Rates([], [])
    for number in range(rounds + 1):
        if number % 2:
            a, b = ours(), plain()
        else:
            b, a = plain(), ours()
        if number:
            rates.ours.append(a)
            rates.plain.append(b)
    return rates


def rate(work: Callable[[], int], clock: Callable[[], float]) -> float:
    """MB/s of work that says how many bytes it moved."""
    began = clock()
    moved = work()
    return moved / MEGABYTE / (clock() - began)


def appending(folder: Path, records: int, plan: Plan, checks: bool = True) -> Rates:
    """With the check of every record, or of a batch that was checked before."""
    batch = batch_of(records)
    checked = check_produce(batch, RULES, NOW_MS)
    count = max(1, plan.round_bytes // len(batch))

    def ours() -> float:
        log = open_log(folder / "log")

        def work() -> int:
            for _ in range(count):
                if checks:
                    produce(log, batch)
                else:
                    log.append(batch, checked, 0, NOW_MS)
            return count * len(batch)

        found = rate(work, plan.clock)
        log.abandon()
        shutil.rmtree(folder / "log")
        return found

    def plain() -> float:
        fd = os.open(folder / "plain", os.O_CREAT | os.O_WRONLY)

        def work() -> int:
            for _ in range(count):
                os.write(fd, batch)
            return count * len(batch)

        found = rate(work, plan.clock)
        os.close(fd)
        os.unlink(folder / "plain")
        return found

    return in_turns(plan.rounds, ours, plain)


class Drain:
    """A connected socket, and a process at its other end that reads and forgets."""

    def __enter__(self) -> socket.socket:
        listener = socket.create_server(("127.0.0.1", 0))
        self._socket = socket.create_connection(listener.getsockname())
        self._child = os.fork()
        if not self._child:
            connection, _ = listener.accept()
            self._socket.close()
            buffer = bytearray(1 << 20)
            while connection.recv_into(buffer):
                pass
            os._exit(0)
        listener.close()
        return self._socket

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        os.waitpid(self._child, 0)


def send(out: int, file: int, at: int, length: int) -> None:
    while length:
        sent = os.sendfile(out, file, at, length)
        at += sent
        length -= sent


def reading(folder: Path, records: int, plan: Plan) -> Rates:
    batch = batch_of(records)
    count = max(1, plan.round_bytes // len(batch))
    log = open_log(folder / "log")
    for _ in range(count):
        produce(log, batch)
    end, size = int(log.log_end_offset), len(batch)
    file = log.segments[0].log.get().fileno()
    assert file is not None
    with Drain() as drain:
        out = drain.fileno()

        def ours() -> float:
            def work() -> int:
                for at in range(0, end, records):
                    piece = log.read(at, size, end)
                    assert piece is not None and piece.length == size
                    send(out, piece.file.fileno() or 0, piece.offset, piece.length)
                return count * size

            return rate(work, plan.clock)

        def plain() -> float:
            def work() -> int:
                for at in range(0, count * size, size):
                    send(out, file, at, size)
                return count * size

            return rate(work, plan.clock)

        rates = in_turns(plan.rounds, ours, plain)
    log.abandon()
    shutil.rmtree(folder / "log")
    return rates


def scanning() -> list[float]:
    """Nanoseconds a record of the compiled scan alone, in batches of 840 KB, one number a round."""
    records = BATCHES["840 KB"]
    batch = batch_of(records)
    found = []
    for _ in range(30):
        began = time.perf_counter_ns()
        assert columns.plain(batch) is not None
        found.append((time.perf_counter_ns() - began) / records)
    return found


def looking_up(folder: Path, segments: int) -> tuple[float, float]:
    """Microseconds to find an offset, and a time, in a log of so many segments of 128 KB; each from memory."""
    batch_bytes = len(batch_of(80))
    log = open_log(folder / "log", config=config(segment_bytes=8 * batch_bytes + 1))
    for number in range(8 * segments):
        rows = [(None, b"x" * VALUE_BYTES, NOW_MS + number, ())] * 80
        append(log, rows)  # type: ignore[arg-type]
    assert len(log.segments) == segments
    end = int(log.log_end_offset)
    chance = random.Random(1)
    offsets = [chance.randrange(end) for _ in range(2000)]
    for offset in range(0, end, 600):
        log.read(offset, 1, end)

    def each(look: Callable[[int], object]) -> float:
        times = []
        for offset in offsets:
            began = time.perf_counter_ns()
            look(offset)
            times.append(time.perf_counter_ns() - began)
        return statistics.median(times) / 1000

    found = each(lambda at: log.read(at, 1, end)), each(lambda at: offset_for_time(log, NOW_MS + at // 80))
    log.abandon()
    shutil.rmtree(folder / "log")
    return found


def compacting(folder: Path, plan: Plan) -> tuple[float, float]:
    """MB/s of dirty log that a cleaning works off, where one record in five stays, and the share of bytes left."""
    log = open_log(folder / "log", config=config(cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0))
    records, chance = 80, random.Random(1)
    keys = max(plan.compacted_bytes // (VALUE_BYTES + 30) // 5, 1)
    written = 0
    while written < plan.compacted_bytes:
        batch = batch_of(records, lambda _: b"key-%010d" % chance.randrange(keys))
        produce(log, batch)
        written += len(batch)
    log.roll(NOW_MS)
    cleaner = cleaner_of([log], log.services.runtime)
    before = log.size
    began = time.perf_counter()
    assert asyncio.run(cleaner.clean_dirtiest())
    seconds = time.perf_counter() - began
    left = log.size / before
    log.abandon()
    shutil.rmtree(folder / "log")
    return before / MEGABYTE / seconds, left


def recovering(folder: Path, plan: Plan) -> list[float]:
    """MB/s that recovery reads after an unclean stop, of batches of 16 KB, from the page cache."""
    batch = batch_of(80)
    log = open_log(folder / "log")
    for _ in range(plan.recovered_bytes // len(batch)):
        produce(log, batch)
    size = log.size
    log.abandon()
    found = []
    for _ in range(3):
        began = time.perf_counter()
        open_log(folder / "log", clean=False).abandon()
        found.append(size / MEGABYTE / (time.perf_counter() - began))
    shutil.rmtree(folder / "log")
    return found


class Report:
    """The table, and the drawings of what is worth one."""

    def __init__(self, console: Console):
        self.table = Table("what", "ours", "plain call", "ratio", "range", "target", title="Storage")
        for column in self.table.columns[1:]:
            column.justify = "right"
        self.drawings: list[Bars | Lines] = []
        self._console = console

    def row(self, what: str, ours: str, plain: str = "", ratio: str = "", spread: str = "", target: str = "") -> None:
        self.table.add_row(what, ours, plain, ratio, spread, target)
        self._console.print(f"{what}: {ours} {plain} {ratio} {spread}", highlight=False)

    def rates(self, what: str, size: str, rates: Rates) -> float:
        ours, plain = (f"{statistics.median(each):,.0f} MB/s" for each in rates)
        low, *_, high = rates.ratios
        self.row(f"{what}, {size}", ours, plain, f"{rates.ratio:.2f}", f"{low:.2f}-{high:.2f}", f"{TARGETS[size]}")
        return rates.ratio


def run(folder: Path, plan: Plan, only: Sequence[str], report: Report) -> None:
    kinds = (
        ("append", "check and append", appending, "os.write"),
        ("append", "append", partial(appending, checks=False), "os.write"),
        ("read", "find and send", reading, "os.sendfile"),
    )
    for kind, what, measure, call in kinds:
        if kind in only:
            ratios = {size: report.rates(what, size, measure(folder, BATCHES[size], plan)) for size in BATCHES}
            report.drawings.append(Bars(f"{what}: share of the rate of {call}", ratios, TARGETS))
    if "scan" in only:
        scans = sorted(scanning())
        spread = f"{scans[0]:.1f}-{scans[-1]:.1f}"
        report.row("scan of a record", f"{statistics.median(scans):.1f} ns", spread=spread, target="60")
    if "lookup" in only:
        looks = {segments: looking_up(folder, segments) for segments in (1, 100, 1000)}
        for segments, (offset_us, time_us) in looks.items():
            what = f"look-up by offset / time, {segments:,} segments"
            report.row(what, f"{offset_us:.1f} / {time_us:.1f} us", target="flat")
        by_offset = {segments: offset_us for segments, (offset_us, _) in looks.items()}
        by_time = {segments: time_us for segments, (_, time_us) in looks.items()}
        report.drawings.append(Lines("look-up by number of segments, us", {"offset": by_offset, "time": by_time}))
    if "compaction" in only:
        megabytes, left = compacting(folder, plan)
        report.row(f"compaction that leaves {left:.0%}", f"{megabytes:,.0f} MB/s")
    if "recovery" in only:
        rates = sorted(recovering(folder, plan))
        spread = f"{rates[0]:,.0f}-{rates[-1]:,.0f}"
        report.row("recovery scan", f"{rates[1]:,.0f} MB/s", spread=spread, target="200")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.storage", description="What a log on this disk costs.")
    parser.add_argument("--quick", action="store_true", help="few and small rounds: to see that it runs")
    parser.add_argument("--cpu", action="store_true", help="by the processor's time: where other work runs")
    parser.add_argument("--only", default="append,read,scan,lookup,compaction,recovery")
    parser.add_argument("--svg", type=Path, help="draw the ratios and the look-ups into this file")
    parser.add_argument("--folder", type=Path, help="where to write, if not where temporary files are")
    asked = parser.parse_args(arguments)
    clock = time.thread_time if asked.cpu else time.perf_counter
    report = Report(Console())
    logging.getLogger("moldau").setLevel(logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="moldau-bench-", dir=asked.folder) as folder:
        run(Path(folder), (QUICK if asked.quick else USUAL)._replace(clock=clock), asked.only.split(","), report)
    Console().print(report.table)
    if asked.svg:
        asked.svg.write_text(page(report.drawings))
    return 0


if __name__ == "__main__":
    sys.exit(main())
